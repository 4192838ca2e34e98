import asyncio
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from camserver.services.worker.hold import Hold
from tests.rig.clock import settle
from tests.services.worker.build import FollowingClock


def held_for(clock: FollowingClock, ms: int) -> Hold:
    hold = Hold("cam_1", 1, clock)
    hold.renew(clock.boot_ms() + ms)
    return hold


def test_start_alone_covers_nothing(moved: FollowingClock) -> None:
    assert not Hold("cam_1", 1, moved).is_covered


async def test_hold_ends_at_its_deadline_by_the_boot_clock_whatever_the_wall_clock_says(
    moved: FollowingClock,
) -> None:
    hold = held_for(moved, 1000)
    moved.jump_wall(10**9)
    await moved.advance(999)
    assert hold.is_covered
    moved.jump_wall(-(10**9))
    await moved.advance(1)
    assert not hold.is_covered


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_renewals_in_any_order_leave_the_latest_deadline(deadlines: list[int]) -> None:
    hold = Hold("cam_1", 1, FollowingClock())
    for deadline in deadlines:
        hold.renew(deadline)
    assert hold.covers(max(deadlines) - 1)
    assert not hold.covers(max(deadlines))


def in_5_sec(moved: FollowingClock) -> Callable[[], int]:
    at_boot_ms = moved.boot_ms() + 5000
    return lambda: at_boot_ms


async def test_sleep_ends_true_at_its_moment(moved: FollowingClock) -> None:
    hold = held_for(moved, 60_000)
    sleep = asyncio.ensure_future(hold.sleep_until(in_5_sec(moved)))
    await moved.advance(4999)
    assert not sleep.done()
    await moved.advance(1)
    assert await sleep is True


async def test_sleep_ends_false_at_the_deadline(moved: FollowingClock) -> None:
    hold = held_for(moved, 2000)
    sleep = asyncio.ensure_future(hold.sleep_until(in_5_sec(moved)))
    await moved.advance(2000)
    assert await sleep is False


async def test_renewal_while_asleep_moves_the_deadline(moved: FollowingClock) -> None:
    hold = held_for(moved, 2000)
    sleep = asyncio.ensure_future(hold.sleep_until(in_5_sec(moved)))
    await moved.advance(1000)
    hold.renew(moved.boot_ms() + 60_000)
    await moved.advance(4000)
    assert await sleep is True


async def test_waits_until_it_is_covered_again(moved: FollowingClock) -> None:
    hold = held_for(moved, 1000)
    await moved.advance(1000)
    waiting = asyncio.ensure_future(hold.until_covered())
    await moved.advance(10_000)
    assert not waiting.done()
    hold.renew(moved.boot_ms())  # an old answer: it covers nothing that is still to come
    await settle()
    assert not waiting.done()
    hold.renew(moved.boot_ms() + 1000)
    await waiting
