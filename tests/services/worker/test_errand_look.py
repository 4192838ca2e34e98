import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from camserver.domain.leases import Fault
from camserver.media.packets import Miss
from camserver.services.worker.camera import Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errand_look import look_handler
from camserver.services.worker.errands import ErrandDone
from camserver.wire.worker import Errand, Held
from tests.rig.polling import TIMEOUT_SEC, until
from tests.services.worker.build import FollowingClock, ToldSource, gray_jpeg, start_message


@dataclass
class Stage:
    cameras: Cameras
    clock: FollowingClock
    source: ToldSource

    async def ask(self, camera_id: str = "cam_1", generation: int | None = 1) -> ErrandDone:
        handler = look_handler(self.cameras, self.clock)
        errand = Errand(errand_id="e1", kind="look", camera_id=camera_id, generation=generation, left_ms=20_000)
        return await asyncio.wait_for(_awaited(handler(errand)), TIMEOUT_SEC)


async def _awaited(done: object) -> ErrandDone:
    result = await done  # type: ignore[misc]
    assert isinstance(result, ErrandDone)
    return result


@pytest.fixture
async def on(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Stage]:
    source = ToldSource(moved.now_ms)
    cameras = Cameras(given_to_cameras, 4, lambda wanted, boot_ms: source)
    assert await cameras.start(start_message(interval_sec=60)) is None
    cameras.renewed(Held(camera_id="cam_1", generation=1), moved.boot_ms() + 10_000_000)
    await until(lambda: given_to_cameras.spool.looks == 1, "the first look")
    yield Stage(cameras, moved, source)
    await cameras.close()


async def test_the_newest_picture_and_its_time(on: Stage) -> None:
    done = await on.ask()
    assert (done.ok, done.content_type, done.body) == (True, "image/jpeg", gray_jpeg(128))
    assert done.result == {"captured_at": on.clock.now_ms(), "seq": 2, "width": 64, "height": 48}


async def test_why_there_is_none(on: Stage) -> None:
    on.source.answer = Miss(Fault.NO_VIDEO, "it is dark")
    done = await on.ask()
    assert (done.ok, done.message, done.body) == (False, "it is dark", b"")


@pytest.mark.parametrize(("camera_id", "generation"), [("cam_2", 1), ("cam_1", 2)])
async def test_a_camera_that_is_not_held(on: Stage, camera_id: str, generation: int) -> None:
    done = await on.ask(camera_id, generation)
    assert not done.ok
    assert "does not hold" in done.message


async def test_a_camera_that_is_being_let_go(on: Stage) -> None:
    on.cameras.stop("cam_1", 1, "moved")
    assert not (await on.ask()).ok
