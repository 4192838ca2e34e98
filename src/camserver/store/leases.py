"""Leases: who holds a camera. One row a camera in `camera_sessions`, the history in `camera_leases`.

What holds after every transaction:
- `generation` only grows, and a camera has at most one row of history without `ended_at`: the one of its current
  generation, and only while `camera_sessions.worker_key` names its holder.
- A holder keeps its generation until somebody takes the camera: an expired lease is ORPHANED, not ended, and its
  last holder may still renew it (decision 36).
- Spans of one camera do not overlap: a new one begins where the one before ended, or later.

Rows are locked in one order, `camera_leases` before `camera_sessions`, as recording a look does too. Renewing them is
in `renewals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import uuid_utils

from camserver.domain.assignment_types import NO_LOAD, Load
from camserver.domain.leases import SessionState
from camserver.store.tx import Row, Tx

# A pass handles so many and leaves the rest to the next one.
BATCH_MAX = 500
NEVER_MS = 2**62


@dataclass(frozen=True, slots=True)
class Want:
    """A camera for a worker. Taken only when the camera's generation is still the one that was seen."""

    camera_key: int
    worker_key: int
    expected_generation: int
    load: Load = NO_LOAD  # what it will cost the worker


@dataclass(frozen=True, slots=True)
class Lease:
    camera_key: int
    tenant_id: int
    site_id: int
    worker_key: int
    generation: int
    granted_at: int
    expires_at: int
    intent_id: str
    camera_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker says of a camera: that it holds it at this generation. Every operation checks it."""

    tenant_id: int
    worker_key: int
    camera_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Reclaimed:
    camera_key: int
    tenant_id: int
    site_id: int
    worker_key: int
    generation: int


def new_intent_id() -> str:
    return str(uuid_utils.uuid7())


async def take_all(tx: Tx, wants: tuple[Want, ...], ttl_ms: int, now_ms: int) -> tuple[Lease, ...]:
    """Gives free cameras to workers, each under its next generation, with a few statements for all of them.

    Those that somebody else took first, or that are not free, are left out. In the order of the cameras, so that two
    callers don't deadlock.
    """
    ordered = sorted({want.camera_key: want for want in wants}.values(), key=lambda want: want.camera_key)
    room = await _room_in_quotas(tx, [want.camera_key for want in ordered])
    tries = await _tries(tx, [want for want in ordered if room.admits(want.camera_key)], now_ms)
    if not tries:
        return ()
    await tx.many(_TAKE, [_take_values(one, ttl_ms, now_ms) for one in tries])
    rows = await tx.all(
        """
        SELECT s.camera_key, s.tenant_id, s.site_id, s.intent_id, c.camera_id
        FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
        WHERE s.camera_key IN (:camera_keys...)""",
        camera_keys=[one.want.camera_key for one in tries],
    )
    sessions = {row["camera_key"]: row for row in rows}
    # A session that has the intent made for it here is the one that was taken.
    intents = {camera_key: row["intent_id"] for camera_key, row in sessions.items()}
    taken = [one for one in tries if intents.get(one.want.camera_key) == one.intent_id]
    await tx.many(_END_SPAN, [_span_end(one) for one in taken])
    leases = tuple(_lease(one, sessions[one.want.camera_key], now_ms + ttl_ms) for one in taken)
    await tx.many(_BEGIN_SPAN, [_span_begin(lease) for lease in leases])
    for lease in leases:
        changed(tx, lease.camera_key, sessions[lease.camera_key], now_ms)
    return leases


@dataclass(frozen=True, slots=True)
class _Try:
    want: Want
    intent_id: str
    granted_at: int


async def _tries(tx: Tx, wants: list[Want], now_ms: int) -> list[_Try]:
    """Locks the spans that would end, and finds where the next ones begin."""
    if not wants:
        return []
    rows = await tx.all(
        """
        SELECT camera_key, generation, granted_at, ended_at FROM camera_leases
        WHERE camera_key IN (:camera_keys...) AND generation IN (:generations...)
        ORDER BY camera_key, generation FOR UPDATE""",
        camera_keys=[want.camera_key for want in wants],
        generations=sorted({want.expected_generation for want in wants}),
    )
    over = {
        (row["camera_key"], row["generation"]): max(row["granted_at"], row["ended_at"] or 0, now_ms) for row in rows
    }
    return [
        _Try(want, new_intent_id(), over.get((want.camera_key, want.expected_generation), now_ms)) for want in wants
    ]


def _take_values(one: _Try, ttl_ms: int, now_ms: int) -> dict[str, object]:
    want = one.want
    return {
        "camera_key": want.camera_key,
        "worker_key": want.worker_key,
        "expected": want.expected_generation,
        "intent_id": one.intent_id,
        "now_ms": now_ms,
        "granted_at": one.granted_at,
        "expires_at": now_ms + ttl_ms,
        "load_cpu": want.load.cpu,
        "load_gpu": want.load.gpu,
        "load_mem": want.load.mem,
    }


def _lease(one: _Try, session: Row, expires_at: int) -> Lease:
    return Lease(
        one.want.camera_key,
        session["tenant_id"],
        session["site_id"],
        one.want.worker_key,
        one.want.expected_generation + 1,
        one.granted_at,
        expires_at,
        one.intent_id,
        session["camera_id"],
    )


def _span_end(one: _Try) -> dict[str, object]:
    return {
        "camera_key": one.want.camera_key,
        "generation": one.want.expected_generation,
        "reason": "taken",
        "now_ms": one.granted_at,
    }


def _span_begin(lease: Lease) -> dict[str, object]:
    return {
        "camera_key": lease.camera_key,
        "generation": lease.generation,
        "tenant_id": lease.tenant_id,
        "worker_key": lease.worker_key,
        "granted_at": lease.granted_at,
    }


@dataclass(frozen=True, slots=True)
class _QuotaRoom:
    tenants: dict[int, int]  # camera_key → tenant, of those with a quota
    left: dict[int, int]  # tenant → cameras that may be taken

    def admits(self, camera_key: int) -> bool:
        """Whether this camera may be taken, too; it counts from then on, taken or not."""
        tenant_id = self.tenants.get(camera_key)
        if tenant_id is None:
            return True
        self.left[tenant_id] -= 1
        return self.left[tenant_id] >= 0


async def _room_in_quotas(tx: Tx, camera_keys: list[int]) -> _QuotaRoom:
    """Locks the tenants that have a quota, so that several processes together don't exceed it."""
    rows = await tx.all(
        """
        SELECT tenant_id, cameras_running_max FROM tenants
        WHERE cameras_running_max IS NOT NULL AND tenant_id IN
          (SELECT s.tenant_id FROM camera_sessions s WHERE s.camera_key IN (:camera_keys...))
        ORDER BY tenant_id FOR UPDATE""",
        camera_keys=camera_keys or [0],
    )
    if not rows:
        return _QuotaRoom({}, {})
    most = {row["tenant_id"]: row["cameras_running_max"] for row in rows}
    running = await tx.all(
        """
        SELECT tenant_id, count(*) AS running FROM camera_sessions
        WHERE tenant_id IN (:tenant_ids...) AND worker_key IS NOT NULL AND state <> 'ORPHANED'
        GROUP BY tenant_id""",
        tenant_ids=sorted(most),
    )
    used = {row["tenant_id"]: row["running"] for row in running}
    wanted = await tx.all(
        """
        SELECT camera_key, tenant_id FROM camera_sessions
        WHERE camera_key IN (:camera_keys...) AND tenant_id IN (:tenant_ids...)""",
        camera_keys=camera_keys,
        tenant_ids=sorted(most),
    )
    left = {tenant_id: limit - used.get(tenant_id, 0) for tenant_id, limit in most.items()}
    return _QuotaRoom({row["camera_key"]: row["tenant_id"] for row in wanted}, left)


