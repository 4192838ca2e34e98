"""Scoring runs over HTTP: seen, paused, gone on with, cancelled."""

import pytest

from camserver.store import Tx, scoring_runs, tenants
from tests.services.web.rig import RunningWeb
from tests.services.web.scoring_rows import add_run


@pytest.fixture
async def run_uuid(web: RunningWeb) -> str:
    home = await web.store.read(tenants.home)
    assert home is not None
    return await add_run(web.store, home, web.clock.now_ms())


async def fail_one(tx: Tx, run_uuid: str, now_ms: int) -> None:
    """A block of row 7 failed, and its chunk is over."""
    run = await tx.one("SELECT run_id, tenant_id FROM scoring_runs WHERE run_uuid = :run_uuid", run_uuid=run_uuid)
    assert run is not None
    await tx.run(
        "INSERT INTO scoring_results (run_id, tenant_id, chunk, sheet_row, first_category, identity, state, "
        "question_key, source, note, created_at) VALUES (:run_id, :tenant_id, 1, 7, 0, 'i', 'failed', 'k', 'call', "
        "'no answer', :now_ms)",
        run_id=run["run_id"],
        tenant_id=run["tenant_id"],
        now_ms=now_ms,
    )
    await tx.run(
        "UPDATE scoring_chunks SET status = 'completed', tasks = 500, done = 499, failed = 1, written = 499 "
        "WHERE run_id = :run_id AND number = 1",
        run_id=run["run_id"],
    )


async def test_runs_and_chunks_are_shown(web: RunningWeb, run_uuid: str) -> None:
    owner = await web.owner()
    await web.store.write(fail_one, run_uuid, web.clock.now_ms())
    (run,) = (await owner.get("/api/scoring/runs")).body["runs"]
    assert (run["run_uuid"], run["status"], run["categories"]) == (run_uuid, "running", ["angry", "glad"])
    assert run["totals"] == {
        "chunks": 3,
        "chunks_over": 1,
        "chunks_failed": 0,
        "rows_read": 500,
        "tasks": 500,
        "done": 499,
        "failed": 1,
        "written": 499,
    }
    shown = (await owner.get(f"/api/scoring/runs/{run_uuid}")).body
    assert shown["notes"] == [{"row": 7, "first_category": 0, "state": "failed", "note": "no answer"}]
    page = (await owner.get(f"/api/scoring/runs/{run_uuid}/chunks?limit=2")).body
    assert [chunk["row_start"] for chunk in page["chunks"]] == [5, 505]
    page = (await owner.get(f"/api/scoring/runs/{run_uuid}/chunks?after={page['next_after']}")).body
    assert ([chunk["row_end"] for chunk in page["chunks"]], page["next_after"]) == ([1204], None)


async def test_a_run_is_paused_goes_on_and_is_cancelled(web: RunningWeb, run_uuid: str) -> None:
    owner = await web.owner()
    for wanted, status in (("pause", "paused"), ("run", "running"), ("cancel", "cancelled")):
        reply = await owner.post(f"/api/scoring/runs/{run_uuid}/control", {"wanted": wanted})
        assert (reply.status, reply.body["status"]) == (200, status)
    reply = await owner.post(f"/api/scoring/runs/{run_uuid}/control", {"wanted": "run"})
    assert (reply.status, reply.body["details"]["reason"]) == (409, "scoring_over")
    entries = (await owner.get("/api/audit")).body["entries"]
    noted = [entry["action"] for entry in entries if entry["object_id"] == run_uuid]
    assert noted == ["scoring_cancelled", "scoring_resumed", "scoring_paused"]


async def test_what_failed_is_tried_again(web: RunningWeb, run_uuid: str) -> None:
    owner = await web.owner()
    await web.store.write(fail_one, run_uuid, web.clock.now_ms())
    reply = await owner.post(f"/api/scoring/runs/{run_uuid}/control", {"wanted": "retry"})
    assert (reply.status, reply.body["totals"]["chunks_over"], reply.body["totals"]["failed"]) == (200, 0, 0)
    assert (await owner.get(f"/api/scoring/runs/{run_uuid}")).body["notes"] == []
    home = (await web.store.read(tenants.home)) or 0
    assert (await web.store.read(scoring_runs.by_uuid, home, run_uuid)).wanted == "run"
