"""Runs that score a sheet: begun, found again, paused, cancelled, counted; their budget; who writes to the sheet."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import (
    ERROR_MAX_CHARS,
    PASSES_MAX,
    ChunkPlan,
    ChunkStatus,
    PauseReason,
    RunSpec,
    RunStatus,
)
from camserver.store.scoring_chunks import make_due
from camserver.store.tx import Row, Scoped, Tx

LISTED_MAX = 200


@dataclass(frozen=True, slots=True)
class Run:
    run_id: int
    run_uuid: str
    tenant_id: int
    sheet: str
    spec: RunSpec
    status: RunStatus
    wanted: str
    reason: str | None
    message: str | None
    last_row: int
    passes: int
    budget_micro: int | None
    drawn_micro: int
    cost_micro: int
    calls: int
    refused: int
    cache_hits: int
    same_hits: int
    tokens_in: int
    tokens_out: int
    sheet_id: int | None  # asked for on the web
    filled_at: int | None
    busy_ms: int
    places: float | None
    write_delay_ms: int | None
    created_at: int
    updated_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Of all chunks of a run. Tasks are known once a chunk was read."""

    chunks: int
    chunks_over: int  # completed or failed
    chunks_failed: int
    rows_read: int  # of the sheet, in chunks that are over or being written
    tasks: int
    done: int
    failed: int
    written: int


@dataclass(frozen=True, slots=True)
class NewRun:
    run_uuid: str
    tenant_id: int
    sheet: str
    spec: RunSpec
    last_row: int
    budget_micro: int | None
    chunks: tuple[ChunkPlan, ...]
    sheet_id: int | None = None  # asked for on the web

    def columns(self, now_ms: int) -> dict[str, object]:
        return {
            "run_uuid": self.run_uuid,
            "sheet": self.sheet,
            "sheet_digest": sheet_digest(self.sheet),
            "spec": self.spec.as_json(),
            "spec_digest": self.spec.digest,
            "last_row": self.last_row,
            "budget_micro": self.budget_micro,
            "sheet_id": self.sheet_id,
            "now_ms": now_ms,
        }


def sheet_digest(sheet: str) -> str:
    return hashlib.sha256(sheet.encode()).hexdigest()


async def begin(tx: Tx, new: NewRun, now_ms: int) -> int:
    """A run and its chunks. Conflict while another one for the same sheet is not over: two would mix their cells."""
    await tx.one("SELECT tenant_id FROM tenants WHERE tenant_id = :tenant_id FOR UPDATE", tenant_id=new.tenant_id)
    other = await unfinished(tx, new.tenant_id, new.sheet)
    if other is not None:
        raise Conflict(
            f"the run {other.run_uuid} for this sheet is not over; go on with it by its own command, or cancel it",
            run_uuid=other.run_uuid,
        )
    run_id = await tx.insert(INSERT, tenant_id=new.tenant_id, **new.columns(now_ms))
    await _add_chunks(tx, run_id, new.tenant_id, new.chunks, now_ms)
    return run_id


async def _add_chunks(tx: Tx, run_id: int, tenant_id: int, chunks: Sequence[ChunkPlan], now_ms: int) -> None:
    rows = [
        {
            "run_id": run_id,
            "number": one.number,
            "tenant_id": tenant_id,
            "row_start": one.row_start,
            "row_end": one.row_end,
            "now_ms": now_ms,
        }
        for one in chunks
    ]
    await tx.at_once(INSERT_CHUNK, rows)


async def unfinished(tx: Tx, tenant_id: int, sheet: str, or_completed: bool = False) -> Run | None:
    """The newest run for a sheet, unless it is completed or was cancelled."""
    row = await tx.one(
        f"""SELECT {COLUMNS} FROM scoring_runs WHERE tenant_id = :tenant_id AND sheet_digest = :digest
        ORDER BY run_id DESC LIMIT 1""",
        tenant_id=tenant_id,
        digest=sheet_digest(sheet),
    )
    found = ("running", "paused", "failed", *(["completed"] if or_completed else []))
    return as_run(row) if row is not None and row["status"] in found else None


