"""Runs, chunks, journal, kept answers, budget and shared limits, on each database."""

import asyncio

import pytest

from camserver.base.errors import Conflict
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import ChunkPlan, PauseReason, ResultState, RunSpec, RunStatus, Source, plan_chunks
from camserver.domain.scoring_found import KEPT_MS, Found
from camserver.domain.sheet_layout import Category, SheetLayout
from camserver.store import (
    ScopedStore,
    Store,
    scoring_chunks,
    scoring_journal,
    scoring_limits,
    scoring_moves,
    scoring_pages,
    scoring_runs,
    tenants,
)
from camserver.store.scoring_chunks import ChunkCounts
from camserver.store.scoring_journal import Kept, Result, Settled, Spent, Unwritten
from camserver.store.scoring_limits import Together
from camserver.store.scoring_moves import Claim, Place
from camserver.store.scoring_runs import NewRun
from camserver.store.tx import Tx

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = 1_800_000_000_000
SPEC = RunSpec("openai", None, "m", (), "numeric", 0.0, 100, "", SheetLayout(), (Category(0, "赤"), Category(1, "b")))
_UUIDS = iter(f"0198c0de-0000-7000-8000-{number:012}" for number in range(10_000))


async def begun(
    store: Store, rows: int = 25, sheet: str = "/tmp/シート.csv", budget: int | None = None
) -> tuple[int, int]:
    tenant_id = await store.write(tenants.ensure, "scorers", NOW)
    new = NewRun(next(_UUIDS), tenant_id, sheet, SPEC, 4 + rows, budget, tuple(plan_chunks(5, 4 + rows, 10)))
    return tenant_id, await store.write(scoring_runs.begin, new, NOW)


def scoped(store: Store, tenant_id: int) -> ScopedStore:
    return store.as_(Principal(tenant_id, None, Role.VIEWER))


def result(
    row: int, chunk: int = 1, scores: tuple[float, ...] | None = (0.5, 1.0), identity: str = "a" * 32
) -> Result:
    return Result(chunk, row, 0, identity, scores, "k" * 64, "m", Source.CALL, None if scores else "no answer 😀")


def settle(one: Unwritten, state: ResultState, note: str | None = None) -> Settled:
    return Settled(one.row, one.first_category, one.identity, state, note)


async def record(store: Store, of: tuple[int, int], *results: Result, kept: tuple[Kept, ...] = ()) -> None:
    await store.write(scoring_journal.record, of[1], of[0], results, kept, Spent(calls=len(results)), NOW)


async def test_a_run_is_found_again_until_it_is_over(fresh_store: Store) -> None:
    tenant_id, run_id = await begun(fresh_store)
    found = await fresh_store.read(scoring_runs.unfinished, tenant_id, "/tmp/シート.csv")
    assert found is not None
    assert (found.run_id, found.spec, found.status) == (run_id, SPEC, RunStatus.RUNNING)
    with pytest.raises(Conflict):
        await begun(fresh_store)
    await fresh_store.write(scoring_runs.pause, run_id, PauseReason.QUOTA, "no money", NOW)
    paused = await fresh_store.read(scoring_runs.get, run_id)
    assert (paused.status, paused.reason, paused.message) == (RunStatus.PAUSED, "quota", "no money")
    await fresh_store.write(scoring_runs.want, run_id, "run", NOW)
    assert await fresh_store.read(scoring_runs.waiting) == ()  # it is the command's own
    assert (await fresh_store.read(scoring_runs.get, run_id)).wanted == "run"
    await fresh_store.write(scoring_runs.want, run_id, "cancel", NOW)
    assert await fresh_store.read(scoring_runs.unfinished, tenant_id, "/tmp/シート.csv") is None
    await fresh_store.write(scoring_runs.want, run_id, "run", NOW)
    assert (await fresh_store.read(scoring_runs.get, run_id)).status is RunStatus.CANCELLED
    assert [one.run_id for one in await fresh_store.read(scoring_runs.newest, tenant_id, 5)] == [run_id]


