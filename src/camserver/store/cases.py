"""Cases as rows: made, changed, noted upon, listed. What they hold is `case_items`.

Everything is held to the principal's tenant, and items to the sites the principal reaches. Whoever does not reach all
of a case's items may look and add, but not close, hold or take out of it: that would decide about what can't be seen.
Every change, and every look at what a case holds, is in the audit log under the case's id.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import uuid_utils

from camserver.base.errors import Conflict, Forbidden, NotFound
from camserver.domain.cases import NOTES_MAX, CaseState, holds_items
from camserver.domain.people import who_did
from camserver.store import audit, audit_pages, search_texts
from camserver.store.cameras import public_camera_id
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200
AUDIT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class CaseRow:
    case_id: int
    case_uuid: str
    state: CaseState
    hold: bool


@dataclass(frozen=True, slots=True)
class CaseSummary:
    case_id: int
    case_uuid: str
    title: str
    state: str  # open, closed
    hold: bool
    created_by: str  # login, or local admin for the command line
    created_at: int
    updated_at: int
    closed_at: int | None
    items: int
    notes: int


@dataclass(frozen=True, slots=True)
class Note:
    body: str
    by: str
    at: int


@dataclass(frozen=True, slots=True)
class CaseItem:
    kind: str  # frame, event, clip
    uuid: str  # of a clip, its event's
    camera_id: str
    camera_name: str
    site: str
    timezone: str
    happened_at: int
    added_at: int
    added_by: str
    held: bool
    gone: bool  # deleted after the case let go of it
    item_id: int


@dataclass(frozen=True, slots=True)
class CaseChange:
    """None: stays as it is."""

    title: str | None = None
    hold: bool | None = None
    state: CaseState | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at: int
    actor_kind: str
    actor: str
    action: str
    details: Mapping[str, object] | None
    address: str


_CASES = """
SELECT c.case_id, c.case_uuid, c.title, c.state, c.hold, c.created_by, c.created_at, c.updated_at, c.closed_at,
  COALESCE(u.login, g.login) AS login,
  (SELECT count(*) FROM case_items i WHERE i.case_id = c.case_id) AS items,
  (SELECT count(*) FROM case_notes n WHERE n.case_id = c.case_id) AS notes
