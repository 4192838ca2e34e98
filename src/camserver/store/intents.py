"""Intents: what a worker is to be told about a camera.

The row of a camera's session *is* the intent: START while it is held and not going, STOP while `stop_wanted`. Any
control process that has the worker's socket reads it from there and sends it, again and again until `acked_at` is
set. So nothing is lost with a process, and a repeat is harmless. What comes of a START is in `starts`.
"""

from dataclasses import dataclass

from camserver.base.credentials import Sealed
from camserver.domain.leases import SessionState
from camserver.store import overrides
from camserver.store.leases import changed, let_go, locked, new_intent_id
from camserver.store.overrides import Overrides
from camserver.store.tx import Row, Tx

# Of one look; those that come first are acknowledged by the next one.
PENDING_MAX = 2_000


@dataclass(frozen=True, slots=True)
class StartIntent:
    intent_id: str
    tenant_id: int
    site_id: int
    worker_key: int
    camera_key: int
    camera_id: str
    generation: int
    source_type: str
    url: str
    sub_type: str | None  # of the small stream, where there is one
    sub_url: str | None
    credentials: Sealed | None  # for both
    network_zone: str
    do_not_process: bool
    overrides: Overrides
    next_seq: int
    next_attempt_at: int | None
    failures: int
    auth_failures: int
    credential_version: int
    gate_state: bytes | None


@dataclass(frozen=True, slots=True)
class StopIntent:
    intent_id: str
    tenant_id: int
    site_id: int
    worker_key: int
    camera_key: int
    camera_id: str
    generation: int
    reason: str


Intent = StartIntent | StopIntent


async def pending(tx: Tx, worker_keys: tuple[int, ...]) -> tuple[Intent, ...]:
    """What these workers have not acknowledged yet."""
    rows = await tx.all(_PENDING, worker_keys=worker_keys, batch_max=PENDING_MAX)
    return tuple(_stop(row) if row["stop_wanted"] else _start(row) for row in rows)


def _stop(row: Row) -> StopIntent:
    return StopIntent(
        row["intent_id"],
        row["tenant_id"],
        row["site_id"],
        row["worker_key"],
        row["camera_key"],
        row["camera_id"],
        row["generation"],
        row["reason"],
    )


