from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.leases import (
    WORKER_FAULTS,
    Fault,
    FrameStanding,
    LeasePolicy,
    LeaseSpan,
    SessionState,
    after_camera_fault,
    after_start_failure,
    deadline_boot_ms,
    is_unhealthy,
    judge_frame,
    pause_after,
    reclaimable,
    start_timed_out,
)

from .build import MIN, SEC, T0

POLICY = LeasePolicy()
LIVE, LATE, REFUSED = FrameStanding.LIVE, FrameStanding.LATE, FrameStanding.REFUSED
CAMERA_FAULTS = sorted(set(Fault) - WORKER_FAULTS)

HELD = LeaseSpan(generation=5, worker_key=1, granted_at=T0, ended_at=None)
ENDED = replace(HELD, ended_at=T0 + 10 * MIN)


@pytest.mark.parametrize(
    ("worker_key", "current", "span", "captured_at", "received_at", "standing"),
    [
        # The current generation is live, unless the frame is old.
        (1, 5, HELD, T0 + MIN, T0 + MIN, LIVE),
        (1, 5, HELD, T0 + MIN, T0 + 3 * MIN, LIVE),
        (1, 5, HELD, T0 + MIN, T0 + 3 * MIN + 1, LATE),
        # An earlier generation is late while its worker held it.
        (1, 6, ENDED, T0 + MIN, T0 + 11 * MIN, LATE),
        (1, 6, ENDED, T0 + 10 * MIN, T0 + 10 * MIN, LATE),
        (1, 6, ENDED, T0 + 10 * MIN + 1000, T0 + 11 * MIN, LATE),
        (1, 6, ENDED, T0 + 10 * MIN + 1001, T0 + 11 * MIN, REFUSED),
        (1, 6, ENDED, T0 - 1001, T0 + 11 * MIN, REFUSED),
        # A released lease that nobody took since.
        (1, 5, ENDED, T0 + 10 * MIN, T0 + 10 * MIN, LIVE),
        (1, 5, ENDED, T0 + MIN, T0 + 10 * MIN, LATE),
        (1, 5, ENDED, T0 + 11 * MIN, T0 + 11 * MIN, REFUSED),
        # Somebody else's, unknown or from the future.
        (2, 5, HELD, T0 + MIN, T0 + MIN, REFUSED),
        (2, 6, ENDED, T0 + MIN, T0 + MIN, REFUSED),
        (1, 5, None, T0 + MIN, T0 + MIN, REFUSED),
        (1, 4, HELD, T0 + MIN, T0 + MIN, REFUSED),
    ],
)
def test_what_a_frame_is_worth(
    worker_key: int,
    current: int,
    span: LeaseSpan | None,
    captured_at: int,
    received_at: int,
    standing: FrameStanding,
) -> None:
    assert judge_frame(worker_key, current, span, captured_at, received_at, POLICY) is standing


@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(-1000, 1000),
    st.integers(0, 1000),
    st.none() | st.integers(0, 900),
)
def test_only_the_current_holder_is_ever_live(
    worker_key: int, current: int, captured_sec: int, received_sec: int, ended_sec: int | None
) -> None:
    span = replace(HELD, ended_at=None if ended_sec is None else T0 + ended_sec * SEC)
    standing = judge_frame(worker_key, current, span, T0 + captured_sec * SEC, T0 + received_sec * SEC, POLICY)
    if standing is LIVE:
        assert (worker_key, current) == (span.worker_key, span.generation)
    if worker_key != span.worker_key:
        assert standing is REFUSED


def test_a_worker_lets_go_before_the_server_does() -> None:
    assert deadline_boot_ms(1_000_000, POLICY.ttl_sec * SEC, POLICY.margin_sec * SEC) == 1_000_000 + 85 * SEC


