import asyncio

import pytest

from camserver.domain.leases import Fault
from camserver.media import keyframes
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Miss, Packet
from tests.media.video import packet
from tests.rig.clock import settle

GONE = Miss(Fault.NO_VIDEO, "gone")


@pytest.fixture
async def looked() -> Keyframes:
    """For a look a second."""
    consumer = Keyframes(1000, lambda: 60_000)
    consumer.begin()
    return consumer


async def taken(consumer: Keyframes) -> list[int] | Miss:
    """The moments of the packets that a look gets."""
    got = await asyncio.wait_for(consumer.take(), 60)
    return got if isinstance(got, Miss) else [one.boot_ms for one in got]


def group(consumer: Keyframes, at_ms: int, count: int, apart_ms: int = 100) -> None:
    for number in range(count):
        consumer.offer(packet(at_ms + apart_ms * number, is_keyframe=number == 0))


async def test_a_look_gets_the_newest_keyframe(looked: Keyframes) -> None:
    group(looked, 0, 10)
    group(looked, 1000, 10)
    assert await taken(looked) == [1000]
    assert looked.gop_ms == 1000


async def test_the_same_keyframe_is_not_seen_twice(looked: Keyframes) -> None:
    group(looked, 0, 5)
    assert await taken(looked) == [0]
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    assert not waiting.done()
    looked.offer(packet(500))
    await settle()
    assert not waiting.done()
    looked.offer(packet(1000, True))
    got = await waiting
    assert isinstance(got, tuple)
    assert [one.boot_ms for one in got] == [1000]


async def test_rare_keyframes_are_decoded_forward_from(looked: Keyframes) -> None:
    group(looked, 0, 50)
    group(looked, 5000, 10)  # now it is known that they are 5 s apart
    assert await taken(looked) == [5000]
    assert await taken(looked) == list(range(5000, 6000, 100))
    looked.offer(packet(6000))
    assert await taken(looked) == list(range(5000, 6100, 100))


async def test_a_group_that_is_too_large_is_not_kept(looked: Keyframes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyframes, "GROUP_MAX_BYTES", 12)
    group(looked, 0, 50)
    group(looked, 5000, 10)  # of 4 bytes each
    assert await taken(looked) == [5000]
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    assert not waiting.done()
    looked.offer(packet(10_000, True))
    got = await waiting
    assert not isinstance(got, Miss)
    assert len(looked._group) == 1


async def test_the_end_is_told_once_pictures_are_used_up(looked: Keyframes) -> None:
    looked.offer(packet(0, True))
    looked.ended(GONE)
    assert await taken(looked) == [0]
    assert await taken(looked) == GONE
    assert not looked.has_video
    looked.begin()
    group(looked, 9000, 1)
    assert await taken(looked) == [9000]


async def test_the_end_wakes_whoever_waits(looked: Keyframes) -> None:
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    await asyncio.to_thread(looked.ended, GONE)
    assert await asyncio.wait_for(waiting, 60) == GONE


async def test_video_in_vain_makes_the_next_wait_longer(looked: Keyframes) -> None:
    before = (looked.gop_ms, looked.has_video)
    assert before == (None, False)
    looked.offer(packet(52_000))
    assert (looked.gop_ms, looked.has_video) == (8000, True)  # it is 60,000 now
    looked.let_go()
    looked.begin()
    assert looked.gop_ms == 8000
    looked.offer(packet(57_000, True))
    looked.offer(packet(58_500, True))
    assert looked.gop_ms == 1500


async def test_nothing_of_an_earlier_connection_is_left(looked: Keyframes) -> None:
    group(looked, 0, 3)
    looked.let_go()
    looked.begin()
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    assert not waiting.done()
    waiting.cancel()


def test_packets_after_the_loop_is_gone_do_no_harm() -> None:
    consumer = Keyframes(1000, lambda: 0)

    async def begin() -> None:
        consumer.begin()

    asyncio.run(begin())
    consumer.offer(packet(0, True))
    consumer.ended(GONE)


def test_packets_are_as_small_as_they_can_be() -> None:
    assert not hasattr(packet(0), "__dict__")
    assert isinstance(packet(0), Packet)