async def test_two_that_claim_at_once_never_get_the_same_chunk(fresh_pair: tuple[Store, Store]) -> None:
    _, run_id = await begun(fresh_pair[0], rows=200)
    claims = await asyncio.gather(
        *(
            fresh_pair[number % 2].write(scoring_chunks.claim, run_id, "h", f"t{number}", 3, NOW + 1000, NOW)
            for number in range(8)
        )
    )
    numbers = [one.plan.number for claimed in claims for one in claimed]
    assert len(numbers) == len(set(numbers))
    rest = await fresh_pair[0].write(scoring_chunks.claim, run_id, "h", "rest", 50, NOW + 1000, NOW)
    assert len(numbers) + len(rest) == 20
    assert await fresh_pair[1].write(scoring_chunks.claim, run_id, "h", "t", 5, NOW + 1000, NOW) == ()


async def test_a_silent_holder_loses_its_chunk_and_what_it_says_then_counts_for_nothing(fresh_store: Store) -> None:
    tenant_id, run_id = await begun(fresh_store, rows=10)
    await fresh_store.write(scoring_chunks.claim, run_id, "h", "old", 1, NOW + 1000, NOW)
    assert await fresh_store.write(scoring_chunks.keep, run_id, "old", NOW + 2000) == (1,)
    assert await fresh_store.read(scoring_chunks.next_due_ms, run_id) == NOW + 2000
    (taken,) = await fresh_store.write(scoring_chunks.claim, run_id, "h", "new", 1, NOW + 9000, NOW + 2001)
    assert taken.plan == ChunkPlan(1, 5, 14)
    assert await fresh_store.write(scoring_chunks.keep, run_id, "old", NOW + 9000) == ()
    await fresh_store.write(scoring_chunks.finish, run_id, "old", ChunkCounts(1, 9, 9, 0), NOW)
    await fresh_store.write(scoring_chunks.fail, run_id, 1, "old", "late", None, NOW)
    (row,) = await scoped(fresh_store, tenant_id).read(scoring_pages.chunks, run_id, 0, 10)
    assert (row.status, row.done) == ("running", 0)
    await fresh_store.write(scoring_chunks.let_go, run_id, "new", NOW)
    (row,) = await scoped(fresh_store, tenant_id).read(scoring_pages.chunks, run_id, 0, 10)
    assert row.status == "pending"


async def test_a_failed_chunk_waits_and_is_given_up_at_last(fresh_store: Store) -> None:
    tenant_id, run_id = await begun(fresh_store, rows=10)
    await fresh_store.write(scoring_chunks.claim, run_id, "h", "t", 1, NOW + 1000, NOW)
    await fresh_store.write(scoring_chunks.fail, run_id, 1, "t", "status 500", NOW + 4000, NOW)
    assert await fresh_store.write(scoring_chunks.claim, run_id, "h", "t", 1, NOW + 5000, NOW + 3999) == ()
    (again,) = await fresh_store.write(scoring_chunks.claim, run_id, "h", "t", 1, NOW + 9000, NOW + 4000)
    assert again.retry_count == 1
    await fresh_store.write(scoring_chunks.fail, run_id, 1, "t", "status 500", None, NOW)
    ended = await fresh_store.write(scoring_runs.end_if_done, run_id, 14, (), NOW)
    assert ended.status is RunStatus.FAILED
    assert await fresh_store.write(scoring_runs.retry_failed, tenant_id, run_id, NOW) == 0
    found = await fresh_store.read(scoring_runs.unfinished, tenant_id, "/tmp/シート.csv")
    assert found is not None
    assert found.status is RunStatus.RUNNING
    assert len(await fresh_store.write(scoring_chunks.claim, run_id, "h", "t", 1, NOW + 9000, NOW)) == 1


