"""Sheets that people bring on the web, in their name: added, uploaded piece by piece, changed, scored, removed.

The scoring service's side of them is `scoring_desk`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from camserver.base.errors import BadInput, Conflict, NotFound
from camserver.domain.scoring import ChunkPlan, RunSpec
from camserver.domain.scoring_sheets import (
    SHEETS_MAX,
    SheetKind,
    SheetState,
    SheetWishes,
    part_key,
    part_sizes,
)
from camserver.store import audit, scoring_pages, scoring_runs, tenants
from camserver.store.core import unlogged
from camserver.store.scoring_pages import Overview
from camserver.store.scoring_runs import NewRun
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200


@dataclass(frozen=True, slots=True)
class NewSheet:
    sheet_uuid: str
    kind: SheetKind
    name: str
    wishes: SheetWishes
    size_bytes: int = 0
    event_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SheetRow:
    sheet_id: int
    sheet_uuid: str
    kind: SheetKind
    name: str
    state: SheetState
    message: str | None
    wishes: SheetWishes
    look: dict[str, Any] | None
    spec: RunSpec | None
    size_bytes: int
    received_bytes: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Piece:
    """One of a file, in their order."""

    object_key: str
    object_bytes: int


async def add(tx: Scoped, new: NewSheet, kept_max_bytes: int, address: str, now_ms: int) -> SheetRow:
    """Conflict when the tenant's sheets would take more room than they may."""
    await tenants.lock(tx)
    kept = await tx.one(
        "SELECT COUNT(*) AS sheets, COALESCE(SUM(size_bytes), 0) AS bytes FROM scoring_sheets "
        "WHERE tenant_id = :tenant_id"
    )
    assert kept is not None  # an aggregate has a row
    if kept["sheets"] >= SHEETS_MAX or int(kept["bytes"]) + new.size_bytes > kept_max_bytes:
        raise Conflict(
            f"{kept['sheets']} sheets are kept, of {int(kept['bytes'])} bytes; the most are {SHEETS_MAX} sheets and "
            f"{kept_max_bytes} bytes. Remove some that are not needed any more",
            reason="scoring_sheets_full",
        )
    is_coming = new.kind is SheetKind.FILE
    sheet_id = await tx.insert(
        "INSERT INTO scoring_sheets (sheet_uuid, tenant_id, kind, name, state, wishes, size_bytes, created_by, "
        "created_at, updated_at) VALUES (:sheet_uuid, :tenant_id, :kind, :name, :state, :wishes, :size_bytes, "
        ":user_id, :now_ms, :now_ms) RETURNING sheet_id",
        sheet_uuid=new.sheet_uuid,
        kind=new.kind.value,
        name=new.name,
        state=(SheetState.COMING if is_coming else SheetState.WAITING).value,
        wishes=new.wishes.as_json(),
        size_bytes=new.size_bytes,
        user_id=tx.principal.user_id,
        now_ms=now_ms,
    )
    await tx.many(
        "INSERT INTO scoring_events (sheet_id, sheet_row, tenant_id, event_id) "
        "VALUES (:sheet_id, :sheet_row, :tenant_id, :event_id)",
        [
            {"sheet_id": sheet_id, "sheet_row": row, "event_id": event_id}
            for row, event_id in enumerate(new.event_ids, start=2)
        ],
    )
    await _log(tx, "scoring_sheet_added", new.sheet_uuid, new.name, address, now_ms)
    return await get(tx, new.sheet_uuid)


async def page(tx: Scoped, before: int, limit: int) -> tuple[SheetRow, ...]:
    """Newest first."""
    rows = await tx.all(
        f"{_SHEETS} AND sheet_id < :before ORDER BY sheet_id DESC LIMIT :limit",
        before=before,
        limit=min(limit, PAGE_MAX),
    )
    return tuple(as_sheet(row) for row in rows)


async def get(tx: Scoped, sheet_uuid: str) -> SheetRow:
    return as_sheet(await _row(tx, sheet_uuid))


async def change(tx: Scoped, sheet_uuid: str, wishes: SheetWishes, address: str, now_ms: int) -> SheetRow:
    """What is asked for is another thing now; so the sheet is looked at again."""
    row = await _row(tx, sheet_uuid, " FOR UPDATE")
    state = row["state"] if row["state"] == SheetState.COMING else SheetState.WAITING.value
    await tx.run(
        "UPDATE scoring_sheets SET wishes = :wishes, state = :state, message = NULL, look = NULL, spec = NULL, "
        "locked_token = NULL, locked_until = NULL, updated_at = :now_ms "
        "WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id",
        wishes=wishes.as_json(),
        state=state,
        sheet_id=row["sheet_id"],
        now_ms=now_ms,
    )
    await _log(tx, "scoring_sheet_changed", sheet_uuid, row["name"], address, now_ms)
    return await get(tx, sheet_uuid)


