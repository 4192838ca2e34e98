"""Clips of events: asked for once when an event begins, then ready, or none with the reason.

A worker cuts the clip from its memory, so asking is an errand (`errands`); the row here is the event's side of it.
When the errand is over, its object becomes the clip's in one transaction: until then the errand's row names it, from
then on the clip's, so neither a prune of errands nor the sweep of rowless objects ever takes it. A clip goes with its
event: whoever deletes an event moves its clip's object to `garbage` in the same transaction.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import uuid_utils

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.clips import ASKED_WITHIN_MS, CLIP_SEC, UNSENT_MS, WAITED_MS, NoClip, no_clip, span
from camserver.domain.links import may_be_linked
from camserver.domain.people import Permission
from camserver.domain.retention import Retention
from camserver.store import archive_clips, errands, event_pages
from camserver.store.sql import Sql
from camserver.store.tenants import NOT_DISABLED
from camserver.store.tx import Row, Scoped, Tx

# How many of the newest events are looked at; one turn a second sees them all.
NEWEST_EVENTS = 300
BATCH = 200


@dataclass(frozen=True, slots=True)
class ClipTerms:
    """What asking needs to know besides the rows."""

    clip_sec: float = CLIP_SEC  # of cameras without a number of their own
    archives: bool = True  # whether clips are copied to archives


@dataclass(frozen=True, slots=True)
class Settled:
    ready: int
    none: int

    @property
    def more(self) -> bool:
        return self.ready + self.none >= BATCH


@dataclass(frozen=True, slots=True)
class ClipDetail:
    state: str  # asked, ready, none
    reason: str  # why there is none, a domain.clips.NoClip
    begin_at: int  # of a clip that is not ready: what was asked for
    end_at: int
    bytes: int
    codec: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ClipPlace:
    """Where a clip lies. What lies there never changes."""

    clip_uuid: str
    object_key: str
    bytes: int
    in_case: bool = False  # whoever opens it is written down
    codec: str = ""  # as FFmpeg names it; empty where the worker did not say


# ---------------------------------------------------------------------------------------------------------------
# Asking
# ---------------------------------------------------------------------------------------------------------------


async def ask(tx: Tx, now_ms: int, terms: ClipTerms) -> int:
    """Asks for the clips of events that have just begun; how many. Any number of dispatchers may do it at once."""
    newest = await tx.one("SELECT max(event_id) AS event_id FROM events")
    if newest is None or newest["event_id"] is None:
        return 0
    rows = await tx.all(
        _UNASKED,
        after_event_id=newest["event_id"] - NEWEST_EVENTS,
        since=now_ms - ASKED_WITHIN_MS,
        clip_sec=terms.clip_sec,
    )
    return sum([await _ask_one(tx, row, now_ms) for row in rows])


async def _ask_one(tx: Tx, event: Row, now_ms: int) -> int:
    wanted = span(event["start_at"], event["clip_sec"])
    errand_uuid = str(uuid_utils.uuid7())
    is_first = await tx.run(
        _INSERT,
        clip_uuid=str(uuid_utils.uuid7()),
        tenant_id=event["tenant_id"],
        camera_key=event["camera_key"],
        event_id=event["event_id"],
        errand_uuid=errand_uuid,
        begin_at=wanted.from_ms,
        end_at=wanted.to_ms,
        now_ms=now_ms,
    )
    if not is_first:
        return 0
    request = json.dumps({"from_ms": wanted.from_ms, "to_ms": wanted.to_ms})
    errand = errands.NewErrand(errand_uuid, "clip", request, now_ms + WAITED_MS)
    await errands.add(tx, event["tenant_id"], event["site_id"], event["camera_key"], errand, now_ms)
    _tell(tx, event, now_ms)
    return 1


def _tell(tx: Tx, row: Row, now_ms: int) -> None:
    tx.changed(
        tenant_id=row["tenant_id"],
        kind="event",
        at_ms=now_ms,
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        object_id=row["event_id"],
    )


# Events of camera issues show nothing that moves.
_UNASKED = """
SELECT e.event_id, e.tenant_id, e.site_id, e.camera_key, e.start_at, COALESCE(o.clip_sec, :clip_sec) AS clip_sec
FROM events e
JOIN cameras c ON c.camera_key = e.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = e.camera_key
WHERE e.event_id > :after_event_id AND e.start_at > :since AND e.subject = '' AND c.deleted_at IS NULL
  AND COALESCE(o.clip_sec, :clip_sec) > 0
  AND NOT EXISTS (SELECT 1 FROM clips k WHERE k.event_id = e.event_id)
