"""Leases: who holds a camera. One row a camera in `camera_sessions`, the history in `camera_leases`.

What holds after every transaction:
- `generation` only grows, and a camera has at most one row of history without `ended_at`: the one of its current
  generation, and only while `camera_sessions.worker_key` names its holder.
- A holder keeps its generation until somebody takes the camera: an expired lease is ORPHANED, not ended, and its
  last holder may still renew it (decision 36).
- Spans of one camera do not overlap: a new one begins where the one before ended, or later.

Rows are locked in one order, `camera_leases` before `camera_sessions`, as recording a look does too.
"""

import json
from dataclasses import dataclass

import uuid_utils

from camserver.domain.assignment_types import NO_LOAD, Load
from camserver.domain.leases import SessionState
from camserver.store.sql import Sql
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
class Renewal:
    """What became of the leases a worker asked for."""

    renewed: tuple[tuple[str, int], ...]  # camera_id, generation
    lost: tuple[tuple[str, int, str], ...]  # and why


@dataclass(frozen=True, slots=True)
class Reclaimed:
    camera_key: int
    tenant_id: int
    site_id: int
    worker_key: int
    generation: int


def new_intent_id() -> str:
    return str(uuid_utils.uuid7())


async def take(tx: Tx, want: Want, ttl_ms: int, now_ms: int) -> Lease | None:
    """Gives a free camera to a worker under the next generation. None: somebody was first, or it is not free."""
    generation = want.expected_generation
    before = await tx.one(
        """
        SELECT granted_at, ended_at FROM camera_leases
        WHERE camera_key = :camera_key AND generation = :generation FOR UPDATE""",
        camera_key=want.camera_key,
        generation=generation,
    )
    granted_at = now_ms if before is None else max(now_ms, before["granted_at"], before["ended_at"] or 0)
    intent_id = new_intent_id()
    taken = await tx.run(
        _TAKE,
        camera_key=want.camera_key,
        worker_key=want.worker_key,
        expected=generation,
        intent_id=intent_id,
        now_ms=now_ms,
        granted_at=granted_at,
        expires_at=now_ms + ttl_ms,
        load_cpu=want.load.cpu,
        load_gpu=want.load.gpu,
        load_mem=want.load.mem,
    )
    if not taken:
        return None
    await end_span(tx, want.camera_key, generation, "taken", granted_at)
    session = await tx.one(
        """
        SELECT s.tenant_id, s.site_id, c.camera_id
        FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
        WHERE s.camera_key = :camera_key""",
        camera_key=want.camera_key,
    )
    assert session is not None
    await tx.run(
        """
        INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at)
        VALUES (:camera_key, :generation, :tenant_id, :worker_key, :granted_at)""",
        camera_key=want.camera_key,
        generation=generation + 1,
        tenant_id=session["tenant_id"],
        worker_key=want.worker_key,
        granted_at=granted_at,
    )
    changed(tx, want.camera_key, session, now_ms)
    return Lease(
        want.camera_key,
        session["tenant_id"],
        session["site_id"],
        want.worker_key,
        generation + 1,
        granted_at,
        now_ms + ttl_ms,
        intent_id,
        session["camera_id"],
    )


async def take_all(tx: Tx, wants: tuple[Want, ...], ttl_ms: int, now_ms: int) -> tuple[Lease, ...]:
    """Takes what is still free of these, in the order of the cameras so that two callers don't deadlock."""
    ordered = sorted(wants, key=lambda want: want.camera_key)
    room = await _room_in_quotas(tx, [want.camera_key for want in ordered])
    leases = []
    for want in ordered:
        tenant_id = room.tenants.get(want.camera_key)
        if tenant_id is not None and room.left[tenant_id] <= 0:
            continue
        lease = await take(tx, want, ttl_ms, now_ms)
        if lease is not None:
            leases.append(lease)
            if tenant_id is not None:
                room.left[tenant_id] -= 1
    return tuple(leases)


@dataclass(frozen=True, slots=True)
class _QuotaRoom:
    tenants: dict[int, int]  # camera_key → tenant, of those with a quota
    left: dict[int, int]  # tenant → cameras that may be taken


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


