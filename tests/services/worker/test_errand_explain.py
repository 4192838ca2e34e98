import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from PIL import Image

from camserver.domain.gate import GatePolicy
from camserver.services.worker.camera import Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errand_explain import explain_handler
from camserver.services.worker.errands import ErrandDone
from camserver.wire.worker import Errand, Held
from tests.rig.polling import TIMEOUT_SEC, until
from tests.services.worker.build import FollowingClock, ToldSource, start_message


@dataclass
class Stage:
    cameras: Cameras
    clock: FollowingClock
    given: Surroundings

    async def ask(self, camera_id: str = "cam_1", generation: int | None = 1) -> ErrandDone:
        errand = Errand(errand_id="e1", kind="explain", camera_id=camera_id, generation=generation, left_ms=20_000)

        async def asked() -> ErrandDone:
            return await explain_handler(self.cameras)(errand)

        return await asyncio.wait_for(asked(), TIMEOUT_SEC)

    async def hold(self) -> None:
        self.cameras.renewed(Held(camera_id="cam_1", generation=1), self.clock.boot_ms() + 10_000_000)
        await until(lambda: self.given.spool.looks == 1, "the first look")


@pytest.fixture
async def on(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Stage]:
    source = ToldSource(moved.now_ms)
    given = replace(given_to_cameras, gate=GatePolicy())
    cameras = Cameras(given, 4, lambda wanted, boot_ms: source)
    assert await cameras.start(start_message(interval_sec=60)) is None
    yield Stage(cameras, moved, given)
    await cameras.close()


async def test_numbers_and_a_picture(on: Stage) -> None:
    await on.hold()
    done = await on.ask()
    assert (done.ok, done.message, done.content_type) == (True, "", "image/jpeg")
    width, height = Image.open(io.BytesIO(done.body)).size
    assert width >= 960
    assert width * 48 == height * 64
    looks = done.result["looks"]
    assert isinstance(looks, list)
    (look,) = looks
    assert isinstance(look, dict)
    assert (look["reason"], look["verdict"], look["z_max"]) == ("learning", "analyze", None)
    assert look["captured_at"] == done.result["picture_captured_at"] == on.clock.now_ms()
    assert (done.result["rule"], done.result["z_pass"], done.result["clock_cells"]) == ("contrast", 4.0, 0)


async def test_before_the_first_look_there_is_nothing_to_explain(on: Stage) -> None:
    done = await on.ask()
    assert not done.ok
    assert "not been looked at" in done.message


@pytest.mark.parametrize(("camera_id", "generation"), [("cam_2", 1), ("cam_1", 2)])
async def test_a_camera_that_is_not_held(on: Stage, camera_id: str, generation: int) -> None:
    done = await on.ask(camera_id, generation)
    assert not done.ok
    assert "does not hold" in done.message