@given(st.integers(0, 80 * SEC))
def test_the_workers_deadline_is_before_the_lease_ends_however_slow_the_way(there_ms: int) -> None:
    lease_expires_at = T0 + there_ms + POLICY.ttl_sec * SEC  # granted when the heartbeat arrived
    deadline_ms = deadline_boot_ms(T0, POLICY.ttl_sec * SEC, POLICY.margin_sec * SEC)
    assert deadline_ms + POLICY.margin_sec * SEC <= lease_expires_at


@pytest.mark.parametrize(
    ("expired_ms", "up_ms", "outage_ended_ms", "wanted"),
    [
        (1, 60 * MIN, None, True),
        (0, 60 * MIN, None, False),
        (-SEC, 60 * MIN, None, False),
        (60 * MIN, 30 * SEC - 1, None, False),
        (60 * MIN, 30 * SEC, None, True),
        (60 * MIN, 60 * MIN, 30 * SEC - 1, False),
        (60 * MIN, 60 * MIN, 30 * SEC, True),
        (60 * MIN, 10 * SEC, 60 * MIN, False),
    ],
)
def test_when_a_lease_may_be_taken_away(
    expired_ms: int, up_ms: int, outage_ended_ms: int | None, wanted: bool
) -> None:
    outage_ended_at = None if outage_ended_ms is None else T0 - outage_ended_ms
    assert reclaimable(T0 - expired_ms, T0, T0 - up_ms, outage_ended_at, POLICY) is wanted


def test_a_worker_is_unhealthy_after_three_missed_heartbeats() -> None:
    assert not is_unhealthy(T0 - 30 * SEC, T0, POLICY)
    assert is_unhealthy(T0 - 30 * SEC - 1, T0, POLICY)


def test_a_start_has_15_seconds() -> None:
    assert not start_timed_out(T0, T0 + 15 * SEC, POLICY)
    assert start_timed_out(T0, T0 + 15 * SEC + 1, POLICY)


@pytest.mark.parametrize("fault", sorted(WORKER_FAULTS))
def test_a_workers_fault_moves_the_camera_at_most_once_in_ten_minutes(fault: Fault) -> None:
    first = after_start_failure(fault, None, T0, POLICY)
    assert (first.elsewhere, first.next_attempt_at, first.reason) == (True, T0, fault.value)
    again = after_start_failure(fault, T0, T0 + MIN, POLICY)
    assert (again.elsewhere, again.next_attempt_at) == (False, T0 + 10 * MIN)
    assert after_start_failure(fault, T0, T0 + 10 * MIN, POLICY).elsewhere


@pytest.mark.parametrize("fault", CAMERA_FAULTS)
def test_a_cameras_fault_never_moves_it(fault: Fault) -> None:
    result = after_start_failure(fault, None, T0, POLICY)
    assert not result.elsewhere
    assert result.next_attempt_at > T0


@pytest.mark.parametrize("fault", CAMERA_FAULTS)
def test_after_five_failures_a_camera_is_paused_and_reported_once(fault: Fault) -> None:
    failures, auth_failures, reported, pauses = 0, 0, 0, []
    for _ in range(9):
        result = after_camera_fault(fault, failures, auth_failures, T0, POLICY, 1.0)
        failures, auth_failures = result.failures, result.auth_failures
        reported += result.reports_error
        pauses.append((result.next_attempt_at - T0) // SEC)
        assert result.state is (SessionState.PAUSED if failures >= 5 else SessionState.PENDING)
        assert result.reports_error == (failures == 5)
    assert reported == 1
    if fault is Fault.UNAUTHORIZED:
        # Twice as long each time up to an hour; a tenth on top is chance.
        assert (auth_failures, pauses) == (9, [330, 660, 1320, 2640, *[3960] * 5])
    else:
        assert (auth_failures, pauses) == (0, [1, 2, 4, 8, 16, 32, 60, 60, 60])


def test_chance_never_shortens_the_pause_after_a_refused_password() -> None:
    pauses = [pause_after(Fault.UNAUTHORIZED, 1, 1, POLICY, jitter) for jitter in (0.0, 0.5, 1.0)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 300 * SEC
