"""Results of a run: made durable first, given to the sheet later, and marked once the sheet has them; and answers
that are kept for the same question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from camserver.domain.scoring import ERROR_MAX_CHARS, ResultState, RunSpec, Source
from camserver.store import scoring_chunks
from camserver.store.sql import Sql
from camserver.store.tx import Tx

MODEL_MAX_CHARS = 128
PRUNE_BATCH = 5_000


class Result(NamedTuple):
    """One row and one block. `scores` None: failed, and `note` says why. A million of them are made in a long run."""

    chunk: int
    row: int
    first_category: int
    identity: str
    scores: tuple[float, ...] | None
    question_key: str
    model: str | None
    source: Source
    note: str | None = None


class Kept(NamedTuple):
    """An answer that the same question gets again."""

    question_key: str
    scores: tuple[float, ...]
    model: str


class Spent(NamedTuple):
    calls: int = 0
    refused: int = 0
    cache_hits: int = 0
    same_hits: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro: int = 0


class Entry(NamedTuple):
    """What is written together: results, answers that are kept, and what they cost."""

    results: tuple[Result, ...] = ()
    kept: tuple[Kept, ...] = ()
    spent: Spent = Spent()


class Unwritten(NamedTuple):
    result_id: int
    chunk: int
    row: int
    first_category: int
    identity: str
    scores: tuple[float, ...]


class Settled(NamedTuple):
    """What the sheet made of a result."""

    row: int
    first_category: int
    identity: str
    state: ResultState
    note: str | None = None


async def record(
    tx: Tx,
    run_id: int,
    tenant_id: int,
    results: tuple[Result, ...],
    kept: tuple[Kept, ...],
    spent: Spent,
    now_ms: int,
) -> None:
    """Journal and cache in one transaction: what is paid for is never asked again."""
    # A result and the answer that is kept for it have the same scores.
    every = {one.scores for one in results} | {one.scores for one in kept}
    texts = {scores: orjson.dumps(scores).decode() for scores in every}
    rows = [
        {
            "run_id": run_id,
            "tenant_id": tenant_id,
            "chunk": one.chunk,
            "sheet_row": one.row,
            "first_category": one.first_category,
            "identity": one.identity,
            "state": (ResultState.FAILED if one.scores is None else ResultState.SCORED).value,
            "scores": None if one.scores is None else texts[one.scores],
            "question_key": one.question_key,
            "model": None if one.model is None else one.model[:MODEL_MAX_CHARS],
            "source": one.source.value,
            "note": None if one.note is None else one.note[:ERROR_MAX_CHARS],
            "now_ms": now_ms,
        }
        for one in results
    ]
    if rows:
        await tx.at_once(_RECORD, rows)
    if kept:
        await tx.at_once(
            _KEEP,
            [
                {
                    "tenant_id": tenant_id,
                    "question_key": one.question_key,
                    "scores": texts[one.scores],
                    "model": one.model[:MODEL_MAX_CHARS],
                    "now_ms": now_ms,
                }
                for one in kept
            ],
        )
    await tx.run(
        _SPEND,
        run_id=run_id,
        now_ms=now_ms,
        **spent._asdict(),
    )


async def of_chunk(tx: Tx, run_id: int, row_start: int, row_end: int) -> dict[tuple[int, int, str], ResultState]:
    """What is in the journal of a stretch of rows, by row, block and content."""
    rows = await tx.all(
        "SELECT sheet_row, first_category, identity, state FROM scoring_results "
        "WHERE run_id = :run_id AND sheet_row >= :row_start AND sheet_row <= :row_end",
        run_id=run_id,
        row_start=row_start,
        row_end=row_end,
    )
    return {(row["sheet_row"], row["first_category"], row["identity"]): ResultState(row["state"]) for row in rows}


async def unwritten(tx: Tx, run_id: int, after_id: int, limit: int) -> tuple[Unwritten, ...]:
    """Results that the sheet has not accepted yet, in the order they came."""
    rows = await tx.all(
        "SELECT result_id, chunk, sheet_row, first_category, identity, scores FROM scoring_results "
        "WHERE run_id = :run_id AND state = 'scored' AND result_id > :after_id ORDER BY result_id LIMIT :limit",
        run_id=run_id,
        after_id=after_id,
        limit=limit,
    )
    return tuple(
        Unwritten(
            row["result_id"],
            row["chunk"],
            row["sheet_row"],
            row["first_category"],
            row["identity"],
            tuple(orjson.loads(row["scores"])),
        )
        for row in rows
    )


async def settle(tx: Tx, run_id: int, settled: tuple[Settled, ...], has_moved: bool, now_ms: int) -> None:
    """Marks what the sheet accepted or refused, and completes the chunks that are through."""
    if has_moved:
        await tx.run("UPDATE scoring_runs SET has_moved = 1 WHERE run_id = :run_id", run_id=run_id)
    if not settled:
        return
    await tx.at_once(
        """
        UPDATE scoring_results SET state = :state, note = :note, written_at = :now_ms
        WHERE run_id = :run_id AND sheet_row = :sheet_row AND first_category = :first_category
          AND identity = :identity AND state = 'scored'""",
        [
            {
                "run_id": run_id,
                "sheet_row": one.row,
                "first_category": one.first_category,
                "identity": one.identity,
                "state": one.state.value,
                "note": None if one.note is None else one.note[:ERROR_MAX_CHARS],
                "now_ms": now_ms,
            }
            for one in settled
        ],
    )
    rows = await tx.all(
        "SELECT DISTINCT chunk FROM scoring_results WHERE run_id = :run_id AND sheet_row IN (:rows...)",
        run_id=run_id,
        rows=sorted({one.row for one in settled}),
    )
    await scoring_chunks.complete(tx, run_id, sorted(row["chunk"] for row in rows), now_ms)


@dataclass(frozen=True, slots=True)
class Note:
    """A result that is not in the sheet, for people."""

    row: int
    first_category: int
    state: str
    note: str


# ---------------------------------------------------------------------------------------------------------------
# Answers that are kept
# ---------------------------------------------------------------------------------------------------------------


async def find_kept(tx: Tx, tenant_id: int, keys: Sequence[str], since_ms: int) -> dict[str, Kept]:
    rows = await tx.all(
        "SELECT question_key, scores, model FROM scoring_cache "
        "WHERE tenant_id = :tenant_id AND question_key IN (:keys...) AND created_at >= :since_ms",
        tenant_id=tenant_id,
        keys=list(keys),
        since_ms=since_ms,
    )
    return {row["question_key"]: Kept(row["question_key"], _scores(row["scores"]), row["model"]) for row in rows}


def _scores(text: str) -> tuple[float, ...]:
    try:
        found = orjson.loads(text)
    except ValueError:
        return ()  # not valid for any question: it is asked anew
    return tuple(found) if isinstance(found, list) else ()


async def calls_per_sec(tx: Tx, tenant_id: int, provider: str, model: str) -> float | None:
    """How many questions a second a model answered in the last run with enough of them; None: there was none."""
    rows = await tx.all(
        "SELECT spec, calls - refused AS answered, updated_at - created_at AS took_ms FROM scoring_runs "
        "WHERE tenant_id = :tenant_id AND calls >= 100 AND status = 'completed' ORDER BY run_id DESC LIMIT 20",
        tenant_id=tenant_id,
    )
    for row in rows:
        spec = RunSpec.from_json(row["spec"])
        if (spec.provider, spec.model) == (provider, model) and row["took_ms"] > 0:
            return float(row["answered"]) * 1000 / float(row["took_ms"])
    return None


async def prune_kept(tx: Tx, tenant_id: int, since_ms: int, most: int) -> int:
    """Removes some of what is too old or too much, the oldest first; how many."""
    gone = await tx.run(
        Sql(
            _PRUNE.format("created_at < :since_ms"),
            mariadb=f"DELETE FROM scoring_cache WHERE tenant_id = :tenant_id AND created_at < :since_ms "
            f"LIMIT {PRUNE_BATCH}",
        ),
        tenant_id=tenant_id,
        since_ms=since_ms,
    )
    row = await tx.one(
        "SELECT COUNT(*) AS count FROM scoring_cache WHERE tenant_id = :tenant_id", tenant_id=tenant_id
    )
    surplus = min(int(row["count"]) - most if row is not None else 0, PRUNE_BATCH)
    if surplus > 0:
        gone += await tx.run(
            Sql(
                "DELETE FROM scoring_cache WHERE tenant_id = :tenant_id AND question_key IN "
                f"(SELECT question_key FROM scoring_cache WHERE tenant_id = :tenant_id "
                f"ORDER BY created_at LIMIT {int(surplus)})",
                mariadb="DELETE FROM scoring_cache WHERE tenant_id = :tenant_id "
                f"ORDER BY created_at LIMIT {int(surplus)}",
            ),
            tenant_id=tenant_id,
        )
    return gone


_PRUNE = (
    "DELETE FROM scoring_cache WHERE tenant_id = :tenant_id AND question_key IN "
    f"(SELECT question_key FROM scoring_cache WHERE tenant_id = :tenant_id AND {{}} LIMIT {PRUNE_BATCH})"
)
_COLUMNS = """
INSERT INTO scoring_results (run_id, tenant_id, chunk, sheet_row, first_category, identity, state, scores,
  question_key, model, source, note, created_at)
