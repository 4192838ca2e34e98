"""Who holds a camera, for how long, and what a frame is worth (decisions T3, 12, 36 and 37).

Rules only: taking, renewing and ending a lease are the store's; who gets a camera is in `assignment`.
"""

from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.jobs import backoff_ms
from camserver.domain.policy import setting

# A capture time is corrected by an estimated clock offset; at the edge of a lease this much is forgiven.
SKEW_MS = 1000


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Which worker holds which camera, and for how long."""

    ttl_sec: int = setting(90, "How long a lease holds without being renewed.", min=10, max=3600)
    heartbeat_sec: int = setting(10, "How often a worker renews its leases.", min=1, max=600)
    margin_sec: int = setting(5, "How long before its lease ends a cut-off worker lets go.", min=1, max=600)
    start_timeout_sec: int = setting(15, "Time a worker has to get a camera going.", min=1, max=600)
    restart_grace_sec: int = setting(
        30,
        "Time after the server's start, or after the database was away, without reclaiming.",
        min=0,
        max=3600,
    )
    retry_elsewhere_sec: int = setting(
        600, "Least time between two tries of a camera at another worker.", min=1, max=86_400
    )
    max_camera_failures: int = setting(
        5, "Failures in a row after which a camera is paused and reported.", min=1, max=1000
    )
    camera_retry_base_sec: float = setting(
        1.0, "Pause after a camera's first failure; it doubles.", min=0.1, max=3600
    )
    camera_retry_cap_sec: float = setting(60.0, "Longest pause between two tries of a camera.", min=1, max=86_400)
    auth_retry_sec: float = setting(
        300.0,
        "Pause after a camera first refused the password, so that no account is locked; it doubles.",
        min=1,
        max=86_400,
    )
    auth_retry_cap_sec: float = setting(
        3600.0, "Longest pause between two tries of a password that was refused.", min=1, max=86_400
    )
    late_after_sec: int = setting(120, "A frame older than this at receipt is late.", min=1, max=86_400)
    missed_heartbeats: int = setting(3, "Heartbeats a worker may miss before it counts as unhealthy.", min=1, max=100)


class SessionState(StrEnum):
    PENDING = "PENDING"  # taken, not going yet
    ACTIVE = "ACTIVE"  # the worker said pipeline_ready
    PAUSED = "PAUSED"  # did not get going; the reason is kept
    ORPHANED = "ORPHANED"  # the lease ran out
    TERMINATED = "TERMINATED"  # the camera is switched off or gone


class FrameStanding(StrEnum):
    LIVE = "live"
    LATE = "late"  # kept with its job, but the camera's state is not touched
    REFUSED = "refused"  # for good: the worker sets it aside and reports it


@dataclass(frozen=True, slots=True)
class LeaseSpan:
    """One row of the lease history: who held a generation, and when."""

    generation: int
    worker_key: int
    granted_at: int
    ended_at: int | None


def judge_frame(
    worker_key: int,
    current_generation: int,
    span: LeaseSpan | None,
    captured_at: int,
    received_at: int,
    policy: LeasePolicy,
) -> FrameStanding:
    """What a frame is worth. `span` is the history's row for the frame's generation, if there is one."""
    if span is None or span.worker_key != worker_key or span.generation > current_generation:
        return FrameStanding.REFUSED
    is_current = span.generation == current_generation
    if not (is_current and span.ended_at is None) and not _held_at(span, captured_at):
        return FrameStanding.REFUSED
    is_old = received_at - captured_at > policy.late_after_sec * 1000
    return FrameStanding.LIVE if is_current and not is_old else FrameStanding.LATE


def deadline_boot_ms(sent_boot_ms: int, ttl_ms: int, margin_ms: int) -> int:
    """When a worker must let go by its own boot-time clock.

    Counted from *sending* the heartbeat that was answered: the server's lease can only end later than that.
    """
    return sent_boot_ms + ttl_ms - margin_ms


def reclaimable(
    lease_expires_at: int, now_ms: int, started_at: int, outage_ended_at: int | None, policy: LeasePolicy
) -> bool:
    """Whether control may take a lease away.

    Not soon after its own start or the end of a store outage: then nobody could renew, and silence proves
    nothing.
    """
    quiet_since = max(started_at, outage_ended_at if outage_ended_at is not None else started_at)
    return lease_expires_at < now_ms and now_ms - quiet_since >= policy.restart_grace_sec * 1000


def is_unhealthy(last_seen_at: int, now_ms: int, policy: LeasePolicy) -> bool:
    """Whether a worker missed too many heartbeats."""
    return now_ms - last_seen_at > policy.missed_heartbeats * policy.heartbeat_sec * 1000


class Fault(StrEnum):
    """Why a camera did not get going."""

    NO_ACK = "no_ack"
    NO_ROUTE = "no_route"
    CRASH = "crash"
    UNAUTHORIZED = "unauthorized"  # 401
    NOT_FOUND = "not_found"  # 404
    REFUSED = "refused"
    NO_VIDEO = "no_video"


# Another worker may do better. All other faults are the camera's and go with it wherever it is tried.
WORKER_FAULTS = frozenset({Fault.NO_ACK, Fault.NO_ROUTE, Fault.CRASH})


@dataclass(frozen=True, slots=True)
class StartFailure:
    """What follows from a START that got nowhere; the session is PAUSED with the fault as its reason."""

    reason: str
    elsewhere: bool  # release the lease and try another worker
    next_attempt_at: int


@dataclass(frozen=True, slots=True)
class CameraFailure:
    """What follows from a camera's own fault; the holder keeps it and tries again at `next_attempt_at`."""

    state: SessionState
    failures: int  # in a row
    auth_failures: int
    next_attempt_at: int
    reports_error: bool  # send pipeline_error: once, when the camera is paused