async def test_what_waits_for_the_sheet_stays_and_the_rest_can_be_replaced(fresh_store: Store) -> None:
    of = await begun(fresh_store, rows=10)
    await record(fresh_store, of, result(5), result(6, scores=None), result(7), result(8))
    (five, seven, _) = await fresh_store.read(scoring_journal.unwritten, of[1], 0, 10)
    assert (five.row, five.scores, seven.row) == (5, (0.5, 1.0), 7)
    settled = (settle(five, ResultState.WRITTEN), settle(seven, ResultState.MOVED, "gone"))
    await fresh_store.write(scoring_journal.settle, of[1], settled, True, NOW)
    await record(fresh_store, of, *(result(row, scores=(0.0, 0.0)) for row in (6, 7, 8)))
    found = await fresh_store.read(scoring_journal.of_chunk, of[1], 5, 14)
    assert {row: state for (row, _, _), state in found.items()} == {
        5: ResultState.WRITTEN,
        6: ResultState.SCORED,
        7: ResultState.SCORED,
        8: ResultState.SCORED,
    }
    last = (await fresh_store.read(scoring_journal.unwritten, of[1], 0, 10))[-1]
    assert (last.row, last.scores) == (8, (0.5, 1.0))
    assert await scoped(fresh_store, of[0]).read(scoring_pages.written_blocks, of[1], (0, 0), 10) == ((5, 0),)
    assert (await fresh_store.read(scoring_runs.get, of[1])).calls == 7


async def test_a_chunk_is_complete_once_the_sheet_has_everything(fresh_store: Store) -> None:
    of = await begun(fresh_store, rows=10)
    await fresh_store.write(scoring_chunks.claim, of[1], "h", "t", 1, NOW + 1000, NOW)
    await record(fresh_store, of, result(5), result(6), result(7, scores=None))
    await fresh_store.write(scoring_chunks.finish, of[1], "t", ChunkCounts(1, 3, 2, 1), NOW)
    found = await fresh_store.read(scoring_journal.unwritten, of[1], 0, 10)
    first, second = (settle(one, ResultState.WRITTEN) for one in found)
    await fresh_store.write(scoring_journal.settle, of[1], (first,), False, NOW)
    (row,) = await scoped(fresh_store, of[0]).read(scoring_pages.chunks, of[1], 0, 10)
    assert (row.status, row.written) == ("writing", 1)
    assert (await fresh_store.write(scoring_runs.end_if_done, of[1], 14, (), NOW)).status is RunStatus.RUNNING
    await fresh_store.write(scoring_journal.settle, of[1], (second,), False, NOW)
    totals = await fresh_store.read(scoring_runs.totals, of[1])
    assert (totals.chunks_over, totals.tasks, totals.done, totals.failed, totals.written) == (1, 3, 2, 1, 2)
    assert (await fresh_store.write(scoring_runs.end_if_done, of[1], 14, (), NOW)).status is RunStatus.COMPLETED
    (note,) = await scoped(fresh_store, of[0]).read(scoring_pages.notes, of[1], 10)
    assert (note.row, note.note) == (7, "no answer 😀")
    assert await fresh_store.write(scoring_runs.retry_failed, *of, NOW) == 1
    assert len(await fresh_store.write(scoring_chunks.claim, of[1], "h", "t", 9, NOW + 1000, NOW)) == 1


