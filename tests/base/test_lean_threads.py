"""Threads for short work: results come back to whoever asked, and slow work holds up nothing for long."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from camserver.base import lean_threads
from camserver.base.lean_threads import LeanThreads


@pytest.fixture
def threads() -> Iterator[LeanThreads]:
    made = LeanThreads(3, "worker")
    yield made
    made.close()


async def test_each_gets_its_own_result(threads: LeanThreads) -> None:
    for size in (1, 2, 50):
        asked = [
            threads.run(lambda number=number: (number, threading.current_thread().name)) for number in range(size)
        ]
        found = await asyncio.gather(*asked)
        assert [number for number, _ in found] == list(range(size))
        assert all(name.startswith("worker-") for _, name in found)


async def test_an_error_is_of_whoever_asked(threads: LeanThreads) -> None:
    good, bad = threads.run(lambda: 1), threads.run(lambda: 1 // 0)
    assert await good == 1
    with pytest.raises(ZeroDivisionError):
        await bad
    assert await threads.run(lambda: 2) == 2


async def test_work_behind_something_slow_is_done_by_others(
    threads: LeanThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean_threads, "PATIENCE_SEC", 0.001)
    go_on, begun = threading.Event(), threading.Event()

    def wait() -> str:
        begun.set()
        return "slow" if go_on.wait(60) else "never"

    slow = [threads.run(wait), threads.run(wait)]
    quick = threads.run(lambda: "quick")
    try:
        assert await quick == "quick"
        assert begun.is_set()
        assert not any(one.done() for one in slow)
    finally:
        go_on.set()
    assert await asyncio.gather(*slow) == ["slow", "slow"]


async def test_one_thread_does_what_it_can_keep_up_with(threads: LeanThreads) -> None:
    await threads.run(threading.get_ident)
    found = [await threads.run(threading.get_ident) for _ in range(20)]
    assert len(set(found)) == 1


async def test_somebody_who_was_cancelled_is_no_matter(threads: LeanThreads) -> None:
    left = threads.run(lambda: 1)
    left.cancel()
    assert await threads.run(lambda: 2) == 2
    assert left.cancelled()


async def test_what_was_asked_before_the_end_is_done() -> None:
    threads = LeanThreads(2, "worker")
    await threads.run(lambda: 0)
    asked = [threads.run(lambda: 1) for _ in range(5)]
    await asyncio.to_thread(threads.close)
    assert await asyncio.gather(*asked) == [1] * 5


def test_a_second_loop_is_served_too() -> None:
    threads = LeanThreads(2, "worker")

    async def ask() -> int:
        return await threads.run(lambda: 3)

    assert [asyncio.run(ask()), asyncio.run(ask())] == [3, 3]
    threads.close()