async def release(tx: Tx, claim: Claim, reason: str, now_ms: int, gate_state: bytes | None = None) -> bool:
    """The holder gives the camera back, and what its gate had learned. False when it was not its to give."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    if gate_state is not None:
        await tx.run(
            "UPDATE camera_state SET gate_state = :gate_state WHERE camera_key = :camera_key",
            camera_key=session["camera_key"],
            gate_state=gate_state,
        )
    await let_go(tx, session, SessionState.ORPHANED, reason, now_ms)
    return True


async def let_go(tx: Tx, session: Row, state: SessionState, reason: str, now_ms: int) -> None:
    """Ends a lease: nobody holds the camera from now on. `session` comes from `claimed` or is locked likewise."""
    if not session["enabled"]:
        state = SessionState.TERMINATED
    camera_key = session["camera_key"]
    await end_span(tx, camera_key, session["generation"], reason, now_ms)
    await tx.run(
        """
        UPDATE camera_sessions SET worker_key = NULL, state = :state, reason = :reason, lease_expires_at = NULL,
          intent_id = NULL, start_sent_at = NULL, acked_at = NULL, ready_at = NULL, stop_wanted = 0,
          updated_at = :now_ms
        WHERE camera_key = :camera_key""",
        camera_key=camera_key,
        state=state.value,
        reason=reason[:255],
        now_ms=now_ms,
    )
    changed(tx, camera_key, session, now_ms)


async def claimed(tx: Tx, claim: Claim) -> Row | None:
    """The session a worker speaks of, locked together with its lease; None when it is not the holder."""
    camera = await tx.one(
        "SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        tenant_id=claim.tenant_id,
        camera_id=claim.camera_id,
    )
    if camera is None:
        return None
    session = await locked(tx, camera["camera_key"], claim.generation)
    return session if session is not None and session["worker_key"] == claim.worker_key else None


async def claimed_all(tx: Tx, claims: Sequence[Claim]) -> dict[Claim, Row]:
    """`claimed` for several claims, locked in the order of the cameras; those that don't hold are left out."""
    rows = await tx.all(
        """
        SELECT camera_key, tenant_id, camera_id FROM cameras
        WHERE tenant_id IN (:tenant_ids...) AND camera_id IN (:camera_ids...)""",
        tenant_ids=sorted({claim.tenant_id for claim in claims}),
        camera_ids=sorted({claim.camera_id for claim in claims}),
    )
    keys = {(row["tenant_id"], row["camera_id"]): row["camera_key"] for row in rows}
    camera_keys = sorted({keys[pair] for claim in claims if (pair := (claim.tenant_id, claim.camera_id)) in keys})
    if not camera_keys:
        return {}
    await tx.all(
        """
        SELECT generation FROM camera_leases WHERE camera_key IN (:camera_keys...) AND generation IN (:generations...)
        ORDER BY camera_key, generation FOR UPDATE""",
        camera_keys=camera_keys,
        generations=sorted({claim.generation for claim in claims}),
    )
    found = await tx.all(
        """
        SELECT camera_key, tenant_id, site_id, worker_key, generation, state FROM camera_sessions
        WHERE camera_key IN (:camera_keys...) ORDER BY camera_key FOR UPDATE""",
        camera_keys=camera_keys,
    )
    sessions = {(row["camera_key"], row["worker_key"], row["generation"]): row for row in found}
    named = {
        claim: (keys.get((claim.tenant_id, claim.camera_id)), claim.worker_key, claim.generation) for claim in claims
    }
    return {claim: sessions[name] for claim, name in named.items() if name in sessions}