# ---------------------------------------------------------------------------------------------------------------
# Uploading
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartPlace:
    object_key: str
    is_kept: bool  # the sheet is whole, and this piece is no more written


def all_here() -> Conflict:
    return Conflict("all of this sheet is here already", reason="scoring_not_coming")


@unlogged("says where the next piece of a file lies, whose announcement is logged")
async def claim_part(tx: Scoped, sheet_uuid: str, number: int, size: int, now_ms: int) -> PartPlace:
    """Where a piece goes. They come in order; one that came before may come again, also the last one, whose answer
    may have been lost."""
    row = await _row(tx, sheet_uuid, " FOR UPDATE")
    sizes = part_sizes(row["size_bytes"])
    key = part_key(tx.principal.tenant_id, sheet_uuid, number)
    known = await tx.one(
        "SELECT object_bytes, is_there FROM scoring_files WHERE tenant_id = :tenant_id AND object_key = :object_key",
        object_key=key,
    )
    if row["state"] != SheetState.COMING:
        if known is None or not known["is_there"] or known["object_bytes"] != size:
            raise all_here()
        return PartPlace(key, is_kept=True)
    if number >= len(sizes) or size != sizes[number]:
        expected = sizes[number] if number < len(sizes) else 0
        raise BadInput(
            f"piece {number} of {len(sizes)} must have {expected} bytes, and has {size}", reason="scoring_part"
        )
    if sum(sizes[:number]) > row["received_bytes"]:
        raise Conflict("pieces of a sheet come one after the other; send those before first", reason="scoring_part")
    if known is None:
        await tx.insert(
            "INSERT INTO scoring_files (tenant_id, sheet_id, run_id, number, object_key, object_bytes, created_at) "
            "VALUES (:tenant_id, :sheet_id, 0, :number, :object_key, :object_bytes, :now_ms) RETURNING file_id",
            sheet_id=row["sheet_id"],
            number=number,
            object_key=key,
            object_bytes=size,
            now_ms=now_ms,
        )
    return PartPlace(key, is_kept=False)


@unlogged("a piece of a file, whose announcement is logged")
async def note_part(tx: Scoped, sheet_uuid: str, object_key: str, now_ms: int) -> SheetRow:
    """A piece is there. After the last one the sheet waits for being looked at."""
    row = await _row(tx, sheet_uuid, " FOR UPDATE")
    await tx.run(
        "UPDATE scoring_files SET is_there = 1 WHERE tenant_id = :tenant_id AND object_key = :object_key",
        object_key=object_key,
    )
    there = await tx.one(
        "SELECT COALESCE(SUM(object_bytes), 0) AS bytes FROM scoring_files WHERE tenant_id = :tenant_id "
        "AND sheet_id = :sheet_id AND run_id = 0 AND is_there = 1",
        sheet_id=row["sheet_id"],
    )
    assert there is not None  # an aggregate has a row
    is_whole = int(there["bytes"]) == row["size_bytes"]
    await tx.run(
        "UPDATE scoring_sheets SET received_bytes = :received, state = :state, updated_at = :now_ms "
        "WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id AND state = 'coming'",
        received=int(there["bytes"]),
        state=(SheetState.WAITING if is_whole else SheetState.COMING).value,
        sheet_id=row["sheet_id"],
        now_ms=now_ms,
    )
    return await get(tx, sheet_uuid)


# ---------------------------------------------------------------------------------------------------------------
# Scoring, and what came of it
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunWanted:
    run_uuid: str
    sheet_uuid: str
    address: str  # of the sheet, as the service opens it
    budget_micro: int | None
    chunks: tuple[ChunkPlan, ...]


async def begin_run(tx: Scoped, wanted: RunWanted, address: str, now_ms: int) -> Overview:
    """A run of a sheet that was looked at. Conflict when it is not fit, or another run of it is not over."""
    row = await _row(tx, wanted.sheet_uuid, " FOR UPDATE")
    sheet = as_sheet(row)
    if sheet.spec is None or sheet.look is None or not sheet.look["check"]["ok"]:
        raise Conflict("the sheet was not looked at, or can't be scored as it is", reason="scoring_not_looked")
    if wanted.budget_micro is not None and not sheet.look["is_priced"]:
        raise Conflict(
            "a budget can't be kept for a model whose price nobody knows; set [llm] price_in and price_out, or leave "
            "the budget out",
            reason="scoring_unpriced",
        )
    other = await tx.one(
        "SELECT run_uuid FROM scoring_runs WHERE tenant_id = :tenant_id AND sheet_digest = :digest "
        "AND status IN ('running','paused','failed') ORDER BY run_id DESC LIMIT 1",
        digest=scoring_runs.sheet_digest(wanted.address),
    )
    if other is not None:
        raise Conflict(
            f"the run {other['run_uuid']} for this sheet is not over; go on with it, or cancel it",
            reason="scoring_not_over",
            run_uuid=other["run_uuid"],
        )
    new = NewRun(
        wanted.run_uuid,
        tx.principal.tenant_id,
        wanted.address,
        sheet.spec,
        sheet.look["check"]["last_row"],
        wanted.budget_micro,
        wanted.chunks,
        sheet.sheet_id,
    )
    run_id = await tx.insert(scoring_runs.INSERT, **new.columns(now_ms))
    await tx.many(
        scoring_runs.INSERT_CHUNK,
        [
            {"run_id": run_id, "number": one.number, "row_start": one.row_start, "row_end": one.row_end,
             "now_ms": now_ms}
            for one in new.chunks
        ],
    )  # fmt: skip
    await tx.run(
        "UPDATE scoring_sheets SET updated_at = :now_ms WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id",
        sheet_id=sheet.sheet_id,
        now_ms=now_ms,
    )
    details: dict[str, str | int] = {"sheet": sheet.name, "model": sheet.spec.model}
    if wanted.budget_micro is not None:
        details["budget_micro"] = wanted.budget_micro
    entry = audit.Entry("scoring_begun", now_ms, address, "scoring_run", wanted.run_uuid, details)
    await audit.add_own(tx, entry)
    return await scoring_pages.get(tx, wanted.run_uuid)