FROM cases c LEFT JOIN users u ON u.user_id = c.created_by LEFT JOIN removed_users g ON g.user_id = c.created_by
WHERE c.tenant_id = :tenant_id"""


async def create(tx: Scoped, title: str, address: str, now_ms: int) -> CaseSummary:
    case_uuid = str(uuid_utils.uuid7())
    case_id = await tx.insert(
        "INSERT INTO cases (case_uuid, tenant_id, title, state, created_by, created_at, updated_at) "
        "VALUES (:case_uuid, :tenant_id, :title, 'open', :created_by, :now_ms, :now_ms) RETURNING case_id",
        case_uuid=case_uuid,
        title=title,
        created_by=tx.principal.user_id,
        now_ms=now_ms,
    )
    await note_in_log(tx, case_uuid, "case_created", {"title": title}, address, now_ms)
    tx.changed(kind="case", at_ms=now_ms, object_id=case_id)
    return await get(tx, case_uuid)


async def get(tx: Scoped, case_uuid: str) -> CaseSummary:
    row = await tx.one(f"{_CASES} AND c.case_uuid = :case_uuid", case_uuid=case_uuid)
    if row is None:
        raise _missing(case_uuid)
    return _summary(row)


async def page(tx: Scoped, state: str | None, before_case_id: int, limit: int) -> tuple[CaseSummary, ...]:
    """Newest first."""
    rows = await tx.all(
        f"{_CASES} AND (:any_state = 1 OR c.state = :state) AND c.case_id < :before "
        "ORDER BY c.case_id DESC LIMIT :limit",
        any_state=int(state is None),
        state=state or "",
        before=before_case_id,
        limit=min(limit, PAGE_MAX),
    )
    return tuple([_summary(row) for row in rows])


async def key_of(tx: Scoped, case_uuid: str) -> int:
    return (await get(tx, case_uuid)).case_id


async def change(tx: Scoped, case_uuid: str, wanted: CaseChange, address: str, now_ms: int) -> CaseSummary:
    """Changes a case, unless it is so already. Its items follow in `case_items.settle`, which the caller sees to."""
    case = await lock_case(tx, case_uuid)
    state = case.state if wanted.state is None else wanted.state
    hold = case.hold if wanted.hold is None else wanted.hold
    told = _told(case, wanted)
    if not told:
        return await get(tx, case_uuid)
    if (state, hold) != (case.state, case.hold):
        await require_reach(tx, case)
    await tx.run(
        """
        UPDATE cases SET title = CASE WHEN :renamed = 1 THEN :title ELSE title END, state = :state, hold = :hold,
          closed_at = CASE WHEN :state_now = 'open' THEN NULL WHEN :closed = 1 THEN :now_ms ELSE closed_at END,
          settled = CASE WHEN :moved = 1 THEN 0 ELSE settled END, updated_at = :now_ms
        WHERE case_id = :case_id AND tenant_id = :tenant_id""",
        case_id=case.case_id,
        renamed=int(wanted.title is not None),
        title=wanted.title or "",
        state=state.value,
        state_now=state.value,
        hold=int(hold),
        closed=int(state is CaseState.CLOSED and case.state is CaseState.OPEN),
        moved=int(holds_items(state, hold) != holds_items(case.state, case.hold)),
        now_ms=now_ms,
    )
    for action, details in told:
        await note_in_log(tx, case_uuid, action, details, address, now_ms)
    tx.changed(kind="case", at_ms=now_ms, object_id=case.case_id)
    return await get(tx, case_uuid)


def _told(case: CaseRow, wanted: CaseChange) -> list[tuple[str, dict[str, str | int]]]:
    told: list[tuple[str, dict[str, str | int]]] = []
    if wanted.title is not None:
        told.append(("case_renamed", {"title": wanted.title}))
    if wanted.hold is not None and wanted.hold != case.hold:
        told.append(("case_held" if wanted.hold else "case_hold_ended", {}))
    if wanted.state is not None and wanted.state is not case.state:
        told.append(("case_closed" if wanted.state is CaseState.CLOSED else "case_reopened", {}))
    return told


async def add_note(tx: Scoped, case_uuid: str, body: str, address: str, now_ms: int) -> Note:
    case = await lock_case(tx, case_uuid)
    counted = await tx.one(
        "SELECT count(*) AS notes FROM case_notes WHERE case_id = :case_id AND tenant_id = :tenant_id",
        case_id=case.case_id,
    )
    if counted is not None and counted["notes"] >= NOTES_MAX:
        raise Conflict(
            f"a case has at most {NOTES_MAX} notes; open another one", reason="case_notes_full", notes_max=NOTES_MAX
        )
    note_id = await tx.insert(
        "INSERT INTO case_notes (case_id, tenant_id, body, user_id, created_at) "
        "VALUES (:case_id, :tenant_id, :body, :user_id, :now_ms) RETURNING note_id",
        case_id=case.case_id,
        body=body,
        user_id=tx.principal.user_id,
        now_ms=now_ms,
    )
    await search_texts.put_note(tx, note_id, body, now_ms)
    await note_in_log(tx, case_uuid, "case_note_added", {}, address, now_ms)
    tx.changed(kind="case", at_ms=now_ms, object_id=case.case_id)
    return (await notes(tx, case.case_id))[-1]


async def notes(tx: Scoped, case_id: int) -> tuple[Note, ...]:
    """All notes of a case, oldest first."""
    rows = await tx.all(
        "SELECT n.body, n.created_at, n.user_id, COALESCE(u.login, g.login) AS login FROM case_notes n "
        "LEFT JOIN users u ON u.user_id = n.user_id LEFT JOIN removed_users g ON g.user_id = n.user_id "
        f"WHERE n.tenant_id = :tenant_id AND n.case_id = :case_id ORDER BY n.note_id LIMIT {NOTES_MAX}",
        case_id=case_id,
    )
    return tuple([Note(row["body"], who_did(row["user_id"], row["login"]), row["created_at"]) for row in rows])


_ITEMS = """
SELECT i.item_id, i.kind, i.object_uuid, i.happened_at, i.added_at, i.holds, c.camera_id, c.name AS camera_name,
  s.name AS site, s.timezone, i.added_by, COALESCE(u.login, g.login) AS login,
  CASE WHEN i.kind = 'frame' THEN f.frame_id WHEN i.kind = 'event' THEN e.event_id ELSE k.clip_id END AS there