async def renew(
    tx: Tx, tenant_id: int, worker_key: int, held: tuple[tuple[str, int], ...], ttl_ms: int, now_ms: int
) -> Renewal:
    """Renews all of a worker's leases with one statement; a second one tells which.

    A lease that ran out and was not taken is as good as new: its holder never stopped being the last one.
    """
    if not held:
        return Renewal((), ())
    await tx.run(
        _RENEW,
        tenant_id=tenant_id,
        worker_key=worker_key,
        expires_at=now_ms + ttl_ms,
        now_ms=now_ms,
        held=json.dumps(held),
        camera_ids=[camera_id for camera_id, _ in held],
        generations=[generation for _, generation in held],
    )
    rows = await tx.all(
        """
        SELECT c.camera_id, s.generation, s.worker_key
        FROM cameras c JOIN camera_sessions s ON s.camera_key = c.camera_key
        WHERE c.tenant_id = :tenant_id AND c.camera_id IN (:camera_ids...)""",
        tenant_id=tenant_id,
        camera_ids=sorted({camera_id for camera_id, _ in held}),
    )
    sessions = {row["camera_id"]: row for row in rows}
    reasons = [(lease, _why_lost(sessions.get(lease[0]), lease[1], worker_key)) for lease in held]
    return Renewal(
        tuple(lease for lease, reason in reasons if reason is None),
        tuple((*lease, reason) for lease, reason in reasons if reason is not None),
    )


def _why_lost(session: Row | None, generation: int, worker_key: int) -> str | None:
    """None when it is not lost."""
    if session is None:
        return "unknown_camera"
    if session["generation"] != generation:
        return "superseded"
    if session["worker_key"] is None:
        return "released"
    return None if session["worker_key"] == worker_key else "not_holder"


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
    # Two control processes may differ by some milliseconds; a span never ends before it began.
    await tx.run(
        """
        UPDATE camera_leases SET end_reason = :reason,
          ended_at = CASE WHEN granted_at > :now_ms THEN granted_at ELSE :now_ms END
        WHERE camera_key = :camera_key AND generation = :generation AND ended_at IS NULL""",
        camera_key=camera_key,
        generation=generation,
        reason=reason[:32],
        now_ms=now_ms,
    )


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
  AND EXISTS (SELECT 1 FROM cameras c WHERE c.camera_key = :camera_key AND c.enabled = 1
    AND (c.pinned_worker_key IS NULL OR c.pinned_worker_key = :worker_key))
  AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_key = :worker_key AND w.drain_wanted = 1)"""

# MariaDB assigns from left to right, so `state` comes after what is made from its old value.
_RENEWED_COLUMNS = """lease_expires_at = :expires_at, updated_at = :now_ms,
  reason = CASE WHEN s.state = 'ORPHANED' THEN '' ELSE s.reason END,
  state = CASE WHEN s.state <> 'ORPHANED' THEN s.state WHEN s.ready_at IS NOT NULL THEN 'ACTIVE' ELSE 'PENDING' END"""
_RENEW = Sql(
    postgres=f"""
UPDATE camera_sessions AS s SET {_RENEWED_COLUMNS}
FROM unnest(:camera_ids::text[], :generations::bigint[]) AS h(camera_id, generation)
JOIN cameras c ON c.camera_id = h.camera_id AND c.tenant_id = :tenant_id
WHERE s.camera_key = c.camera_key AND s.generation = h.generation AND s.worker_key = :worker_key""",
    sqlite=f"""
UPDATE camera_sessions AS s SET {_RENEWED_COLUMNS}
FROM json_each(:held) AS h JOIN cameras c ON c.camera_id = h.value ->> 0 AND c.tenant_id = :tenant_id
WHERE s.camera_key = c.camera_key AND s.generation = h.value ->> 1 AND s.worker_key = :worker_key""",
    mariadb=f"""
UPDATE camera_sessions AS s JOIN (
  SELECT c.camera_key, j.generation
  FROM JSON_TABLE(:held, '$[*]' COLUMNS (
    camera_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[0]', generation BIGINT PATH '$[1]'
  )) AS j JOIN cameras c ON c.camera_id = j.camera_id AND c.tenant_id = :tenant_id
) AS h ON h.camera_key = s.camera_key AND h.generation = s.generation
SET {_RENEWED_COLUMNS}
WHERE s.worker_key = :worker_key""",
)
