"""The fake analyzer conforms to the contract, and misbehaves exactly as told."""

import asyncio
import io
import json
import math
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.analyzer import BREAKS, FakeAnalyzer, Fault, RemoteAnalyzer, Rule, Seen
from tests.fakes.analyzer.answers import SCENES
from tests.rig.pictures import jpeg, jpeg_of_bytes, png
from tests.rig.polling import until
from tests.rig.processes import Launcher

VERSION = "2025-12-28.1"
CAPTURED_AT = "2026-01-01T00:00:00.000Z"
VOCABULARY = {
    "schema_version": VERSION,
    "tags": [
        {"id": "count.single", "severity_default": 0},
        {"id": "count.multiple", "severity_default": 1},
        {"id": "hazard.smoke_like", "severity_default": 3},
    ],
}
REQUIRED = {
    "schema_version": str,
    "camera_id": str,
    "captured_at": str,
    "analyzed": bool,
    "detected": bool,
    "primary_event": str,
    "tags": list,
    "severity": int,
    "unknown_flag": bool,
}
Fields = dict[str, str | bytes]
HUMAN = Seen("human", ("count.single",), count_hint=1)


class Caller:
    """A client of the contract that shows everything and forgives nothing."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def put_vocabulary(self, version: str = VERSION) -> None:
        body = {"schema_version": version, "schema": {**VOCABULARY, "schema_version": version}}
        async with self.session.put(f"{self.url}/v1/schema", json=body) as answer:
            assert answer.status == 200
            assert await answer.json() == {"schema_version": version, "status": "accepted"}

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path) as answer:
            return answer.status, await answer.json()

    async def ask(
        self, picture: bytes | None = None, *, without: str = "", fields: Fields | None = None, **more: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, body (JSON, or text when it is none) and headers of one analysis."""
        form: Fields = {
            "camera_id": "cam_1",
            "captured_at": CAPTURED_AT,
            "schema_version": VERSION,
            "infer_image": jpeg() if picture is None else picture,
            **(fields or {}),
            **more,
        }
        form.pop(without, None)
        body = aiohttp.FormData(default_to_multipart=True)
        for name, value in form.items():
            if isinstance(value, bytes):
                body.add_field(name, io.BytesIO(value), filename=f"{name}.jpg", content_type="image/jpeg")
            else:
                body.add_field(name, value)
        async with self.session.post(f"{self.url}/v1/analyze", data=body, allow_redirects=False) as answer:
            text = await answer.text()
            try:
                return answer.status, json.loads(text), answer.headers
            except ValueError:
                return answer.status, text, answer.headers


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as opened:
        yield opened


@pytest.fixture
async def caller(analyzer: FakeAnalyzer, session: aiohttp.ClientSession) -> Caller:
    ready = Caller(session, analyzer.url)
    await ready.put_vocabulary()
    return ready


async def test_a_hint_is_what_is_seen(caller: Caller) -> None:
    status, said, _ = await caller.ask(jpeg(HUMAN.hint()), request_id="r1")
    assert status == 200
    for name, kind in REQUIRED.items():
        assert type(said[name]) is kind, name
    assert said["request_id"] == "r1"
    assert (said["camera_id"], said["captured_at"], said["schema_version"]) == ("cam_1", CAPTURED_AT, VERSION)
    assert (said["detected"], said["primary_event"], said["tags"]) == (True, "human", ["count.single"])
    assert (said["severity"], said["unknown_flag"], said["count_hint"]) == (0, False, 1)


async def test_equal_pictures_give_equal_answers(caller: Caller) -> None:
    for picture in (jpeg(HUMAN.hint()), jpeg(scene=5), jpeg(), png()):
        assert (await caller.ask(picture))[1] == (await caller.ask(picture))[1]


@pytest.mark.parametrize("scene", sorted(SCENES))
async def test_a_scene_is_what_is_seen(caller: Caller, scene: int) -> None:
    _, said, _ = await caller.ask(jpeg(scene=scene))
    assert said["primary_event"] == SCENES[scene].primary_event
    assert said["tags"] == sorted(SCENES[scene].tags)


async def test_a_plain_picture_shows_nothing(caller: Caller) -> None:
    status, said, _ = await caller.ask()
    assert status == 200
    assert (said["detected"], said["primary_event"], said["tags"], said["severity"]) == (False, "none", [], 0)