FROM case_items i
LEFT JOIN frames f ON i.kind = 'frame' AND f.frame_id = i.object_id
LEFT JOIN events e ON i.kind = 'event' AND e.event_id = i.object_id
LEFT JOIN clips k ON i.kind = 'clip' AND k.clip_id = i.object_id AND k.state = 'ready'
JOIN cameras c ON c.camera_key = i.camera_key
JOIN sites s ON s.site_id = COALESCE(f.site_id, e.site_id, c.site_id)
LEFT JOIN users u ON u.user_id = i.added_by
LEFT JOIN removed_users g ON g.user_id = i.added_by
WHERE i.tenant_id = :tenant_id AND i.case_id = :case_id"""
# By the site it happened at: the camera may have moved since.
_ITEM_IN_REACH = "(IN_SITE_REACH(s) OR i.camera_key IN (:camera_keys...))"


async def items(tx: Scoped, case_id: int, after_item_id: int, limit: int) -> tuple[CaseItem, ...]:
    """Items of the sites that the principal reaches, in the order they were added."""
    rows = await tx.all(
        f"{_ITEMS} AND {_ITEM_IN_REACH} AND i.item_id > :after ORDER BY i.item_id LIMIT :limit",
        case_id=case_id,
        after=after_item_id,
        limit=min(limit, PAGE_MAX),
    )
    return tuple([_item(row) for row in rows])


async def lock_case(tx: Scoped, case_uuid: str) -> CaseRow:
    row = await tx.one(
        "SELECT case_id, case_uuid, state, hold FROM cases WHERE case_uuid = :case_uuid AND tenant_id = :tenant_id "
        "FOR UPDATE",
        case_uuid=case_uuid,
    )
    if row is None:
        raise _missing(case_uuid)
    return CaseRow(row["case_id"], row["case_uuid"], CaseState(row["state"]), bool(row["hold"]))


async def require_reach(tx: Scoped, case: CaseRow) -> None:
    """Forbidden when the case holds something of a site that the principal does not reach."""
    if tx.principal.site_ids is None:
        return
    beyond = await tx.one(f"{_ITEMS} AND NOT {_ITEM_IN_REACH} LIMIT 1", case_id=case.case_id)
    if beyond is not None:
        raise Forbidden(
            "the case holds evidence of sites beyond your reach; ask somebody who sees them all",
            reason="case_out_of_reach",
        )


async def begin_export(tx: Scoped, case_uuid: str, address: str, now_ms: int) -> CaseSummary:
    """The case, when the principal may take all of it away; that somebody did is written down first."""
    await require_reach(tx, await lock_case(tx, case_uuid))
    await note_in_log(tx, case_uuid, "case_export_begun", {}, address, now_ms)
    return await get(tx, case_uuid)


async def note_in_log(
    tx: Scoped, case_uuid: str, action: str, details: Mapping[str, str | int], address: str, now_ms: int
) -> None:
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "case", case_uuid, details or None))


async def audit_of(tx: Scoped, case_uuid: str) -> tuple[AuditEntry, ...]:
    """What was done with a case, oldest first."""
    rows = await tx.all(
        "SELECT a.entry_id, a.at, a.actor_kind, a.actor_id, a.action, a.details, a.address FROM audit_log a "
        "WHERE a.tenant_id = :tenant_id AND a.object_kind = 'case' AND a.object_id = :case_uuid "
        f"ORDER BY a.entry_id LIMIT {AUDIT_MAX}",
        case_uuid=case_uuid,
    )
    actors = await audit_pages.names(tx, {(row["actor_kind"], row["actor_id"]) for row in rows})
    return tuple(
        [
            AuditEntry(
                row["at"],
                row["actor_kind"],
                actors[row["actor_kind"], row["actor_id"]],
                row["action"],
                audit.read_details(row["details"]),
                row["address"],
            )
            for row in rows
        ]
    )


async def note_look(tx: Scoped, what: str, uuid: str, address: str, now_ms: int) -> None:
    """Writes into the log of each case that holds it that somebody opened a picture of a frame, or a clip.

    What a case let go of a while ago is held by none any more; the look is noted all the same.
    """
    details = {"kind": what, "uuid": uuid}
    holders = await tx.all(_HOLDERS_OF_FRAME if what != "clip" else _HOLDERS_OF_CLIP, uuid=uuid)
    for row in holders:
        await audit.look(tx, audit.Entry("case_media_opened", now_ms, address, "case", row["case_uuid"], details))
    if not holders:
        action, kind = ("clip_opened", "event") if what == "clip" else ("picture_opened", "frame")
        await audit.look(tx, audit.Entry(action, now_ms, address, kind, uuid))


# `uuid` of a clip is its event's.
_HOLDERS_OF_FRAME = """
SELECT DISTINCT c.case_uuid FROM frames f
JOIN case_items i ON i.holds = 1 AND ((i.kind = 'frame' AND i.object_id = f.frame_id)
  OR (i.kind = 'event' AND i.object_id = f.event_id) OR (i.kind = 'event' AND i.object_id IN (
    SELECT b.event_id FROM events b WHERE b.best_frame_id = f.frame_id)))