ORDER BY e.event_id"""
_COLUMNS = """(clip_uuid, tenant_id, camera_key, event_id, state, errand_uuid, begin_at, end_at, created_at)
VALUES (:clip_uuid, :tenant_id, :camera_key, :event_id, 'asked', :errand_uuid, :begin_at, :end_at, :now_ms)"""
_INSERT = Sql(
    sqlite=f"INSERT OR IGNORE INTO clips {_COLUMNS}",
    postgres=f"INSERT INTO clips {_COLUMNS} ON CONFLICT DO NOTHING",
    mariadb=f"INSERT IGNORE INTO clips {_COLUMNS}",
)


# ---------------------------------------------------------------------------------------------------------------
# What became of it
# ---------------------------------------------------------------------------------------------------------------


async def settle(tx: Tx, now_ms: int, archives: bool = True) -> Settled:
    """Takes over what the errands of clips have brought, and ends those that nobody will bring any more.

    `archives`: what is ready is copied to archives, where there are some.
    """
    unsent_before = now_ms - UNSENT_MS
    due = await tx.all(_DUE, now_ms=now_ms, unsent_before=unsent_before)
    # Locked before it is looked at again: another dispatcher may settle the same ones.
    locked = await tx.all(_LOCK, clip_ids=[row["clip_id"] for row in due])
    ready: list[int] = []
    none = 0
    for clip in await tx.all(_ASKED, clip_ids=[row["clip_id"] for row in locked]):
        errand = await tx.one(_ERRAND, errand_uuid=clip["errand_uuid"])
        if errand is not None and errand["state"] == "done" and errand["object_key"] is not None:
            await _take_over(tx, clip, errand)
            ready.append(clip["clip_id"])
        elif (reason := _why_none(errand, now_ms, unsent_before)) is not None:
            await _give_up(tx, clip, errand, reason, now_ms)
            none += 1
        else:
            continue
        _tell(tx, clip, now_ms)
    if archives:
        await archive_clips.queue(tx, ready, now_ms)
    return Settled(len(ready), none)


def _why_none(errand: Row | None, now_ms: int, unsent_before: int) -> NoClip | None:
    """None: it may still come."""
    if errand is None:
        return NoClip.NO_ANSWER
    match errand["state"]:
        case "failed" | "done":
            result = json.loads(errand["result"] or "{}")
            return no_clip(result.get("reason") if isinstance(result, dict) else None)
        case "waiting":
            is_over = errand["created_at"] <= unsent_before or errand["expires_at"] <= now_ms
            return NoClip.NOT_HELD if is_over else None
        case "sent":
            return NoClip.NO_ANSWER if errand["expires_at"] <= now_ms else None
        case _:
            return NoClip.NO_ANSWER if errand["sent_at"] is not None else NoClip.NOT_HELD


async def _take_over(tx: Tx, clip: Row, errand: Row) -> None:
    found = _Found.of(errand["result"])
    await tx.run(
        """
        UPDATE clips SET state = 'ready', object_key = :object_key, object_bytes = :object_bytes,
          epoch_id = :epoch_id, begin_at = :begin_at, end_at = :end_at, codec = :codec, width = :width,
          height = :height
        WHERE clip_id = :clip_id""",
        clip_id=clip["clip_id"],
        object_key=errand["object_key"],
        object_bytes=errand["object_bytes"],
        epoch_id=errand["epoch_id"],
        begin_at=clip["begin_at"] if found.begin_at is None else found.begin_at,
        end_at=clip["end_at"] if found.end_at is None else found.end_at,
        codec=found.codec,
        width=found.width or 0,
        height=found.height or 0,
    )
    await tx.run(
        "UPDATE errands SET object_key = NULL, object_bytes = 0, epoch_id = NULL WHERE errand_id = :errand_id",
        errand_id=errand["errand_id"],
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a worker tells of a clip; whatever makes no sense is left out."""

    begin_at: int | None
    end_at: int | None
    codec: str
    width: int | None
    height: int | None

    @classmethod
    def of(cls, result: str | None) -> "_Found":
        told = json.loads(result or "{}")

        def number(name: str, below: int) -> int | None:
            value = told.get(name)
            return value if isinstance(value, int) and 0 <= value < below else None

        return cls(
            begin_at=number("begin_at", 2**62),
            end_at=number("end_at", 2**62),
            codec=str(told.get("codec", ""))[:16],
            width=number("width", 2**31),
            height=number("height", 2**31),
        )


async def _give_up(tx: Tx, clip: Row, errand: Row | None, reason: NoClip, now_ms: int) -> None:
    await tx.run(
        "UPDATE clips SET state = 'none', reason = :reason WHERE clip_id = :clip_id",
        clip_id=clip["clip_id"],
        reason=reason.value,
    )
    if errand is not None and errand["state"] in ("waiting", "sent"):
        # Nobody is sent for it any more.
        await tx.run(
            """
            UPDATE errands SET state = 'expired', message = 'no worker held the camera', done_at = :now_ms
            WHERE errand_id = :errand_id""",
            errand_id=errand["errand_id"],
            now_ms=now_ms,
        )