@pytest.mark.parametrize(
    ("seen", "hints", "severity", "unknown"),
    [
        (Seen("human", ("count.single", "count.multiple")), {}, 1, False),
        (Seen("human", ("count.single",)), {"time_band": "night"}, 2, False),
        (Seen("animal", ("count.single",)), {"time_band": "night"}, 0, False),
        (Seen("human", (), confidence=0.49), {}, 0, True),
        (Seen("human", (), confidence=0.5), {}, 0, False),
        (Seen("hazard", ("hazard.smoke_like",), confidence=0.69), {}, 3, True),
        (Seen("hazard", ("hazard.smoke_like",), confidence=0.7), {}, 3, False),
        (Seen("none", (), confidence=0.1), {}, 0, False),
        (Seen("human", (), severity=3, unknown_flag=True), {}, 3, True),
    ],
)
async def test_severity_and_unknown_follow_the_contract(
    caller: Caller, seen: Seen, hints: dict[str, str], severity: int, unknown: bool
) -> None:
    _, said, _ = await caller.ask(jpeg(seen.hint()), hints_json=json.dumps(hints))
    assert (said["severity"], said["unknown_flag"]) == (severity, unknown)


async def test_boxes_come_unless_declined(caller: Caller) -> None:
    assert (await caller.ask(jpeg(scene=1)))[1]["bboxes"]
    assert "bboxes" not in (await caller.ask(jpeg(scene=1), return_bboxes="false"))[1]


async def test_a_previous_picture_is_compared(caller: Caller) -> None:
    _, said, _ = await caller.ask(jpeg(shade=200), fields={"prev_infer_image": jpeg(shade=100)})
    assert said["diff"] == {"used_prev_image": True, "diff_ratio": 1.0, "luma_delta": 100.0}
    _, said, _ = await caller.ask(jpeg())
    assert said["diff"]["used_prev_image"] is False


@pytest.mark.parametrize("field", ["camera_id", "captured_at", "schema_version", "infer_image"])
async def test_a_missing_field_is_a_bad_request(caller: Caller, field: str) -> None:
    status, said, _ = await caller.ask(without=field)
    assert (status, said["error"]) == (400, "bad_request")
    assert field in said["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"captured_at": "yesterday"},
        {"captured_at": "2026-01-01T00:00:00"},
        {"captured_at": "2026-01-01T00:00:00+09:00"},
        {"profile": "slow"},
        {"return_bboxes": "maybe"},
        {"hints_json": "[]"},
        {"hints_json": "{"},
        {"infer_image": b"no picture"},
        {"infer_image": jpeg()[:100]},
        {"infer_image": "a text"},
        {"camera_id": ""},
    ],
)
async def test_a_wrong_field_is_a_bad_request(caller: Caller, fields: Fields) -> None:
    status, said, _ = await caller.ask(fields=fields)
    assert (status, said["error"]) == (400, "bad_request")


async def test_the_size_limit_is_exact(caller: Caller) -> None:
    assert (await caller.ask(jpeg_of_bytes(5_000_000)))[0] == 200
    assert (await caller.ask(jpeg_of_bytes(5_000_001)))[0] == 400


