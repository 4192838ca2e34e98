"""A cancellation that hides behind an error."""

import asyncio

import pytest

from camserver.base.cancelling import apart, go_on_unless_cancelled, to_its_end


async def test_an_error_on_the_way_out_does_not_hide_that_the_task_was_cancelled() -> None:
    begun = asyncio.Event()

    async def turn() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise OSError("can't be given back")

    async def loop() -> None:
        while True:
            try:
                await turn()
            except OSError:
                go_on_unless_cancelled()

    task = asyncio.create_task(loop())
    await begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()


async def test_others_go_on() -> None:
    go_on_unless_cancelled()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    go_on_unless_cancelled()


async def test_a_group_that_failed_apart_does_not_look_like_a_cancellation() -> None:
    async def fail() -> None:
        raise OSError("broken")

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            tasks.create_task(asyncio.Event().wait())

    with pytest.raises(ExceptionGroup):
        await apart(group())
    go_on_unless_cancelled()


async def test_what_runs_apart_is_cancelled_too() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(apart(work()))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    assert ended.is_set()


async def test_what_is_done_to_its_end_outlives_every_cancellation_and_tells_it_after() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    task = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.wait([task], timeout=0)
        assert not task.done()
    may_end.set()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    assert ended.is_set()


async def test_what_is_done_to_its_end_answers_and_fails_as_it_would_alone() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> int:
        begun.set()
        await may_end.wait()
        raise OSError("broken")

    assert await to_its_end(asyncio.sleep(0, 7)) == 7
    task = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    task.cancel()
    may_end.set()
    with pytest.raises(OSError, match="broken"):
        await task
