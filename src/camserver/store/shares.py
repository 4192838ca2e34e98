"""Shares of events and frames: made, listed and revoked within the principal's reach, opened by whoever has one.

`opened` is asked in nobody's name, with the hash of what stands in the address. It then reads in the name of the
share's maker, with the reach and role they have at that moment: whoever was disabled, or no longer reaches the
camera, shares nothing any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from uuid_utils import uuid7

from camserver.base.errors import Conflict, Forbidden, NotFound
from camserver.domain.links import may_be_linked
from camserver.domain.people import Permission, Principal, Role, who_did
from camserver.domain.shares import HOUR_MS, PICTURES_MAX, SHARES_MAX, Sharing, may_share, require_sharing
from camserver.store import audit, event_pages, grants, tenants
from camserver.store.cameras import PicturePlace, public_camera_id
from camserver.store.clips import ClipPlace
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.sql import Sql
from camserver.store.tenants import NOT_DISABLED
from camserver.store.tx import Row, Scoped, Tx

PAGE_MAX = 200
# How long a share that is over stays listed nowhere but in its table; the audit log keeps what was done with it.
KEPT_MS = 30 * 86_400_000
SWEEP_BATCH = 500


@dataclass(frozen=True, slots=True)
class NewShare:
    kind: str  # event, frame
    uuid: str
    note: str
    expires_at: int | None
    token_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ShareSummary:
    share_uuid: str
    kind: str
    uuid: str
    camera_id: str
    camera_name: str
    site: str
    by: str
    note: str
    created_at: int
    expires_at: int | None
    opened_count: int
    last_opened_at: int | None
    cursor: str


@dataclass(frozen=True, slots=True)
class Opened:
    """What a share shows now."""

    share_id: int
    share_uuid: str
    tenant_id: int
    kind: str
    camera_name: str
    site: str
    timezone: str
    primary_event: str
    start_at: int
    end_at: int
    expires_at: int | None
    pictures: tuple[PicturePlace, ...]  # the best first, then in the order of time
    clip: ClipPlace | None
    is_noted: bool  # that this address opened it in this hour


# ---------------------------------------------------------------------------------------------------------------
# Making
# ---------------------------------------------------------------------------------------------------------------


async def add(tx: Scoped, new: NewShare, sharing: Sharing, address: str, now_ms: int) -> ShareSummary:
    """Shares an event or a frame that the principal may see and that belongs to no case."""
    found = await _find_event(tx, new.uuid) if new.kind == "event" else await _find_frame(tx, new.uuid)
    if found is None:
        raise _nothing(new)
    require_sharing(tx.principal, sharing)
    if _is_of_case(found):
        raise Forbidden("this belongs to a case and can't be shared", reason="case_share")
    await tenants.lock(tx)
    row = await tx.one(f"SELECT count(*) AS shares FROM shares h WHERE {_LIVE}", now_ms=now_ms)
    if row is not None and row["shares"] >= SHARES_MAX:
        raise Conflict(
            f"there are {SHARES_MAX} shares already; revoke some that are not needed any more",
            reason="shares_full",
            most=SHARES_MAX,
        )
    share_uuid = str(uuid7())
    await tx.run(
        "INSERT INTO shares (tenant_id, user_id, share_uuid, token_hash, kind, object_uuid, site_id, camera_key, "
        "note, created_at, expires_at) VALUES (:tenant_id, :user_id, :share_uuid, :token_hash, :kind, :object_uuid, "
        ":site_id, :camera_key, :note, :now_ms, :expires_at)",
        user_id=tx.principal.user_id,
        share_uuid=share_uuid,
        token_hash=new.token_hash,
        kind=new.kind,
        object_uuid=new.uuid,
        site_id=found["site_id"],
        camera_key=found["camera_key"],
        note=new.note,
        now_ms=now_ms,
        expires_at=new.expires_at,
    )
    details: dict[str, str | int] = {"kind": new.kind, "uuid": new.uuid, "note": new.note}
    if new.expires_at is not None:
        details["expires_at"] = new.expires_at
    await audit.add_own(tx, audit.Entry("share_added", now_ms, address, "share", share_uuid, details))
    made = await tx.one(f"{_SUMMARY} AND h.share_uuid = :share_uuid", share_uuid=share_uuid)
    assert made is not None
    return _summary(made)


async def page(tx: Scoped, before: str | None, limit: int, now_ms: int) -> tuple[ShareSummary, ...]:
    """Shares that may open something, newest first, from behind the cursor: one's own, or, for those who manage
    cameras, all within their reach.
    """
    _, share_id = (0, BEYOND) if before is None else parse_cursor(Listed.SHARES, before)
    rows = await tx.all(
        f"{_SUMMARY} AND {_LIVE} AND (:everybody = 1 OR h.user_id = :user_id) AND h.share_id < :before "
        "ORDER BY h.share_id DESC LIMIT :limit",
        before=share_id,
        limit=min(limit, PAGE_MAX),
        now_ms=now_ms,
        everybody=int(tx.principal.may(Permission.MANAGE_CAMERAS)),
        user_id=tx.principal.user_id or 0,
    )
    return tuple(_summary(row) for row in rows)


async def revoke(tx: Scoped, share_uuid: str, address: str, now_ms: int) -> None:
    """It opens nothing from the next request on."""
    row = await tx.one(
        "SELECT h.share_id, h.kind, h.object_uuid FROM shares h WHERE h.tenant_id = :tenant_id "
        "AND h.share_uuid = :share_uuid AND h.revoked_at IS NULL AND IN_REACH(h) "
        "AND (:everybody = 1 OR h.user_id = :user_id) FOR UPDATE",
        share_uuid=share_uuid,
        everybody=int(tx.principal.may(Permission.MANAGE_CAMERAS)),
        user_id=tx.principal.user_id or 0,
    )
    if row is None:
        raise NotFound("there is no such share, or it was revoked already", reason="no_share")
    await tx.run(
        "UPDATE shares SET revoked_at = :now_ms WHERE tenant_id = :tenant_id AND share_id = :share_id",
        share_id=row["share_id"],
        now_ms=now_ms,
    )
    details = {"kind": row["kind"], "uuid": row["object_uuid"]}
    await audit.add_own(tx, audit.Entry("share_revoked", now_ms, address, "share", share_uuid, details))


_LIVE = "h.tenant_id = :tenant_id AND h.revoked_at IS NULL AND (h.expires_at IS NULL OR h.expires_at > :now_ms)"
_SUMMARY = """
SELECT h.share_id, h.share_uuid, h.kind, h.object_uuid, h.note, h.created_at, h.expires_at, h.opened_count,
  h.last_opened_at, h.user_id, c.camera_id, c.name AS camera_name, s.name AS site,
  COALESCE(u.login, g.login) AS login
