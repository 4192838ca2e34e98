"""Snoozes: silence for a while, for a site, a camera, a receiver, or everything.

Somebody who reaches only some sites can be silent only about a site or camera of theirs.
"""

from dataclasses import dataclass

import uuid_utils

from camserver.base.errors import BadInput, Conflict, Forbidden, NotFound
from camserver.domain.routing import Snooze
from camserver.store import audit, tenants
from camserver.store.cameras import missing
from camserver.store.tx import Row, Scoped, Tx

SNOOZES_MAX = 500


@dataclass(frozen=True, slots=True)
class NewSnooze:
    until: int
    site: str | None = None  # name or uuid
    camera_id: str | None = None
    receiver: str | None = None  # uuid
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SnoozeSummary:
    snooze_uuid: str
    site: str | None
    camera_id: str | None
    receiver: str | None  # uuid
    receiver_name: str | None
    until: int
    reason: str
    by: str | None  # login
    created_at: int


async def listed(tx: Scoped, now_ms: int) -> tuple[SnoozeSummary, ...]:
    """Those that hold, the one that ends first first."""
    rows = await tx.all(
        f"{_SNOOZES} AND z.until > :now_ms ORDER BY z.until, z.snooze_id LIMIT {SNOOZES_MAX}",
        now_ms=now_ms,
    )
    return tuple(_summary(row) for row in rows)


async def add(tx: Scoped, new: NewSnooze, address: str, now_ms: int) -> SnoozeSummary:
    if new.until <= now_ms:
        raise BadInput("the snooze would end before it begins; name a time to come", reason="snooze_over")
    site_id, camera_key = await _place(tx, new)
    receiver_id = await _receiver(tx, new.receiver)
    held = await tx.one(
        "SELECT COUNT(*) AS found FROM snoozes WHERE tenant_id = :tenant_id AND until > :now_ms", now_ms=now_ms
    )
    if held is not None and held["found"] >= SNOOZES_MAX:
        raise Conflict(
            f"there are {SNOOZES_MAX} snoozes already; end some first", reason="snoozes_full", most=SNOOZES_MAX
        )
    snooze_uuid = str(uuid_utils.uuid7())
    await tx.run(
        _INSERT,
        snooze_uuid=snooze_uuid,
        site_id=site_id,
        camera_key=camera_key,
        receiver_id=receiver_id,
        until=new.until,
        reason=new.reason,
        user_id=tx.principal.user_id,
        now_ms=now_ms,
    )
    row = await tx.one(f"{_SNOOZES} AND z.snooze_uuid = :snooze_uuid", snooze_uuid=snooze_uuid)
    assert row is not None
    await audit.add_own(tx, audit.Entry("snoozed", now_ms, address, "snooze", snooze_uuid, _told(row)))
    return _summary(row)


async def end(tx: Scoped, snooze_uuid: str, address: str, now_ms: int) -> None:
    """Ends it now. The row stays until retention takes it."""
    row = await tx.one(f"{_SNOOZES} AND z.snooze_uuid = :snooze_uuid", snooze_uuid=snooze_uuid)
    if row is None:
        raise NotFound(f"there is no snooze {snooze_uuid}; list them anew", reason="no_snooze")
    _refuse_beyond_reach(tx, row["site_id"])
    await tx.run(
        "UPDATE snoozes SET until = :now_ms WHERE tenant_id = :tenant_id AND snooze_uuid = :snooze_uuid "
        "AND until > :now_ms",
        now_ms=now_ms,
        snooze_uuid=snooze_uuid,
    )
    await audit.add_own(tx, audit.Entry("snooze_ended", now_ms, address, "snooze", snooze_uuid, _told(row)))


def _told(row: Row) -> dict[str, str | int]:
    """For the log: what is silent, and until when. What is not named does not narrow it."""
    return {
        "until": row["until"],
        "camera_id": row["camera_id"] or "",
        "site": row["site"] or "",
        "receiver": row["receiver_name"] or "",
        "reason": row["reason"],
    }


async def active(tx: Tx, tenant_id: int, now_ms: int) -> tuple[Snooze, ...]:
    """Those that hold, as routing reads them. A camera's snooze is about the camera, wherever it stands now."""
    rows = await tx.all(
        f"""
        SELECT site_id, camera_key, receiver_id, until FROM snoozes
        WHERE tenant_id = :tenant_id AND until > :now_ms ORDER BY snooze_id LIMIT {SNOOZES_MAX}""",
        tenant_id=tenant_id,
        now_ms=now_ms,
    )
    return tuple(
        Snooze(row["until"], None if row["camera_key"] else row["site_id"], row["camera_key"], row["receiver_id"])
        for row in rows
    )


async def _place(tx: Scoped, new: NewSnooze) -> tuple[int | None, int | None]:
    """Site and camera; the camera's site is kept with it, for who may see it."""
    if new.camera_id is not None:
        row = await tx.one(
            "SELECT camera_key, site_id FROM cameras c WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL "
            "AND c.camera_id = :camera_id AND IN_REACH(c)",
            camera_id=new.camera_id,
        )
        if row is None:
            raise missing(new.camera_id)
        return row["site_id"], row["camera_key"]
    if new.site is not None:
        return (await tenants.find_site(tx, new.site)).site_id, None
    _refuse_beyond_reach(tx, None)
    return None, None


def _refuse_beyond_reach(tx: Scoped, site_id: int | None) -> None:
    if site_id is None and tx.principal.site_ids is not None:
        raise Forbidden(
            "this would silence sites you do not reach; name a site or camera of yours", reason="all_sites"
        )


async def _receiver(tx: Scoped, receiver_uuid: str | None) -> int | None:
    if receiver_uuid is None:
        return None
    row = await tx.one(
        "SELECT receiver_id FROM receivers WHERE tenant_id = :tenant_id AND receiver_uuid = :receiver_uuid",
        receiver_uuid=receiver_uuid,
    )
    if row is None:
        raise NotFound(f"there is no receiver {receiver_uuid}; list them anew", reason="no_receiver")
    return int(row["receiver_id"])


def _summary(row: Row) -> SnoozeSummary:
    return SnoozeSummary(
        snooze_uuid=row["snooze_uuid"],
        site=row["site"],
        camera_id=row["camera_id"],
        receiver=row["receiver_uuid"],
        receiver_name=row["receiver_name"],
        until=row["until"],
        reason=row["reason"],
        by=row["login"],
        created_at=row["created_at"],
    )


# One about everything is shown to everybody: it holds back what is theirs, too.
_SNOOZES = """
SELECT z.snooze_id, z.snooze_uuid, z.site_id, z.until, z.reason, z.created_at, s.name AS site, c.camera_id,
  r.receiver_uuid, r.name AS receiver_name, COALESCE(u.login, g.login) AS login
FROM snoozes z
LEFT JOIN sites s ON s.site_id = z.site_id
LEFT JOIN cameras c ON c.camera_key = z.camera_key
LEFT JOIN receivers r ON r.receiver_id = z.receiver_id
LEFT JOIN users u ON u.user_id = z.user_id
LEFT JOIN removed_users g ON g.user_id = z.user_id
WHERE z.tenant_id = :tenant_id AND (z.site_id IS NULL OR IN_REACH(z))"""
_INSERT = """
INSERT INTO snoozes (snooze_uuid, tenant_id, site_id, camera_key, receiver_id, until, reason, user_id, created_at)
VALUES (:snooze_uuid, :tenant_id, :site_id, :camera_key, :receiver_id, :until, :reason, :user_id, :now_ms)"""
