"""What cases hold: adding and removing items, and keeping the class of frames and events in step with it.

A frame or event that some item holds has the class `case`, and its own class waits in `own_class`. Both change under
the row's lock, so a sweep either deleted it before (then it is said to be gone) or finds it held. Locks are taken in
the order case, camera, event, frames, as everywhere; shares come last.
"""

from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.cases import ITEMS_MAX, CaseState, ItemKind, holds_items
from camserver.store import archive, archive_clips, audit, share_endings
from camserver.store.cases import CaseRow, lock_case, require_reach
from camserver.store.core import unlogged
from camserver.store.tx import Row, Scoped, Tx

BATCH = 100
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Unsettled:
    tenant_id: int
    case_id: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What an item is about. `event` is that of an event or clip."""

    kind: ItemKind
    object_id: int
    object_uuid: str
    happened_at: int
    camera_key: int
    event: Row | None = None

    @property
    def shown(self) -> tuple[list[int], list[int]]:
        """Keys of the event, and of the single frame, that a share may show."""
        return ([], [self.object_id]) if self.event is None else ([self.event["event_id"]], [])


async def add(tx: Scoped, case_uuid: str, kind: ItemKind, uuid: str, address: str, now_ms: int) -> bool:
    """Adds a frame, an event or the clip of an event (by the event's id); False when it was in the case before."""
    case = await lock_case(tx, case_uuid)
    if case.state is not CaseState.OPEN:
        raise Conflict("the case is closed; reopen it first", reason="case_closed")
    found = await _locked(tx, kind, uuid)
    if await tx.one(_SAME, case_id=case.case_id, kind=kind.value, object_id=found.object_id):
        return False
    count = await tx.one(
        "SELECT count(*) AS items FROM case_items WHERE case_id = :case_id AND tenant_id = :tenant_id",
        case_id=case.case_id,
    )
    if count is not None and count["items"] >= ITEMS_MAX:
        raise Conflict(
            f"a case holds at most {ITEMS_MAX} items; open another one", reason="case_full", items_max=ITEMS_MAX
        )
    await tx.run(
        _INSERT,
        case_id=case.case_id,
        kind=kind.value,
        object_id=found.object_id,
        object_uuid=found.object_uuid,
        happened_at=found.happened_at,
        camera_key=found.camera_key,
        added_by=tx.principal.user_id,
        now_ms=now_ms,
    )
    await _hold(tx, found, now_ms)
    await archive.archive_for_case(tx, case.case_id, case.case_uuid, await _frames_of(tx, found), now_ms)
    if found.event is not None:
        of_case = archive.Case(case.case_id, case.case_uuid)
        await archive_clips.queue_for_case(tx, of_case, found.event["event_id"], now_ms)
    await share_endings.end_taken(tx, *found.shown, address, now_ms)
    await _note(tx, case, "case_item_added", kind, found.object_uuid, address, now_ms)
    return True


async def remove(
    tx: Scoped, case_uuid: str, kind: ItemKind, uuid: str, grace_days: int, address: str, now_ms: int
) -> None:
    """Takes an item out. What no other case holds goes back to its own class, after some grace.

    A case under hold gives nothing away, and a closed one stays as it was when it was closed.
    """
    case = await lock_case(tx, case_uuid)
    await require_reach(tx, case)
    if case.hold:
        raise Conflict("the case is on hold and gives nothing away; end the hold first", reason="case_on_hold")
    if case.state is not CaseState.OPEN:
        raise Conflict("the case is closed; reopen it first", reason="case_closed")
    row = await tx.one(
        "SELECT item_id, kind, object_id, holds FROM case_items WHERE tenant_id = :tenant_id "
        "AND case_id = :case_id AND kind = :kind AND object_uuid = :uuid",
        case_id=case.case_id,
        kind=kind.value,
        uuid=uuid,
    )
    if row is None:
        raise NotFound(f"the case has no {kind} {uuid}", reason="no_case_item")
    await tx.run("DELETE FROM case_items WHERE item_id = :item_id AND tenant_id = :tenant_id", item_id=row["item_id"])
    if row["holds"]:
        shown = await _release(tx, ItemKind(row["kind"]), row["object_id"], now_ms + grace_days * DAY_MS)
        await share_endings.end_given_up(tx, *shown, address, now_ms)
    await _note(tx, case, "case_item_removed", kind, uuid, address, now_ms)


async def _note(tx: Scoped, case: CaseRow, action: str, kind: ItemKind, uuid: str, address: str, now_ms: int) -> None:
    await tx.run(
        "UPDATE cases SET updated_at = :now_ms WHERE case_id = :case_id AND tenant_id = :tenant_id",
        case_id=case.case_id,
        now_ms=now_ms,
    )
    details: dict[str, str | int] = {"kind": kind.value, "uuid": uuid}
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "case", case.case_uuid, details))
    tx.changed(kind="case", at_ms=now_ms, object_id=case.case_id)


