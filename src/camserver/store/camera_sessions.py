"""Camera sessions follow their cameras: made with them, freed, moved and ended with them.

Named after the table; people's sign-ins are in `sessions`. Holding a camera is in `leases`, who gets it in
`assignment`.
"""

from camserver.domain.leases import SessionState
from camserver.store.intents import want_stop
from camserver.store.leases import BATCH_MAX, changed, let_go, locked
from camserver.store.sql import Sql
from camserver.store.tx import Row, Tx

STOP_CAMERA_OFF = "camera switched off"
STOP_CREDENTIALS = "credentials changed"
STOP_SITE = "moved to another site"


async def ensure_sessions(tx: Tx, camera_keys: tuple[int, ...], now_ms: int) -> None:
    """Gives cameras their sessions and their states, where they are missing. Nobody holds them yet."""
    await tx.run(_INSERT_SESSIONS, now_ms=now_ms, camera_keys=camera_keys)
    await tx.run(_INSERT_STATES, now_ms=now_ms, camera_keys=camera_keys)
    # A database may give the key of a deleted camera again: its history must not look like this one's.
    await tx.run(
        """
        UPDATE camera_leases SET ended_at = :now_ms, end_reason = 'camera deleted'
        WHERE camera_key IN (:camera_keys...) AND ended_at IS NULL AND camera_key IN
          (SELECT s.camera_key FROM camera_sessions s WHERE s.worker_key IS NULL)""",
        camera_keys=camera_keys,
        now_ms=now_ms,
    )


async def newest_camera(tx: Tx) -> int:
    """The key of the camera that was added last; 0: there is none."""
    row = await tx.one("SELECT max(camera_key) AS newest FROM cameras")
    return 0 if row is None else int(row["newest"] or 0)


async def without_session(tx: Tx) -> tuple[int, ...]:
    """Cameras that `ensure_sessions` has not seen yet."""
    rows = await tx.all(
        """
        SELECT c.camera_key FROM cameras c LEFT JOIN camera_sessions s ON s.camera_key = c.camera_key
        WHERE s.camera_key IS NULL AND c.enabled = 1 AND c.deleted_at IS NULL
        ORDER BY c.camera_key LIMIT :batch_max""",
        batch_max=BATCH_MAX,
    )
    return tuple(row["camera_key"] for row in rows)


async def follow_cameras(tx: Tx, now_ms: int) -> int:
    """Brings sessions in line with their cameras: switched off or on, moved to another site, a new password.

    A camera with a holder is stopped first (break before make); how many were out of line.
    """
    rows = await tx.all(_OUT_OF_LINE, batch_max=BATCH_MAX)
    for row in rows:
        if row["worker_key"] is None:
            await _align_free(tx, row, now_ms)
        elif row["stop_wanted"]:
            await _stopped_by_silence(tx, row, now_ms)
        else:
            await want_stop(tx, row["camera_key"], _why_stop(row), now_ms)
    return len(rows)


def _why_stop(row: Row) -> str:
    if not row["enabled"]:
        return STOP_CAMERA_OFF
    return STOP_SITE if row["site_id"] != row["camera_site_id"] else STOP_CREDENTIALS


async def _stopped_by_silence(tx: Tx, row: Row, now_ms: int) -> None:
    """The holder was to stop and let its lease run out instead: there is nothing to come back to."""
    session = await locked(tx, row["camera_key"], row["generation"])
    if session is not None and session["stop_wanted"] and session["state"] == SessionState.ORPHANED:
        await let_go(tx, session, SessionState.ORPHANED, session["reason"], now_ms)


async def _align_free(tx: Tx, row: Row, now_ms: int) -> None:
    """A changed password ends a back-off: what it was for is gone."""
    new_password = row["credential_version"] != row["auth_version"]
    await tx.run(
        """
        UPDATE camera_sessions SET state = :state, site_id = :site_id, credential_version = :auth_version,
          failures = CASE WHEN :reset = 1 THEN 0 ELSE failures END,
          auth_failures = CASE WHEN :reset = 1 THEN 0 ELSE auth_failures END,
          next_attempt_at = CASE WHEN :reset = 1 THEN NULL ELSE next_attempt_at END, updated_at = :now_ms
        WHERE camera_key = :camera_key AND worker_key IS NULL AND generation = :generation""",
        camera_key=row["camera_key"],
        generation=row["generation"],
        state=(SessionState.ORPHANED if row["enabled"] else SessionState.TERMINATED).value,
        site_id=row["camera_site_id"],
        auth_version=row["auth_version"],
        reset=int(new_password),
        now_ms=now_ms,
    )
    changed(tx, row["camera_key"], row, now_ms)


# Also off are all cameras of a tenant that is.
_IS_ON = "(c.enabled = 1 AND c.tenant_id NOT IN (SELECT n.tenant_id FROM tenants n WHERE n.disabled = 1))"
_OUT_OF_LINE = f"""
SELECT s.camera_key, s.tenant_id, s.site_id, s.worker_key, s.generation, s.credential_version, s.stop_wanted,
  CASE WHEN {_IS_ON} THEN 1 ELSE 0 END AS enabled, c.site_id AS camera_site_id,
  COALESCE(a.credential_version, 0) AS auth_version
FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
LEFT JOIN camera_auth a ON a.camera_key = s.camera_key
WHERE (s.stop_wanted = 1 AND s.state = 'ORPHANED') OR (s.stop_wanted = 0 AND (
  (NOT {_IS_ON} AND s.state <> 'TERMINATED') OR ({_IS_ON} AND s.state = 'TERMINATED')
  OR s.site_id <> c.site_id OR s.credential_version <> COALESCE(a.credential_version, 0)))
ORDER BY s.camera_key LIMIT :batch_max"""


def _insert_missing(into: str, select: str) -> Sql:
    """An INSERT … SELECT that passes over rows that are there already."""
    return Sql(
        sqlite=f"INSERT OR IGNORE INTO {into} {select}",
        postgres=f"INSERT INTO {into} {select} ON CONFLICT DO NOTHING",
        mariadb=f"INSERT IGNORE INTO {into} {select}",
    )


# The generation goes on after any history of the same key.
_INSERT_SESSIONS = _insert_missing(
    "camera_sessions (camera_key, tenant_id, site_id, generation, credential_version, updated_at)",
    """SELECT c.camera_key, c.tenant_id, c.site_id,
  COALESCE((SELECT max(l.generation) FROM camera_leases l WHERE l.camera_key = c.camera_key), 0),
  COALESCE((SELECT a.credential_version FROM camera_auth a WHERE a.camera_key = c.camera_key), 0), :now_ms
FROM cameras c WHERE c.camera_key IN (:camera_keys...)""",
)
_INSERT_STATES = _insert_missing(
    "camera_state (camera_key, tenant_id, updated_at)",
    "SELECT c.camera_key, c.tenant_id, :now_ms FROM cameras c WHERE c.camera_key IN (:camera_keys...)",
)