JOIN cases c ON c.case_id = i.case_id
WHERE f.tenant_id = :tenant_id AND f.frame_uuid = :uuid ORDER BY c.case_uuid LIMIT 20"""
_HOLDERS_OF_CLIP = """
SELECT DISTINCT c.case_uuid FROM events e
LEFT JOIN clips k ON k.event_id = e.event_id
JOIN case_items i ON i.holds = 1 AND ((i.kind = 'event' AND i.object_id = e.event_id)
  OR (i.kind = 'clip' AND i.object_id = k.clip_id))
JOIN cases c ON c.case_id = i.case_id
WHERE e.tenant_id = :tenant_id AND e.event_uuid = :uuid ORDER BY c.case_uuid LIMIT 20"""


def _missing(case_uuid: str) -> NotFound:
    return NotFound(f"there is no case {case_uuid}; see: camserver case list", reason="no_case")


def _summary(row: Row) -> CaseSummary:
    return CaseSummary(
        case_id=row["case_id"],
        case_uuid=row["case_uuid"],
        title=row["title"],
        state=row["state"],
        hold=bool(row["hold"]),
        created_by=who_did(row["created_by"], row["login"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        closed_at=row["closed_at"],
        items=row["items"],
        notes=row["notes"],
    )


def _item(row: Row) -> CaseItem:
    return CaseItem(
        kind=row["kind"],
        uuid=row["object_uuid"],
        camera_id=public_camera_id(row["camera_id"]),
        camera_name=row["camera_name"],
        site=row["site"],
        timezone=row["timezone"],
        happened_at=row["happened_at"],
        added_at=row["added_at"],
        added_by=who_did(row["added_by"], row["login"]),
        held=bool(row["holds"]),
        gone=row["there"] is None,
        item_id=row["item_id"],
    )
