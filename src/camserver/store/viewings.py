"""Viewings: kept by heartbeats, over by time, release or a login's end. Admitting them is in admissions.py.

A viewing is valid through `valid_until` and while its login is and reaches the camera; a row that is not valid means
nothing and is deleted by whoever comes by. Deleting needs no lock: a streamer's viewings only get fewer by it.
"""

from dataclasses import dataclass

from camserver.base.errors import NotFound
from camserver.domain.admission import (
    AdmissionPolicy,
    Held,
    Kind,
    Quality,
    bears_transcode,
    costs,
    valid_until,
    viewer_of,
    why_over,
)
from camserver.domain.people import GRANTED_ROLES, Permission
from camserver.store import sessions, streamers, tokens
from camserver.store.core import unlogged
from camserver.store.tx import Row, Scoped, Tx

BATCH = 500


@dataclass(frozen=True, slots=True)
class Viewing:
    """A valid one."""

    lease_id: str
    tenant_id: int
    site_id: int
    camera_key: int
    camera_id: str
    streamer_id: str
    kind: Kind
    quality: Quality
    transcode: bool
    units: int  # without a transcode
    transcode_units: int  # what that adds, once for all who watch the same
    user_id: str
    feed: str
    feed_reason: str
    created_at: int
    expires_at: int
    valid_until: int
    public_url: str  # of its streamer, as both are in its row
    port: int


@dataclass(frozen=True, slots=True)
class OnStreamer:
    """Viewings of a streamer: those valid now, and why those are not that were asked for."""

    viewings: tuple[Viewing, ...]
    gone: tuple[tuple[str, str], ...]  # (lease_id, ttl | heartbeat | session_over | camera_gone | unknown)


# ---------------------------------------------------------------------------------------------------------------
# Keeping and ending one's own
# ---------------------------------------------------------------------------------------------------------------


@unlogged("says that a viewing goes on, whose beginning is logged")
async def heartbeat(tx: Scoped, lease_id: str, policy: AdmissionPolicy, now_ms: int) -> int:
    """Keeps one's own viewing for another grace; how many milliseconds of it are left."""
    row = await own(tx, lease_id, now_ms)
    matched = await tx.run(
        "UPDATE modal_leases SET last_heartbeat = :now_ms, valid_until = :valid_until WHERE tenant_id = :tenant_id "
        "AND lease_id = :lease_id AND user_id = :user_id AND valid_until >= :now_ms",
        lease_id=lease_id,
        user_id=viewer_of(tx.principal),
        now_ms=now_ms,
        valid_until=valid_until(row.expires_at, now_ms, policy),
    )
    if not matched:
        raise viewing_over(lease_id)
    return row.expires_at - now_ms


async def own(tx: Scoped, lease_id: str, now_ms: int) -> Viewing:
    """One's own valid viewing, of a camera that one reaches still."""
    row = await tx.one(
        f"{_VIEWING} WHERE v.tenant_id = :tenant_id AND v.lease_id = :lease_id AND v.user_id = :user_id "
        "AND v.valid_until >= :now_ms AND IN_REACH(c)",
        lease_id=lease_id,
        user_id=viewer_of(tx.principal),
        now_ms=now_ms,
    )
    if row is None:
        raise viewing_over(lease_id)
    return _viewing(row)


@unlogged("ends one's own viewing, whose beginning is logged")
async def release(tx: Scoped, lease_id: str) -> bool:
    """Ends one's own viewing; False when there is none of that id."""
    matched = await tx.run(
        "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND lease_id = :lease_id AND user_id = :user_id",
        lease_id=lease_id,
        user_id=viewer_of(tx.principal),
    )
    return matched > 0


async def count_modals(tx: Scoped, now_ms: int) -> int:
    """Valid modal viewings of cameras within the principal's reach."""
    row = await tx.one(
        "SELECT COUNT(*) AS found FROM modal_leases v JOIN cameras c ON c.camera_key = v.camera_key "
        "WHERE v.tenant_id = :tenant_id AND v.kind = 'modal' AND v.valid_until >= :now_ms AND IN_REACH(c)",
        now_ms=now_ms,
    )
    return 0 if row is None else int(row["found"])


