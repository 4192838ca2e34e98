"""Cameras of the worker on simulated RTSP cameras, in real time: looks, faults, logins and what is let go."""

import base64
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from camserver.base.clock import StoreClock
from camserver.domain.gate import GatePolicy
from camserver.media.clips import read_clip
from camserver.media.clock_mask import none_yet
from camserver.media.contrast import Noise, Scene
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from camserver.services.worker import gating
from camserver.services.worker.camera import LookCounts, Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.wire.looks import LookUpload
from camserver.wire.worker import CameraVerdict, Held, Start, parse_fault
from tests.fakes.gstreamer.camera import faulty_camera
from tests.rig.polling import poll_async, until
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.video_files import video_file
from tests.services.worker.build import reported, spooled, start_message, surroundings

HELD_MS = 10_000_000
LOGIN = (USER, PASSWORD)


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    video = video_file(tmp_path / "cam.mp4", fps=10, seconds=1, keyframes_apart=5, bf="0", size=(1280, 720))
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as running:
        yield running


class Stage:
    """A worker's cameras on a real clock; whatever comes is waited for, however long it takes."""

    def __init__(self, spool: Spool, pictures: ThreadPoolExecutor) -> None:
        clock = StoreClock()
        # Retries of this test are not to wait for minutes.
        made = surroundings(clock, spool, pictures)
        leases = replace(made.leases, camera_retry_base_sec=0.1, camera_retry_cap_sec=1.0, auth_retry_sec=1.0)
        self.given: Surroundings = replace(
            made, reports=Reports(clock), counts=LookCounts(), leases=leases, jitter=lambda: 0.1
        )
        self.cameras = Cameras(self.given, 4)
        self.clock = clock

    async def start(self, start: Start) -> None:
        assert await self.cameras.start(start) is None
        held = Held(camera_id=start.camera_id, generation=start.generation)
        self.cameras.renewed(held, self.clock.boot_ms() + HELD_MS)

    async def until_look(self, status: str, after_seq: int = 0) -> LookUpload:
        """The first look of that status after another one."""

        async def probe() -> LookUpload | None:
            looks = await spooled(self.given.spool)
            return next((one for one in looks if one.header.seq > after_seq and one.header.status == status), None)

        return await poll_async(probe, f"a look that is {status}")


@pytest.fixture
async def stage(spool: Spool, pictures: ThreadPoolExecutor) -> AsyncIterator[Stage]:
    on = Stage(spool, pictures)
    yield on
    await on.cameras.close()


def rtsp(simulator: Simulator, login: tuple[str, str] | None = LOGIN, **more: object) -> Start:
    return start_message(kind="rtsp", url=simulator.url("cam"), interval_sec=1, login=login, **more)  # type: ignore[arg-type]


async def test_a_look_at_an_rtsp_camera(stage: Stage, simulator: Simulator) -> None:
    await stage.start(rtsp(simulator))
    look = await stage.until_look("ok")
    header = look.header
    assert (header.verdict, header.full_w, header.full_h) == ("analyze", 1280, 720)
    assert (header.infer_w, header.infer_h) == (640, 360)
    assert look.infer.startswith(b"\xff\xd8")
    assert look.full.startswith(b"\xff\xd8")
    assert len(look.full) > len(look.infer) > 0
    assert header.infer_hash64_hex is not None
    assert header.boot_ms <= header.sent_boot_ms
    await until(lambda: len(stage.given.reports) > 0, "a report")
    assert "pipeline_ready" in [report.event_type for report in reported(stage.given.reports)]


async def test_letting_go_closes_the_connection(stage: Stage, simulator: Simulator) -> None:
    await stage.start(rtsp(simulator))
    await stage.until_look("ok")
    await stage.cameras.close()
    await until(lambda: not simulator.camera("cam").clients, "the camera is let go")


async def test_wrong_password_is_reported_without_it(stage: Stage, simulator: Simulator) -> None:
    await stage.start(rtsp(simulator, ("viewer", "not the password")))
    look = await stage.until_look("error")
    assert look.header.error_code == "unauthorized"
    assert "not the password" not in look.header.model_dump_json()
    await until(lambda: len(stage.given.reports) > 0, "the fault's report")
    (first, *_) = reported(stage.given.reports)
    fault = parse_fault(first.payload)
    assert (fault.fault, fault.auth_failures) == ("unauthorized", 1)
    assert "not the password" not in first.model_dump_json()


async def test_offline_and_back(stage: Stage, simulator: Simulator) -> None:
    await stage.start(rtsp(simulator))
    await stage.until_look("ok")
    camera = simulator.camera("cam")
    camera.faults.is_offline = True
    camera.cut_all()
    failed = await stage.until_look("error")
    assert failed.header.error_code == "no_video"
    camera.faults.is_offline = False
    back = await stage.until_look("ok", after_seq=failed.header.seq)
    assert back.header.seq > failed.header.seq


async def test_a_gate_s_state_comes_with_start_and_verdicts_reach_it(stage: Stage, simulator: Simulator) -> None:
    grid = (23, 40)
    noise = Noise(np.full(grid, 1, np.float32), np.full(grid, 1, np.float32), 500, 500)
    learned = Scene(noise, none_yet(grid)).to_bytes()
    state = base64.b64encode(gating._HEAD.pack(gating._VERSION, 0, 0, 0, 0, 0) + learned).decode()
    stage.cameras = Cameras(replace(stage.given, gate=GatePolicy()), 4)
    await stage.start(rtsp(simulator, gate_state=state))
    await stage.until_look("ok")
    gate = stage.cameras._held["cam_1"].camera._gate
    scene = gate.reference.scene
    assert scene is not None
    assert scene.noise.looks >= 500
    stage.cameras.hear([CameraVerdict(camera_id="cam_1", captured_at=2**40, detected=True)])
    stage.cameras.hear([CameraVerdict(camera_id="cam_other", captured_at=2**40, detected=True)])
    assert gate._memory.sticky_left > 0
    assert gate._memory.heard_until == 2**40


async def test_another_size_that_only_a_new_description_tells(stage: Stage, tmp_path: Path) -> None:
    """GStreamer's server, with parameter sets in the description only: those of a connection that stays are wrong."""
    small, wide = (
        read_clip(video_file(tmp_path / f"{size[0]}.mp4", fps=10, seconds=1, keyframes_apart=5, bf="0", size=size))
        for size in ((320, 180), (640, 360))
    )
    with faulty_camera(small, 10, "viewer", "word", tmp_path / "camera", "described") as camera:
        login = ("viewer", "word")
        await stage.start(start_message(kind="rtsp", url=camera.url, interval_sec=1, login=login, force_every=1))
        assert (await stage.until_look("ok")).header.full_w == 320
        camera.show(wide)
        failed = await stage.until_look("error")
        assert failed.header.error_code == "no_video"

        async def is_wide() -> bool:
            return any(one.header.full_w == 640 for one in await spooled(stage.given.spool))

        await poll_async(is_wide, "a look of the new size")