async def test_results_follow_their_rows(fresh_store: Store) -> None:
    of = await begun(fresh_store, rows=20)
    await fresh_store.write(scoring_chunks.claim, of[1], "h", "t", 2, NOW + 1000, NOW)
    names = {row: str(row) * 4 for row in (5, 6, 7, 8, 9)}
    await record(fresh_store, of, *(result(row, identity=name) for row, name in names.items()))
    await record(fresh_store, of, result(10, identity="lost", scores=None), result(15, 2, identity=names[6]))
    for number in (1, 2):
        await fresh_store.write(scoring_chunks.finish, of[1], "t", ChunkCounts(number, 9, 9, 0), NOW)
    found = await fresh_store.read(scoring_journal.unwritten, of[1], 0, 10)
    states = [ResultState.MOVED if one.row == 15 else ResultState.WRITTEN for one in found]
    settled = tuple(settle(one, state) for one, state in zip(found, states, strict=True))
    await fresh_store.write(scoring_journal.settle, of[1], settled, True, NOW)
    left = (*(Place(row, 0, names[row]) for row in (5, 6, 7, 8)), Place(10, 0, "lost"))
    await fresh_store.write(scoring_moves.mark, of[1], left, ())
    await fresh_store.write(scoring_moves.mark, of[1], (), (Place(5, 0, names[5]),))
    six, seven, eight = await fresh_store.read(scoring_moves.away, of[1], 10)
    assert (six.row, seven.identity, eight.first_category) == (6, names[7], 0)
    await fresh_store.write(scoring_moves.claim, of[1], (Claim(six.result_id, 15, 0, names[6]),))
    await fresh_store.write(scoring_moves.give_up, of[1], (seven.result_id,), (eight.result_id,))
    await fresh_store.write(scoring_moves.recount, of[1])
    journal = await fresh_store.read(scoring_journal.of_chunk, of[1], 5, 24)
    assert {row: state.value for (row, _, _), state in journal.items()} == {
        5: "written", 8: "moved", 9: "written", 15: "written",
    }  # fmt: skip
    rows = await scoped(fresh_store, of[0]).read(scoring_pages.chunks, of[1], 0, 10)
    assert [(row.status, row.tasks, row.done, row.failed, row.written) for row in rows] == [
        ("completed", 2, 2, 0, 2),
        ("completed", 1, 1, 0, 1),
    ]
    assert await fresh_store.read(scoring_moves.away, of[1], 10) == ()


async def test_rows_that_moved_or_came_make_one_more_pass_but_not_without_end(fresh_store: Store) -> None:
    of = await begun(fresh_store, rows=10)
    for passes in (1, 2, 3):
        count = await fresh_store.read(scoring_runs.totals, of[1])
        for number in range(1, count.chunks + 1):
            await fresh_store.write(scoring_chunks.claim, of[1], "h", "t", 1, NOW + 1000, NOW)
            await fresh_store.write(scoring_chunks.finish, of[1], "t", ChunkCounts(number, 0, 0, 0), NOW)
        await fresh_store.write(scoring_journal.settle, of[1], (), True, NOW)
        more = (ChunkPlan(2, 15, 19),) if passes == 1 else ()
        ended = await fresh_store.write(scoring_runs.end_if_done, of[1], 19, more, NOW)
        assert ended.is_new_pass == (passes < 3)
    assert ended.status is RunStatus.COMPLETED
    assert (await fresh_store.read(scoring_runs.get, of[1])).last_row == 19


async def test_kept_answers_are_found_and_the_oldest_go(fresh_store: Store) -> None:
    of = await begun(fresh_store)
    keys = [f"{number:064}" for number in range(6)]
    for number, key in enumerate(keys):
        kept = (Kept(key, (number / 10, 1.0), "m"),)
        await fresh_store.write(scoring_journal.record, of[1], of[0], (), kept, Spent(), NOW + number)
    await record(fresh_store, of, kept=(Kept(keys[5], (0.25, 0.0), "n"),))
    found = await fresh_store.read(scoring_journal.find_kept, of[0], [*keys, "x"], NOW + 1)
    assert sorted(found) == keys[1:5]
    assert found[keys[1]] == Kept(keys[1], (0.1, 1.0), "m")
    assert (await fresh_store.read(scoring_journal.find_kept, of[0], keys, NOW))[keys[5]].scores == (0.25, 0.0)
    assert await fresh_store.read(scoring_journal.find_kept, of[0], [], NOW) == {}
    assert await fresh_store.write(scoring_journal.prune_kept, of[0], NOW + 1, 3) == 3
    assert sorted(await fresh_store.read(scoring_journal.find_kept, of[0], keys, 0)) == keys[2:5]


async def test_a_budget_is_drawn_on_by_several_and_never_passed(fresh_pair: tuple[Store, Store]) -> None:
    _, run_id = await begun(fresh_pair[0], budget=100)
    drawn = await asyncio.gather(
        *(fresh_pair[number % 2].write(scoring_runs.draw, run_id, 30) for number in range(6))
    )
    assert sum(drawn) == 3
    await fresh_pair[0].write(scoring_runs.give_back, run_id, 25)
    assert await fresh_pair[1].write(scoring_runs.draw, run_id, 30)
    assert not await fresh_pair[1].write(scoring_runs.draw, run_id, 30)