VALUES (:run_id, :tenant_id, :chunk, :sheet_row, :first_category, :identity, :state, :scores, :question_key, :model,
  :source, :note, :now_ms)"""
_SET = ("chunk", "state", "scores", "question_key", "model", "source", "note", "created_at")
# What waits for the sheet, or was refused by it, stays so. What is written may be due again: rows with equal texts
# change places, and the sheet takes the same score twice.
_RECORD = Sql(
    f"{_COLUMNS} ON CONFLICT (run_id, sheet_row, first_category, identity) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _SET)
    + " WHERE scoring_results.state IN ('failed', 'moved', 'away', 'written')",
    mariadb=f"{_COLUMNS} ON DUPLICATE KEY UPDATE "
    + ", ".join(
        f"{name} = IF(state IN ('failed', 'moved', 'away', 'written'), VALUES({name}), {name})"
        for name in sorted(_SET, key=lambda name: name == "state")
    ),
)
_KEPT = """
INSERT INTO scoring_cache (tenant_id, question_key, scores, model, created_at)
VALUES (:tenant_id, :question_key, :scores, :model, :now_ms)"""
_KEEP = Sql(
    f"{_KEPT} ON CONFLICT (tenant_id, question_key) DO UPDATE SET scores = excluded.scores, model = excluded.model, "
    "created_at = excluded.created_at",
    mariadb=f"{_KEPT} ON DUPLICATE KEY UPDATE scores = VALUES(scores), model = VALUES(model), "
    "created_at = VALUES(created_at)",
)
_SPEND = (
    "UPDATE scoring_runs SET "
    + ", ".join(f"{name} = {name} + :{name}" for name in Spent._fields)
    + ", updated_at = :now_ms WHERE run_id = :run_id"
)
