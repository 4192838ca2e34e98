"""Batches: one at a time, bounded, answered in order, and nobody suffers for somebody else's item."""

import asyncio
from collections.abc import Sequence

import pytest

from camserver.base.batches import Batcher
from camserver.base.errors import Bug, StoreBusy, StoreUnavailable
from tests.rig.polling import until


class Runner:
    """Doubles numbers, once its gate is open; refuses batches with a poisonous number in them."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.batches: list[tuple[int, ...]] = []
        self.under_way = 0
        self.under_way_max = 0
        self.at_once = 1
        self.poison: dict[int, Exception] = {}

    async def __call__(self, items: tuple[int, ...]) -> Sequence[int]:
        self.batches.append(items)
        self.under_way += 1
        self.under_way_max = max(self.under_way, self.under_way_max)
        assert self.under_way <= self.at_once, "more batches than may be overlap"
        try:
            await self.gate.wait()
        finally:
            self.under_way -= 1
        for item in items:
            if item in self.poison:
                raise self.poison[item]
        return [2 * item for item in items]


@pytest.fixture
async def runner() -> Runner:
    return Runner()


async def submitted(batcher: Batcher[int, int], *items: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(batcher.submit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_a_lone_item_runs_at_once(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    assert await batcher.submit(21) == 42
    assert runner.batches == [(21,)]


async def test_a_batch_may_wait_for_more_items_unless_it_is_full(runner: Runner) -> None:
    asked: list[float] = []

    def linger_sec() -> float:
        asked.append(0.001)
        return asked[-1]

    batcher = Batcher(runner, size_max=3, waiting_max=100, linger_sec=linger_sec)
    tasks = await submitted(batcher, 1)
    await asyncio.sleep(0)
    assert asked, "it waits before it runs"
    tasks += await submitted(batcher, 2, 3, 4, 5, 6)
    assert await asyncio.gather(*tasks) == [2, 4, 6, 8, 10, 12]
    assert runner.batches == [(1, 2, 3), (4, 5, 6)]
    assert len(asked) == 1, "a full batch waits for nobody"


async def test_what_comes_during_a_batch_makes_the_next_up_to_the_size(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    runner.gate.clear()
    tasks = await submitted(batcher, 0)
    tasks += await submitted(batcher, *range(1, 8))
    runner.gate.set()
    assert await asyncio.gather(*tasks) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert [len(batch) for batch in runner.batches] in ([1, 4, 3], [4, 4]), "a batch is never larger than its bound"
    assert [item for batch in runner.batches for item in batch] == list(range(8)), "in the order they came"


async def test_more_than_may_wait_are_refused_and_the_others_are_done(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=1, waiting_max=2)
    runner.gate.clear()
    tasks = await submitted(batcher, 1)
    await asyncio.sleep(0)
    tasks += await submitted(batcher, 2, 3)
    with pytest.raises(StoreBusy, match="2 writes are waiting"):
        await batcher.submit(4)
    runner.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6]
    assert await batcher.submit(5) == 10


async def test_an_item_that_fails_hurts_only_itself(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    runner.poison[2] = ValueError("poison")
    runner.gate.clear()
    tasks = await submitted(batcher, 0, 1, 2, 3)
    runner.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[:2] == [0, 2]
    assert isinstance(answers[2], ValueError)
    assert answers[3] == 6


async def test_a_store_that_is_away_fails_the_whole_batch_once(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    runner.poison[0] = StoreUnavailable("away")
    answers = await asyncio.gather(*await submitted(batcher, 0, 1, 2, 3), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 4
    assert runner.batches == [(0, 1, 2, 3)], "asking item by item would be four more waits for nothing"
    assert await batcher.submit(1) == 2, "it goes on afterwards"


async def test_answers_that_do_not_fit_are_a_bug_and_not_a_second_run() -> None:
    runs = 0

    async def forgetful(items: tuple[int, ...]) -> Sequence[int]:
        nonlocal runs
        runs += 1
        return list(items[1:])

    batcher = Batcher(forgetful, size_max=4, waiting_max=100)
    answers = await asyncio.gather(*await submitted(batcher, 1, 2), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Bug, Bug]
    assert runs == 1, "the work was done; doing it again would do it twice"


async def test_the_item_of_a_task_that_stopped_waiting_is_run_all_the_same(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    runner.gate.clear()
    first, second = await submitted(batcher, 1, 2)
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    runner.gate.set()
    await batcher.close()
    assert sorted(item for batch in runner.batches for item in batch) == [1, 2]


async def test_a_failure_nobody_waits_for_any_more_is_no_error(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=4, waiting_max=100)
    runner.poison[1] = ValueError("poison")
    runner.gate.clear()
    (task,) = await submitted(batcher, 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    runner.gate.set()
    await batcher.close()
    assert await batcher.submit(2) == 4


async def test_close_waits_for_everything_submitted(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=1, waiting_max=100)
    runner.gate.clear()
    tasks = await submitted(batcher, 1, 2, 3)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    runner.gate.set()
    await closing
    assert [task.result() for task in tasks] == [2, 4, 6]
    await Batcher(runner, size_max=1, waiting_max=1).close()


async def test_two_batches_may_be_under_way_together_and_no_more(runner: Runner) -> None:
    runner.at_once = 2
    batcher = Batcher(runner, size_max=2, waiting_max=100, at_once=2, beside_min=2)
    runner.gate.clear()
    tasks = await submitted(batcher, 0, 1)
    await until(lambda: runner.under_way == 1, "the first batch")
    tasks += await submitted(batcher, 2)
    await asyncio.sleep(0)
    assert runner.under_way == 1, "one more is too few for a second batch"
    tasks += await submitted(batcher, *range(3, 9))
    await until(lambda: runner.under_way == 2, "the second batch beside it")
    runner.gate.set()
    assert await asyncio.gather(*tasks) == [2 * item for item in range(9)]
    assert runner.under_way_max == 2
    assert sorted(item for batch in runner.batches for item in batch) == list(range(9)), "each once"
    await batcher.close()
    assert await batcher.submit(21) == 42, "it goes on afterwards"


async def test_nobody_waits_for_ever_when_the_loop_ends_in_the_middle(runner: Runner) -> None:
    batcher = Batcher(runner, size_max=2, waiting_max=100)
    runner.gate.clear()
    tasks = await submitted(batcher, 1, 2, 3)
    await until(lambda: runner.under_way == 1, "the first batch")
    for task in asyncio.all_tasks() - {asyncio.current_task(), *tasks}:
        task.cancel()  # as asyncio.run does with what is left
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3


async def test_as_many_are_waited_for_as_there_were() -> None:
    sizes: list[int] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def run(items: tuple[int, ...]) -> list[int]:
        sizes.append(len(items))
        begun.set()
        await may_end.wait()
        return list(items)

    # So long that only the number of items ends the wait.
    batcher: Batcher[int, int] = Batcher(run, size_max=10, waiting_max=100, linger_sec=lambda: 3_600.0, gathers=True)
    first = asyncio.create_task(batcher.submit(0))
    await begun.wait()  # one who comes alone does not wait
    others = [asyncio.create_task(batcher.submit(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    may_end.set()
    await first
    # Three were there: the two are waited with for one more.
    assert sizes == [1]
    third = await batcher.submit(3)
    assert [third, *(await asyncio.gather(*others))] == [3, 1, 2]
    assert sizes == [1, 3]


async def test_who_does_not_come_again_is_not_waited_for_long() -> None:
    async def run(items: tuple[int, ...]) -> list[int]:
        return list(items)

    batcher: Batcher[int, int] = Batcher(run, size_max=10, waiting_max=100, linger_sec=lambda: 0.001, gathers=True)
    assert await asyncio.gather(*(batcher.submit(number) for number in range(5))) == [0, 1, 2, 3, 4]
    assert [await batcher.submit(number) for number in (7, 8)] == [7, 8]
    await batcher.close()
