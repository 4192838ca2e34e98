"""The source of looks at video, on a connection that a test drives."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from camserver.domain.leases import Fault
from camserver.media.forward import ForwardShot
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Hub, Miss
from camserver.media.rtsp_source import RtspSource
from camserver.media.shots import VideoShot
from tests.media.test_packets import Taker, ToldPackets
from tests.media.video import packet
from tests.rig.polling import TIMEOUT_SEC, until

GONE = Miss(Fault.NO_VIDEO, "gone")


class Stage:
    def __init__(self, interval_ms: int = 1000) -> None:
        self.now_ms = 0
        self.packets = ToldPackets()
        keyframes = Keyframes(interval_ms, lambda: self.now_ms)
        self.source = RtspSource(Hub(self.packets), keyframes, interval_ms, lambda: self.now_ms)

    async def send(self, at_ms: int, is_keyframe: bool = False) -> None:
        """A packet of that moment, which is now; the source has heard it when this returns."""
        self.now_ms = at_ms
        self.packets.tell(packet(at_ms, is_keyframe))
        await until(lambda: self.source.heard_boot_ms == at_ms, "the packet is heard")

    async def grab(self) -> VideoShot | Miss:
        return await asyncio.wait_for(self.source.grab(), TIMEOUT_SEC)

    async def grab_in_vain(self, at_ms: int, silent: bool = False) -> None:
        """A look that gets no picture and is given up at that moment."""
        looking = asyncio.ensure_future(self.source.grab())
        await asyncio.sleep(0)
        if not silent:
            await self.send(at_ms)
        self.now_ms = at_ms
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


@pytest.fixture
async def on() -> AsyncIterator[Stage]:
    """Connected, with a keyframe a second that a look has seen."""
    stage = Stage()
    for moment in (1, 1000):
        stage.packets.tell(packet(moment, True))
        shot = await stage.grab()
        assert isinstance(shot, VideoShot)
    assert stage.source.learned_gop_ms == 999
    stage.now_ms = 1000
    yield stage
    await stage.source.close()


async def test_one_look_in_vain_keeps_a_connection_that_sends(on: Stage) -> None:
    await on.grab_in_vain(7000)
    assert on.source.is_open
    on.packets.tell(packet(7500, True))
    assert isinstance(await on.grab(), VideoShot)
    assert on.packets.opened == 1


async def test_video_that_shows_no_picture_time_and_again_is_connected_anew(on: Stage) -> None:
    await on.grab_in_vain(7000)
    await on.grab_in_vain(14_000)
    assert not on.source.is_open
    await on.source.until_closed(TIMEOUT_SEC)  # or the old connection takes what is meant for the new one
    on.packets.tell(packet(15_000, True))
    assert isinstance(await on.grab(), VideoShot)


async def test_a_connection_that_hangs_is_connected_anew_at_once(on: Stage) -> None:
    await on.grab_in_vain(7000, silent=True)
    assert not on.source.is_open


async def test_a_look_that_is_given_up_before_the_first_packet_lets_go(on: Stage) -> None:
    await on.source.close()
    opening = asyncio.ensure_future(on.source.open())
    await until(lambda: on.packets.opened == 2, "the connection")
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    assert not on.source.is_open


async def test_decoders_are_kept_only_where_several_looks_use_them() -> None:
    """Keyframes 2 intervals apart: a look on one, the next one forward from it. With more, a decoder goes on."""
    for gop_ms, kind in ((2000, VideoShot), (5000, ForwardShot)):
        stage = Stage()
        opening = asyncio.ensure_future(stage.source.open())
        for number in range(2):
            stage.packets.tell(packet(gop_ms * number + 1, True))
        assert await asyncio.wait_for(opening, TIMEOUT_SEC) is None
        await until(lambda stage=stage, gop_ms=gop_ms: stage.source.learned_gop_ms == gop_ms, "two keyframes")  # type: ignore[misc]
        assert isinstance(await stage.grab(), VideoShot)
        await stage.send(gop_ms + 1000)
        shot = await stage.grab()
        assert type(shot) is kind
        await stage.source.close()


async def test_a_companion_rides_along_while_the_connection_is_held(on: Stage) -> None:
    taker = Taker()
    on.source.accompany(taker)
    await on.send(1500)
    await until(lambda: len(taker.packets) == 1, "the packet")
    on.source.let_go()
    await on.source.until_closed(TIMEOUT_SEC)
    on.packets.tell(packet(2000, True))
    await on.grab()
    await on.send(2100)
    await until(lambda: taker.packets[-1].boot_ms == 2100, "packets of the next connection")
    on.source.hold = False
    on.packets.tell(packet(3000, True))
    await on.grab()
    assert not on.source.hub.has(taker)


async def test_whoever_wants_to_know_is_told_of_the_end(on: Stage) -> None:
    told = asyncio.Event()
    on.source.on_ended(told.set)
    on.packets.tell(GONE)
    await asyncio.wait_for(told.wait(), TIMEOUT_SEC)
    assert not on.source.is_open
    assert on.source.heard_boot_ms is None
