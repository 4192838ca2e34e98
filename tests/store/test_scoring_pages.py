"""Scoring runs as people see to them, on each database."""

import pytest

from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import RunSpec, RunStatus, Source, plan_chunks
from camserver.domain.sheet_layout import Category, SheetLayout
from camserver.store import Store, scoring_journal, scoring_pages, scoring_runs, tenants
from camserver.store.scoring_journal import Result, Spent
from camserver.store.scoring_runs import NewRun

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = 1_800_000_000_000
SPEC = RunSpec("openai", None, "m", (), "numeric", 0.0, 100, "", SheetLayout(), (Category(0, "赤"), Category(1, "b")))
RUN = "0198c0de-0000-7000-8000-000000000001"


async def test_runs_of_a_tenant_are_listed_and_controlled(fresh_store: Store) -> None:
    tenant_id = await fresh_store.write(tenants.ensure, "scorers", NOW)
    other_id = await fresh_store.write(tenants.ensure, "others", NOW)
    chunks = tuple(plan_chunks(5, 24, 10))
    run_id = await fresh_store.write(
        scoring_runs.begin, NewRun(RUN, tenant_id, "シート", SPEC, 24, None, chunks), NOW
    )
    failed = Result(1, 7, 0, "a" * 32, None, "k" * 64, "m", Source.CALL, "no answer 😀")
    await fresh_store.write(scoring_journal.record, run_id, tenant_id, (failed,), (), Spent(calls=1), NOW)
    scoped = fresh_store.as_(Principal(tenant_id, None, Role.TENANT_ADMIN))
    stranger = fresh_store.as_(Principal(other_id, None, Role.SYSTEM_ADMIN))

    (run,) = await scoped.read(scoring_pages.page, 2**62, 10)
    assert (run.run.run_uuid, run.run.spec.categories, run.run.calls, run.totals.chunks) == (
        RUN,
        SPEC.categories,
        1,
        2,
    )
    assert [chunk.row_start for chunk in await scoped.read(scoring_pages.chunks, run_id, 1, 10)] == [15]
    assert [note.row for note in await scoped.read(scoring_pages.notes, run_id)] == [7]
    assert await stranger.read(scoring_pages.page, 2**62, 10) == ()
    assert await stranger.read(scoring_pages.chunks, run_id, 0, 10) == ()
    with pytest.raises(NotFound):
        await stranger.write(scoring_pages.control, RUN, "cancel", "", NOW)

    paused = await scoped.write(scoring_pages.control, RUN, "pause", "", NOW)
    assert (paused.run.status, paused.run.wanted, paused.run.reason) == (RunStatus.PAUSED, "pause", "asked")
    again = await scoped.write(scoring_pages.control, RUN, "retry", "", NOW)
    assert (again.run.status, again.run.wanted, again.run.reason) == (RunStatus.RUNNING, "run", None)
    assert await scoped.read(scoring_pages.notes, run_id) == ()
    assert (await scoped.write(scoring_pages.control, RUN, "cancel", "", NOW)).run.finished_at == NOW
    for wanted in ("run", "pause", "retry"):
        with pytest.raises(Conflict):
            await scoped.write(scoring_pages.control, RUN, wanted, "", NOW)