async def locked(tx: Tx, camera_key: int, generation: int) -> Row | None:
    """A camera's session, locked, when it is still at that generation."""
    await tx.one(
        """
        SELECT generation FROM camera_leases
        WHERE camera_key = :camera_key AND generation = :generation FOR UPDATE""",
        camera_key=camera_key,
        generation=generation,
    )
    await tx.one(
        "SELECT generation FROM camera_sessions WHERE camera_key = :camera_key FOR UPDATE",
        camera_key=camera_key,
    )
    return await tx.one(
        """
        SELECT s.*, c.camera_id, c.enabled FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
        WHERE s.camera_key = :camera_key AND s.generation = :generation""",
        camera_key=camera_key,
        generation=generation,
    )


async def end_span(tx: Tx, camera_key: int, generation: int, reason: str, now_ms: int) -> None:
    await tx.run(_END_SPAN, camera_key=camera_key, generation=generation, reason=reason[:32], now_ms=now_ms)


async def reclaim(tx: Tx, now_ms: int, overlong_after: int | None = None) -> tuple[Reclaimed, ...]:
    """Marks expired leases ORPHANED, free to be taken. Whether it is time to is the caller's to know.

    With `overlong_after` also those that would hold beyond it: longer than any is given, since a clock was set back.
    """
    rows = await tx.all(
        """
        SELECT camera_key, tenant_id, site_id, worker_key, generation FROM camera_sessions
        WHERE worker_key IS NOT NULL AND state <> 'ORPHANED'
          AND (lease_expires_at < :now_ms OR lease_expires_at > :overlong_after)
        ORDER BY camera_key LIMIT :batch_max FOR UPDATE SKIP LOCKED""",
        now_ms=now_ms,
        overlong_after=NEVER_MS if overlong_after is None else overlong_after,
        batch_max=BATCH_MAX,
    )
    if not rows:
        return ()
    await tx.run(
        """
        UPDATE camera_sessions SET state = 'ORPHANED', reason = 'lease expired', updated_at = :now_ms,
          lease_expires_at = CASE WHEN lease_expires_at < :now_ms THEN lease_expires_at ELSE :now_ms END
        WHERE camera_key IN (:camera_keys...)""",
        camera_keys=[row["camera_key"] for row in rows],
        now_ms=now_ms,
    )
    for row in rows:
        changed(tx, row["camera_key"], row, now_ms)
    return tuple(
        Reclaimed(row["camera_key"], row["tenant_id"], row["site_id"], row["worker_key"], row["generation"])
        for row in rows
    )


