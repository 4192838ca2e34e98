"""Leases as people see and end them: who holds each camera, until when; and taking one back by hand.

Everything is held to the principal's tenant and sites, and a reclaim is written into the audit log. What control does
by itself (taking, renewing, reclaiming what ran out) is in `leases`.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from camserver.domain.leases import SessionState
from camserver.store import audit
from camserver.store.camera_changes import locked
from camserver.store.cameras import missing
from camserver.store.leases import new_intent_id
from camserver.store.tx import Row, Scoped

PAGE_MAX = 500
BY_HAND = "reclaimed by hand"

# free: nobody held it. stopping: its worker was asked to flush and let go. reclaimed: its lease ran out.
Outcome: TypeAlias = Literal["free", "stopping", "reclaimed"]


@dataclass(frozen=True, slots=True)
class LeaseSummary:
    camera_id: str
    site: str
    worker_id: str | None  # who holds it, or held it until it ran out
    generation: int
    state: str
    reason: str
    granted_at: int | None
    expires_at: int | None
    left_ms: int | None  # until it runs out; 0: it has
    is_holder_connected: bool
    is_orphaned_soon: bool  # its worker is away, and it runs out unless the worker comes back
    is_stopping: bool
    failures: int
    auth_failures: int
    next_attempt_at: int | None


async def page(tx: Scoped, after: str, limit: int, now_ms: int) -> tuple[LeaseSummary, ...]:
    """The leases of all cameras within reach in the order of their ids, from behind `after`; also of free ones."""
    rows = await tx.all(
        f"{_LEASES} AND c.camera_id > :after ORDER BY c.camera_id LIMIT :limit",
        after=after,
        limit=min(limit, PAGE_MAX),
    )
    return tuple(_summary(row, now_ms) for row in rows)


async def get(tx: Scoped, camera_id: str, now_ms: int) -> LeaseSummary:
    row = await tx.one(f"{_LEASES} AND c.camera_id = :camera_id", camera_id=camera_id)
    if row is None:
        raise missing(camera_id)
    return _summary(row, now_ms)


def _summary(row: Row, now_ms: int) -> LeaseSummary:
    is_held = row["worker_id"] is not None
    expires_at = row["lease_expires_at"] if is_held else None
    is_connected = row["connected_epoch"] is not None
    left_ms = None if expires_at is None else max(expires_at - now_ms, 0)
    return LeaseSummary(
        camera_id=row["camera_id"],
        site=row["site"],
        worker_id=row["worker_id"],
        generation=row["generation"] or 0,
        state=row["state"] or SessionState.PENDING.value,
        reason=row["reason"] or "",
        granted_at=row["granted_at"] if is_held else None,
        expires_at=expires_at,
        left_ms=left_ms,
        is_holder_connected=is_held and is_connected,
        is_orphaned_soon=is_held and not is_connected and bool(left_ms),
        is_stopping=bool(row["stop_wanted"]),
        failures=row["failures"] or 0,
        auth_failures=row["auth_failures"] or 0,
        next_attempt_at=row["next_attempt_at"],
    )


async def reclaim(tx: Scoped, camera_id: str, force: bool, address: str, now_ms: int) -> Outcome:
    """Takes a camera back from its holder, so that it is given out anew, to another worker where there is one.

    A holder that is connected is asked to stop first, as in any handover. With `force`, or when it is away, its lease
    runs out now: whoever is given the camera next gets it under the next generation, and until then its last holder
    may still renew it.
    """
    camera = await locked(tx, camera_id)
    held = await tx.one(_HOLDER, camera_key=camera["camera_key"])
    if held is None:
        return "free"
    is_soft = held["connected_epoch"] is not None and not force
    if is_soft and held["stop_wanted"]:
        return "stopping"
    await tx.run(
        _WANT_STOP if is_soft else _RUN_OUT,
        camera_key=camera["camera_key"],
        generation=held["generation"],
        worker_key=held["worker_key"],
        intent_id=new_intent_id(),
        reason=BY_HAND,
        now_ms=now_ms,
    )
    outcome: Outcome = "stopping" if is_soft else "reclaimed"
    details = {"worker_id": held["worker_id"], "generation": held["generation"], "outcome": outcome}
    await audit.add_own(tx, audit.Entry("lease_reclaimed", now_ms, address, "camera", camera_id, details))
    tx.changed(kind="session", at_ms=now_ms, site_id=camera["site_id"], camera_key=camera["camera_key"])
    return outcome


_LEASES = """
SELECT c.camera_id, i.name AS site, w.worker_id, w.connected_epoch, s.generation, s.state, s.reason, l.granted_at,
  s.lease_expires_at, s.stop_wanted, s.failures, s.auth_failures, s.next_attempt_at
FROM cameras c JOIN sites i ON i.site_id = c.site_id
LEFT JOIN camera_sessions s ON s.camera_key = c.camera_key
LEFT JOIN camera_leases l ON l.camera_key = s.camera_key AND l.generation = s.generation
LEFT JOIN workers w ON w.worker_key = s.worker_key
WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c)"""

_HOLDER = """
SELECT s.generation, s.worker_key, s.stop_wanted, w.worker_id, w.connected_epoch
FROM camera_sessions s JOIN workers w ON w.worker_key = s.worker_key
WHERE s.tenant_id = :tenant_id AND s.camera_key = :camera_key"""
_THAT_ONE = """WHERE tenant_id = :tenant_id AND camera_key = :camera_key AND generation = :generation
  AND worker_key = :worker_key"""
_WANT_STOP = f"""
UPDATE camera_sessions SET stop_wanted = 1, intent_id = :intent_id, acked_at = NULL, start_sent_at = NULL,
  avoid_worker_key = :worker_key, reason = :reason, updated_at = :now_ms
{_THAT_ONE}"""
_RUN_OUT = f"""
UPDATE camera_sessions SET state = 'ORPHANED', reason = :reason, avoid_worker_key = :worker_key,
  lease_expires_at = CASE WHEN lease_expires_at < :now_ms THEN lease_expires_at ELSE :now_ms END,
  updated_at = :now_ms
{_THAT_ONE}"""