def _start(row: Row) -> StartIntent:
    sealed = None
    if row["ciphertext"] is not None:
        sealed = Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"]))
    gate_state = row["gate_state"]
    # Where there is only a small stream, it is the one to look at.
    has_main = row["main_url"] is not None
    return StartIntent(
        intent_id=row["intent_id"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        worker_key=row["worker_key"],
        camera_key=row["camera_key"],
        camera_id=row["camera_id"],
        generation=row["generation"],
        source_type=row["main_type"] if has_main else row["sub_type"],
        url=row["main_url"] if has_main else row["sub_url"],
        sub_type=row["sub_type"] if has_main else None,
        sub_url=row["sub_url"] if has_main else None,
        credentials=sealed,
        network_zone=row["network_zone"],
        do_not_process=bool(row["do_not_process"]),
        overrides=overrides.from_row(row),
        next_seq=row["last_seq"] + 1,
        next_attempt_at=row["next_attempt_at"],
        failures=row["failures"],
        auth_failures=row["auth_failures"],
        credential_version=row["credential_version"],
        gate_state=None if gate_state is None else bytes(gate_state),
    )


async def starts_sent(tx: Tx, intent_ids: tuple[str, ...], now_ms: int) -> None:
    """Noted *before* a START leaves: what has no mark was certainly never sent. Repeats don't restart the wait."""
    await tx.run(
        """
        UPDATE camera_sessions SET start_sent_at = :now_ms
        WHERE intent_id IN (:intent_ids...) AND start_sent_at IS NULL AND acked_at IS NULL AND stop_wanted = 0""",
        intent_ids=intent_ids,
        now_ms=now_ms,
    )


async def acked_all(tx: Tx, acks: tuple[tuple[int, str], ...], now_ms: int) -> tuple[bool, ...]:
    """Notes acknowledgements, each (worker_key, intent_id); the first one of an intent counts.

    False: the intent is not, or not any more, this worker's.
    """
    intent_ids = sorted({intent_id for _, intent_id in acks})
    rows = await tx.all(
        """
        SELECT camera_key, worker_key, intent_id FROM camera_sessions
        WHERE worker_key IN (:worker_keys...) AND intent_id IN (:intent_ids...)""",
        worker_keys=sorted({worker_key for worker_key, _ in acks}),
        intent_ids=intent_ids,
    )
    # A worker speaks for its own intents only.
    said = frozenset(acks)
    known = {(row["worker_key"], row["intent_id"]): row["camera_key"] for row in rows}
    known = {pair: camera_key for pair, camera_key in known.items() if pair in said}
    if known:
        await tx.run(
            """
            UPDATE camera_sessions SET acked_at = COALESCE(acked_at, :now_ms)
            WHERE camera_key IN (:camera_keys...) AND intent_id IN (:intent_ids...)""",
            camera_keys=sorted(known.values()),
            # An intent that was replaced meanwhile is not acknowledged by the answer to the one before.
            intent_ids=sorted(intent_id for _, intent_id in known),
            now_ms=now_ms,
        )
    return tuple(pair in known for pair in acks)


async def want_stop(tx: Tx, camera_key: int, reason: str, now_ms: int) -> bool:
    """Asks the holder to flush and release. One that was never told to start is let go at once. False: no holder."""
    row = await tx.one("SELECT generation FROM camera_sessions WHERE camera_key = :camera_key", camera_key=camera_key)
    session = None if row is None else await locked(tx, camera_key, row["generation"])
    if session is None or session["worker_key"] is None:
        return False
    if session["stop_wanted"]:
        return True
    if session["start_sent_at"] is None and session["acked_at"] is None:
        await let_go(tx, session, SessionState.ORPHANED, reason, now_ms)
        return True
    await tx.run(
        """
        UPDATE camera_sessions SET stop_wanted = 1, intent_id = :intent_id, acked_at = NULL, start_sent_at = NULL,
          reason = :reason, updated_at = :now_ms
        WHERE camera_key = :camera_key""",
        camera_key=camera_key,
        intent_id=new_intent_id(),
        reason=reason[:255],
        now_ms=now_ms,
    )
    changed(tx, camera_key, session, now_ms)
    return True


async def returned_without(
    tx: Tx, worker_key: int, kept: frozenset[str], ttl_ms: int, now_ms: int
) -> tuple[str, ...]:
    """A worker came back and no longer knows of some cameras in its name: it is started anew with them.

    At the same generation, since it is still their last holder. One that was to be stopped has stopped.
    """
    rows = await tx.all(
        """
        SELECT s.camera_key, s.generation, c.camera_id FROM camera_sessions s
        JOIN cameras c ON c.camera_key = s.camera_key
        WHERE s.worker_key = :worker_key ORDER BY s.camera_key""",
        worker_key=worker_key,
    )
    restarted = []
    for row in rows:
        if row["camera_id"] in kept:
            continue
        session = await locked(tx, row["camera_key"], row["generation"])
        if session is None or session["worker_key"] != worker_key:
            continue
        if session["stop_wanted"]:
            await let_go(tx, session, SessionState.ORPHANED, session["reason"], now_ms)
            continue
        await _restart(tx, session, ttl_ms, now_ms)
        restarted.append(row["camera_id"])
    return tuple(restarted)


async def let_go_elsewhere(tx: Tx, worker_key: int, site_id: int, now_ms: int) -> None:
    """A worker that comes from another site than before holds nothing of that one any more, and is told nothing of
    it: logins of cameras are their site's."""
    rows = await tx.all(
        """
        SELECT camera_key, generation FROM camera_sessions
        WHERE worker_key = :worker_key AND site_id <> :site_id ORDER BY camera_key""",
        worker_key=worker_key,
        site_id=site_id,
    )
    for row in rows:
        session = await locked(tx, row["camera_key"], row["generation"])
        if session is not None and session["worker_key"] == worker_key:
            await let_go(tx, session, SessionState.ORPHANED, "its worker came from another site", now_ms)


async def _restart(tx: Tx, session: Row, ttl_ms: int, now_ms: int) -> None:
    await tx.run(
        """
        UPDATE camera_sessions SET state = 'PENDING', reason = '', intent_id = :intent_id, start_sent_at = NULL,
          acked_at = NULL, ready_at = NULL, lease_expires_at = :expires_at, updated_at = :now_ms
        WHERE camera_key = :camera_key""",
        camera_key=session["camera_key"],
        intent_id=new_intent_id(),
        expires_at=now_ms + ttl_ms,
        now_ms=now_ms,
    )
    changed(tx, session["camera_key"], session, now_ms)


_PENDING = f"""
SELECT s.intent_id, s.tenant_id, s.site_id, s.worker_key, s.camera_key, c.camera_id, s.generation, s.stop_wanted,
  s.reason, s.next_attempt_at, s.failures, s.auth_failures, s.credential_version,
  m.source_type AS main_type, m.url AS main_url, u.source_type AS sub_type, u.url AS sub_url,
  a.key_id, a.nonce, a.ciphertext, c.network_zone, c.do_not_process, {overrides.COLUMNS}, l.last_seq, t.gate_state
FROM camera_sessions s
JOIN cameras c ON c.camera_key = s.camera_key
JOIN camera_leases l ON l.camera_key = s.camera_key AND l.generation = s.generation
LEFT JOIN camera_streams m ON m.camera_key = s.camera_key AND m.kind = 'main'
LEFT JOIN camera_streams u ON u.camera_key = s.camera_key AND u.kind = 'sub'
LEFT JOIN camera_auth a ON a.camera_key = s.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = s.camera_key
LEFT JOIN camera_state t ON t.camera_key = s.camera_key
WHERE s.worker_key IN (:worker_keys...) AND s.intent_id IS NOT NULL AND s.acked_at IS NULL
  AND s.state <> 'ORPHANED' AND (s.stop_wanted = 1 OR m.url IS NOT NULL OR u.url IS NOT NULL)
ORDER BY s.updated_at, s.camera_key LIMIT :batch_max"""
