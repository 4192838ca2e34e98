"""The stages together, on SQLite, against the fake model."""

import asyncio
from collections import deque
from dataclasses import replace

import pytest
import pytest_asyncio

from camserver.base.secrets import Secret
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.scoring import RunStatus
from camserver.domain.scoring_limits import ConcurrencyController
from camserver.services.scoring.slots import Sharing, Slots, key_digest
from camserver.store import Store, open_store, scoring_limits, scoring_pages, scoring_runs
from camserver.store.scoring_runs import Run
from tests.fakes.scoring_llm import Behaviour, ByConcurrency, ScoringLlm
from tests.rig.polling import until
from tests.rig.templates import SqliteTemplate
from tests.services.scoring.list_sheet import FIRST, Line, ListSheet
from tests.services.scoring.stage import POLICY, Stage, right_cells
from tests.store.conftest import wipe

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(sqlite_template: SqliteTemplate):
    url = sqlite_template.fresh()
    store = await open_store(url)
    yield store
    await store.close()
    sqlite_template.discard(url)


@pytest_asyncio.fixture(loop_scope="module")
async def llm():
    async with ScoringLlm() as llm:
        yield llm


@pytest_asyncio.fixture(loop_scope="module")
async def stage(opened: Store, llm: ScoringLlm) -> Stage:
    await opened.write(wipe)
    return Stage(opened, llm.url)


def texts(count: int, begin: int = 0) -> list[str]:
    return [f"a text with the number {number}" for number in range(begin, begin + count)]


async def test_every_cell_of_a_sheet_is_scored_and_counted(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(35), [f"category {number}" for number in range(13)])
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    ended = await stage.run(run.run_id)
    totals = await stage.store.read(scoring_runs.totals, run.run_id)
    assert (ended.calls, totals.tasks, totals.done, totals.written) == (70, 70, 70, 70)
    assert totals.chunks_over == totals.chunks == 4
    assert ended.cost_micro == 70 * (200 + 2 * 40)


async def test_equal_rows_are_asked_once_and_a_second_run_asks_nothing(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(5) * 8)
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert llm.calls == 5
    assert (await stage.run(run.run_id)).same_hits == 35
    again = ListSheet.of([*texts(5), "new"], address="other")
    second = await stage.begin(again)
    assert await stage.work(second, again) is RunStatus.COMPLETED
    assert again.cells() == right_cells(again)
    assert llm.calls == 6
    assert (await stage.run(second.run_id)).cache_hits == 5


