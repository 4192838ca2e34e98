"""What comes of a START: the camera gets going, has a fault of its own, or the worker fails it (decision 37).

A worker's fault frees the camera to be tried elsewhere, now and then. A camera's own fault stays with its holder,
and its back-off with the camera. The rules are in `domain.leases`; here they meet the session's row.
"""

from dataclasses import dataclass

from camserver.domain.leases import WORKER_FAULTS, Fault, LeasePolicy, SessionState, after_start_failure
from camserver.store import look_pauses
from camserver.store.leases import BATCH_MAX, Claim, changed, claimed, claimed_all, let_go, locked
from camserver.store.tx import Row, Tx

# Between two tries of a camera that workers refuse: without it one that is full would be asked every second.
REFUSED_PAUSE_MS = 2_000


@dataclass(frozen=True, slots=True)
class Failed:
    """A START that got nowhere."""

    camera_key: int
    worker_key: int
    generation: int
    reason: str
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """A camera's back-off as its worker reports it; it stays with the camera when it moves."""

    fault: Fault
    failures: int
    auth_failures: int
    next_attempt_at: int


async def not_done(
    tx: Tx, worker_key: int, intent_id: str, status: str, details: str, policy: LeasePolicy, now_ms: int
) -> Failed | None:
    """The worker does not do what it was told. A STOP has nothing left to stop.

    A START that it *refused* (it is leaving, or full) frees the camera and is nobody's fault; one at which it
    *failed* is tried elsewhere, now and then.
    """
    row = await tx.one(
        """
        SELECT camera_key, generation FROM camera_sessions
        WHERE intent_id = :intent_id AND worker_key = :worker_key""",
        intent_id=intent_id,
        worker_key=worker_key,
    )
    session = None if row is None else await locked(tx, row["camera_key"], row["generation"])
    if session is None or session["intent_id"] != intent_id:
        return None
    if session["stop_wanted"]:
        await let_go(tx, session, SessionState.ORPHANED, session["reason"], now_ms)
        return None
    if status == "refused":
        return await _refused(tx, session, details, now_ms)
    return await _start_failed(tx, session, Fault.CRASH, details, policy, now_ms)


async def _refused(tx: Tx, session: Row, details: str, now_ms: int) -> Failed:
    """Free at once; not for the worker that refused, or it would be asked again and again."""
    reason = "the worker did not take it" + (f" ({details})" if details else "")
    await let_go(tx, session, SessionState.ORPHANED, reason, now_ms)
    await tx.run(
        """
        UPDATE camera_sessions SET avoid_worker_key = :worker_key, next_attempt_at = :next_attempt_at
        WHERE camera_key = :camera_key""",
        camera_key=session["camera_key"],
        worker_key=session["worker_key"],
        next_attempt_at=max(session["next_attempt_at"] or 0, now_ms + REFUSED_PAUSE_MS),
    )
    return Failed(session["camera_key"], session["worker_key"], session["generation"], reason, elsewhere=True)


