"""Two streams, and recorders that bear few of them, on simulated cameras in real time."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from camserver.domain.looks import LookPolicy
from camserver.services.simulator.cameras import CameraAsked, Client
from camserver.services.simulator.service import Simulator
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.spool import Spool
from camserver.wire.worker import Start
from tests.rig.polling import poll_async
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file
from tests.services.worker.build import spooled, start_message
from tests.services.worker.test_rtsp_camera import LOGIN, Stage

CHANNELS = tuple(f"ch{number}" for number in range(4))


@pytest.fixture
async def recorder(tmp_path: Path) -> AsyncIterator[Simulator]:
    video = video_file(tmp_path / "cam.mp4", fps=10, seconds=1, keyframes_apart=5, bf="0", size=(1280, 720))
    async with simulated(tmp_path / "cache", *(CameraAsked(name, str(video)) for name in CHANNELS)) as running:
        yield running


@pytest.fixture
async def stage(spool: Spool, pictures: ThreadPoolExecutor) -> AsyncIterator[Stage]:
    on = Stage(spool, pictures)
    yield on
    await on.cameras.close()


def of_channel(recorder: Simulator, name: str, *, streams_max: int | None = None, sub: str | None = None) -> Start:
    start = start_message(name, kind="rtsp", url=recorder.url(name), sub_url=sub, interval_sec=1, login=LOGIN)
    return start.model_copy(update={"params": start.params.model_copy(update={"streams_max": streams_max})})


class Counted(set[Client]):
    """The clients of a simulated camera; notes how many the whole device has when one comes."""

    def __init__(self, device: Simulator, most: list[int]) -> None:
        super().__init__()
        self._device = device
        self._most = most

    def add(self, client: Client) -> None:
        super().add(client)
        self._most.append(sum(len(self._device.camera(name).clients) for name in CHANNELS))


def count_clients(device: Simulator) -> list[int]:
    most: list[int] = []
    for name in CHANNELS:
        device.camera(name).clients = Counted(device, most)
    return most


async def looked(stage: Stage, times: int) -> None:
    """Until every channel was looked at so often."""

    async def probe() -> bool:
        good = [one.header.camera_id for one in await spooled(stage.given.spool) if one.header.status == "ok"]
        return all(good.count(name) >= times for name in CHANNELS)

    await poll_async(probe, f"{times} looks of every channel")


async def test_a_recorder_that_bears_one_stream_is_never_asked_for_two(stage: Stage, recorder: Simulator) -> None:
    most = count_clients(recorder)
    for name in CHANNELS:
        await stage.start(of_channel(recorder, name, streams_max=1))
    await looked(stage, 2)
    assert max(most) == 1
    statuses = {one.header.status for one in await spooled(stage.given.spool)}
    assert statuses == {"ok"}


async def test_a_recorder_that_bears_more_keeps_its_cameras_connected(stage: Stage, recorder: Simulator) -> None:
    most = count_clients(recorder)
    for name in CHANNELS:
        await stage.start(of_channel(recorder, name))
    await looked(stage, 3)
    assert len(most) == max(most) == len(CHANNELS)  # each was opened once


async def test_cut_off_together_they_come_back_few_at_a_time(stage: Stage, recorder: Simulator) -> None:
    looks = LookPolicy(opening_max=1)
    stage.given = replace(stage.given, looks=looks)
    stage.cameras = Cameras(stage.given, 4)
    for name in CHANNELS:
        await stage.start(of_channel(recorder, name))
    await looked(stage, 1)
    opening: list[int] = []
    doors = stage.cameras.doors
    admit = doors._admit

    def noted() -> None:
        admit()
        opening.append(sum(doors._traffic().opening.values()))

    doors._admit = noted  # type: ignore[method-assign]
    for name in CHANNELS:
        recorder.camera(name).cut_all()
    await looked(stage, 4)
    assert max(opening) == 1


async def test_both_streams_of_a_real_connection(stage: Stage, recorder: Simulator) -> None:
    await stage.start(of_channel(recorder, "ch0", sub=recorder.url("ch0", "sub")))
    look = await stage.until_look("ok")
    assert (look.header.full_w, look.header.full_h) == (1280, 720)
    assert (look.header.infer_w or 0) < 1280
    assert look.full.startswith(b"\xff\xd8")
