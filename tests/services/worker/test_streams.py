"""A camera's two streams, each a connection that a test drives."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from camserver.domain.devices import Place
from camserver.domain.leases import Fault, LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.media.packets import Miss, Packet
from camserver.services.worker.doors import Doors
from camserver.services.worker.streams import MAIN_KEPT_MS, Caught, Stream, StreamName, Streams, Wanted
from tests.rig.clock import settle
from tests.rig.polling import TIMEOUT_SEC
from tests.services.worker.build import FollowingClock
from tests.services.worker.video import MISSING, ToldVideo

HELD = Wanted(hold=True)
PATROL = Wanted()
NO_PASSWORD = Miss(Fault.UNAUTHORIZED, "wrong")
NO_ROUTE = Miss(Fault.NO_ROUTE, "far away")
NO_PICTURE = Miss(Fault.NO_VIDEO, "can't be decoded")


@dataclass
class Stage:
    clock: FollowingClock
    streams_max: int | None = None
    one_login: bool = True
    reports: list[tuple[str, Fault | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.doors = Doors(self.clock, LookPolicy())
        self.main, self.sub = ToldVideo(self.clock, (640, 360)), ToldVideo(self.clock)
        self.streams = Streams(
            self.stream("main", self.main),
            self.stream("sub", self.sub),
            self.one_login,
            self.clock,
            LeasePolicy(),
            lambda: 1.0,
        )
        self.streams.report = lambda name, miss: self.reports.append((name, None if miss is None else miss.fault))

    def stream(self, name: StreamName, video: ToldVideo) -> Stream:
        door = self.doors.door(Place("camera", "net"), self.streams_max)
        return Stream(name, video.source, door, self.clock, 3)

    async def look(self, wanted: Wanted = HELD) -> Caught | Miss:
        return await asyncio.wait_for(self.streams.look(wanted), TIMEOUT_SEC)

    async def seen(self, wanted: Wanted = HELD) -> str:
        """Which stream the picture of a look came from."""
        caught = await self.look(wanted)
        assert isinstance(caught, Caught), caught
        self.streams.decoded(caught.stream, wanted)
        return caught.stream

    async def unseen(self, wanted: Wanted = HELD) -> Caught | Miss:
        """What is there instead of a look's picture that can't be decoded."""
        caught = await self.look(wanted)
        assert isinstance(caught, Caught), caught
        return await asyncio.wait_for(self.streams.undecodable(caught.stream, NO_PICTURE, wanted), TIMEOUT_SEC)

    async def full(self, wanted: Wanted = HELD) -> tuple[int, int] | None:
        shot = await asyncio.wait_for(self.streams.full(wanted), TIMEOUT_SEC)
        if shot is None:
            return None
        self.streams.full_decoded(None)
        return shot.decode(320).size


@pytest.fixture
async def on(moved: FollowingClock, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    stage = Stage(moved, **getattr(request, "param", {}))
    yield stage
    await stage.streams.close()


async def test_the_gate_looks_at_the_sub_stream_and_the_main_one_is_kept(on: Stage) -> None:
    on.sub.show()
    assert await on.seen() == "sub"
    assert on.main.packets.opened == 0
    on.main.show()
    assert await on.full() == (640, 360)
    assert on.reports == []


async def test_a_patrol_lets_go_after_every_look(on: Stage) -> None:
    on.sub.show()
    on.main.show()
    await on.seen(PATROL)
    await on.full(PATROL)
    await on.sub.closed()
    await on.main.closed()


async def test_a_held_camera_keeps_its_main_stream_only_while_looks_pass(on: Stage) -> None:
    on.sub.show()
    on.main.show()
    await on.seen()
    await on.full()
    assert on.main.is_connected
    await on.clock.advance(MAIN_KEPT_MS - 1)
    on.sub.show()
    await on.seen()
    assert on.main.is_connected
    await on.clock.advance(1)
    on.sub.show()
    await on.seen()
    await on.main.closed()
    assert on.sub.is_connected


async def test_the_main_stream_does_the_work_of_a_sub_stream_that_failed(on: Stage) -> None:
    on.sub.fail()
    on.main.show()
    assert await on.seen() == "main"
    assert on.reports == [("sub", Fault.NOT_FOUND)]
    # In its pause it is not even tried, and nothing is said again.
    on.main.show(110)
    assert await on.seen() == "main"
    assert on.sub.packets.opened == 1
    await on.clock.advance(1000)
    on.sub.fail()
    on.main.show(120)
    assert await on.seen() == "main"
    assert on.sub.packets.opened == 2
    assert len(on.reports) == 1
    await on.clock.advance(2000)
    on.sub.show()
    assert await on.seen() == "sub"
    assert on.reports == [("sub", Fault.NOT_FOUND), ("sub", None)]


async def test_the_sub_stream_does_the_work_of_a_main_stream_that_failed(on: Stage) -> None:
    on.sub.show()
    assert await on.seen() == "sub"
    on.main.fail()
    assert await on.full() is None
    assert await on.full() is None
    assert (on.main.packets.opened, on.reports) == (1, [("main", Fault.NOT_FOUND)])
    await on.clock.advance(1000)
    on.main.show()
    assert await on.full() == (640, 360)
    assert on.reports[1:] == [("main", None)]


async def test_when_both_fail_the_camera_failed_and_neither_is_reported(on: Stage) -> None:
    on.sub.fail()
    on.main.fail(Miss(Fault.NO_VIDEO, "dark"))
    answer = await on.look()
    assert isinstance(answer, Miss)
    assert answer.fault is Fault.NO_VIDEO
    assert on.reports == []
    on.sub.show()
    assert await on.seen() == "sub"  # tried again with the camera's next look


@pytest.mark.parametrize("miss", [NO_PASSWORD, NO_ROUTE])
async def test_a_password_is_refused_once_and_a_host_missed_once(on: Stage, miss: Miss) -> None:
    on.sub.fail(miss)
    assert await on.look() == miss
    assert on.main.packets.opened == 0


@pytest.mark.parametrize("on", [{"one_login": False}], indirect=True)
async def test_another_login_may_do_better(on: Stage) -> None:
    on.sub.fail(NO_PASSWORD)
    on.main.show()
    assert await on.seen() == "main"
    # And the wrong one is not tried again for minutes.
    await on.clock.advance(299_000)
    on.main.show(110)
    assert await on.seen() == "main"
    assert on.sub.packets.opened == 1


@pytest.mark.parametrize("on", [{"streams_max": 1}], indirect=True)
async def test_a_device_that_bears_one_stream_never_has_two(on: Stage) -> None:
    opened_at_once: list[int] = []
    for packets in (on.main.packets, on.sub.packets):
        read = packets.read

        def noted(sink: object, wanted: object, read: object = read) -> Miss | None:
            opened_at_once.append(on.main.packets.open_now + on.sub.packets.open_now)
            return read(sink, wanted)  # type: ignore[operator,no-any-return]

        packets.read = noted  # type: ignore[method-assign]
    for shade in (100, 120):
        on.sub.show(shade)
        assert await on.seen() == "sub"
        on.main.show(shade)
        assert await on.full() == (640, 360)
    assert opened_at_once == [0, 0, 0, 0]  # each time nothing else was open


@pytest.mark.parametrize("on", [{"streams_max": 1}], indirect=True)
async def test_a_camera_that_was_lost_while_it_waited_is_not_connected(on: Stage) -> None:
    other = on.doors.door(Place("camera", "net"), 1)
    await other.enter()
    is_covered = True
    looking = asyncio.ensure_future(on.streams.look(Wanted(is_covered=lambda: is_covered)))
    await settle()
    is_covered = False
    other.leave()
    assert isinstance(await asyncio.wait_for(looking, TIMEOUT_SEC), Miss)
    assert (on.sub.packets.opened, on.main.packets.opened) == (0, 0)
    assert not any(door.is_inside for door in on.doors._doors)


def refuse_beside(on: Stage, video: ToldVideo, other: ToldVideo) -> None:
    """Nobody said so, but the device takes no second connection."""
    read = video.packets.read

    def picky(sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        if other.is_connected:
            return Miss(Fault.REFUSED, "busy", is_crowded=True)
        return read(sink, wanted)

    video.packets.read = picky  # type: ignore[method-assign]


async def test_a_device_that_takes_no_second_stream_is_found_out(on: Stage) -> None:
    refuse_beside(on, on.main, on.sub)
    refuse_beside(on, on.sub, on.main)
    for shade in (100, 120, 140):
        on.sub.show(shade)
        assert await on.seen() == "sub"
        on.main.show(shade)
        assert await on.full() == (640, 360)
    assert on.reports == []
    assert (on.main.packets.opened, on.sub.packets.opened) == (3, 3)


async def test_a_stream_that_stays_away_is_no_sign_of_a_crowd(on: Stage) -> None:
    """A camera that is offline, or slow to start, must not close the others of its recorder."""
    on.sub.show()
    await on.seen()
    on.main.fail(Miss(Fault.NO_VIDEO, "the camera does not answer in time", timed_out=True))
    assert await on.full() is None
    assert (on.main.packets.opened, on.sub.is_connected) == (1, True)


async def test_a_stream_that_fails_for_other_reasons_does_not_throttle_its_device(on: Stage) -> None:
    on.sub.show()
    await on.seen()
    for _ in range(2):
        on.main.fail(Miss(Fault.REFUSED, "always", is_crowded=True))
    assert await on.full() is None
    assert (on.main.packets.opened, on.reports) == (2, [("main", Fault.REFUSED)])
    # It is not tried again so soon, and both may be open at the same time.
    await on.clock.advance(10_000)
    on.sub.show(110)
    await on.seen()
    on.main.show()
    assert await on.full() == (640, 360)
    assert on.sub.is_connected
    assert on.main.is_connected


async def test_a_look_that_gets_nothing_in_time_is_a_time_out(on: Stage) -> None:
    looking = asyncio.ensure_future(on.streams.sub.grab(HELD) if on.streams.sub else on.look())
    await on.sub.connected()
    await on.clock.until_sleeping(1)
    await on.clock.advance(6000)
    answer = await asyncio.wait_for(looking, TIMEOUT_SEC)
    assert isinstance(answer, Miss)
    assert answer.timed_out
    await on.sub.closed()  # a connection that hangs is begun anew


async def test_silence_is_counted_from_the_last_packet(on: Stage) -> None:
    assert on.streams.silent_since_boot_ms() is None
    on.sub.show()
    await on.seen()
    began = on.clock.boot_ms()
    await on.clock.advance(20_000)
    assert on.streams.silent_since_boot_ms() == began
    on.streams.let_go()
    assert on.streams.silent_since_boot_ms() is None


async def test_a_connection_that_ended_between_looks_is_opened_by_the_next(on: Stage) -> None:
    on.sub.show()
    await on.seen()
    on.sub.fail(MISSING)
    await on.sub.closed()
    on.sub.show(130)
    assert await on.seen() == "sub"
    assert on.reports == []


async def test_the_main_stream_shows_what_the_sub_stream_does_not(on: Stage) -> None:
    for shade in (100, 110):
        on.sub.show(shade)
        on.main.show(shade)
        caught = await on.unseen()
        assert isinstance(caught, Caught)
        assert caught.stream == "main"
        on.streams.decoded("main", HELD)
        # One alone may be a damaged packet.
        assert on.reports == ([] if shade == 100 else [("sub", Fault.NO_VIDEO)])
    await on.sub.closed()
    assert on.main.is_connected
    on.main.show(120)
    assert await on.seen() == "main"  # the other one rests
    # Its pauses grow though it is opened well each time.
    for pause_ms, opened in ((1000, 2), (2000, 3)):
        await on.clock.advance(pause_ms)
        on.sub.show(130)
        on.main.show(130)
        assert isinstance(await on.unseen(), Caught)
        assert on.sub.packets.opened == opened
        # What is shown next is for the next connection.
        await on.sub.closed()
        on.main.show(140)
        assert await on.seen() == "main"
    await on.clock.advance(4000)
    on.sub.show(150)
    assert await on.seen() == "sub"
    assert on.reports == [("sub", Fault.NO_VIDEO), ("sub", None)]


async def test_a_main_stream_that_shows_nothing_either_is_the_camera_s_trouble(on: Stage) -> None:
    on.sub.show()
    on.main.fail(MISSING)
    assert await on.unseen() == MISSING


async def test_a_full_picture_that_can_t_be_decoded_rests_the_main_stream(on: Stage) -> None:
    on.sub.show()
    await on.seen()
    for shade in (100, 110):
        on.main.show(shade)
        assert await on.streams.full(HELD) is not None
        on.streams.full_decoded(NO_PICTURE)
    await on.main.closed()
    assert on.reports == [("main", Fault.NO_VIDEO)]
    assert await on.full() is None