async def unstartable(tx: Tx, claim: Claim, reason: str, next_attempt_at: int, now_ms: int) -> bool:
    """No START can be made for this camera as it is stored: it is freed and tried again later."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    await let_go(tx, session, SessionState.PAUSED, reason, now_ms)
    await tx.run(
        "UPDATE camera_sessions SET next_attempt_at = :next_attempt_at WHERE camera_key = :camera_key",
        camera_key=session["camera_key"],
        next_attempt_at=next_attempt_at,
    )
    return True


async def start_timeouts(tx: Tx, policy: LeasePolicy, now_ms: int) -> tuple[Failed, ...]:
    """Pauses cameras whose START was not followed by pipeline_ready in time, and frees those to try elsewhere."""
    rows = await tx.all(
        """
        SELECT camera_key, generation FROM camera_sessions
        WHERE start_sent_at < :sent_before AND ready_at IS NULL AND stop_wanted = 0 AND worker_key IS NOT NULL
          AND (next_attempt_at IS NULL OR next_attempt_at < :sent_before)
          AND (state = 'PENDING' OR (state = 'PAUSED' AND moved_at <= :moved_before))
        ORDER BY camera_key LIMIT :batch_max""",
        sent_before=now_ms - policy.start_timeout_sec * 1000,
        moved_before=now_ms - policy.retry_elsewhere_sec * 1000,
        batch_max=BATCH_MAX,
    )
    failed = []
    for row in rows:
        session = await locked(tx, row["camera_key"], row["generation"])
        if session is None or session["start_sent_at"] is None or session["stop_wanted"]:
            continue
        fault = Fault.NO_ACK if session["acked_at"] is None else Fault.NO_VIDEO
        failed.append(await _start_failed(tx, session, fault, "", policy, now_ms))
    return tuple(failed)


async def _start_failed(tx: Tx, session: Row, fault: Fault, details: str, policy: LeasePolicy, now_ms: int) -> Failed:
    after = after_start_failure(fault, session["moved_at"], now_ms, policy)
    # `next_attempt_at` is the camera's back-off and travels in START; a worker's fault must not lengthen it.
    next_attempt_at = session["next_attempt_at"] if fault in WORKER_FAULTS else after.next_attempt_at
    reason = f"start failed: {after.reason}" + (f" ({details})" if details else "")
    failed = Failed(session["camera_key"], session["worker_key"], session["generation"], reason, after.elsewhere)
    if after.elsewhere:
        await let_go(tx, session, SessionState.PAUSED, reason, now_ms)
    await tx.run(
        """
        UPDATE camera_sessions SET state = CASE WHEN state = 'TERMINATED' THEN state ELSE 'PAUSED' END,
          reason = :reason, next_attempt_at = :next_attempt_at,
          start_sent_at = CASE WHEN acked_at IS NULL THEN start_sent_at ELSE NULL END,
          avoid_worker_key = CASE WHEN :elsewhere = 1 THEN :worker_key ELSE avoid_worker_key END,
          moved_at = CASE WHEN :elsewhere = 1 THEN :now_ms ELSE moved_at END, updated_at = :now_ms
        WHERE camera_key = :camera_key""",
        camera_key=session["camera_key"],
        worker_key=session["worker_key"],
        reason=reason[:255],
        next_attempt_at=next_attempt_at,
        elsewhere=int(after.elsewhere),
        now_ms=now_ms,
    )
    changed(tx, session["camera_key"], session, now_ms)
    return failed


async def set_all_active(tx: Tx, claims: tuple[Claim, ...], now_ms: int) -> tuple[bool, ...]:
    """pipeline_ready: the cameras are going and all their failures are forgotten. False: the claim does not hold."""
    sessions = await claimed_all(tx, claims)
    if sessions:
        await look_pauses.end(tx, sorted({session["camera_key"] for session in sessions.values()}), now_ms)
        await tx.run(
            """
            UPDATE camera_sessions SET state = 'ACTIVE', reason = CASE WHEN stop_wanted = 1 THEN reason ELSE '' END,
              ready_at = COALESCE(ready_at, :now_ms), start_sent_at = NULL, failures = 0, auth_failures = 0,
              acked_at = CASE WHEN stop_wanted = 1 THEN acked_at ELSE COALESCE(acked_at, :now_ms) END,
              next_attempt_at = NULL, avoid_worker_key = NULL, updated_at = :now_ms
            WHERE camera_key IN (:camera_keys...)""",
            camera_keys=sorted({session["camera_key"] for session in sessions.values()}),
            now_ms=now_ms,
        )
    for session in sessions.values():
        if session["state"] != SessionState.ACTIVE:
            changed(tx, session["camera_key"], session, now_ms)
    return tuple(claim in sessions for claim in claims)


async def camera_fault(
    tx: Tx, claim: Claim, counts: FaultCounts, message: str, policy: LeasePolicy, now_ms: int
) -> bool:
    """A fault of the camera itself: the holder keeps it and goes on trying, paused after too many failures."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    paused = counts.failures >= policy.max_camera_failures
    state = SessionState.PAUSED if paused else SessionState.PENDING
    reason = counts.fault.value + (f": {message}" if message else "")
    await _settle(tx, session, state, reason, counts, now_ms)
    return True


async def pause(tx: Tx, claim: Claim, reason: str, now_ms: int) -> bool:
    """The holder gave up on the camera for now, and says why."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    await _settle(tx, session, SessionState.PAUSED, reason, None, now_ms)
    return True


async def _settle(
    tx: Tx, session: Row, state: SessionState, reason: str, counts: FaultCounts | None, now_ms: int
) -> None:
    """The worker answered for the camera, so its START is waited for no longer."""
    await tx.run(
        """
        UPDATE camera_sessions SET state = :state, ready_at = NULL, start_sent_at = NULL,
          reason = CASE WHEN stop_wanted = 1 THEN reason ELSE :reason END,
          acked_at = CASE WHEN stop_wanted = 1 THEN acked_at ELSE COALESCE(acked_at, :now_ms) END,
          failures = :failures, auth_failures = :auth_failures, next_attempt_at = :next_attempt_at,
          updated_at = :now_ms
        WHERE camera_key = :camera_key""",
        camera_key=session["camera_key"],
        state=state.value,
        reason=reason[:255],
        failures=session["failures"] if counts is None else counts.failures,
        auth_failures=session["auth_failures"] if counts is None else counts.auth_failures,
        next_attempt_at=session["next_attempt_at"] if counts is None else counts.next_attempt_at,
        now_ms=now_ms,
    )
    if session["state"] != state:
        changed(tx, session["camera_key"], session, now_ms)
