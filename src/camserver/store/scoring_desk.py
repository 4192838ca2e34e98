"""The scoring service's side of sheets that were brought on the web: looking at them, their files, filled results,
events as rows, and letting go of what nobody used for long. People's side is `scoring_sheets`."""

import json
from dataclasses import dataclass
from typing import Any

from camserver.domain.scoring import ERROR_MAX_CHARS, RunSpec
from camserver.domain.scoring_sheets import SheetState
from camserver.domain.vocabulary import INVESTIGATION_ONLY
from camserver.store.hidden_tags import is_shown
from camserver.store.scoring_sheets import COLUMNS, Piece, SheetRow, as_sheet
from camserver.store.sql import Sql
from camserver.store.tx import Tx

PRUNED_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class HeldSheet:
    tenant_id: int
    sheet: SheetRow


async def claim_look(tx: Tx, token: str, until_ms: int, now_ms: int) -> HeldSheet | None:
    """The next sheet that nobody has looked at, under a lock. Whoever dies is followed by the next."""
    row = await tx.one(
        f"SELECT tenant_id, {COLUMNS} FROM scoring_sheets WHERE state = 'waiting' "
        "AND (locked_until IS NULL OR locked_until < :now_ms) ORDER BY sheet_id LIMIT 1 FOR UPDATE SKIP LOCKED",
        now_ms=now_ms,
    )
    if row is None:
        return None
    await tx.run(
        "UPDATE scoring_sheets SET locked_token = :token, locked_until = :until_ms WHERE sheet_id = :sheet_id",
        token=token,
        until_ms=until_ms,
        sheet_id=row["sheet_id"],
    )
    return HeldSheet(row["tenant_id"], as_sheet(row))


async def keep_look(tx: Tx, sheet_id: int, token: str, until_ms: int) -> None:
    await tx.run(
        "UPDATE scoring_sheets SET locked_until = :until_ms WHERE sheet_id = :sheet_id AND locked_token = :token",
        until_ms=until_ms,
        sheet_id=sheet_id,
        token=token,
    )


async def leave_look(tx: Tx, sheet_id: int, token: str, until_ms: int) -> None:
    """It can't be looked at here; others may, and this process again after a while."""
    await tx.run(
        "UPDATE scoring_sheets SET locked_token = NULL, locked_until = :until_ms "
        "WHERE sheet_id = :sheet_id AND locked_token = :token",
        sheet_id=sheet_id,
        token=token,
        until_ms=until_ms,
    )


async def looked(
    tx: Tx,
    sheet_id: int,
    token: str,
    look: dict[str, Any] | None,
    spec: RunSpec | None,
    message: str | None,
    now_ms: int,
) -> bool:
    """What was found, or why it is refused. False when somebody changed or took it meanwhile."""
    settled = await tx.run(
        "UPDATE scoring_sheets SET state = :state, look = :look, spec = :spec, message = :message, "
        "locked_token = NULL, locked_until = NULL, updated_at = :now_ms "
        "WHERE sheet_id = :sheet_id AND locked_token = :token AND state = 'waiting'",
        state=(SheetState.REFUSED if look is None else SheetState.LOOKED).value,
        look=None if look is None else json.dumps(look, ensure_ascii=False),
        spec=None if spec is None else spec.as_json(),
        message=None if message is None else message[:ERROR_MAX_CHARS],
        sheet_id=sheet_id,
        token=token,
        now_ms=now_ms,
    )
    return settled > 0


async def sheet_of(tx: Tx, sheet_id: int) -> HeldSheet | None:
    row = await tx.one(
        f"SELECT tenant_id, {COLUMNS} FROM scoring_sheets WHERE sheet_id = :sheet_id", sheet_id=sheet_id
    )
    return None if row is None else HeldSheet(row["tenant_id"], as_sheet(row))


async def pieces(tx: Tx, sheet_id: int) -> tuple[Piece, ...]:
    """Of the file as it was uploaded."""
    rows = await tx.all(
        "SELECT object_key, object_bytes FROM scoring_files WHERE sheet_id = :sheet_id AND run_id = 0 "
        "AND is_there = 1 ORDER BY number",
        sheet_id=sheet_id,
    )
    return tuple(Piece(row["object_key"], row["object_bytes"]) for row in rows)


# ---------------------------------------------------------------------------------------------------------------
# Results as files
# ---------------------------------------------------------------------------------------------------------------


async def unfilled(tx: Tx) -> tuple[int, ...]:
    """Runs over uploaded files that stand still, and whose result is not in a file as it is now."""
    rows = await tx.all(
        "SELECT r.run_id FROM scoring_runs r JOIN scoring_sheets s ON s.sheet_id = r.sheet_id "
        "WHERE s.kind = 'file' AND r.status <> 'running' AND (r.filled_at IS NULL OR r.filled_at <> r.updated_at) "
        "ORDER BY r.run_id LIMIT 20"
    )
    return tuple(row["run_id"] for row in rows)