def start_timed_out(sent_at: int, now_ms: int, policy: LeasePolicy) -> bool:
    """Whether a START without pipeline_ready has waited long enough."""
    return now_ms - sent_at > policy.start_timeout_sec * 1000


def after_start_failure(fault: Fault, moved_at: int | None, now_ms: int, policy: LeasePolicy) -> StartFailure:
    """After START failed. `moved_at` is when the camera was last tried elsewhere.

    A worker's fault moves the camera at once, but only once in a while; a camera's fault never does.
    """
    wait_ms = policy.retry_elsewhere_sec * 1000
    rested = moved_at is None or now_ms - moved_at >= wait_ms
    if fault in WORKER_FAULTS and rested:
        return StartFailure(fault.value, elsewhere=True, next_attempt_at=now_ms)
    if fault in WORKER_FAULTS and moved_at is not None:
        return StartFailure(fault.value, elsewhere=False, next_attempt_at=moved_at + wait_ms)
    return StartFailure(
        fault.value, elsewhere=False, next_attempt_at=now_ms + round(policy.camera_retry_cap_sec * 1000)
    )


def after_camera_fault(
    fault: Fault, failures: int, auth_failures: int, now_ms: int, policy: LeasePolicy, jitter: float
) -> CameraFailure:
    """After a camera's own fault; `failures` and `auth_failures` are those before, `jitter` a random 0..1.

    The counts and the next attempt travel with the camera, so that moving it never resets a back-off.
    """
    count = failures + 1
    auth_count = auth_failures + (fault is Fault.UNAUTHORIZED)
    pause_ms = pause_after(fault, count, auth_count, policy, jitter)
    paused = count >= policy.max_camera_failures
    return CameraFailure(
        state=SessionState.PAUSED if paused else SessionState.PENDING,
        failures=count,
        auth_failures=auth_count,
        next_attempt_at=now_ms + pause_ms,
        reports_error=count == policy.max_camera_failures,
    )


def pause_after(fault: Fault, failures: int, auth_failures: int, policy: LeasePolicy, jitter: float) -> int:
    """Milliseconds until the next try, after so many failures, this one included.

    A password that was refused is not tried again for minutes: most cameras lock an account after a few tries.
    """
    pause_ms = backoff_ms(failures, jitter, policy.camera_retry_base_sec, policy.camera_retry_cap_sec)
    if fault is not Fault.UNAUTHORIZED:
        return pause_ms
    # Spread upwards only: the pause itself is the least that is promised.
    least_ms = backoff_ms(auth_failures, 1.0, policy.auth_retry_sec, policy.auth_retry_cap_sec)
    return max(pause_ms, least_ms + round(0.1 * jitter * least_ms))


def _held_at(span: LeaseSpan, captured_at: int) -> bool:
    if captured_at < span.granted_at - SKEW_MS:
        return False
    return span.ended_at is None or captured_at <= span.ended_at + SKEW_MS
