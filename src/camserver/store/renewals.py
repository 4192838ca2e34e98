"""Renewing leases: of one worker, or of many that spoke within the same moment (decision 36)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class Holding:
    """What a worker says it holds."""

    tenant_id: int
    worker_key: int
    held: tuple[tuple[str, int], ...]  # camera_id, generation


@dataclass(frozen=True, slots=True)
class Renewal:
    """What became of the leases a worker asked for."""

    renewed: tuple[tuple[str, int], ...]  # camera_id, generation
    lost: tuple[tuple[str, int, str], ...]  # and why


async def renew(
    tx: Tx, tenant_id: int, worker_key: int, held: tuple[tuple[str, int], ...], ttl_ms: int, now_ms: int
) -> Renewal:
    """Renews a worker's leases."""
    (renewal,) = await renew_all(tx, (Holding(tenant_id, worker_key, held),), ttl_ms, now_ms)
    return renewal


async def renew_all(tx: Tx, holdings: Sequence[Holding], ttl_ms: int, now_ms: int) -> tuple[Renewal, ...]:
    """Renews all leases of several workers with one statement; only when some are lost a second one tells which.

    A lease that ran out and was not taken is as good as new: its holder never stopped being the last one.
    """
    # Always in one order, since workers that are renewed together are renewed with others the next time.
    rows = sorted(
        {
            (one.tenant_id, camera_id, generation, one.worker_key)
            for one in holdings
            for camera_id, generation in one.held
        }
    )
    if not rows:
        return tuple(Renewal((), ()) for _ in holdings)
    tenant_ids, camera_ids = [row[0] for row in rows], [row[1] for row in rows]
    matched = await tx.run(
        _RENEW,
        expires_at=now_ms + ttl_ms,
        now_ms=now_ms,
        held=json.dumps(rows) if tx.dialect is not Dialect.POSTGRES else "",
        tenant_ids=tenant_ids,
        camera_ids=camera_ids,
        generations=[row[2] for row in rows],
        worker_keys=[row[3] for row in rows],
    )
    # A lease is in at most one row of these, and a row matches at most one session.
    if matched == len(rows):
        return tuple(Renewal(one.held, ()) for one in holdings)
    found = await tx.all(
        """
        SELECT c.tenant_id, c.camera_id, s.generation, s.worker_key
        FROM cameras c JOIN camera_sessions s ON s.camera_key = c.camera_key
        WHERE c.tenant_id IN (:tenant_ids...) AND c.camera_id IN (:camera_ids...)""",
        tenant_ids=sorted(set(tenant_ids)),
        camera_ids=sorted(set(camera_ids)),
    )
    sessions = {(row["tenant_id"], row["camera_id"]): row for row in found}
    return tuple(_renewal(one, sessions) for one in holdings)


def _renewal(holding: Holding, sessions: Mapping[tuple[int, str], Row]) -> Renewal:
    reasons = [
        (lease, _why_lost(sessions.get((holding.tenant_id, lease[0])), lease[1], holding.worker_key))
        for lease in holding.held
    ]
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


# MariaDB assigns from left to right, so `state` comes after what is made from its old value.
_RENEWED_COLUMNS = """lease_expires_at = :expires_at, updated_at = :now_ms,
  reason = CASE WHEN s.state = 'ORPHANED' THEN '' ELSE s.reason END,
  state = CASE WHEN s.state <> 'ORPHANED' THEN s.state WHEN s.ready_at IS NOT NULL THEN 'ACTIVE' ELSE 'PENDING' END"""
_RENEW = Sql(
    postgres=f"""
UPDATE camera_sessions AS s SET {_RENEWED_COLUMNS}
FROM unnest(:tenant_ids::bigint[], :camera_ids::text[], :generations::bigint[], :worker_keys::bigint[])
  AS h(tenant_id, camera_id, generation, worker_key)
JOIN cameras c ON c.camera_id = h.camera_id AND c.tenant_id = h.tenant_id
WHERE s.camera_key = c.camera_key AND s.generation = h.generation AND s.worker_key = h.worker_key""",
    sqlite=f"""
UPDATE camera_sessions AS s SET {_RENEWED_COLUMNS}
FROM json_each(:held) AS h JOIN cameras c ON c.camera_id = h.value ->> 1 AND c.tenant_id = h.value ->> 0
WHERE s.camera_key = c.camera_key AND s.generation = h.value ->> 2 AND s.worker_key = h.value ->> 3""",
    mariadb=f"""
UPDATE camera_sessions AS s JOIN (
  SELECT c.camera_key, j.generation, j.worker_key
  FROM JSON_TABLE(:held, '$[*]' COLUMNS (
    tenant_id BIGINT PATH '$[0]',
    camera_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[1]',
    generation BIGINT PATH '$[2]', worker_key BIGINT PATH '$[3]'
  )) AS j JOIN cameras c ON c.camera_id = j.camera_id AND c.tenant_id = j.tenant_id
) AS h ON h.camera_key = s.camera_key AND h.generation = s.generation AND h.worker_key = s.worker_key
SET {_RENEWED_COLUMNS}""",
)
