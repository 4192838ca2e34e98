"""Runs of scoring as people see to them: lists, chunks, notes; pausing, cancelling, trying again what failed."""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.scoring import PauseReason, RunStatus
from camserver.store import audit
from camserver.store.scoring_chunks import ChunkRow, make_due
from camserver.store.scoring_journal import Note
from camserver.store.scoring_runs import COLUMNS, Run, Totals, as_run
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
class Brought:
    """The sheet of a run that was asked for on the web."""

    sheet_uuid: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Overview:
    run: Run
    totals: Totals
    brought: Brought | None  # None: by the command, or it was removed


async def page(tx: Scoped, before: int, limit: int) -> tuple[Overview, ...]:
    """Runs, newest first."""
    rows = await tx.all(
        f"{_RUNS} AND run_id < :before ORDER BY run_id DESC LIMIT :limit", before=before, limit=min(limit, PAGE_MAX)
    )
    return await _summaries(tx, rows)


async def get(tx: Scoped, run_uuid: str) -> Overview:
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


async def notes(tx: Scoped, run_id: int, limit: int = NOTES_MAX) -> tuple[Note, ...]:
    """Why blocks of rows are not in the sheet; the first ones."""
    rows = await tx.all(
        "SELECT sheet_row, first_category, state, note FROM scoring_results WHERE tenant_id = :tenant_id "
        "AND run_id = :run_id AND state IN ('failed','refused','moved') ORDER BY sheet_row, first_category "
        "LIMIT :limit",
        run_id=run_id,
        limit=limit,
    )
    return tuple(Note(row["sheet_row"], row["first_category"], row["state"], row["note"] or "") for row in rows)


async def states(tx: Scoped, run_id: int) -> dict[str, int]:
    rows = await tx.all(
        "SELECT state, COUNT(*) AS count FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "GROUP BY state",
        run_id=run_id,
    )
    return {row["state"]: row["count"] for row in rows}


async def written_blocks(tx: Scoped, run_id: int, after: tuple[int, int], limit: int) -> tuple[tuple[int, int], ...]:
    """Row and first category of what the sheet has, for the export of a checkpoint."""
    rows = await tx.all(
        "SELECT sheet_row, first_category FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "AND state = 'written' AND (sheet_row > :row OR (sheet_row = :row AND first_category > :category)) "
        "ORDER BY sheet_row, first_category LIMIT :limit",
        run_id=run_id,
        row=after[0],
        category=after[1],
        limit=limit,
    )
    return tuple((row["sheet_row"], row["first_category"]) for row in rows)


async def running(tx: Scoped) -> int:
    row = await tx.one(
        "SELECT COUNT(*) AS runs FROM scoring_runs WHERE tenant_id = :tenant_id AND status = 'running'"
    )
    return 0 if row is None else int(row["runs"])


async def control(tx: Scoped, run_uuid: str, wanted: str, address: str, now_ms: int) -> Overview:
    """What a person asks of a run: run, pause, cancel or retry (what failed). Conflict when it is over."""
    run = await _row(tx, run_uuid, " FOR UPDATE")
    is_over = run["status"] in (RunStatus.COMPLETED, RunStatus.CANCELLED)
    if is_over and not (wanted == "retry" and run["status"] == RunStatus.COMPLETED):
        raise Conflict(f"the run is {run['status']}; begin another one", reason="scoring_over")
    if wanted == "retry":
        await make_due(tx, run["run_id"], now_ms)
    is_stopped = wanted in ("pause", "cancel")
    status = {"pause": RunStatus.PAUSED, "cancel": RunStatus.CANCELLED}.get(wanted, RunStatus.RUNNING)
    # People may have sorted the sheet meanwhile: it is gone over once more at the end.
    anew = "" if is_stopped else "has_moved = 1, passes = 1, "
    await tx.run(
        f"UPDATE scoring_runs SET wanted = :wanted, status = :status, reason = :reason, message = NULL, {anew}"
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


async def _row(tx: Scoped, run_uuid: str, lock: str = "") -> Row:
    row = await tx.one(f"{_RUNS} AND run_uuid = :run_uuid{lock}", run_uuid=run_uuid)
    if row is None:
        raise NotFound(f"there is no scoring run {run_uuid}; look at the list again", reason="no_scoring_run")
    return row


async def _summaries(tx: Scoped, rows: Sequence[Row]) -> tuple[Overview, ...]:
    if not rows:
        return ()
    counted = await tx.all(_TOTALS, run_ids=[row["run_id"] for row in rows])
    totals = {row["run_id"]: Totals(*(int(row[name] or 0) for name in Totals.__slots__)) for row in counted}
    nothing = Totals(0, 0, 0, 0, 0, 0, 0, 0)
    sheets = await _brought(tx, sorted({row["sheet_id"] for row in rows if row["sheet_id"] is not None}))
    return tuple(
        Overview(as_run(row), totals.get(row["run_id"], nothing), sheets.get(row["sheet_id"])) for row in rows
    )


async def _brought(tx: Scoped, sheet_ids: Sequence[int]) -> dict[int, Brought]:
    if not sheet_ids:
        return {}
    rows = await tx.all(
        "SELECT sheet_id, sheet_uuid, kind, name FROM scoring_sheets "
        "WHERE tenant_id = :tenant_id AND sheet_id IN (:sheet_ids...)",
        sheet_ids=list(sheet_ids),
    )
    return {row["sheet_id"]: Brought(row["sheet_uuid"], row["kind"], row["name"]) for row in rows}


_RUNS = f"SELECT {COLUMNS} FROM scoring_runs WHERE tenant_id = :tenant_id"
_TOTALS = """
SELECT run_id, COUNT(*) AS chunks,
  SUM(CASE WHEN status IN ('completed','failed') THEN 1 ELSE 0 END) AS chunks_over,
  SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS chunks_failed,
  SUM(CASE WHEN status IN ('completed','failed','writing') THEN row_end - row_start + 1 ELSE 0 END) AS rows_read,
  SUM(tasks) AS tasks, SUM(done) AS done, SUM(failed) AS failed, SUM(written) AS written
FROM scoring_chunks WHERE tenant_id = :tenant_id AND run_id IN (:run_ids...) GROUP BY run_id"""
