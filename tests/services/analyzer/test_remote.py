"""An analyzer that passes requests on to another one: the fake that conforms or lies, and real ones in a circle."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError, Question
from camserver.domain.jobs import ErrorKind
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.services.analyzer import remote, service
from camserver.services.analyzer.detector import Model
from camserver.services.analyzer.remote import time_for_the_other_sec
from camserver.wire.analyzer import VIA_HEADER, CapabilitiesAnswer, ModelInfo, parse_capabilities
from camserver.wire.analyzer_service import Capabilities
from tests.fakes.analyzer import FakeAnalyzer, Fault, Rule, Seen
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async, until
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of
from tests.services.analyzer.rig import (
    DOCUMENT,
    REQUEST_TIMEOUT_SEC,
    RunningAnalyzer,
    ScriptedDetector,
    form,
    running_analyzer,
    settings_in,
    shipped,
)

HUMAN = jpeg(Seen("human", ("count.single",), count_hint=1).hint())


@asynccontextmanager
async def passing_on(folder: Path, url: str, port: int = 0, **changes: Any) -> AsyncIterator[RunningAnalyzer]:
    """A running analyzer whose detector is the one at `url`."""
    ready = Ready()
    ready.expect("analyzer")
    settings = settings_in(folder, detector="remote", remote_url=url, workers=2, **changes)
    with listening_socket(port) as sock:
        serving = asyncio.create_task(service.run(StoreClock(), settings, ready, sock))
        try:
            await until(lambda: ready.is_ready or serving.done(), "the analyzer is ready")
            timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
            async with aiohttp.ClientSession(timeout=timeout) as http:
                yield RunningAnalyzer(f"http://{LOOPBACK}:{port_of(sock)}", [], http)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[FakeAnalyzer]:
    async with FakeAnalyzer(tmp_path / "other.json") as fake:
        yield fake


@pytest.fixture
async def analyzer(tmp_path: Path, other: FakeAnalyzer) -> AsyncIterator[RunningAnalyzer]:
    async with passing_on(tmp_path / "own", other.url) as running:
        await running.put_vocabulary()
        yield running


async def test_the_other_ones_answer_is_passed_back(analyzer: RunningAnalyzer, other: FakeAnalyzer) -> None:
    hints = {"time_band": "night", "something_new": [1, {"x": 2}]}
    status, said = await analyzer.analyze(
        HUMAN, request_id="r-1", prev_infer_image=HUMAN, hints_json=json.dumps(hints)
    )
    assert (status, said["primary_event"], said["tags"], said["request_id"]) == (
        200,
        "human",
        ["count.single"],
        "r-1",
    )
    assert said["model_info"]["name"]
    (asked,) = other.analyses()[-1:]
    assert (asked.camera_id, asked.request_id, asked.captured_at) == ("cam_1", "r-1", "2026-01-01T00:00:00.000Z")
    assert (asked.image_bytes, asked.has_prev_image, asked.hints) == (len(HUMAN), True, hints)


async def test_it_is_given_the_vocabulary_when_it_asks_for_it(analyzer: RunningAnalyzer, other: FakeAnalyzer) -> None:
    assert other.schema_version != SHIPPED_VERSION
    assert (await analyzer.analyze(HUMAN))[0] == 200
    assert other.schema_version == SHIPPED_VERSION
    other.forget_vocabulary()
    asked = await asyncio.gather(*(analyzer.analyze(HUMAN) for _ in range(6)))
    assert [status for status, _ in asked] == [200] * 6


async def test_it_says_whose_model_it_is(analyzer: RunningAnalyzer) -> None:
    _, said, _ = await analyzer.ask("GET", "/v1/capabilities")
    assert said["runtime"] == "remote"
    assert said["model"]["name"]


@pytest.mark.parametrize(
    ("fault", "status", "error", "retry_after"),
    [
        (Fault.answer_status(429, "7"), 429, "overloaded", "7"),
        (Fault.answer_status(503, "9"), 503, "unavailable", "9"),
        (Fault.answer_status(503), 503, "unavailable", "2"),
        (Fault.answer_status(429, "1e9"), 429, "overloaded", "300"),
        (Fault.reset(), 503, "unavailable", "2"),
        (Fault.answer_status(500), 500, "internal", None),
        (Fault.answer_status(400), 400, "bad_request", None),
        (Fault.answer_status(409), 409, "schema_mismatch", None),
        (Fault.malformed(), 500, "internal", None),
        (Fault.wrong_camera(), 500, "internal", None),
        (Fault.huge(3_000_000), 500, "internal", None),
        (Fault.redirect("http://192.0.2.1/"), 500, "internal", None),
    ],
)
async def test_its_failures_become_ours(
    analyzer: RunningAnalyzer, other: FakeAnalyzer, fault: Fault, status: int, error: str, retry_after: str | None
) -> None:
    other.add_fault(fault)
    got, said, response = await analyzer.ask("POST", "/v1/analyze", data=form(HUMAN))
    assert (got, said["error"]) == (status, error)
    assert response.headers.get("Retry-After") == retry_after
    other.heal()
    assert (await analyzer.analyze(HUMAN))[0] == 200


async def test_one_that_is_away_is_unavailable_and_found_again(
    analyzer: RunningAnalyzer, other: FakeAnalyzer
) -> None:
    await other.refuse()
    assert (await analyzer.analyze(HUMAN))[0] == 503
    await other.accept()
    assert (await analyzer.analyze(HUMAN))[0] == 200


async def test_no_more_are_passed_on_at_once_than_set(analyzer: RunningAnalyzer, other: FakeAnalyzer) -> None:
    assert (await analyzer.analyze(HUMAN))[0] == 200
    other.in_flight_max = 0
    asked = await asyncio.gather(*(analyzer.analyze(HUMAN) for _ in range(10)))
    assert [status for status, _ in asked] == [200] * 10
    assert other.in_flight_max <= 2


async def test_a_circle_is_noticed_and_named(tmp_path: Path) -> None:
    first_port, second_port = free_port(), free_port()
    async with (
        passing_on(tmp_path / "1", f"http://{LOOPBACK}:{second_port}", first_port) as first,
        passing_on(tmp_path / "2", f"http://{LOOPBACK}:{first_port}", second_port) as second,
    ):
        await first.put_vocabulary()
        await second.put_vocabulary()
        status, said = await first.analyze(HUMAN)
        assert (status, said["error"]) == (503, "unavailable")
        assert "circle" in said["message"]


async def test_a_chain_that_is_too_long_is_refused(analyzer: RunningAnalyzer, other: FakeAnalyzer) -> None:
    names = ",".join(f"other-{number}" for number in range(8))
    status, said, _ = await analyzer.ask("POST", "/v1/analyze", data=form(HUMAN), headers={VIA_HEADER: names})
    assert (status, said["error"]) == (503, "unavailable")
    assert other.analyses() == []


async def test_an_answer_that_never_comes_does_not_hold_up_stopping(tmp_path: Path, other: FakeAnalyzer) -> None:
    async with asyncio.timeout(100):
        async with passing_on(tmp_path / "own", other.url, analyze_timeout_sec=300) as analyzer:
            await analyzer.put_vocabulary()
            assert (await analyzer.analyze(HUMAN))[0] == 200
            other.add_fault(Rule(Fault.hold()))
            under_way = asyncio.create_task(analyzer.analyze(HUMAN))
            await until(lambda: other.in_flight == 1, "the other one has the request")
    await asyncio.gather(under_way, return_exceptions=True)


async def test_diff_and_events_of_the_other_one_are_passed_on(tmp_path: Path) -> None:
    finds = ScriptedDetector(model=Model("scripted", "other", "7", ("none", "human", "unknown")))
    async with running_analyzer(tmp_path / "other", [finds]) as other, passing_on(tmp_path / "own", other.url) as own:
        await own.put_vocabulary()
        status, said = await own.analyze(prev_infer_image=HUMAN)
        assert (status, said["diff"]["used_prev_image"]) == (200, False)
        assert "diff_ratio" in said["diff"]
        _, said, _ = await own.ask("GET", "/v1/capabilities")
        assert said["supported_primary_events"] == ["none", "human", "unknown"]


async def test_it_asks_again_what_the_other_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ASK_EVERY_SEC", 0.01)
    first = ScriptedDetector(model=Model("scripted", "first", "1"))
    async with running_analyzer(tmp_path / "other", [first]) as other, passing_on(tmp_path / "own", other.url) as own:

        async def says(name: str) -> bool:
            _, said, _ = await own.ask("GET", "/v1/capabilities")
            return bool(said["model"]["name"] == name)

        assert await says("first")
        changed = Capabilities(
            runtime="scripted",
            model=ModelInfo(name="second", version="2"),
            supported_primary_events=("none",),
            warnings=("half awake",),
        )

        async def capabilities(*_: object) -> CapabilitiesAnswer:
            return parse_capabilities(changed.model_dump_json().encode())

        monkeypatch.setattr(AnalyzerClient, "capabilities", capabilities)
        await poll_async(lambda: says("second"), "the new model is noticed")
        _, said, _ = await own.ask("GET", "/v1/capabilities")
        assert said["warnings"] == ["half awake"]


async def test_it_waits_for_no_longer_than_who_asked(tmp_path: Path, other: FakeAnalyzer) -> None:
    """The other one never answers; the client's own time-out would be a minute."""
    client = AnalyzerClient(other.url, analyze_timeout_sec=60, schema_timeout_sec=5, health_timeout_sec=3)
    try:
        await client.put_vocabulary(SHIPPED_VERSION, DOCUMENT)
        other.add_fault(Rule(Fault.hold()))
        with pytest.raises(AnalyzerError, match=r"within 0\.2 s") as failed:
            await client.whole_answer(Question("cam", 0, "r", HUMAN), shipped(), 0.2)
        assert failed.value.kind is ErrorKind.TIMEOUT
    finally:
        await client.close()


@pytest.mark.parametrize(("left_sec", "for_the_other_sec"), [(10.0, 9.0), (2.0, 1.0), (1.0, 0.5), (0.0, 0.0)])
def test_a_second_is_left_to_say_that_the_other_one_is_too_slow(left_sec: float, for_the_other_sec: float) -> None:
    assert time_for_the_other_sec(left_sec) == for_the_other_sec


async def test_who_asked_is_told_that_the_other_one_is_too_slow(tmp_path: Path, other: FakeAnalyzer) -> None:
    async with passing_on(tmp_path / "own", other.url, analyze_timeout_sec=4) as own:
        await own.put_vocabulary()
        other.add_fault(Rule(Fault.hold()))
        status, said = await own.analyze(HUMAN)
        assert status == 500
        within = re.search(r"no answer within ([0-9.]+) s", said["message"])
        assert within is not None, said
        assert float(within[1]) <= 3


async def test_a_bundle_that_is_never_looked_for_is_said(tmp_path: Path, other: FakeAnalyzer) -> None:
    async with passing_on(tmp_path / "own", other.url, bundle_url="https://models.example/a.zip") as own:
        _, said, _ = await own.ask("GET", "/v1/capabilities")
        assert "analyzer.bundle_url" in said["warnings"][0]