async def result(tx: Scoped, run_uuid: str) -> tuple[str, tuple[Piece, ...]]:
    """The file that a run filled, by its name. NotFound while there is none, and when there is no such run."""
    await scoring_pages.get(tx, run_uuid)
    row = await tx.one(
        "SELECT r.run_id, s.name FROM scoring_runs r JOIN scoring_sheets s ON s.sheet_id = r.sheet_id "
        "WHERE r.tenant_id = :tenant_id AND r.run_uuid = :run_uuid AND s.kind = 'file'",
        run_uuid=run_uuid,
    )
    rows: Sequence[Row] = ()
    if row is not None:
        rows = await tx.all(
            "SELECT object_key, object_bytes FROM scoring_files WHERE tenant_id = :tenant_id AND run_id = :run_id "
            "AND is_there = 1 ORDER BY number",
            run_id=row["run_id"],
        )
    if row is None or not rows:
        raise NotFound(
            "there is no filled sheet of this run yet; it is made when the run pauses or ends",
            reason="no_scored_sheet",
        )
    return row["name"], tuple(Piece(one["object_key"], one["object_bytes"]) for one in rows)


# ---------------------------------------------------------------------------------------------------------------
# Removing
# ---------------------------------------------------------------------------------------------------------------


async def remove(tx: Scoped, sheet_uuid: str, address: str, now_ms: int) -> None:
    """The sheet and its files. A run of it that is not over is cancelled; what it found out stays."""
    row = await _row(tx, sheet_uuid, " FOR UPDATE")
    sheet_id = row["sheet_id"]
    await tx.run(
        "UPDATE scoring_runs SET status = 'cancelled', wanted = 'cancel', reason = 'asked', finished_at = :now_ms, "
        "updated_at = :now_ms WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id "
        "AND status IN ('running','paused','failed')",
        sheet_id=sheet_id,
        now_ms=now_ms,
    )
    await tx.run(
        "INSERT INTO garbage (tenant_id, object_key, created_at) SELECT tenant_id, object_key, :now_ms "
        "FROM scoring_files WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id",
        sheet_id=sheet_id,
        now_ms=now_ms,
    )
    for table in ("scoring_files", "scoring_events", "scoring_sheets"):
        await tx.run(f"DELETE FROM {table} WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id", sheet_id=sheet_id)
    await tx.run(
        "UPDATE scoring_runs SET sheet_id = NULL WHERE tenant_id = :tenant_id AND sheet_id = :sheet_id",
        sheet_id=sheet_id,
    )
    await _log(tx, "scoring_sheet_removed", sheet_uuid, row["name"], address, now_ms)


async def _log(tx: Scoped, action: str, sheet_uuid: str, name: str, address: str, now_ms: int) -> None:
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "scoring_sheet", sheet_uuid, {"name": name}))


async def _row(tx: Scoped, sheet_uuid: str, lock: str = "") -> Row:
    row = await tx.one(f"{_SHEETS} AND sheet_uuid = :sheet_uuid{lock}", sheet_uuid=sheet_uuid)
    if row is None:
        raise NotFound(f"there is no sheet {sheet_uuid}", reason="no_scoring_sheet")
    return row


def as_sheet(row: Row) -> SheetRow:
    values = {name: row[name] for name in SheetRow.__slots__}
    values["kind"], values["state"] = SheetKind(row["kind"]), SheetState(row["state"])
    values["wishes"] = SheetWishes.from_json(row["wishes"])
    values["look"] = None if row["look"] is None else json.loads(row["look"])
    values["spec"] = None if row["spec"] is None else RunSpec.from_json(row["spec"])
    return SheetRow(**values)


COLUMNS = ", ".join(SheetRow.__slots__)
_SHEETS = f"SELECT {COLUMNS} FROM scoring_sheets WHERE tenant_id = :tenant_id"
