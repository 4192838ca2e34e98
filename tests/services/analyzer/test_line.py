"""More than can be done: the line is bounded, refuses in time, and forgets those who left."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

from camserver.domain.detections import Detection
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer import service
from camserver.services.analyzer.detector import ModelInput
from camserver.services.analyzer.fitting import fit
from tests.rig.polling import poll_async, until
from tests.services.analyzer.rig import PERSON, RunningAnalyzer, ScriptedDetector, form, running_analyzer


async def ask(analyzer: RunningAnalyzer) -> int:
    return (await analyzer.analyze())[0]


async def test_a_full_line_refuses_with_the_time_to_wait(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path, waiting_max=2) as analyzer:
        await analyzer.put_vocabulary()
        analyzer.detector.open.clear()
        held = [asyncio.create_task(ask(analyzer)) for _ in range(3)]
        await until_full(analyzer, held)
        status, said, response = await analyzer.ask("POST", "/v1/analyze", data=form())
        assert (status, said["error"]) == (429, "overloaded")
        assert int(response.headers["Retry-After"]) >= 1
        # The small calls are answered meanwhile.
        assert (await analyzer.ask("GET", "/healthz"))[0] == 200
        analyzer.detector.open.set()
        assert await asyncio.gather(*held) == [200, 200, 200]
        assert await ask(analyzer) == 200


async def until_full(analyzer: RunningAnalyzer, held: list[asyncio.Task[int]]) -> None:
    """A request without a body gets 400 while there is a place, and 429 when there is none."""

    async def full() -> bool:
        assert not any(task.done() for task in held)
        async with analyzer.http.post(analyzer.url + "/v1/analyze", data=b"") as answer:
            return answer.status == 429

    await poll_async(full, "a full line")


async def test_as_many_at_once_as_there_are_detectors(tmp_path: Path) -> None:
    detectors = [ScriptedDetector([PERSON]), ScriptedDetector([PERSON])]
    for detector in detectors:
        detector.open.clear()
    async with running_analyzer(tmp_path, detectors, waiting_max=40) as analyzer:
        await analyzer.put_vocabulary()
        asked = [asyncio.create_task(ask(analyzer)) for _ in range(20)]
        await until(lambda: all(len(one.sizes) == 1 for one in detectors), "both work")
        for detector in detectors:
            detector.open.set()
        # A detector that two threads use at once says so (500).
        assert await asyncio.gather(*asked) == [200] * 20
    assert sum(len(one.sizes) for one in detectors) == 20


async def test_a_client_that_left_costs_no_work_and_frees_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running_analyzer(tmp_path, waiting_max=5) as analyzer:
        await analyzer.put_vocabulary()
        analyzer.detector.open.clear()
        first = asyncio.create_task(ask(analyzer))
        await until(lambda: len(analyzer.detector.sizes) == 1, "the detector is busy")
        async with aiohttp.ClientSession() as leaving:
            gone = [asyncio.create_task(leaving.post(analyzer.url + "/v1/analyze", data=form())) for _ in range(5)]
            await until_full(analyzer, [first])
            for task in gone:
                task.cancel()
            await asyncio.gather(*gone, return_exceptions=True)
        await until(lambda: noted(caplog, "not analyzed") == 5, "the service has noticed")
        # The detector still has the first picture, and all other places are free again.
        others = [asyncio.create_task(ask(analyzer)) for _ in range(5)]
        await until_full(analyzer, [first, *others])
        analyzer.detector.open.set()
        assert await asyncio.gather(first, *others) == [200] * 6
        assert len(analyzer.detector.sizes) == 6


def noted(caplog: pytest.LogCaptureFixture, event: str) -> int:
    return sum(isinstance(one.msg, dict) and one.msg["event"] == event for one in caplog.records)


async def test_stopping_with_work_under_way_ends(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path) as analyzer:
        await analyzer.put_vocabulary()
        analyzer.detector.open.clear()
        under_way = asyncio.create_task(ask(analyzer))
        await until(lambda: len(analyzer.detector.sizes) == 1, "the detector is busy")
    # Given up or answered, but not left hanging.
    await asyncio.wait_for(asyncio.gather(under_way, return_exceptions=True), 60)


class FittingDetector(ScriptedDetector):
    """Tells by whom its input was made, and who gave it."""

    def input_of(self, picture: Picture) -> ModelInput:
        self.threads.append(threading.current_thread().name.split("_")[0])
        fitted = fit(picture, (64, 64), "corner", 0)
        return ModelInput(fitted.pixels, fitted)

    def detect_in(self, given: ModelInput) -> Sequence[Detection]:
        self.threads.append(threading.current_thread().name.split("_")[0])
        return self.detect(Image.fromarray(given.fitted.pixels))

    threads: list[str]


@pytest.mark.parametrize(("cores", "threads"), [(2, ["picture", "detector"]), (1, ["detector", "detector"])])
async def test_a_models_input_is_made_while_the_model_has_another_picture_if_there_is_a_core_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, threads: list[str]
) -> None:
    monkeypatch.setattr(service, "usable_cores", lambda: cores)
    detector = FittingDetector([PERSON])
    detector.threads = []
    async with running_analyzer(tmp_path, [detector]) as analyzer:
        await analyzer.put_vocabulary()
        assert await ask(analyzer) == 200
    assert detector.threads == threads
    assert detector.sizes == [(64, 64)]