@dataclass(frozen=True, slots=True)
class Scored:
    result_id: int
    row: int
    identity: str
    first_category: int
    scores: tuple[float, ...]


async def scored(tx: Tx, run_id: int, after_id: int, limit: int) -> tuple[Scored, ...]:
    """Everything that a run scored, in the order it came."""
    rows = await tx.all(
        "SELECT result_id, sheet_row, identity, first_category, scores FROM scoring_results "
        "WHERE run_id = :run_id AND result_id > :after_id AND scores IS NOT NULL ORDER BY result_id LIMIT :limit",
        run_id=run_id,
        after_id=after_id,
        limit=limit,
    )
    return tuple(
        Scored(row["result_id"], row["sheet_row"], row["identity"], row["first_category"],
               tuple(json.loads(row["scores"])))
        for row in rows
    )  # fmt: skip


async def announce(
    tx: Tx, tenant_id: int, sheet_id: int, run_id: int, pieces: tuple[Piece, ...], now_ms: int
) -> None:
    """Pieces of a result that are about to be written; what an earlier try left goes."""
    await _drop(tx, "run_id = :run_id AND is_there = 0", run_id, now_ms)
    await tx.many(
        "INSERT INTO scoring_files (tenant_id, sheet_id, run_id, number, object_key, object_bytes, created_at) "
        "VALUES (:tenant_id, :sheet_id, :run_id, :number, :object_key, :object_bytes, :now_ms)",
        [
            {
                "tenant_id": tenant_id,
                "sheet_id": sheet_id,
                "run_id": run_id,
                "number": number,
                "object_key": one.object_key,
                "object_bytes": one.object_bytes,
                "now_ms": now_ms,
            }
            for number, one in enumerate(pieces)
        ],
    )


async def filled(tx: Tx, run_id: int, token: str, pieces: tuple[Piece, ...], stood_at: int, now_ms: int) -> bool:
    """The new result takes the place of the last one. False when another process has the right to write by now."""
    taken = await tx.run(
        "UPDATE scoring_runs SET filled_at = :stood_at WHERE run_id = :run_id AND writer_token = :token",
        run_id=run_id,
        token=token,
        stood_at=stood_at,
    )
    if not taken:
        return False
    await _drop(tx, "run_id = :run_id AND is_there = 1", run_id, now_ms)
    await tx.many(
        "UPDATE scoring_files SET is_there = 1 WHERE run_id = :run_id AND object_key = :object_key",
        [{"run_id": run_id, "object_key": one.object_key} for one in pieces],
    )
    return True


async def _drop(tx: Tx, which: str, run_id: int, now_ms: int) -> None:
    await tx.run(
        "INSERT INTO garbage (tenant_id, object_key, created_at) "
        f"SELECT tenant_id, object_key, :now_ms FROM scoring_files WHERE {which}",
        run_id=run_id,
        now_ms=now_ms,
    )
    await tx.run(f"DELETE FROM scoring_files WHERE {which}", run_id=run_id)


async def prune(tx: Tx, before_ms: int, now_ms: int) -> int:
    """Removes sheets that nobody used since then, with their files; runs of them are known on. How many."""
    rows = await tx.all(
        "SELECT s.sheet_id FROM scoring_sheets s WHERE s.updated_at < :before_ms AND NOT EXISTS (SELECT 1 FROM "
        "scoring_runs r WHERE r.sheet_id = s.sheet_id AND (r.status = 'running' OR r.updated_at >= :before_ms)) "
        f"ORDER BY s.sheet_id LIMIT {PRUNED_AT_ONCE}",
        before_ms=before_ms,
    )
    ids = [row["sheet_id"] for row in rows]
    if not ids:
        return 0
    await tx.run(
        "INSERT INTO garbage (tenant_id, object_key, created_at) SELECT tenant_id, object_key, :now_ms "
        "FROM scoring_files WHERE sheet_id IN (:ids...)",
        ids=ids,
        now_ms=now_ms,
    )
    for table in ("scoring_files", "scoring_events", "scoring_sheets"):
        await tx.run(f"DELETE FROM {table} WHERE sheet_id IN (:ids...)", ids=ids)
    await tx.run("UPDATE scoring_runs SET sheet_id = NULL WHERE sheet_id IN (:ids...)", ids=ids)
    return len(ids)


