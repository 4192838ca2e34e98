"""Chunks of a run: claimed under a lock, kept, finished, tried again."""

from dataclasses import dataclass

from camserver.domain.scoring import ERROR_MAX_CHARS, ChunkPlan
from camserver.store.tx import Scoped, Tx


@dataclass(frozen=True, slots=True)
class ClaimedChunk:
    plan: ChunkPlan
    retry_count: int


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """What whoever holds a chunk knows of it."""

    number: int
    tasks: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as it is exported."""

    number: int
    row_start: int
    row_end: int
    status: str
    retry_count: int
    last_error: str | None
    tasks: int
    done: int
    failed: int
    written: int
    updated_at: int


async def claim(
    tx: Tx, run_id: int, holder: str, token: str, count: int, until_ms: int, now_ms: int
) -> tuple[ClaimedChunk, ...]:
    """The next chunks that are due, or whose holder is silent."""
    rows = await tx.all(
        """
        SELECT number, row_start, row_end, retry_count FROM scoring_chunks
        WHERE run_id = :run_id AND ((status = 'pending' AND available_at <= :now_ms)
          OR (status = 'running' AND locked_until < :now_ms))
        ORDER BY number LIMIT :count FOR UPDATE SKIP LOCKED""",
        run_id=run_id,
        now_ms=now_ms,
        count=count,
    )
    if not rows:
        return ()
    await tx.run(
        "UPDATE scoring_chunks SET status = 'running', locked_by = :holder, locked_token = :token, "
        "locked_until = :until_ms, updated_at = :now_ms WHERE run_id = :run_id AND number IN (:numbers...)",
        run_id=run_id,
        holder=holder,
        token=token,
        until_ms=until_ms,
        now_ms=now_ms,
        numbers=[row["number"] for row in rows],
    )
    return tuple(
        ClaimedChunk(ChunkPlan(row["number"], row["row_start"], row["row_end"]), row["retry_count"]) for row in rows
    )


async def keep(tx: Tx, run_id: int, token: str, until_ms: int) -> tuple[int, ...]:
    """Renews the locks of a process; the chunks that are still its own."""
    await tx.run(
        "UPDATE scoring_chunks SET locked_until = :until_ms "
        "WHERE run_id = :run_id AND status = 'running' AND locked_token = :token",
        run_id=run_id,
        token=token,
        until_ms=until_ms,
    )
    rows = await tx.all(
        "SELECT number FROM scoring_chunks WHERE run_id = :run_id AND status = 'running' AND locked_token = :token",
        run_id=run_id,
        token=token,
    )
    return tuple(row["number"] for row in rows)


async def count(tx: Tx, run_id: int, token: str, counts: tuple[ChunkCounts, ...], now_ms: int) -> None:
    """Sets the counts of chunks that are still this process's own."""
    if counts:
        await tx.at_once(
            "UPDATE scoring_chunks SET tasks = :tasks, done = :done, failed = :failed, updated_at = :now_ms "
            "WHERE run_id = :run_id AND number = :number AND locked_token = :token AND status = 'running'",
            [
                {
                    "run_id": run_id,
                    "number": one.number,
                    "token": token,
                    "tasks": one.tasks,
                    "done": one.done,
                    "failed": one.failed,
                    "now_ms": now_ms,
                }
                for one in counts
            ],
        )


async def finish(tx: Tx, run_id: int, token: str, counts: ChunkCounts, now_ms: int) -> None:
    """Every row of a chunk is in the journal; it is completed once the sheet has them, too."""
    await count(tx, run_id, token, (counts,), now_ms)
    finished = await tx.run(
        "UPDATE scoring_chunks SET status = 'writing', locked_by = NULL, locked_token = NULL, locked_until = NULL, "
        "last_error = NULL "
        "WHERE run_id = :run_id AND number = :number AND locked_token = :token AND status = 'running'",
        run_id=run_id,
        number=counts.number,
        token=token,
    )
    if finished:
        await complete(tx, run_id, [counts.number], now_ms)