async def test_one_at_a_time_writes_to_a_sheet(fresh_store: Store) -> None:
    _, run_id = await begun(fresh_store)
    assert await fresh_store.write(scoring_runs.take_writing, run_id, "a", NOW + 10, NOW)
    assert await fresh_store.write(scoring_runs.take_writing, run_id, "a", NOW + 10, NOW)
    assert not await fresh_store.write(scoring_runs.take_writing, run_id, "b", NOW + 20, NOW + 10)
    assert await fresh_store.write(scoring_runs.take_writing, run_id, "b", NOW + 20, NOW + 11)
    await fresh_store.write(scoring_runs.leave_writing, run_id, "a")
    assert not await fresh_store.write(scoring_runs.take_writing, run_id, "a", NOW + 20, NOW + 11)
    await fresh_store.write(scoring_runs.forget_dead, run_id)
    assert await fresh_store.write(scoring_runs.take_writing, run_id, "a", NOW + 20, NOW + 11)


async def test_those_with_one_key_know_of_each_other(fresh_store: Store) -> None:
    key, other = "a" * 64, "b" * 64
    assert await fresh_store.write(scoring_limits.tell, key, "one", 50.0, NOW + 10, NOW) == Together(1, 50.0)
    assert await fresh_store.write(scoring_limits.tell, other, "two", 9.0, NOW + 10, NOW) == Together(1, 9.0)
    assert await fresh_store.write(scoring_limits.tell, key, "two", 4.0, NOW + 50, NOW) == Together(2, 54.0)
    assert await fresh_store.write(scoring_limits.tell, key, "two", 25.0, NOW + 50, NOW + 11) == Together(1, 25.0)
    await fresh_store.write(scoring_limits.leave, key, "two")
    assert await fresh_store.write(scoring_limits.tell, key, "one", 5.0, NOW + 10, NOW) == Together(1, 5.0)


async def test_what_was_found_out_with_a_key_is_there_for_an_hour(fresh_store: Store) -> None:
    key, other = "a" * 64, "b" * 64
    assert await fresh_store.read(scoring_limits.found, key, NOW) is None
    first, second = Found(50.0, 51.0, None, 0.2), Found(4.5, None, 30.25, 1.5)
    await fresh_store.write(scoring_limits.remember, key, first, NOW)
    await fresh_store.write(scoring_limits.remember, other, first, NOW)
    await fresh_store.write(scoring_limits.remember, key, second, NOW + 1)
    assert await fresh_store.read(scoring_limits.found, key, NOW + KEPT_MS) == second
    assert await fresh_store.read(scoring_limits.found, other, NOW + KEPT_MS) is None
    assert await fresh_store.read(scoring_limits.found, key, NOW + 1 + KEPT_MS) is None
    await fresh_store.write(scoring_limits.remember, key, first, NOW + KEPT_MS)
    assert await fresh_store.read(_keys_found) == [key]


async def _keys_found(tx: Tx) -> list[str]:
    return [row["key_digest"] for row in await tx.all("SELECT key_digest FROM scoring_found")]


async def test_how_fast_a_model_was_is_remembered(fresh_store: Store) -> None:
    of = await begun(fresh_store)
    assert await fresh_store.read(scoring_journal.calls_per_sec, of[0], "openai", "m") is None
    await fresh_store.write(scoring_journal.record, of[1], of[0], (), (), Spent(calls=210, refused=10), NOW + 20_000)
    await fresh_store.write(_over, of[1])
    assert await fresh_store.read(scoring_journal.calls_per_sec, of[0], "openai", "m") == 10.0
    assert await fresh_store.read(scoring_journal.calls_per_sec, of[0], "openai", "n") is None


async def _over(tx, run_id: int) -> None:  # type: ignore[no-untyped-def]
    await tx.run("UPDATE scoring_runs SET status = 'completed' WHERE run_id = :run_id", run_id=run_id)
