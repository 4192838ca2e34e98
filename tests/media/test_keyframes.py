import asyncio

import pytest

from camserver.domain.leases import Fault
from camserver.media import keyframes
from camserver.media.keyframes import Group, GroupMemory, Keyframes
from camserver.media.packets import Miss, Packet
from tests.media.video import packet, recovery_data
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
    group(looked, -1000, 5)
    group(looked, 0, 5)  # now it is known that they are as frequent as looks
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


async def test_before_it_is_known_how_rare_they_are_looks_go_forward_too(looked: Keyframes) -> None:
    group(looked, 0, 5)
    assert await taken(looked) == [0]
    assert await taken(looked) == [0, 100, 200, 300, 400]


async def test_somebody_who_watches_gets_the_newest_picture(looked: Keyframes) -> None:
    group(looked, 58_000, 5)
    looked.keep_following = True
    group(looked, 59_000, 9)  # it is 60,000 now
    got = await looked.take(newest=True)
    assert isinstance(got, tuple)
    assert [one.boot_ms for one in got] == list(range(59_000, 59_900, 100))
    looked.offer(packet(59_900, True))  # new enough by itself
    got = await looked.take(newest=True)
    assert isinstance(got, tuple)
    assert [one.boot_ms for one in got] == [59_900]


async def test_the_first_packet_is_waited_for(looked: Keyframes) -> None:
    waiting = asyncio.ensure_future(looked.first())
    await settle()
    assert not waiting.done()
    await asyncio.to_thread(looked.offer, packet(59_000))
    assert await asyncio.wait_for(waiting, 60) is None
    assert looked.heard_boot_ms == 59_000
    looked.ended(GONE)
    assert await looked.first() == GONE


async def test_how_long_the_first_picture_took(looked: Keyframes) -> None:
    looked.offer(packet(61_000))
    looked.offer(packet(62_500, True))
    assert looked.first_picture_ms == 2500  # it began at 60,000


def recovering(consumer: Keyframes, at_ms: int, count: int, after: int) -> None:
    """A stripe of new picture that has wandered through after so many packets, and some that follow."""
    for number in range(count):
        data = recovery_data(after) if number == 0 else b"slice"
        consumer.offer(packet(at_ms + 100 * number, is_recovery=number == 0, data=data))


async def test_without_keyframes_looks_begin_at_recovery_points_that_have_become_whole(looked: Keyframes) -> None:
    recovering(looked, 0, 4, after=9)
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    assert not waiting.done()
    for number in range(4, 10):
        looked.offer(packet(100 * number))
    got = await waiting
    assert isinstance(got, tuple)
    assert [one.boot_ms for one in got] == list(range(0, 1000, 100))
    # The next point is not whole yet: the first one still shows a picture of now.
    recovering(looked, 1000, 3, after=9)
    assert await taken(looked) == list(range(0, 1300, 100))
    for number in range(13, 20):
        looked.offer(packet(100 * number))
    assert await taken(looked) == list(range(1000, 2000, 100))
    assert looked.gop_ms == 1000


async def test_a_recovery_point_with_too_much_after_it_is_left(
    looked: Keyframes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyframes, "GROUP_MAX_BYTES", 60)
    recovering(looked, 0, 30, after=2)
    waiting = asyncio.ensure_future(looked.take())
    await settle()
    assert not waiting.done()
    recovering(looked, 3000, 3, after=2)
    got = await waiting
    assert isinstance(got, tuple)
    assert [one.boot_ms for one in got] == [3000, 3100, 3200]


async def test_a_keyframe_ends_the_waiting_for_a_recovery_point(looked: Keyframes) -> None:
    recovering(looked, 0, 3, after=9)
    looked.offer(packet(300, True))
    assert await taken(looked) == [300]
    assert looked._coming is None


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
    assert looked._group is not None
    assert len(looked._group.packets) == 1


async def test_a_spoiled_group_is_left_for_the_next_keyframe(looked: Keyframes) -> None:
    group(looked, 0, 50)
    group(looked, 5000, 3)
    got = await looked.take()
    assert isinstance(got, tuple)
    looked.spoil(packet(0))  # of another group
    assert await taken(looked) == [5000, 5100, 5200]
    looked.spoil(got[0])
    waiting = asyncio.ensure_future(looked.take())
    looked.offer(packet(5300))
    await settle()
    assert not waiting.done()
    looked.offer(packet(10_000, True))
    assert await asyncio.wait_for(waiting, 60) == (packet(10_000, True),)


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


def test_the_groups_of_all_cameras_have_a_bound_together() -> None:
    memory = GroupMemory(1_000)
    first, second = (Group(packet(0, True, b"k" * 400), 0, memory) for _ in range(2))
    assert [first.add(packet(number, data=b"x" * 300)) for number in range(3)] == [True, True, True]
    assert memory.used_bytes == 900
    assert not second.add(packet(1, data=b"x" * 300))
    # Its keyframe stays, and what comes later does not follow on a hole.
    assert len(second.packets) == 1
    assert not second.add(packet(2, data=b"x"))
    del first
    assert memory.used_bytes == 0
    third = Group(packet(0, True), 0, memory)
    assert third.add(packet(1, data=b"x" * 300))
    assert memory.used_bytes == 300