def viewing_over(lease_id: str) -> NotFound:
    return NotFound(
        "this live view is over: its time ran out, it was closed, or nothing was heard of it; open it again",
        reason="viewing_over",
        lease_id=lease_id,
    )


# ---------------------------------------------------------------------------------------------------------------
# What streamers ask, and the cleanup
# ---------------------------------------------------------------------------------------------------------------


async def valid_on(tx: Tx, streamer_id: str, lease_ids: tuple[str, ...], now_ms: int) -> OnStreamer:
    """The valid viewings of a streamer, and why those named are none."""
    rows = await tx.all(
        f"{_VIEWING_LOGIN} WHERE v.streamer_id = :streamer_id", streamer_id=streamer_id, now_ms=now_ms
    )
    why = {str(row["lease_id"]): _why_over(row, now_ms) for row in rows}
    return OnStreamer(
        tuple(_viewing(row) for row in rows if not why[row["lease_id"]]),
        tuple((one, why.get(one, "unknown")) for one in lease_ids if why.get(one, "unknown")),
    )


def costs_now(of_streamer: tuple[Viewing, ...]) -> dict[str, int]:
    """What each viewing of a streamer takes of the budget, by lease."""
    in_order = sorted(of_streamer, key=lambda one: (one.created_at, one.lease_id))
    held = (Held(one.kind, one.camera_key, one.quality, one.units, one.transcode_units) for one in in_order)
    return {one.lease_id: units for one, units in zip(in_order, costs(held), strict=True)}


def _why_over(row: Row, now_ms: int) -> str:
    """Why a row is no valid viewing; '' when it is one."""
    if row["valid_until"] < now_ms:
        return why_over(row["expires_at"], now_ms)
    if not row["login_works"]:
        return "session_over"
    # What somebody does not reach does not exist for them.
    return "" if row["camera_is_on"] and row["is_reached"] else "camera_gone"


async def charge_transcode(
    tx: Tx, streamer_id: str, camera_key: int, quality: Quality, policy: AdmissionPolicy, now_ms: int
) -> bool:
    """A stream that is watched must be transcoded, as its streamer finds. False: there is no room for that."""
    streamer = await streamers.lock(tx, streamer_id)
    if streamer is None:
        return False
    held, _ = await streamers.held_on(tx, streamer_id)
    extra = bears_transcode(held, camera_key, quality, policy.of_units(streamer["total_units"]))
    if extra is None:
        return False
    matched = await tx.run(
        "UPDATE modal_leases SET transcode = 1, transcode_units = :extra, feed_reason = '' "
        "WHERE streamer_id = :streamer_id "
        "AND camera_key = :camera_key AND quality = :quality AND valid_until >= :now_ms",
        extra=extra,
        streamer_id=streamer_id,
        camera_key=camera_key,
        quality=quality.value,
        now_ms=now_ms,
    )
    return matched > 0


async def forget_over(tx: Tx, now_ms: int) -> int:
    """Deletes a batch of viewings whose time is over, or whose heartbeats stopped."""
    rows = await tx.all(
        "SELECT lease_id FROM modal_leases WHERE valid_until < :now_ms ORDER BY valid_until LIMIT :batch",
        now_ms=now_ms,
        batch=BATCH,
    )
    if not rows:
        return 0
    return await tx.run(
        "DELETE FROM modal_leases WHERE lease_id IN (:lease_ids...) AND valid_until < :now_ms",
        lease_ids=[row["lease_id"] for row in rows],
        now_ms=now_ms,
    )


async def any_over(tx: Tx, now_ms: int) -> bool:
    row = await tx.one("SELECT lease_id FROM modal_leases WHERE valid_until < :now_ms LIMIT 1", now_ms=now_ms)
    return row is not None


