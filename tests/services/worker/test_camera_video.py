"""A camera that sends video, on a moved clock: held or on patrol, watched, silent, with two streams."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from camserver.services.worker.camera import Camera, Surroundings
from camserver.services.worker.hold import Hold
from camserver.services.worker.waiting import end
from camserver.wire.looks import LookHeader
from camserver.wire.worker import Start
from tests.rig.polling import TIMEOUT_SEC, until
from tests.services.worker.build import FollowingClock, reported, spooled, start_message, streams_of
from tests.services.worker.video import ToldVideo

HELD_MS = 10_000_000


class Stage:
    def __init__(self, clock: FollowingClock, given: Surroundings, start: Start) -> None:
        self.clock = clock
        self.given = given
        self.main = ToldVideo(clock, (640, 360))
        self.sub = ToldVideo(clock) if start.sub is not None else None
        self.hold = Hold(start.camera_id, start.generation, clock)
        streams = streams_of(self.main.source, given, None if self.sub is None else self.sub.source)
        self.camera = Camera(start, streams, self.hold, given)
        self.hold.renew(clock.boot_ms() + HELD_MS)
        self.task = asyncio.ensure_future(self.camera.run())

    async def looked(self, count: int) -> None:
        await until(lambda: self.given.spool.looks >= count, f"{count} looks")
        await self.clock.until_sleeping(1)

    async def headers(self) -> list[LookHeader]:
        return [one.header for one in await spooled(self.given.spool)]

    def kinds(self) -> list[str]:
        return [report.event_type for report in reported(self.given.reports)]


Staging = Callable[..., Stage]


@pytest.fixture
async def stage(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Staging]:
    stages: list[Stage] = []

    def make(interval_sec: float, sub_url: str | None = None) -> Stage:
        start = start_message(interval_sec=interval_sec, sub_url=sub_url)
        stages.append(Stage(moved, given_to_cameras, start))
        return stages[-1]

    yield make
    for one in stages:
        await end(one.task)


async def test_a_short_interval_stays_connected_and_a_long_one_does_not(stage: Staging) -> None:
    held = stage(1)
    held.main.show()
    await held.looked(1)
    assert held.main.is_connected
    patrol = stage(60)
    patrol.main.show()
    await patrol.looked(2)
    await patrol.main.closed()
    assert held.main.is_connected


async def test_somebody_watching_keeps_a_slow_camera_connected_for_a_while(stage: Staging) -> None:
    on = stage(3600)
    on.main.show()
    await on.looked(1)
    await on.main.closed()
    on.camera.watch(on.clock.boot_ms() + 30_000)
    await on.main.connected(2)
    on.main.show(110)
    await on.looked(2)  # who comes to watch gets a picture of now
    await on.clock.advance(29_000)
    assert on.main.is_connected
    assert on.given.spool.looks == 2
    await on.clock.advance(1_000)
    await on.main.closed()


async def test_a_watched_camera_that_was_cut_off_is_connected_again(stage: Staging) -> None:
    on = stage(3600)
    on.main.show()
    await on.looked(1)
    on.camera.watch(on.clock.boot_ms() + 30_000)
    await on.main.connected(2)
    on.main.show()
    await on.looked(2)
    on.main.fail()
    await on.main.closed()
    await on.clock.advance(5_000)
    await on.main.connected(3)
    on.main.show()
    await on.looked(3)


async def test_a_look_on_demand_shows_the_last_picture_that_came(stage: Staging) -> None:
    on = stage(3600)
    on.main.show()
    await on.looked(1)
    on.camera.watch(on.clock.boot_ms() + 30_000)
    await on.main.connected(2)
    on.main.show(50)
    await on.looked(2)
    await on.clock.advance(1000)
    on.main.show(200)
    looked = await asyncio.wait_for(on.camera.look_now(), TIMEOUT_SEC)
    assert looked.size == (640, 360)
    assert looked.captured_at == on.clock.now_ms()


async def test_silence_on_an_open_connection_fails_the_look_and_connects_anew(stage: Staging) -> None:
    on = stage(3600)
    on.main.show()
    await on.looked(1)
    on.camera.watch(on.clock.boot_ms() + 600_000)
    await on.main.connected(2)
    on.main.show()
    await on.looked(2)
    await on.clock.advance(29_999)
    assert on.given.spool.looks == 2
    await on.clock.advance(1)
    await on.looked(3)
    last = (await on.headers())[-1]
    found = (last.status, last.error_code, last.error_message)
    assert found == ("timeout", "stalled", "the camera sent nothing for 30 s")
    await on.main.closed()
    assert on.kinds() == ["pipeline_ready", "camera_fault"]
    await on.clock.advance(1000)
    await on.main.connected(3)
    on.main.show()
    await on.looked(4)
    assert on.kinds() == ["pipeline_ready"]


async def test_the_infer_picture_is_the_sub_stream_s_and_the_full_one_the_main_stream_s(stage: Staging) -> None:
    on = stage(1, sub_url="test://sub")
    assert on.sub is not None
    on.sub.show()
    on.main.show()
    await on.looked(1)
    (look,) = await spooled(on.given.spool)
    assert (look.header.infer_w, look.header.infer_h) == (320, 180)
    assert (look.header.full_w, look.header.full_h) == (640, 360)
    assert look.full.startswith(b"\xff\xd8")


async def test_without_its_main_stream_a_camera_keeps_the_small_picture_and_says_so_once(stage: Staging) -> None:
    on = stage(1, sub_url="test://sub")
    assert on.sub is not None
    for count in (1, 2):
        on.sub.show(100 + count)
        on.main.fail()
        await on.looked(count)
        await on.clock.advance(1000)
    looks = await spooled(on.given.spool)
    assert looks[0].full.startswith(b"\xff\xd8")
    assert (looks[0].header.full_w, looks[0].header.full_h) == (320, 180)
    assert on.kinds().count("stream_fault") == 1
    assert on.camera.is_going


async def test_video_that_can_t_be_decoded_is_connected_anew(stage: Staging) -> None:
    on = stage(1)
    on.main.show()
    await on.looked(1)
    for count in (2, 3):
        on.main.garble()
        await on.clock.advance(2000)
        await on.looked(count)
    await on.main.closed()
    await on.clock.advance(4000)
    await on.main.connected(2)
    on.main.show(110)
    await on.looked(4)
    assert [(one.status, one.error_code) for one in await on.headers()] == [
        ("ok", None),
        ("error", "no_video"),
        ("error", "no_video"),
        ("ok", None),
    ]


async def test_a_sub_stream_that_can_t_be_decoded_fails_no_look(stage: Staging) -> None:
    on = stage(1, sub_url="test://sub")
    assert on.sub is not None
    for count in (1, 2, 3):
        on.sub.garble()
        on.main.show(100 + count)
        await on.looked(count)
        await on.clock.advance(1000)
    assert {(one.status, one.full_w) for one in await on.headers()} == {("ok", 640)}
    assert on.kinds().count("stream_fault") == 1
    assert on.camera.is_going