async def get(tx: Tx, run_id: int) -> Run:
    row = await tx.one(f"SELECT {COLUMNS} FROM scoring_runs WHERE run_id = :run_id", run_id=run_id)
    if row is None:
        raise NotFound("there is no such run")
    return as_run(row)


async def by_uuid(tx: Tx, tenant_id: int, run_uuid: str) -> Run:
    row = await tx.one(
        f"SELECT {COLUMNS} FROM scoring_runs WHERE tenant_id = :tenant_id AND run_uuid = :run_uuid",
        tenant_id=tenant_id,
        run_uuid=run_uuid,
    )
    if row is None:
        raise NotFound(f"there is no run {run_uuid}; `camserver scoring list` shows those there are")
    return as_run(row)


async def there(tx: Tx, run_uuids: tuple[str, ...]) -> frozenset[str]:
    """Those of these runs that are there still."""
    rows = await tx.all("SELECT run_uuid FROM scoring_runs WHERE run_uuid IN (:run_uuids...)", run_uuids=run_uuids)
    return frozenset(row["run_uuid"] for row in rows)


async def newest(tx: Tx, tenant_id: int, limit: int) -> tuple[Run, ...]:
    rows = await tx.all(
        f"SELECT {COLUMNS} FROM scoring_runs WHERE tenant_id = :tenant_id ORDER BY run_id DESC LIMIT :limit",
        tenant_id=tenant_id,
        limit=min(limit, LISTED_MAX),
    )
    return tuple(as_run(row) for row in rows)


async def waiting(tx: Tx) -> tuple[int, ...]:
    """Runs that were asked for on the web and that a process could work on now. Those of the command are its own."""
    rows = await tx.all(
        "SELECT run_id FROM scoring_runs WHERE status = 'running' AND wanted = 'run' AND sheet_id IS NOT NULL "
        "ORDER BY run_id LIMIT 100"
    )
    return tuple(row["run_id"] for row in rows)


async def tell(tx: Tx, run_id: int, busy_ms: int, places: float, write_delay_ms: int) -> None:
    """How the process that works on a run stands, for people who watch it."""
    await tx.run(
        "UPDATE scoring_runs SET busy_ms = busy_ms + :busy_ms, places = :places, write_delay_ms = :write_delay_ms "
        "WHERE run_id = :run_id",
        run_id=run_id,
        busy_ms=busy_ms,
        places=places,
        write_delay_ms=write_delay_ms,
    )


async def totals(tx: Tx, run_id: int) -> Totals:
    row = await tx.one(_TOTALS, run_id=run_id)
    assert row is not None  # an aggregate has a row
    return Totals(*(int(row[name] or 0) for name in Totals.__slots__))


# ---------------------------------------------------------------------------------------------------------------
# What becomes of it
# ---------------------------------------------------------------------------------------------------------------


async def want(tx: Tx, run_id: int, wanted: str, now_ms: int) -> None:
    """What a person asks for: run, pause or cancel. A run that nobody works on is paused or cancelled at once."""
    if wanted == "run":
        # People may have sorted the sheet meanwhile: it is gone over once more at the end.
        await tx.run(
            "UPDATE scoring_runs SET wanted = 'run', status = 'running', reason = NULL, message = NULL, "
            "has_moved = 1, passes = 1, "
            "updated_at = :now_ms WHERE run_id = :run_id AND status IN ('running','paused','failed')",
            run_id=run_id,
            now_ms=now_ms,
        )
        return
    status = RunStatus.PAUSED if wanted == "pause" else RunStatus.CANCELLED
    await tx.run(
        "UPDATE scoring_runs SET wanted = :wanted, status = :status, reason = :reason, message = NULL, "
        "updated_at = :now_ms WHERE run_id = :run_id AND status IN ('running','paused','failed')",
        run_id=run_id,
        wanted=wanted,
        status=status.value,
        reason=PauseReason.ASKED.value,
        now_ms=now_ms,
    )