# ---------------------------------------------------------------------------------------------------------------
# After a case was closed or opened again
# ---------------------------------------------------------------------------------------------------------------


async def unsettled(tx: Tx) -> tuple[Unsettled, ...]:
    """Cases whose items have not followed them yet, e.g. because the server died in between."""
    rows = await tx.all("SELECT tenant_id, case_id FROM cases WHERE settled = 0 ORDER BY case_id LIMIT 100")
    return tuple(Unsettled(row["tenant_id"], row["case_id"]) for row in rows)


@unlogged("follows from a change of the case, which is logged")
async def settle(tx: Scoped, case_id: int, after_item_id: int, grace_days: int, now_ms: int) -> int | None:
    """Brings some items in step with their case; where to go on, or None when all are.

    Opened again, a case can only hold what is still there; the rest stays in its list as gone.
    """
    case = await tx.one(
        "SELECT state, hold FROM cases WHERE case_id = :case_id AND tenant_id = :tenant_id FOR UPDATE",
        case_id=case_id,
    )
    if case is None:
        return None
    wanted = holds_items(CaseState(case["state"]), bool(case["hold"]))
    rows = await tx.all(
        "SELECT item_id, kind, object_id FROM case_items WHERE tenant_id = :tenant_id AND case_id = :case_id "
        f"AND holds <> :wanted AND item_id > :after ORDER BY item_id LIMIT {BATCH}",
        case_id=case_id,
        wanted=int(wanted),
        after=after_item_id,
    )
    event_ids: list[int] = []
    frame_ids: list[int] = []
    for row in rows:
        kind = ItemKind(row["kind"])
        found = await _locked_by_id(tx, kind, row["object_id"]) if wanted else None
        if wanted and found is None:
            continue
        await tx.run(
            "UPDATE case_items SET holds = :wanted WHERE item_id = :item_id AND tenant_id = :tenant_id",
            item_id=row["item_id"],
            wanted=int(wanted),
        )
        if found is not None:
            await _hold(tx, found, now_ms)
            events, frames = found.shown
        else:
            events, frames = await _release(tx, kind, row["object_id"], now_ms + grace_days * DAY_MS)
        event_ids += events
        frame_ids += frames
    if event_ids or frame_ids:
        end = share_endings.end_taken if wanted else share_endings.end_given_up
        await end(tx, event_ids, frame_ids, None, now_ms)
    if len(rows) == BATCH:
        return int(rows[-1]["item_id"])
    await tx.run("UPDATE cases SET settled = 1 WHERE case_id = :case_id AND tenant_id = :tenant_id", case_id=case_id)
    tx.changed(kind="case", at_ms=now_ms, object_id=case_id)
    return None


# ---------------------------------------------------------------------------------------------------------------
# Finding and locking
# ---------------------------------------------------------------------------------------------------------------

_FRAME = "SELECT frame_id, frame_uuid, captured_at, camera_key FROM frames f WHERE f.tenant_id = :tenant_id AND "
_EVENT = (
    "SELECT e.event_id, e.event_uuid, e.camera_key, e.start_at, e.last_seen_at, e.best_frame_id FROM events e "
    "WHERE e.tenant_id = :tenant_id AND "
)