@pytest.mark.parametrize("twist", ["fenced", "prose", "commas", "words"])
async def test_an_answer_whose_meaning_is_clear_is_repaired(stage: Stage, llm: ScoringLlm, twist: str) -> None:
    llm.behaviour.chances = {twist: 1.0}
    sheet = ListSheet.of(texts(5))
    assert await stage.work(await stage.begin(sheet), sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert llm.calls == 5


@pytest.mark.parametrize(
    "twist", ["short", "long", "outside", "nan", "empty", "garbage", "500", "503", "429", "reset"]
)
async def test_what_goes_wrong_once_is_asked_again(stage: Stage, llm: ScoringLlm, twist: str) -> None:
    llm.behaviour.script = deque([twist])
    sheet = ListSheet.of(texts(3))
    assert await stage.work(await stage.begin(sheet), sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert llm.calls == 4


async def test_a_row_that_no_model_answers_fails_alone_and_can_be_tried_again(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of([*texts(3), "odd"])
    llm.behaviour.always = {"odd": "short"}
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells()[-1] == [None, None]
    assert llm.models == {"small": 3 + 3, "large": 3}
    (note,) = await stage.pages(run).read(scoring_pages.notes, run.run_id, 10)
    assert (note.row, note.state) == (8, "failed")
    assert "1 scores" in note.note
    llm.behaviour.always = {}
    assert await stage.store.write(scoring_runs.retry_failed, run.tenant_id, run.run_id, stage.clock.now_ms()) == 1
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert llm.calls == 9 + 1


async def test_an_exhausted_quota_pauses_and_nothing_is_asked_twice(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(30))
    llm.behaviour.script = deque([*["fenced"] * 10, *["quota"] * 20])
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.PAUSED
    paused = await stage.run(run.run_id)
    assert paused.reason == "quota"
    answered = sum(llm.billed.values())
    llm.behaviour.script.clear()
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert answered >= 1
    assert max(llm.billed.values()) == 1


async def test_a_budget_is_never_passed(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(60))
    budget = 12_000
    run = await stage.begin(sheet, budget_micro=budget)
    assert await stage.work(run, sheet) is RunStatus.PAUSED
    paused = await stage.run(run.run_id)
    assert paused.reason == "budget"
    assert 0.5 * budget < paused.cost_micro == paused.drawn_micro <= budget
    await stage.store.write(scoring_runs.set_budget, run.run_id, 10_000_000)
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert llm.calls == 60


async def test_a_question_that_waits_for_money_is_not_in_flight(stage: Stage, llm: ScoringLlm) -> None:
    """What may be in flight grows only while that is what holds questions back, not the budget."""
    sheet = ListSheet.of(texts(60))
    run = await stage.begin(sheet, budget_micro=12_000)
    await stage.store.write(scoring_runs.want, run.run_id, "run", stage.clock.now_ms())
    pipeline = stage.pipeline(run, sheet)
    assert await pipeline.work() is RunStatus.PAUSED
    await stage.close()
    assert pipeline.standing.limit <= max(stage.policy.concurrency_start, llm.in_flight_most / 0.9) + 2


async def test_a_provider_that_stays_away_fails_chunks_and_the_rest_can_be_run_later(
    stage: Stage, llm: ScoringLlm
) -> None:
    sheet = ListSheet.of(texts(12))
    policy = replace(POLICY, network_retries=0, chunk_retries=0)
    llm.behaviour.chances = {"500": 1.0}
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet, policy) is RunStatus.FAILED
    (first, *_) = await stage.pages(run).read(scoring_pages.chunks, run.run_id, 0, 10)
    assert first.status == "failed"
    assert "500" in (first.last_error or "")
    llm.behaviour.chances = {}
    await stage.store.write(scoring_runs.retry_failed, run.tenant_id, run.run_id, stage.clock.now_ms())
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)


async def test_what_only_waits_to_be_asked_again_is_not_waited_for(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(4))
    llm.behaviour.chances = {"500": 1.0}
    run = await stage.begin(sheet)
    pipeline = stage.pipeline(run, sheet, replace(POLICY, network_retries=1000))
    pipeline.drain_sec = 3600
    working = asyncio.create_task(pipeline.work())
    await until(lambda: llm.calls >= 12, "waits of more than a second", 60)
    assert "500" in (pipeline.standing.trouble or "")
    pipeline.stop()
    async with asyncio.timeout(60):
        assert await working is RunStatus.PAUSED
    await stage.close()
    assert (await stage.run(run.run_id)).calls == llm.calls


async def test_what_a_person_typed_stays_and_the_rest_of_the_block_is_written(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(4))
    sheet.lines[0].cells[1] = "mine"
    sheet.lines[1].cells[:] = ["both", "mine"]
    assert await stage.work(await stage.begin(sheet), sheet) is RunStatus.COMPLETED
    right = right_cells(sheet)
    assert sheet.cells() == [[right[0][0], "mine"], ["both", "mine"], right[2], right[3]]
    assert llm.calls == 3


async def test_rows_that_are_sorted_and_added_meanwhile_are_found(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(40))

    def shuffle() -> None:
        sheet.lines.reverse()
        sheet.lines.insert(3, Line("inserted meanwhile", [None, None]))
        sheet.lines.append(Line("added meanwhile", [None, None]))

    original = sheet.write

    async def write(scores):  # type: ignore[no-untyped-def]
        if sheet.writes == 1:
            shuffle()
        return await original(scores)

    sheet.write = write  # type: ignore[method-assign]
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert max(llm.billed.values()) == 1
    await assert_each_row_counts_once(stage, run, sheet)


async def assert_each_row_counts_once(stage: Stage, run: Run, sheet: ListSheet) -> None:
    totals = await stage.store.read(scoring_runs.totals, run.run_id)
    rows = len(sheet.lines)
    assert (totals.tasks, totals.done, totals.written) == (rows, rows, rows)
    written = await stage.pages(run).read(scoring_pages.written_blocks, run.run_id, (0, 0), 1000)
    assert [row for row, _ in written] == list(range(FIRST, FIRST + rows))


async def test_rows_that_are_read_here_and_there_count_once(stage: Stage, llm: ScoringLlm) -> None:
    """Each chunk that is read finds rows again that were read in the chunk before; equal texts are rows of their
    own, and one row is gone in the end."""
    sheet = ListSheet.of([*texts(36), "the same", "the same", "the same", "taken away"])
    original = sheet.rows

    async def rows(first_row: int, last_row: int | None = None):  # type: ignore[no-untyped-def]
        async for page in original(first_row, last_row):
            yield page
        if turns:
            turns.pop()()

    def turn() -> None:
        sheet.lines[:] = [*sheet.lines[10:], *sheet.lines[:10]]

    def take_away() -> None:
        sheet.lines[:] = [line for line in sheet.lines if line.text != "taken away"]

    turns = [take_away, turn, sheet.lines.reverse, turn, turn]
    sheet.rows = rows  # type: ignore[method-assign]
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet, replace(POLICY, chunks_at_once=1)) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    await assert_each_row_counts_once(stage, run, sheet)