async def pause(tx: Tx, run_id: int, reason: PauseReason, message: str, now_ms: int) -> None:
    """Something is in the way that a person has to remove; every process stops working on it."""
    await tx.run(
        "UPDATE scoring_runs SET status = 'paused', wanted = 'pause', reason = :reason, message = :message, "
        "updated_at = :now_ms WHERE run_id = :run_id AND status = 'running'",
        run_id=run_id,
        reason=reason.value,
        message=message[:ERROR_MAX_CHARS],
        now_ms=now_ms,
    )


async def set_budget(tx: Tx, run_id: int, budget_micro: int | None) -> None:
    await tx.run(
        "UPDATE scoring_runs SET budget_micro = :budget WHERE run_id = :run_id", run_id=run_id, budget=budget_micro
    )


async def retry_failed(tx: Tx, tenant_id: int, run_id: int, now_ms: int) -> int:
    """Makes what failed due again, and the run goes on; how many tasks that were."""
    gone = await make_due(Scoped(tx, Principal(tenant_id, None, Role.SYSTEM_ADMIN)), run_id, now_ms)
    await tx.run(
        "UPDATE scoring_runs SET status = 'running', wanted = 'run', reason = NULL, message = NULL, "
        "finished_at = NULL, updated_at = :now_ms WHERE run_id = :run_id AND status <> 'cancelled'",
        run_id=run_id,
        now_ms=now_ms,
    )
    return gone


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a run whose chunks are all over; `status` RUNNING: one more pass, or chunks are left."""

    status: RunStatus
    is_new_pass: bool = False


async def end_if_done(tx: Tx, run_id: int, last_row: int, more: tuple[ChunkPlan, ...], now_ms: int) -> Ended:
    """Completes a run once all chunks are over, or begins one more pass over a sheet whose rows moved meanwhile.

    `more` are chunks of rows that were added behind `last_row` of the run."""
    run = await tx.one(
        "SELECT status, tenant_id, passes, has_moved, last_row FROM scoring_runs WHERE run_id = :run_id FOR UPDATE",
        run_id=run_id,
    )
    if run is None or run["status"] != RunStatus.RUNNING:
        return Ended(RunStatus(run["status"]) if run is not None else RunStatus.CANCELLED)
    found = await totals(tx, run_id)
    if found.chunks_over < found.chunks:
        return Ended(RunStatus.RUNNING)
    grew = last_row > run["last_row"]
    if (run["has_moved"] or grew) and run["passes"] < PASSES_MAX:
        if run["has_moved"]:
            await tx.run(_ANEW, run_id=run_id, now_ms=now_ms)
        if grew:
            await _add_chunks(tx, run_id, run["tenant_id"], more, now_ms)
        await tx.run(
            "UPDATE scoring_runs SET passes = passes + 1, has_moved = 0, last_row = :last_row, updated_at = :now_ms "
            "WHERE run_id = :run_id",
            run_id=run_id,
            last_row=max(last_row, run["last_row"]),
            now_ms=now_ms,
        )
        return Ended(RunStatus.RUNNING, True)
    status = RunStatus.FAILED if found.chunks_failed else RunStatus.COMPLETED
    message = (
        f"{found.chunks_failed} chunks failed; see their errors, then run it again" if found.chunks_failed else None
    )
    await tx.run(
        "UPDATE scoring_runs SET status = :status, message = :message, finished_at = :now_ms, updated_at = :now_ms "
        "WHERE run_id = :run_id",
        run_id=run_id,
        status=status.value,
        message=message,
        now_ms=now_ms,
    )
    return Ended(status)


# ---------------------------------------------------------------------------------------------------------------
# Budget, and the right to write
# ---------------------------------------------------------------------------------------------------------------


async def draw(tx: Tx, run_id: int, amount_micro: int) -> bool:
    """Takes some of the budget for questions that are about to be asked. Who dies has drawn too much, never too
    little."""
    taken = await tx.run(
        "UPDATE scoring_runs SET drawn_micro = drawn_micro + :amount WHERE run_id = :run_id "
        "AND (budget_micro IS NULL OR drawn_micro + :amount <= budget_micro)",
        run_id=run_id,
        amount=amount_micro,
    )
    return taken > 0


async def give_back(tx: Tx, run_id: int, amount_micro: int) -> None:
    await tx.run(
        "UPDATE scoring_runs SET drawn_micro = drawn_micro - :amount WHERE run_id = :run_id",
        run_id=run_id,
        amount=amount_micro,
    )


async def take_writing(tx: Tx, run_id: int, token: str, until_ms: int, now_ms: int) -> bool:
    """Whether this process is the one that gives results to the sheet until then; asked again, it goes on."""
    taken = await tx.run(
        "UPDATE scoring_runs SET writer_token = :token, writer_until = :until_ms WHERE run_id = :run_id "
        "AND (writer_token IS NULL OR writer_token = :token OR writer_until < :now_ms)",
        run_id=run_id,
        token=token,
        until_ms=until_ms,
        now_ms=now_ms,
    )
    return taken > 0


async def leave_writing(tx: Tx, run_id: int, token: str) -> None:
    await tx.run(
        "UPDATE scoring_runs SET writer_token = NULL, writer_until = NULL WHERE run_id = :run_id "
        "AND writer_token = :token",
        run_id=run_id,
        token=token,
    )


async def forget_dead(tx: Tx, run_id: int) -> None:
    """Locks of processes that are known to be dead: on SQLite only one process at a time has the database."""
    await tx.run(
        "UPDATE scoring_runs SET writer_token = NULL, writer_until = NULL WHERE run_id = :run_id", run_id=run_id
    )
    await tx.run(
        "UPDATE scoring_chunks SET locked_until = 0 WHERE run_id = :run_id AND status = 'running'", run_id=run_id
    )
    await tx.run("DELETE FROM scoring_limits")


def as_run(row: Row) -> Run:
    values = {name: row[name] for name in Run.__slots__}
    values["spec"] = RunSpec.from_json(row["spec"])
    values["status"] = RunStatus(row["status"])
    return Run(**values)


COLUMNS = ", ".join(Run.__slots__)
INSERT = """
INSERT INTO scoring_runs (run_uuid, tenant_id, sheet, sheet_digest, spec, spec_digest, status, wanted, last_row,
  budget_micro, sheet_id, created_at, updated_at)