async def _locked(tx: Scoped, kind: ItemKind, uuid: str) -> _Found:
    """The object, locked; NotFound when it is gone or out of reach."""
    if kind is ItemKind.FRAME:
        frame = await tx.one(f"{_FRAME} f.frame_uuid = :uuid AND IN_REACH(f) FOR UPDATE", uuid=uuid)
        if frame is None:
            raise NotFound(
                f"there is no frame {uuid}; it is past its retention, or was never there", reason="no_frame"
            )
        return _found_frame(frame)
    event = await tx.one(f"{_EVENT} e.event_uuid = :uuid AND IN_REACH(e)", uuid=uuid)
    event = None if event is None else await _locked_event(tx, event)
    if event is None:
        raise NotFound(f"there is no event {uuid}; it is past its retention, or was never there", reason="no_event")
    found = await _found_of_event(tx, kind, event)
    if found is None:
        raise NotFound(f"the event {uuid} has no clip; see `clip` of the event", reason="no_clip")
    return found


async def _locked_by_id(tx: Scoped, kind: ItemKind, object_id: int) -> _Found | None:
    """The same by key, of what is in a case already; None when it is gone."""
    if kind is ItemKind.FRAME:
        frame = await tx.one(f"{_FRAME} f.frame_id = :object_id FOR UPDATE", object_id=object_id)
        return None if frame is None else _found_frame(frame)
    event = await _event_of(tx, kind, object_id)
    event = None if event is None else await _locked_event(tx, event)
    return None if event is None else await _found_of_event(tx, kind, event)


async def _event_of(tx: Scoped, kind: ItemKind, object_id: int) -> Row | None:
    if kind is ItemKind.EVENT:
        return await tx.one(f"{_EVENT} e.event_id = :object_id", object_id=object_id)
    return await tx.one(
        f"{_EVENT} e.event_id IN (SELECT k.event_id FROM clips k WHERE k.clip_id = :object_id)", object_id=object_id
    )


async def _locked_event(tx: Scoped, event: Row) -> Row | None:
    # The camera first: whoever decides about its events on what was known before decides again.
    await tx.lock(
        "UPDATE camera_state SET version = version + 1 WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=event["camera_key"],
    )
    return await tx.one(f"{_EVENT} e.event_id = :event_id FOR UPDATE", event_id=event["event_id"])


def _found_frame(frame: Row) -> _Found:
    return _Found(ItemKind.FRAME, frame["frame_id"], frame["frame_uuid"], frame["captured_at"], frame["camera_key"])


async def _found_of_event(tx: Scoped, kind: ItemKind, event: Row) -> _Found | None:
    object_id = event["event_id"]
    if kind is ItemKind.CLIP:
        clip = await tx.one(
            "SELECT clip_id FROM clips WHERE event_id = :event_id AND tenant_id = :tenant_id AND state = 'ready'",
            event_id=event["event_id"],
        )
        if clip is None:
            return None
        object_id = clip["clip_id"]
    return _Found(kind, object_id, event["event_uuid"], event["start_at"], event["camera_key"], event)


# ---------------------------------------------------------------------------------------------------------------
# Holding and letting go
# ---------------------------------------------------------------------------------------------------------------


async def _hold(tx: Scoped, found: _Found, now_ms: int) -> None:
    if found.event is None:
        await tx.run(f"{_HOLD_FRAMES} AND frame_id = :frame_id", frame_id=found.object_id)
        return
    await tx.run(_HOLD_EVENT, event_id=found.event["event_id"], now_ms=now_ms)
    if found.kind is ItemKind.EVENT:
        await tx.run(f"{_HOLD_FRAMES} AND {_OF_EVENT}", **_span(found.event))
        await tx.run(f"{_HOLD_FRAMES} AND frame_id = :frame_id", frame_id=found.event["best_frame_id"])


async def _frames_of(tx: Scoped, found: _Found) -> list[int]:
    """The frames that an item puts into its case."""
    if found.event is None:
        return [found.object_id]
    if found.kind is not ItemKind.EVENT:
        return []
    rows = await tx.all(
        f"SELECT frame_id FROM frames WHERE tenant_id = :tenant_id AND {_OF_EVENT}", **_span(found.event)
    )
    return [row["frame_id"] for row in rows]