async def not_allowed(tx: Tx, after: str, now_ms: int) -> tuple[tuple[str, ...], str]:
    """Viewings of a page whose login, grants or camera do not allow them any more, and where the next page begins.

    An empty name: there is no further page.
    """
    rows = await tx.all(
        f"{_VIEWING_LOGIN} WHERE v.lease_id > :after ORDER BY v.lease_id LIMIT :batch",
        after=after,
        batch=BATCH,
        now_ms=now_ms,
    )
    session_ids = tuple(sorted({row["session_id"] for row in rows if row["session_id"] is not None}))
    token_ids = tuple(sorted({row["token_id"] for row in rows if row["token_id"] is not None}))
    of_session = await sessions.principals(tx, session_ids, now_ms) if session_ids else {}
    of_token = await tokens.principals(tx, token_ids, now_ms) if token_ids else {}

    def is_allowed(row: Row) -> bool:
        if not row["camera_is_on"]:
            return False
        if row["session_id"] is None and row["token_id"] is None:
            return True
        found = of_session.get(row["session_id"]) or of_token.get(row["token_id"])
        return found is not None and found.may(Permission.READ) and found.reaches(row["site_now"], row["camera_key"])

    gone = tuple(str(row["lease_id"]) for row in rows if not is_allowed(row))
    return gone, str(rows[-1]["lease_id"]) if len(rows) == BATCH else ""


async def forget(tx: Tx, lease_ids: tuple[str, ...]) -> int:
    return await tx.run("DELETE FROM modal_leases WHERE lease_id IN (:lease_ids...)", lease_ids=lease_ids)


def _viewing(row: Row) -> Viewing:
    return Viewing(
        lease_id=row["lease_id"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        camera_id=row["camera_id"],
        streamer_id=row["streamer_id"],
        kind=Kind(row["kind"]),
        quality=Quality(row["quality"]),
        transcode=bool(row["transcode"]),
        units=row["units"],
        transcode_units=row["transcode_units"],
        user_id=row["user_id"],
        feed=row["feed"],
        feed_reason=row["feed_reason"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        valid_until=row["valid_until"],
        public_url=row["public_url"],
        port=row["port"],
    )


_VIEWING = """
SELECT v.*, c.camera_id, m.public_url, m.port FROM modal_leases v
JOIN cameras c ON c.camera_key = v.camera_key
JOIN streamers m ON m.streamer_id = v.streamer_id"""
_ROLES = ", ".join(f"'{role.value}'" for role in sorted(GRANTED_ROLES))
# Reached is a camera where it stands now: it may have been moved since the viewing began.
_VIEWING_LOGIN = f"""
SELECT v.*, c.camera_id, c.site_id AS site_now, m.public_url, m.port,
  CASE WHEN c.deleted_at IS NULL AND c.enabled = 1 AND c.do_not_process = 0 THEN 1 ELSE 0 END AS camera_is_on,
  CASE WHEN (v.session_id IS NULL AND v.token_id IS NULL) OR (u.disabled = 0 AND (s.expires_at > :now_ms
    OR (t.expires_at > :now_ms AND t.revoked_at IS NULL))) THEN 1 ELSE 0 END AS login_works,
  CASE WHEN u.granted_only = 1 AND u.role IN ({_ROLES}) AND NOT EXISTS (SELECT 1 FROM grants g
    WHERE g.user_id = u.user_id AND (g.site_id = c.site_id OR g.camera_key = v.camera_key))
    THEN 0 ELSE 1 END AS is_reached
FROM modal_leases v
JOIN cameras c ON c.camera_key = v.camera_key
JOIN streamers m ON m.streamer_id = v.streamer_id
LEFT JOIN sessions s ON s.session_id = v.session_id
LEFT JOIN api_tokens t ON t.token_id = v.token_id
LEFT JOIN users u ON u.user_id = COALESCE(s.user_id, t.user_id)"""