# ---------------------------------------------------------------------------------------------------------------
# Events as rows
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventFacts:
    """An event as a row of a sheet. Its picture is that of its best frame."""

    row: int
    event_id: int
    event_uuid: str
    camera: str
    site: str
    timezone: str
    start_at: int
    primary_event: str
    tags: tuple[str, ...]  # but those for investigation only
    scored: tuple[str, ...]  # categories that this run has scored
    tenant_id: int
    camera_key: int
    frame_uuid: str | None
    captured_at: int | None
    epoch_id: int | None
    infer_bytes: int | None
    full_bytes: int | None


async def events(tx: Tx, sheet_id: int, run_id: int, first_row: int, last_row: int) -> tuple[EventFacts, ...]:
    """Those of a stretch of rows that are still there."""
    rows = await tx.all(
        """
        SELECT w.sheet_row, e.event_id, e.event_uuid, c.name AS camera, s.name AS site, s.timezone, e.start_at,
          e.primary_event, e.tenant_id, e.camera_key, f.frame_uuid, f.captured_at, f.epoch_id,
          f.infer_bytes, f.full_bytes
        FROM scoring_events w JOIN events e ON e.event_id = w.event_id JOIN cameras c ON c.camera_key = e.camera_key
        JOIN sites s ON s.site_id = e.site_id LEFT JOIN frames f ON f.frame_id = e.best_frame_id
        WHERE w.sheet_id = :sheet_id AND w.sheet_row >= :first_row AND w.sheet_row <= :last_row
        ORDER BY w.sheet_row""",
        sheet_id=sheet_id,
        first_row=first_row,
        last_row=last_row,
    )
    if not rows:
        return ()
    ids = [row["event_id"] for row in rows]
    tags: dict[int, list[str]] = {}
    for row in await tx.all(
        f"SELECT event_id, tag_id FROM event_tags WHERE event_id IN (:ids...) AND {is_shown()} "
        "ORDER BY event_id, tag_id",
        ids=ids,
        hidden=INVESTIGATION_ONLY,
    ):
        tags.setdefault(row["event_id"], []).append(row["tag_id"])
    done: dict[int, list[str]] = {}
    for row in await tx.all(
        "SELECT event_id, category FROM event_scores WHERE event_id IN (:ids...) AND run_id = :run_id",
        ids=ids,
        run_id=run_id,
    ):
        done.setdefault(row["event_id"], []).append(row["category"])
    return tuple(
        EventFacts(
            row["sheet_row"], row["event_id"], row["event_uuid"], row["camera"], row["site"], row["timezone"],
            row["start_at"], row["primary_event"], tuple(tags.get(row["event_id"], ())),
            tuple(done.get(row["event_id"], ())), row["tenant_id"], row["camera_key"], row["frame_uuid"],
            row["captured_at"], row["epoch_id"], row["infer_bytes"], row["full_bytes"],
        )
        for row in rows
    )  # fmt: skip


async def last_event_row(tx: Tx, sheet_id: int) -> int:
    row = await tx.one(
        "SELECT MAX(sheet_row) AS last FROM scoring_events WHERE sheet_id = :sheet_id", sheet_id=sheet_id
    )
    return 0 if row is None or row["last"] is None else int(row["last"])


@dataclass(frozen=True, slots=True)
class EventScore:
    row: int
    category: str
    score: float


async def put_scores(
    tx: Tx, sheet_id: int, run_id: int, scores: tuple[EventScore, ...], now_ms: int
) -> frozenset[int]:
    """Scores of events, in the place of earlier ones; the rows whose events are still there."""
    rows = await tx.all(
        "SELECT w.sheet_row, e.event_id, e.tenant_id, e.start_at FROM scoring_events w "
        "JOIN events e ON e.event_id = w.event_id "
        "WHERE w.sheet_id = :sheet_id AND w.sheet_row IN (:rows...) FOR SHARE",
        sheet_id=sheet_id,
        rows=sorted({one.row for one in scores}),
    )
    found = {row["sheet_row"]: row for row in rows}
    await tx.at_once(
        _PUT,
        [
            {
                "event_id": found[one.row]["event_id"],
                "category": one.category,
                "tenant_id": found[one.row]["tenant_id"],
                "start_at": found[one.row]["start_at"],
                "score": one.score,
                "run_id": run_id,
                "now_ms": now_ms,
            }
            for one in scores
            if one.row in found
        ],
    )
    return frozenset(found)


_SCORES = """
INSERT INTO event_scores (event_id, category, tenant_id, start_at, score, run_id, scored_at)
VALUES (:event_id, :category, :tenant_id, :start_at, :score, :run_id, :now_ms)"""
_PUT = Sql(
    f"{_SCORES} ON CONFLICT (event_id, category) DO UPDATE SET score = excluded.score, run_id = excluded.run_id, "
    "scored_at = excluded.scored_at",
    mariadb=f"{_SCORES} ON DUPLICATE KEY UPDATE score = VALUES(score), run_id = VALUES(run_id), "
    "scored_at = VALUES(scored_at)",
)