async def test_another_vocabulary_or_none_is_a_mismatch(caller: Caller, analyzer: FakeAnalyzer) -> None:
    assert (await caller.ask(schema_version="2030-01-01.1"))[0] == 409
    analyzer.forget_vocabulary()
    status, said, _ = await caller.ask()
    assert (status, said["error"]) == (409, "schema_mismatch")
    assert (await caller.get("/v1/schema"))[0] == 404
    await caller.put_vocabulary()
    assert (await caller.ask())[0] == 200


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"{}", b'{"schema_version": 1, "schema": {}}', b'{"schema_version": "x"}']
)
async def test_a_wrong_vocabulary_is_refused(caller: Caller, analyzer: FakeAnalyzer, body: bytes) -> None:
    async with caller.session.put(f"{analyzer.url}/v1/schema", data=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"] == "bad_request"
    assert analyzer.schema_version == VERSION


async def test_the_vocabulary_survives_a_restart(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    state_file = tmp_path / "state.json"
    async with FakeAnalyzer(state_file) as first:
        await Caller(session, first.url).put_vocabulary()
    async with FakeAnalyzer(state_file) as second:
        status, said = await Caller(session, second.url).get("/v1/schema")
    assert status == 200
    assert (said["schema_version"], said["schema"]) == (VERSION, VOCABULARY)
    assert said["received_at"].endswith("+00:00")


async def test_health_and_capabilities(caller: Caller) -> None:
    status, health = await caller.get("/healthz")
    assert (status, health["status"]) == (200, "ok")
    assert health["uptime_sec"] >= 0
    status, said = await caller.get("/v1/capabilities")
    assert status == 200
    assert said["max_image_bytes"] == 5_000_000
    assert said["recommended_infer_widths"] == [640, 960]
    assert "camera_issue" in said["supported_primary_events"]
    assert said["model"].keys() == {"name", "version"}
    assert {"api_version", "runtime"} <= said.keys()


async def test_every_request_is_recorded(caller: Caller, analyzer: FakeAnalyzer) -> None:
    picture = jpeg(HUMAN.hint())
    await caller.ask(picture, request_id="r1", camera_id="cam_2", fields={"prev_infer_image": jpeg()})
    await caller.ask(b"no picture")
    first, second = analyzer.analyses()
    assert (first.camera_id, first.request_id, first.captured_at) == ("cam_2", "r1", CAPTURED_AT)
    assert (first.image_bytes, first.has_prev_image, first.status) == (len(picture), True, 200)
    assert (second.camera_id, second.status) == ("cam_1", 400)
    assert [record.method for record in analyzer.requests] == ["PUT", "POST", "POST"]


@pytest.mark.parametrize("status", [400, 409, 429, 500, 503])
async def test_it_answers_an_error_when_told(caller: Caller, analyzer: FakeAnalyzer, status: int) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(status, retry_after="7"), times=1))
    got, said, headers = await caller.ask()
    assert got == status
    assert said.keys() == {"error", "message"}
    assert headers["Retry-After"] == "7"
    assert (await caller.ask())[0] == 200
    assert [record.status for record in analyzer.analyses()] == [status, 200]


async def test_rules_choose_camera_and_moment(caller: Caller, analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(500), camera_id="cam_2", after=1, times=2))
    got = [(await caller.ask(camera_id="cam_2"))[0] for _ in range(4)]
    assert got == [200, 500, 500, 200]
    assert (await caller.ask())[0] == 200


async def test_a_picture_carries_its_own_fault(caller: Caller) -> None:
    assert (await caller.ask(jpeg(HUMAN.hint(Fault.answer_status(503).to_json()))))[0] == 503
    assert (await caller.ask(jpeg(HUMAN.hint())))[0] == 200


async def test_slow_and_held_answers_come_in_the_end(caller: Caller, analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Rule(Fault.slow(0.01), times=1))
    assert (await caller.ask())[0] == 200
    analyzer.add_fault(Fault.hold())
    asking = [asyncio.create_task(caller.ask()) for _ in range(2)]
    await until(lambda: [record.fault for record in analyzer.analyses()] == ["slow", "hold", "hold"], "two holds")
    assert not any(task.done() for task in asking)
    analyzer.heal()
    assert [(await task)[0] for task in asking] == [200, 200]
    assert analyzer.in_flight_max == 2