async def _release(tx: Scoped, kind: ItemKind, object_id: int, keep_until: int) -> tuple[list[int], list[int]]:
    """Gives back what no other item holds; keys of its event, or of the single frame. What is gone needs nothing."""
    if kind is ItemKind.FRAME:
        await _release_frames(tx, "frame_id = :frame_id", keep_until, frame_id=object_id)
        return [], [object_id]
    event = await _event_of(tx, kind, object_id)
    event = None if event is None else await _locked_event(tx, event)
    if event is None:
        return [], []
    is_free = await tx.run(_RELEASE_EVENT, event_id=event["event_id"], keep_until=keep_until)
    if is_free or kind is ItemKind.EVENT:
        await _release_frames(tx, _OF_EVENT, keep_until, **_span(event))
        await _release_frames(tx, "frame_id = :frame_id", keep_until, frame_id=event["best_frame_id"])
    return [event["event_id"]], []


async def _release_frames(tx: Scoped, which: str, keep_until: int, **params: int | None) -> None:
    # Locked before it is looked who else holds them: another case may be adding the same ones.
    await tx.all(
        f"SELECT frame_id FROM frames WHERE tenant_id = :tenant_id AND {which} ORDER BY frame_id FOR UPDATE", **params
    )
    await tx.run(f"{_RELEASE_FRAMES} AND {which}", keep_until=keep_until, **params)


def _span(event: Row) -> dict[str, int]:
    return {
        "event_id": event["event_id"],
        "camera_key": event["camera_key"],
        "start_at": event["start_at"],
        "last_seen_at": event["last_seen_at"],
    }


_SAME = """
SELECT item_id FROM case_items
WHERE tenant_id = :tenant_id AND case_id = :case_id AND kind = :kind AND object_id = :object_id"""
_INSERT = """
INSERT INTO case_items (case_id, tenant_id, kind, object_id, object_uuid, happened_at, camera_key, holds, added_by,
  added_at)
VALUES (:case_id, :tenant_id, :kind, :object_id, :object_uuid, :happened_at, :camera_key, 1, :added_by, :now_ms)"""
# `frames` has no index by event, but one by camera and time.
_OF_EVENT = "camera_key = :camera_key AND captured_at BETWEEN :start_at AND :last_seen_at AND event_id = :event_id"
# own_class first: MariaDB reads what was assigned before it.
_TO_CASE = """SET own_class = CASE WHEN retention_class = 'case' THEN own_class ELSE retention_class END,
  retention_class = 'case', keep_until = NULL"""
_TO_OWN = "SET retention_class = COALESCE(own_class, 'normal'), own_class = NULL, keep_until = :keep_until"
_HOLD_FRAMES = f"UPDATE frames {_TO_CASE} WHERE tenant_id = :tenant_id"
_HOLD_EVENT = f"UPDATE events {_TO_CASE}, updated_at = :now_ms WHERE tenant_id = :tenant_id AND event_id = :event_id"
_RELEASE_FRAMES = f"""
UPDATE frames {_TO_OWN} WHERE tenant_id = :tenant_id AND retention_class = 'case'
  AND NOT EXISTS (SELECT 1 FROM case_items i WHERE i.kind = 'frame' AND i.object_id = frames.frame_id AND i.holds = 1)
  AND NOT EXISTS (SELECT 1 FROM case_items i WHERE i.kind = 'event' AND i.object_id = frames.event_id AND i.holds = 1)
  AND NOT EXISTS (SELECT 1 FROM events b JOIN case_items i ON i.kind = 'event' AND i.object_id = b.event_id
    WHERE b.best_frame_id = frames.frame_id AND i.holds = 1)"""
_RELEASE_EVENT = f"""
UPDATE events {_TO_OWN} WHERE tenant_id = :tenant_id AND event_id = :event_id AND retention_class = 'case'
  AND NOT EXISTS (SELECT 1 FROM case_items i WHERE i.kind = 'event' AND i.object_id = events.event_id AND i.holds = 1)
  AND NOT EXISTS (SELECT 1 FROM clips k JOIN case_items i ON i.kind = 'clip' AND i.object_id = k.clip_id
    WHERE k.event_id = events.event_id AND i.holds = 1)"""