VALUES (:run_uuid, :tenant_id, :sheet, :sheet_digest, :spec, :spec_digest, 'running', 'run', :last_row,
  :budget_micro, :sheet_id, :now_ms, :now_ms) RETURNING run_id"""
INSERT_CHUNK = f"""
INSERT INTO scoring_chunks (run_id, number, tenant_id, row_start, row_end, status, available_at, updated_at)
VALUES (:run_id, :number, :tenant_id, :row_start, :row_end, '{ChunkStatus.PENDING}', :now_ms, :now_ms)"""
_TOTALS = """
SELECT COUNT(*) AS chunks,
  SUM(CASE WHEN status IN ('completed','failed') THEN 1 ELSE 0 END) AS chunks_over,
  SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS chunks_failed,
  SUM(CASE WHEN status IN ('completed','failed','writing') THEN row_end - row_start + 1 ELSE 0 END) AS rows_read,
  SUM(tasks) AS tasks, SUM(done) AS done, SUM(failed) AS failed, SUM(written) AS written
FROM scoring_chunks WHERE run_id = :run_id"""
_ANEW = """
UPDATE scoring_chunks SET status = 'pending', retry_count = 0, available_at = :now_ms, updated_at = :now_ms
WHERE run_id = :run_id AND status = 'completed'"""
