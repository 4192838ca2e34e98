"""A cancellation that hides behind an error."""

import asyncio

import pytest

from camserver.base.cancelling import apart, go_on_unless_cancelled


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