FROM shares h
JOIN cameras c ON c.camera_key = h.camera_key
JOIN sites s ON s.site_id = h.site_id
LEFT JOIN users u ON u.user_id = h.user_id
LEFT JOIN removed_users g ON g.user_id = h.user_id
WHERE h.tenant_id = :tenant_id AND IN_REACH(h)"""


def _summary(row: Row) -> ShareSummary:
    return ShareSummary(
        row["share_uuid"],
        row["kind"],
        row["object_uuid"],
        public_camera_id(row["camera_id"]),
        row["camera_name"],
        row["site"],
        who_did(row["user_id"], row["login"]),
        row["note"],
        row["created_at"],
        row["expires_at"],
        row["opened_count"],
        row["last_opened_at"],
        make_cursor(Listed.SHARES, 0, row["share_id"]),
    )


def _nothing(new: NewShare) -> NotFound:
    if new.kind == "event":
        return event_pages.missing(new.uuid)
    return NotFound(f"there is no frame {new.uuid}; it may be past its retention", reason="no_frame")


# ---------------------------------------------------------------------------------------------------------------
# Opening
# ---------------------------------------------------------------------------------------------------------------


async def opened(tx: Tx, token_hash: str, sharing: Sharing, address: str, now_ms: int) -> Opened | None:
    """What the share shows; None when there is none, it is over, or its maker could not make it now."""
    share = await tx.one(
        "SELECT h.share_id, h.share_uuid, h.tenant_id, h.user_id, h.kind, h.object_uuid, h.expires_at, u.role, "
        "u.granted_only, u.disabled, o.hour FROM shares h LEFT JOIN users u ON u.user_id = h.user_id "
        "LEFT JOIN share_openings o ON o.share_id = h.share_id AND o.address = :address AND o.hour = :hour "
        "WHERE h.token_hash = :token_hash AND h.revoked_at IS NULL "
        f"AND (h.expires_at IS NULL OR h.expires_at > :now_ms) AND h.tenant_id {NOT_DISABLED}",
        token_hash=token_hash,
        address=address[: audit.ADDRESS_MAX_CHARS],
        hour=now_ms // HOUR_MS,
        now_ms=now_ms,
    )
    if share is None:
        return None
    maker = await _maker(tx, share)
    if maker is None or not may_share(maker, sharing):
        return None
    scoped = Scoped(tx, maker)
    is_event = share["kind"] == "event"
    found = await (_find_event if is_event else _find_frame)(scoped, share["object_uuid"])
    if found is None or _is_of_case(found):
        return None
    return Opened(
        share_id=share["share_id"],
        share_uuid=share["share_uuid"],
        tenant_id=share["tenant_id"],
        kind=share["kind"],
        camera_name=found["camera_name"],
        site=found["site"],
        timezone=found["timezone"],
        primary_event=found["primary_event"],
        start_at=found["start_at"],
        end_at=found["last_seen_at"],
        expires_at=share["expires_at"],
        pictures=await _pictures(scoped, found) if is_event else _places([found]),
        clip=_clip(found) if is_event else None,
        is_noted=share["hour"] is not None,
    )


async def _maker(tx: Tx, share: Row) -> Principal | None:
    """Who made it, as they are now."""
    if share["user_id"] is None:
        return Principal(share["tenant_id"], None, Role.SYSTEM_ADMIN)
    if share["disabled"] is None or share["disabled"]:
        return None
    wide = Principal(share["tenant_id"], share["user_id"], Role(share["role"]))
    [maker] = await grants.narrowed(tx, [wide], {share["user_id"]} if share["granted_only"] else set())
    return maker


_OF = """
c.name AS camera_name, s.name AS site, s.timezone"""
_EVENT = f"""
SELECT e.event_id, e.site_id, e.camera_key, e.start_at, e.last_seen_at, e.primary_event, e.retention_class,
  e.best_frame_id, e.retention_class AS event_class, k.clip_uuid, k.object_key, k.object_bytes, k.codec,
  {_OF}