def changed(tx: Tx, camera_key: int, session: Row, now_ms: int) -> None:
    tx.changed(
        tenant_id=session["tenant_id"],
        kind="session",
        at_ms=now_ms,
        site_id=session["site_id"],
        camera_key=camera_key,
    )


_TAKE = """
UPDATE camera_sessions SET worker_key = :worker_key, generation = generation + 1, state = 'PENDING',
  lease_expires_at = :expires_at, reason = '', intent_id = :intent_id, start_sent_at = NULL, acked_at = NULL,
  ready_at = NULL, stop_wanted = 0, wanted_worker_key = NULL, load_cpu = :load_cpu, load_gpu = :load_gpu,
  load_mem = :load_mem, updated_at = :granted_at
WHERE camera_key = :camera_key AND generation = :expected
  AND (worker_key IS NULL OR (state = 'ORPHANED' AND lease_expires_at <= :now_ms))
  AND (next_attempt_at IS NULL OR next_attempt_at <= :now_ms)
  AND EXISTS (SELECT 1 FROM cameras c JOIN tenants n ON n.tenant_id = c.tenant_id AND n.disabled = 0
    WHERE c.camera_key = :camera_key AND c.enabled = 1
    AND (c.pinned_worker_key IS NULL OR c.pinned_worker_key = :worker_key))
  AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_key = :worker_key AND w.drain_wanted = 1)"""

_BEGIN_SPAN = """
INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at)
VALUES (:camera_key, :generation, :tenant_id, :worker_key, :granted_at)"""
# Two control processes may differ by some milliseconds; a span never ends before it began.
_END_SPAN = """
UPDATE camera_leases SET end_reason = :reason,
  ended_at = CASE WHEN granted_at > :now_ms THEN granted_at ELSE :now_ms END
WHERE camera_key = :camera_key AND generation = :generation AND ended_at IS NULL"""
