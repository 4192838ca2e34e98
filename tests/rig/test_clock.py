import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.clock import Clock
from tests.rig.clock import START_BOOT_MS, START_MS, ManualClock, settle


async def test_it_is_a_clock_and_stands_still() -> None:
    clock: Clock = ManualClock()
    assert clock.now_ms() == START_MS
    await settle()
    assert (clock.now_ms(), clock.boot_ms()) == (START_MS, START_BOOT_MS)


async def test_a_sleeper_wakes_at_its_moment_and_not_before() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(2.5))
    await clock.advance(2499)
    assert not task.done()
    await clock.advance(1)
    assert task.done()
    assert clock.sleeping == 0


async def test_a_fraction_of_a_millisecond_is_rounded_up() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(0.0101))
    await clock.advance(10)
    assert not task.done()
    await clock.advance(1)
    assert task.done()


async def test_a_loop_ticks_at_its_own_times_within_one_advance() -> None:
    clock = ManualClock()
    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.now_ms() - START_MS)

    task = asyncio.create_task(tick())
    await clock.advance(35_000)
    assert ticks == [10_000, 20_000, 30_000]
    assert clock.next_due_ms == 5_000
    task.cancel()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.lists(st.integers(0, 20), max_size=10))
def test_sleepers_wake_in_order_however_the_clock_is_moved(sleeps_ms: list[int], steps_ms: list[int]) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        woken: list[tuple[int, int]] = []

        async def sleeper(number: int, ms: int) -> None:
            await clock.sleep(ms / 1000)
            woken.append((clock.boot_ms() - START_BOOT_MS, number))

        tasks = [asyncio.create_task(sleeper(number, ms)) for number, ms in enumerate(sleeps_ms)]
        for step_ms in steps_ms:
            await clock.advance(step_ms)
            passed_ms = clock.boot_ms() - START_BOOT_MS
            assert len(woken) == sum(ms <= passed_ms for ms in sleeps_ms)
        await clock.advance(50)
        assert woken == sorted((ms, number) for number, ms in enumerate(sleeps_ms))
        await asyncio.gather(*tasks)

    asyncio.run(scenario())


async def test_woken_tasks_run_to_their_next_wait_before_advance_returns() -> None:
    clock = ManualClock()
    done = asyncio.Event()

    async def chain(depth: int) -> None:
        if depth:
            await asyncio.gather(asyncio.create_task(chain(depth - 1)))
        else:
            await clock.sleep(1)
            done.set()

    task = asyncio.create_task(chain(30))
    await clock.advance(1000)
    assert task.done()
    assert done.is_set()


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.until_sleeping(1)
    task.cancel()
    await clock.advance(2000)
    assert task.cancelled()
    assert clock.next_due_ms is None


async def test_until_sleeping_waits_for_work_outside_the_loop() -> None:
    clock = ManualClock()
    go = asyncio.Event()

    async def work() -> None:
        await asyncio.to_thread(lambda: None)
        go.set()
        await clock.sleep(1)

    task = asyncio.create_task(work())
    await clock.until_sleeping()
    assert go.is_set()
    await clock.advance(1000)
    await task


async def test_a_jump_of_the_wall_clock_wakes_nobody() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(60))
    await clock.until_sleeping()
    clock.jump_wall(-3_600_000)
    await clock.advance(0)
    assert clock.now_ms() == START_MS - 3_600_000
    assert clock.boot_ms() == START_BOOT_MS
    assert not task.done()
    task.cancel()


async def test_a_spinning_task_is_reported() -> None:
    clock = ManualClock()

    async def spin() -> None:
        while True:
            await clock.sleep(0)

    task = asyncio.create_task(spin())
    with pytest.raises(RuntimeError, match="spin"):
        await clock.advance(1)
    task.cancel()


async def test_it_never_goes_back() -> None:
    with pytest.raises(ValueError, match="never goes back"):
        await ManualClock().advance(-1)