FROM events e JOIN cameras c ON c.camera_key = e.camera_key JOIN sites s ON s.site_id = e.site_id
LEFT JOIN clips k ON k.event_id = e.event_id AND k.state = 'ready'
WHERE e.tenant_id = :tenant_id AND IN_REACH(e) AND e.event_uuid = :uuid"""
_FRAME = f"""
SELECT f.frame_id, f.frame_uuid, f.tenant_id, f.site_id, f.camera_key, f.captured_at, f.captured_at AS start_at,
  f.captured_at AS last_seen_at, f.epoch_id, f.infer_bytes, f.full_bytes, f.primary_event, f.retention_class,
  e.retention_class AS event_class, {_OF}
FROM frames f JOIN cameras c ON c.camera_key = f.camera_key JOIN sites s ON s.site_id = f.site_id
LEFT JOIN events e ON e.event_id = f.event_id
WHERE f.tenant_id = :tenant_id AND IN_REACH(f) AND f.frame_uuid = :uuid"""


async def _find_event(tx: Scoped, uuid: str) -> Row | None:
    return await tx.one(_EVENT, uuid=uuid)


async def _find_frame(tx: Scoped, uuid: str) -> Row | None:
    return await tx.one(_FRAME, uuid=uuid)


def _is_of_case(row: Row) -> bool:
    return not may_be_linked(row["retention_class"]) or not may_be_linked(row["event_class"] or "")


_PICTURE = """
SELECT f.frame_id, f.frame_uuid, f.tenant_id, f.camera_key, f.captured_at, f.epoch_id, f.infer_bytes, f.full_bytes,
  f.retention_class
