"""A run as a state machine: processes come and are killed, the model and the sheet misbehave, people type, sort and
pause. In the end every cell is right, nothing typed is lost, and nothing was paid twice but what was in flight."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.scoring import RunStatus
from camserver.services.scoring import asking, scheduling, writing
from camserver.services.scoring.pipeline import ScoringPipeline
from camserver.store import Store, open_store, scoring_runs
from camserver.store.scoring_runs import Run
from tests.fakes.scoring_llm import ScoringLlm, truth
from tests.rig.effort import times
from tests.rig.templates import SqliteTemplate
from tests.services.scoring.list_sheet import ListSheet
from tests.services.scoring.stage import POLICY, Stage
from tests.store.conftest import wipe

NAMES = ("red", "green", "blue")
PLACES = 4
TYPED = "typed by a person"


class World:
    """What all examples share: a store, the fake model and the loop."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        self.store: Store = self.do(open_store(url))
        self.llm = ScoringLlm()
        self.do(self.llm.__aenter__())

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    def close(self) -> None:
        self.do(self.llm.__aexit__(None, None, None))
        self.do(self.store.close())
        self.runner.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for seconds in earnest waits for a moment here; the order of things is the same."""
    monkeypatch.setattr(asking, "FIRST_WAIT_SEC", 0.001)
    for module in (scheduling, writing):
        monkeypatch.setattr(module, "retry_delay_sec", lambda failures: 0.001)
    monkeypatch.setattr(scheduling, "IDLE_SEC", 0.01)


@pytest.fixture(scope="module")
def world(sqlite_template: SqliteTemplate) -> Iterator[World]:
    url = sqlite_template.fresh()
    world = World(url)
    yield world
    world.close()
    sqlite_template.discard(url)


class RunMachine(RuleBasedStateMachine):
    world: World

    @initialize(rows=st.integers(1, 25), equal=st.integers(1, 10), stages=st.booleans())
    def begin(self, rows: int, equal: int, stages: bool) -> None:
        self.world.do(self.world.store.write(wipe))
        self.llm = self.world.llm
        self.llm.hold = None
        self.llm.billed.clear()
        self.llm.behaviour.script = deque()
        self.in_flight = 0
        layout = replace(ListSheet.of([]).layout, block_size=2)
        texts = [f"text {number % max(rows - equal, 1)}" for number in range(rows)]
        self.sheet = ListSheet.of(texts, NAMES, stages=stages, layout=layout)
        policy = replace(POLICY, chunk_rows=4, concurrency_start=2, concurrency_max=PLACES, chunks_at_once=2)
        self.stage = Stage(self.world.store, self.llm.url, policy)
        self.run_: Run = self.world.do(self.stage.begin(self.sheet))
        self.typed: set[tuple[str, int]] = set()

    # -- What happens to it ------------------------------------------------------------------------------------------

    @rule(twists=st.lists(st.sampled_from(["fenced", "short", "nan", "500", "reset", "429", "garbage"]), max_size=6))
    def misbehave(self, twists: list[str]) -> None:
        self.llm.behaviour.script.extend(twists)

    @rule(kind=st.sampled_from([SheetTrouble.LOCKED, SheetTrouble.BUSY, SheetTrouble.DENIED]))
    def lock_the_sheet(self, kind: SheetTrouble) -> None:
        self.sheet.trouble.append(SheetError(kind, "not now"))

    @rule(data=st.data())
    def sort(self, data: st.DataObject) -> None:
        self.sheet.lines = data.draw(st.permutations(self.sheet.lines))

    @rule(row=st.integers(0, 24), category=st.integers(0, 2))
    def type_into_an_empty_cell(self, row: int, category: int) -> None:
        line = self.sheet.lines[row % len(self.sheet.lines)]
        if line.cells[category] is None:
            line.cells[category] = TYPED
            self.typed.add((line.text, category))

    @rule(answers=st.integers(0, 12))
    def work_and_be_killed(self, answers: int) -> None:
        """The process ends after so many answers: nothing is drained, what was only staged is gone."""
        self.world.do(self._killed(answers))
        self.sheet.reopened()

    async def _killed(self, answers: int) -> None:
        await self.stage.store.write(scoring_runs.want, self.run_.run_id, "run", self.stage.clock.now_ms())
        pipeline = self.stage.pipeline(await self.stage.run(self.run_.run_id), self.sheet)
        wanted = sum(self.llm.billed.values()) + answers
        working = asyncio.create_task(_abruptly(pipeline))
        while not working.done() and sum(self.llm.billed.values()) < wanted:  # noqa: ASYNC110 - it is the fake that counts
            await asyncio.sleep(0)
        self.in_flight += PLACES
        working.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working
        writing = pipeline._journal._writing
        for one in pipeline._invokers._running | ({writing} if writing is not None else set()):
            one.cancel()
        for client in self.stage._clients:
            await client.close()

    @rule()
    def pause(self) -> None:
        self.world.do(self.stage.store.write(scoring_runs.want, self.run_.run_id, "pause", self.stage.clock.now_ms()))

    # -- What always holds -------------------------------------------------------------------------------------------

    @invariant()
    @precondition(lambda self: hasattr(self, "sheet"))
    def no_cell_is_wrong_and_nothing_typed_is_lost(self) -> None:
        for line in self.sheet.lines:
            for name, cell in zip(NAMES, line.cells, strict=True):
                assert cell in (None, TYPED, truth(line.text, name))

    def teardown(self) -> None:
        if not hasattr(self, "sheet"):
            return
        self.llm.behaviour.script.clear()
        self.sheet.trouble.clear()
        status = self.world.do(self.stage.work(self.run_, self.sheet))
        assert status is RunStatus.COMPLETED
        for line in self.sheet.lines:
            for name, cell in zip(NAMES, line.cells, strict=True):
                assert cell in (TYPED, truth(line.text, name)), line
        totals = self.world.do(self.stage.store.read(scoring_runs.totals, self.run_.run_id))
        assert totals.written <= totals.done <= totals.tasks <= 2 * len(self.sheet.lines)
        assert sum(count - 1 for count in self.llm.billed.values()) <= self.in_flight


async def _abruptly(pipeline: ScoringPipeline) -> None:
    """Works without winding down, as a process that is killed."""
    await pipeline._store.write(scoring_runs.forget_dead, pipeline._run.run_id)
    await pipeline._stages()


def test_a_run_survives_everything(world: World) -> None:
    machine = type("Machine", (RunMachine,), {"world": world})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=times(12, 150), stateful_step_count=8, deadline=None)
    )
