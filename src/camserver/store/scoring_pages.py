"""Runs of scoring as people see to them: lists, chunks, notes; pausing, cancelling, trying again what failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from camserver.base.errors import Conflict, NotFound
from camserver.domain.scoring import PauseReason, RunSpec, RunStatus
from camserver.store import audit
from camserver.store.scoring_chunks import ChunkRow
from camserver.store.scoring_journal import Note
from camserver.store.scoring_runs import Totals
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200
NOTES_MAX = 200
# What a person can ask for, and what is noted of it.
ACTIONS = {
    "run": "scoring_resumed",
    "pause": "scoring_paused",
    "cancel": "scoring_cancelled",
    "retry": "scoring_retried",
}


@dataclass(frozen=True, slots=True)
class RunSummary:
    run_id: int
    run_uuid: str
    sheet: str
    provider: str
    model: str
    categories: tuple[str, ...]
    status: str
    wanted: str
    reason: str | None
    message: str | None
    last_row: int
    passes: int
    budget_micro: int | None
    cost_micro: int
    calls: int
    refused: int
    cache_hits: int
    same_hits: int
    tokens_in: int
    tokens_out: int
    created_at: int
    updated_at: int
    finished_at: int | None
    totals: Totals


async def page(tx: Scoped, before: int, limit: int) -> tuple[RunSummary, ...]:
    """Runs, newest first."""
    rows = await tx.all(
        f"{_RUNS} AND run_id < :before ORDER BY run_id DESC LIMIT :limit", before=before, limit=min(limit, PAGE_MAX)
    )
    return await _summaries(tx, rows)


async def get(tx: Scoped, run_uuid: str) -> RunSummary:
    (found,) = await _summaries(tx, [await _row(tx, run_uuid)])
    return found


async def chunks(tx: Scoped, run_id: int, after: int, limit: int) -> tuple[ChunkRow, ...]:
    names = ", ".join(ChunkRow.__slots__)
    rows = await tx.all(
        f"SELECT {names} FROM scoring_chunks WHERE tenant_id = :tenant_id AND run_id = :run_id AND number > :after "
        "ORDER BY number LIMIT :limit",
        run_id=run_id,
        after=after,
        limit=min(limit, PAGE_MAX),
    )
    return tuple(ChunkRow(*(row[name] for name in ChunkRow.__slots__)) for row in rows)


async def notes(tx: Scoped, run_id: int) -> tuple[Note, ...]:
    """Why blocks of rows are not in the sheet; the first ones."""
    rows = await tx.all(
        "SELECT sheet_row, first_category, state, note FROM scoring_results WHERE tenant_id = :tenant_id "
        "AND run_id = :run_id AND state IN ('failed','refused','moved') ORDER BY sheet_row, first_category "
        "LIMIT :limit",
        run_id=run_id,
        limit=NOTES_MAX,
    )
    return tuple(Note(row["sheet_row"], row["first_category"], row["state"], row["note"] or "") for row in rows)


async def control(tx: Scoped, run_uuid: str, wanted: str, address: str, now_ms: int) -> RunSummary:
    """What a person asks of a run: run, pause, cancel or retry (what failed). Conflict when it is over."""
    run = await _row(tx, run_uuid, " FOR UPDATE")
    is_over = run["status"] in (RunStatus.COMPLETED, RunStatus.CANCELLED)
    if is_over and not (wanted == "retry" and run["status"] == RunStatus.COMPLETED):
        raise Conflict(f"the run is {run['status']}; begin another one", reason="scoring_over")
    if wanted == "retry":
        await _retry(tx, run["run_id"], now_ms)
    is_stopped = wanted in ("pause", "cancel")
    status = {"pause": RunStatus.PAUSED, "cancel": RunStatus.CANCELLED}.get(wanted, RunStatus.RUNNING)
    await tx.run(
        "UPDATE scoring_runs SET wanted = :wanted, status = :status, reason = :reason, message = NULL, "
        "finished_at = :finished_at, updated_at = :now_ms WHERE tenant_id = :tenant_id AND run_id = :run_id",
        run_id=run["run_id"],
        wanted=wanted if is_stopped else "run",
        status=status.value,
        reason=PauseReason.ASKED.value if is_stopped else None,
        finished_at=now_ms if wanted == "cancel" else None,
        now_ms=now_ms,
    )
    entry = audit.Entry(ACTIONS[wanted], now_ms, address, "scoring_run", run_uuid, {"sheet": run["sheet"]})
    await audit.add_own(tx, entry)
    return await get(tx, run_uuid)


async def _retry(tx: Scoped, run_id: int, now_ms: int) -> None:
    """Makes what failed due again, and nothing else."""
    failed = await tx.all(
        "SELECT DISTINCT chunk FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "AND state = 'failed'",
        run_id=run_id,
    )
    await tx.run(
        "DELETE FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id AND state = 'failed'",
        run_id=run_id,
    )
    await tx.run(
        "UPDATE scoring_chunks SET status = 'pending', retry_count = 0, available_at = :now_ms, failed = 0, "
        "last_error = NULL, updated_at = :now_ms WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "AND (status = 'failed' OR number IN (:numbers...)) AND status <> 'running'",
        run_id=run_id,
        now_ms=now_ms,
        numbers=[row["chunk"] for row in failed] or [0],
    )


async def _row(tx: Scoped, run_uuid: str, lock: str = "") -> Row:
    row = await tx.one(f"{_RUNS} AND run_uuid = :run_uuid{lock}", run_uuid=run_uuid)
    if row is None:
        raise NotFound(f"there is no scoring run {run_uuid}; look at the list again", reason="no_scoring_run")
    return row


async def _summaries(tx: Scoped, rows: Sequence[Row]) -> tuple[RunSummary, ...]:
    if not rows:
        return ()
    counted = await tx.all(_TOTALS, run_ids=[row["run_id"] for row in rows])
    totals = {row["run_id"]: Totals(*(int(row[name] or 0) for name in Totals.__slots__)) for row in counted}
    return tuple(_summary(row, totals.get(row["run_id"], Totals(0, 0, 0, 0, 0, 0, 0, 0))) for row in rows)


def _summary(row: Row, totals: Totals) -> RunSummary:
    spec = RunSpec.from_json(row["spec"])
    own: dict[str, Any] = {"provider": spec.provider, "model": spec.model, "totals": totals}
    own["categories"] = tuple(category.name for category in spec.categories)
    return RunSummary(**{name: own[name] if name in own else row[name] for name in RunSummary.__slots__})


_COLUMNS = ", ".join(
    [
        *(name for name in RunSummary.__slots__ if name not in ("provider", "model", "categories", "totals")),
        "spec",
    ]
)
_RUNS = f"SELECT {_COLUMNS} FROM scoring_runs WHERE tenant_id = :tenant_id"
_TOTALS = """
SELECT run_id, COUNT(*) AS chunks,
  SUM(CASE WHEN status IN ('completed','failed') THEN 1 ELSE 0 END) AS chunks_over,
  SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS chunks_failed,
  SUM(CASE WHEN status IN ('completed','failed','writing') THEN row_end - row_start + 1 ELSE 0 END) AS rows_read,
  SUM(tasks) AS tasks, SUM(done) AS done, SUM(failed) AS failed, SUM(written) AS written
FROM scoring_chunks WHERE tenant_id = :tenant_id AND run_id IN (:run_ids...) GROUP BY run_id"""