async def test_a_sheet_that_is_locked_for_a_while_gets_its_scores_later(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(20), stages=True)
    sheet.trouble = [SheetError(SheetTrouble.LOCKED, "open in another program")]
    assert await stage.work(await stage.begin(sheet), sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)


async def test_a_lost_permission_pauses_and_keeps_what_was_paid_for(stage: Stage, llm: ScoringLlm) -> None:
    sheet = ListSheet.of(texts(20))
    sheet.trouble = [SheetError(SheetTrouble.DENIED, "no longer shared with you")]
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet) is RunStatus.PAUSED
    paused = await stage.run(run.run_id)
    assert (paused.reason, paused.message) == ("sheet", "no longer shared with you")
    assert await stage.work(run, sheet) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    assert max(llm.billed.values()) == 1


async def test_more_than_fits_is_refused_seldom(stage: Stage, llm: ScoringLlm) -> None:
    llm.behaviour = Behaviour(latency_sec=0.01, capacity=ByConcurrency(6, retry_after_sec=0.02))
    sheet = ListSheet.of(texts(400))
    policy = replace(POLICY, chunk_rows=100)
    run = await stage.begin(sheet)
    assert await stage.work(run, sheet, policy) is RunStatus.COMPLETED
    assert sheet.cells() == right_cells(sheet)
    ended = await stage.run(run.run_id)
    assert ended.refused == llm.refused
    assert ended.calls == llm.calls == 400 + llm.refused
    assert llm.in_flight_most == 6


async def test_the_next_process_goes_on_with_what_was_found_out(stage: Stage, llm: ScoringLlm) -> None:
    digest = key_digest("openai", llm.url, Secret("a-key-of-the-test"))
    sheet = ListSheet.of(texts(60))
    assert await stage.work(await stage.begin(sheet), sheet) is RunStatus.COMPLETED
    found = await stage.store.read(scoring_limits.found, digest, stage.clock.now_ms())
    assert found is not None
    assert found.places > POLICY.concurrency_start
    for_another_key = Slots(ConcurrencyController(1, 100))
    await Sharing(stage.store, stage.clock, "of another key", "one", for_another_key).begin()
    assert for_another_key.controller.limit == 1
    slots = Slots(ConcurrencyController(1, 100))
    await Sharing(stage.store, stage.clock, digest, "one", slots).begin()
    assert slots.controller.limit == 0.5 * found.places