FROM frames f WHERE f.tenant_id = :tenant_id AND f.event_id = :event_id AND f.epoch_id IS NOT NULL"""


async def _pictures(tx: Scoped, event: Row) -> tuple[PicturePlace, ...]:
    best = await tx.all(
        f"{_PICTURE} AND f.frame_id = :frame_id", event_id=event["event_id"], frame_id=event["best_frame_id"] or 0
    )
    others = await tx.all(
        f"{_PICTURE} AND f.camera_key = :camera_key AND f.captured_at BETWEEN :start_at AND :last_seen_at "
        "AND f.frame_id <> :best "
        f"ORDER BY f.captured_at, f.frame_id LIMIT {PICTURES_MAX - 1}",
        event_id=event["event_id"],
        camera_key=event["camera_key"],
        start_at=event["start_at"],
        last_seen_at=event["last_seen_at"],
        best=event["best_frame_id"] or 0,
    )
    return _places([*best, *others])


def _places(rows: Sequence[Row]) -> tuple[PicturePlace, ...]:
    """Where pictures lie that may be shown: single frames of an event may belong to a case though it does not."""
    return tuple(
        PicturePlace(
            row["epoch_id"],
            row["tenant_id"],
            row["camera_key"],
            row["captured_at"],
            row["frame_uuid"],
            kept="infer" if row["full_bytes"] is None else "full",
        )
        for row in rows
        if row["epoch_id"] is not None
        and (row["infer_bytes"] is not None or row["full_bytes"] is not None)
        and may_be_linked(row["retention_class"])
    )


def _clip(event: Row) -> ClipPlace | None:
    if event["object_key"] is None:
        return None
    return ClipPlace(event["clip_uuid"], event["object_key"], event["object_bytes"], codec=event["codec"])


async def note_opening(tx: Tx, share: Opened, address: str, is_page: bool, now_ms: int) -> None:
    """Counts the opening of a page. The audit log gets one line for each address and hour."""
    if is_page:
        await tx.run(
            "UPDATE shares SET opened_count = opened_count + 1, last_opened_at = :now_ms "
            "WHERE share_id = :share_id AND tenant_id = :tenant_id",
            share_id=share.share_id,
            tenant_id=share.tenant_id,
            now_ms=now_ms,
        )
    added = await tx.run(
        _OPENING,
        share_id=share.share_id,
        address=address[: audit.ADDRESS_MAX_CHARS],
        hour=now_ms // HOUR_MS,
        tenant_id=share.tenant_id,
    )
    if added:
        entry = audit.Entry("share_opened", now_ms, address, "share", share.share_uuid)
        await audit.add_by_link(tx, share.tenant_id, entry)


_OPENING_VALUES = (
    "share_openings (share_id, address, hour, tenant_id) VALUES (:share_id, :address, :hour, :tenant_id)"
)
_OPENING = Sql(
    f"INSERT INTO {_OPENING_VALUES} ON CONFLICT DO NOTHING", mariadb=f"INSERT IGNORE INTO {_OPENING_VALUES}"
)


async def sweep(tx: Tx, now_ms: int) -> int:
    """Removes hours that are over, and shares that were over long ago; answers how many shares."""
    await tx.run("DELETE FROM share_openings WHERE hour < :hour", hour=now_ms // HOUR_MS)
    rows = await tx.all(
        f"SELECT share_id FROM shares WHERE revoked_at <= :before OR expires_at <= :before LIMIT {SWEEP_BATCH}",
        before=now_ms - KEPT_MS,
    )
    if not rows:
        return 0
    return await tx.run("DELETE FROM shares WHERE share_id IN (:ended...)", ended=[row["share_id"] for row in rows])