async def test_closing_does_not_wait_for_held_answers(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    async with FakeAnalyzer(tmp_path / "state.json") as analyzer:
        caller = Caller(session, analyzer.url)
        analyzer.add_fault(Fault.hold())
        asking = asyncio.create_task(caller.ask())
        await until(lambda: analyzer.in_flight == 1, "a held request")
        assert not asking.done()
    # Leaving the block let go of it; with the hold still in force this would wait until the time-out.
    assert (await asking)[0] == 409


async def test_connections_are_reset_or_cut_off(caller: Caller, analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Rule(Fault.reset(), times=1))
    with pytest.raises(aiohttp.ClientConnectionError):
        await caller.ask()
    analyzer.add_fault(Rule(Fault.cut_off(), times=1))
    with pytest.raises(aiohttp.ClientPayloadError):
        await caller.ask()
    assert (await caller.ask())[0] == 200
    assert [record.status for record in analyzer.analyses()] == [None, None, 200]


async def test_refusing_and_accepting_again(caller: Caller, analyzer: FakeAnalyzer) -> None:
    await analyzer.refuse()
    with pytest.raises(aiohttp.ClientConnectionError):
        await caller.ask()
    await analyzer.accept()
    assert (await caller.ask())[0] == 200


async def test_malformed_huge_and_redirected(caller: Caller, analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Rule(Fault.malformed(), times=1))
    status, said, headers = await caller.ask()
    assert status == 200
    assert isinstance(said, str)
    assert headers["Content-Type"].startswith("application/json")
    analyzer.add_fault(Rule(Fault.huge(3_000_000), times=1))
    _, said, _ = await caller.ask()
    assert len(json.dumps(said)) == pytest.approx(3_000_000, rel=0.01)
    analyzer.add_fault(Rule(Fault.redirect("http://127.0.0.1:1/elsewhere"), times=1))
    status, _, headers = await caller.ask()
    assert (status, headers["Location"]) == (307, "http://127.0.0.1:1/elsewhere")


@pytest.mark.parametrize("breach", sorted(BREAKS))
async def test_each_breach_changes_one_thing(caller: Caller, analyzer: FakeAnalyzer, breach: str) -> None:
    picture = jpeg(SCENES[1].hint())
    _, right, _ = await caller.ask(picture, request_id="r1")
    analyzer.add_fault(Fault.break_contract(breach))
    status, wrong, _ = await caller.ask(picture, request_id="r1")
    assert status == 200
    field = breach.partition(":")[0]
    if field == "answer":
        assert not isinstance(wrong, dict) or not wrong
        return
    differing = {name for name in right.keys() | wrong.keys() if right.get(name) != wrong.get(name)}
    if breach == "confidence:nan":
        assert math.isnan(wrong["confidence"])
    same_but_for_type = {name for name in right if name in wrong and type(right[name]) is not type(wrong[name])}
    assert differing | same_but_for_type == {field}


def test_an_unknown_breach_is_refused() -> None:
    with pytest.raises(ValueError, match="no breach is called 'nonsense'"):
        Fault.break_contract("nonsense")


async def test_faults_on_other_paths(caller: Caller, analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(503), path="/healthz", times=1))
    assert (await caller.get("/healthz"))[0] == 503
    assert (await caller.get("/healthz"))[0] == 200
    analyzer.forget_vocabulary()
    analyzer.add_fault(Rule(Fault.answer_status(500), path="/v1/schema", method="PUT", times=1))
    with pytest.raises(AssertionError):
        await caller.put_vocabulary()
    assert analyzer.schema_version is None
    analyzer.add_fault(Rule(Fault.answer_status(500), path="/v1/schema", method="PUT", after=1, times=1))
    await caller.put_vocabulary()
    with pytest.raises(AssertionError):
        await caller.put_vocabulary("2030-01-01.1")
    assert analyzer.schema_version == VERSION


async def test_a_huge_answer_stops_when_its_reader_leaves(
    analyzer: FakeAnalyzer, session: aiohttp.ClientSession
) -> None:
    await Caller(session, analyzer.url).put_vocabulary()
    analyzer.add_fault(Rule(Fault.huge(10_000_000_000), path="/v1/schema"))
    async with session.get(f"{analyzer.url}/v1/schema") as answer:
        await answer.content.readexactly(1000)
        answer.close()
    await until(lambda: analyzer.in_flight == 0, "the end of the huge answer")
    assert analyzer.requests[-1].status is None


async def test_as_a_process_of_its_own(launcher: Launcher, tmp_path: Path, session: aiohttp.ClientSession) -> None:
    remote = await RemoteAnalyzer.start(launcher, tmp_path / "state.json")
    caller = Caller(session, remote.url)
    await caller.put_vocabulary()
    await remote.add_fault(Rule(Fault.answer_status(429, retry_after="3"), times=1))
    assert [(await caller.ask())[0] for _ in range(2)] == [429, 200]
    await remote.refuse()
    with pytest.raises(aiohttp.ClientConnectionError):
        await caller.ask()
    await remote.accept()
    assert (await caller.ask())[0] == 200
    records = await remote.requests()
    assert [record["status"] for record in records] == [200, 429, 200, 200]
    remote.kill()
    with pytest.raises(aiohttp.ClientConnectionError):
        await caller.ask()
    await remote.restart()
    assert (await caller.ask())[0] == 200