_DUE = f"""
SELECT k.clip_id FROM clips k LEFT JOIN errands r ON r.errand_uuid = k.errand_uuid
WHERE k.state = 'asked' AND (r.errand_id IS NULL OR r.state NOT IN ('waiting', 'sent') OR r.expires_at <= :now_ms
  OR (r.state = 'waiting' AND r.created_at <= :unsent_before))
ORDER BY k.clip_id LIMIT {BATCH}"""
_LOCK = """
SELECT clip_id FROM clips WHERE clip_id IN (:clip_ids...) ORDER BY clip_id FOR UPDATE SKIP LOCKED"""
_ASKED = """
SELECT k.clip_id, k.tenant_id, k.camera_key, k.event_id, k.errand_uuid, k.begin_at, k.end_at, e.site_id
FROM clips k LEFT JOIN events e ON e.event_id = k.event_id
WHERE k.clip_id IN (:clip_ids...) AND k.state = 'asked' ORDER BY k.clip_id"""
_ERRAND = """
SELECT errand_id, state, result, object_key, object_bytes, epoch_id, created_at, sent_at, expires_at FROM errands
WHERE errand_uuid = :errand_uuid FOR UPDATE"""


# ---------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------

_CLIP = """
SELECT k.clip_uuid, k.state, k.reason, k.begin_at, k.end_at, k.object_key, k.object_bytes, k.codec, k.width,
  k.height, e.event_uuid, e.retention_class"""


# What `ClipDetail` is made of, of a clip `k`.
COLUMNS = "k.state, k.reason, k.begin_at, k.end_at, k.object_bytes, k.codec, k.width, k.height"


def detail_of(tx: Scoped, retention_class: str, values: Sequence[Any]) -> ClipDetail | None:
    """The clip of an event that the reader was found to reach; None when none was asked for, or it is not theirs to
    see."""
    if values[0] is None or _is_closed(retention_class, tx):
        return None
    return ClipDetail(*values)


async def place(tx: Scoped, event_uuid: str) -> ClipPlace:
    """Where the clip of an event lies that the principal may see."""
    row = await tx.one(
        f"{_CLIP} FROM events e LEFT JOIN clips k ON k.event_id = e.event_id "
        "WHERE e.tenant_id = :tenant_id AND e.event_uuid = :event_uuid AND IN_REACH(e)",
        event_uuid=event_uuid,
    )
    if row is None:
        raise event_pages.missing(event_uuid)
    if _is_closed(row["retention_class"], tx):
        raise Forbidden(
            "this clip belongs to a case; ask somebody who may investigate",
            reason="case_media",
            permission=Permission.INVESTIGATE.value,
        )
    return _place(row)


async def linkable(tx: Scoped, frame_uuid: str) -> ClipPlace:
    """The clip of a frame's event, when a link to it may be given out (decision 29)."""
    row = await tx.one(
        f"{_OF_FRAME} AND f.tenant_id = :tenant_id AND IN_REACH(f)",
        frame_uuid=frame_uuid,
    )
    return _linked(row, frame_uuid)


async def linked(tx: Tx, frame_uuid: str) -> ClipPlace:
    """Where the clip of a link lies whose signature was found right."""
    row = await tx.one(f"{_OF_FRAME} AND f.tenant_id {NOT_DISABLED}", frame_uuid=frame_uuid)
    return _linked(row, frame_uuid)


def _linked(row: Row | None, frame_uuid: str) -> ClipPlace:
    if row is None:
        raise NotFound(f"there is no frame {frame_uuid}; it may be past its retention", reason="no_frame")
    if not may_be_linked(row["frame_retention_class"]) or not may_be_linked(row["retention_class"] or ""):
        raise Forbidden("this clip belongs to a case, and no link opens it; sign in to see it", reason="case_link")
    return _place(row)


def _is_closed(retention_class: str, tx: Scoped) -> bool:
    return retention_class == Retention.CASE and not tx.principal.may(Permission.INVESTIGATE)


def _place(row: Row) -> ClipPlace:
    if row["object_key"] is None:
        raise NotFound("this event has no clip; see `clip` of the event", reason="no_clip")
    in_case = row["retention_class"] == Retention.CASE
    return ClipPlace(row["clip_uuid"], row["object_key"], row["object_bytes"], in_case, row["codec"])


_OF_FRAME = f"""
{_CLIP}, f.retention_class AS frame_retention_class
FROM frames f LEFT JOIN events e ON e.event_id = f.event_id LEFT JOIN clips k ON k.event_id = e.event_id
WHERE f.frame_uuid = :frame_uuid"""
