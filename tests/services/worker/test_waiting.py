import asyncio

import pytest

from camserver.services.worker.waiting import event_within, within
from tests.rig.clock import ManualClock, settle


async def test_answer_in_time_is_given_and_the_timer_is_gone() -> None:
    clock = ManualClock()

    async def work() -> int:
        await clock.sleep(1)
        return 7

    task = asyncio.ensure_future(within(clock, 2, work()))
    await clock.advance(1000)
    assert await task == 7
    assert clock.sleeping == 0


async def test_work_that_takes_too_long_is_cancelled() -> None:
    clock = ManualClock()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(within(clock, 2, work()))
    await clock.advance(2000)
    with pytest.raises(TimeoutError):
        await task
    assert ended.is_set()


async def test_error_of_the_work_comes_through() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await within(ManualClock(), 2, work())


async def test_cancelling_the_waiter_cancels_the_work() -> None:
    clock = ManualClock()
    inner: list[asyncio.Task[None] | None] = []

    async def work() -> None:
        inner.append(asyncio.current_task())
        await asyncio.Event().wait()

    task = asyncio.ensure_future(within(clock, 2, work()))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inner[0] is not None
    assert inner[0].cancelled()
    assert clock.sleeping == 0


async def test_event_or_time_whichever_is_first() -> None:
    clock, event = ManualClock(), asyncio.Event()
    waiting = asyncio.ensure_future(event_within(clock, 5, event))
    await clock.advance(4999)
    assert not waiting.done()
    await clock.advance(1)
    assert await waiting is False
    waiting = asyncio.ensure_future(event_within(clock, 5, event))
    await settle()
    event.set()
    assert await waiting is True
