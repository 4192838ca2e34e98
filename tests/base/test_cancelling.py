"""A cancellation that hides behind an error."""

import asyncio

import pytest

from camserver.base.cancelling import go_on_unless_cancelled


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