async def complete(tx: Tx, run_id: int, numbers: list[int], now_ms: int) -> None:
    """Counts what the sheet has, and completes chunks of which it has everything."""
    await tx.run(_WRITTEN, run_id=run_id, numbers=numbers)
    await tx.run(_COMPLETE, run_id=run_id, numbers=numbers, now_ms=now_ms)


async def complete_all(tx: Tx, run_id: int, now_ms: int) -> None:
    """The same for all chunks that are being written: after a crash, nobody remembers which."""
    rows = await tx.all(
        "SELECT number FROM scoring_chunks WHERE run_id = :run_id AND status = 'writing'", run_id=run_id
    )
    if rows:
        await complete(tx, run_id, [row["number"] for row in rows], now_ms)


async def fail(
    tx: Tx, run_id: int, number: int, token: str, error: str, again_at_ms: int | None, now_ms: int
) -> None:
    """A chunk that could not be worked through: tried again then, or given up (None)."""
    await tx.run(
        "UPDATE scoring_chunks SET status = :status, retry_count = retry_count + 1, available_at = :available_at, "
        "last_error = :error, locked_by = NULL, locked_token = NULL, locked_until = NULL, updated_at = :now_ms "
        "WHERE run_id = :run_id AND number = :number AND locked_token = :token AND status = 'running'",
        run_id=run_id,
        number=number,
        token=token,
        status="failed" if again_at_ms is None else "pending",
        available_at=again_at_ms or now_ms,
        error=error[:ERROR_MAX_CHARS],
        now_ms=now_ms,
    )


async def let_go(tx: Tx, run_id: int, token: str, now_ms: int) -> None:
    """Gives back what this process holds, when it stops."""
    await tx.run(
        "UPDATE scoring_chunks SET status = 'pending', locked_by = NULL, locked_token = NULL, locked_until = NULL, "
        "available_at = :now_ms, updated_at = :now_ms "
        "WHERE run_id = :run_id AND status = 'running' AND locked_token = :token",
        run_id=run_id,
        token=token,
        now_ms=now_ms,
    )


async def next_due_ms(tx: Tx, run_id: int) -> int | None:
    """When a chunk that waits is due again, or a silent holder's lock ends; None when nothing waits."""
    row = await tx.one(
        "SELECT MIN(CASE WHEN status = 'pending' THEN available_at ELSE locked_until END) AS at FROM scoring_chunks "
        "WHERE run_id = :run_id AND status IN ('pending','running')",
        run_id=run_id,
    )
    return None if row is None or row["at"] is None else int(row["at"])


async def make_due(tx: Scoped, run_id: int, now_ms: int) -> int:
    """Makes what failed due again, and nothing else; how many tasks that were."""
    failed = await tx.all(
        "SELECT DISTINCT chunk FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "AND state = 'failed'",
        run_id=run_id,
    )
    gone = await tx.run(
        "DELETE FROM scoring_results WHERE tenant_id = :tenant_id AND run_id = :run_id AND state = 'failed'",
        run_id=run_id,
    )
    await tx.run(
        "UPDATE scoring_chunks SET status = 'pending', retry_count = 0, available_at = :now_ms, failed = 0, "
        "last_error = NULL, updated_at = :now_ms WHERE tenant_id = :tenant_id AND run_id = :run_id "
        "AND (status = 'failed' OR number IN (:numbers...)) AND status <> 'running'",
        run_id=run_id,
        now_ms=now_ms,
        numbers=[row["chunk"] for row in failed],
    )
    return gone


# By rows and not by the number of the chunk: these are the journal's key.
_OF_CHUNK = """
  SELECT {} FROM scoring_results r WHERE r.run_id = scoring_chunks.run_id
    AND r.sheet_row >= scoring_chunks.row_start AND r.sheet_row <= scoring_chunks.row_end AND r.state = '{}'"""
_WRITTEN = f"""
UPDATE scoring_chunks SET written = ({_OF_CHUNK.format("COUNT(*)", "written")})
WHERE run_id = :run_id AND number IN (:numbers...)"""
_COMPLETE = f"""
UPDATE scoring_chunks SET status = 'completed', updated_at = :now_ms
WHERE run_id = :run_id AND number IN (:numbers...) AND status = 'writing' AND NOT EXISTS ({
    _OF_CHUNK.format("1", "scored")
})"""
