"""What becomes of a delivery after a failed attempt, and what that says about its receiver."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.deliveries import (
    ARCHIVES,
    TELLING,
    Child,
    DeliveriesPolicy,
    DeliveryError,
    ReceiverKind,
    Trouble,
    after_trouble,
    breaker_after,
    new_breaker,
    trouble_of_status,
)
from camserver.domain.facts import DeliveryKind
from camserver.domain.jobs import BreakerState, Dead, Delay

POLICY = DeliveriesPolicy()
NOW_MS = 1_800_000_000_000
DAY_MS = POLICY.max_age_sec * 1000


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        *((status, Trouble.RETRY) for status in (408, 425, 429, 502, 503)),
        *((status, Trouble.FAILED) for status in (301, 401, 403, 404, 405, 500, 501, 504, 507, 599)),
        *((status, Trouble.REFUSED) for status in (400, 413, 415, 422)),
        (410, Trouble.GONE),
    ],
)
def test_what_a_status_says(status: int, trouble: Trouble) -> None:
    assert trouble_of_status(status) is trouble


def after(kind: Trouble, attempt: int = 1, age_ms: int = 0, jitter: float = 1.0, **asked: float) -> Delay | Dead:
    return after_trouble(
        kind,
        attempt=attempt,
        created_at=NOW_MS - age_ms,
        now_ms=NOW_MS,
        policy=POLICY,
        jitter=jitter,
        retry_after_sec=asked.get("retry_after_sec"),
    )


def test_refused_and_gone_are_dead_at_once() -> None:
    assert after(Trouble.REFUSED) == Dead("refused")
    assert after(Trouble.GONE) == Dead("gone")


@pytest.mark.parametrize(("attempt", "pause_sec"), [(1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (12, 3600)])
def test_pauses_double_up_to_the_cap(attempt: int, pause_sec: int) -> None:
    # An attempt that is not counted says nothing about how often it failed, but the pause grows all the same.
    assert after(Trouble.RETRY, attempt) == Delay(NOW_MS + pause_sec * 1000, refund=True)


def test_failures_count_to_the_last_attempt() -> None:
    assert after(Trouble.FAILED, 11) == Delay(NOW_MS + 3_600_000, refund=False)
    assert after(Trouble.FAILED, 12) == Dead("failed in attempt 12 of 12")


def test_a_day_is_enough_for_any_trouble() -> None:
    assert isinstance(after(Trouble.RETRY, age_ms=DAY_MS), Delay)
    assert after(Trouble.RETRY, age_ms=DAY_MS + 1) == Dead("tried for 86400 s")
    assert after(Trouble.FAILED, age_ms=DAY_MS + 1) == Dead("tried for 86400 s")


@given(
    kind=st.sampled_from([Trouble.RETRY, Trouble.FAILED]),
    attempt=st.integers(1, 200),
    jitter=st.floats(0, 1),
    retry_after_sec=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
def test_a_pause_is_always_within_bounds(
    kind: Trouble, attempt: int, jitter: float, retry_after_sec: float | None
) -> None:
    follows = after_trouble(
        kind,
        attempt=attempt,
        created_at=NOW_MS,
        now_ms=NOW_MS,
        policy=POLICY,
        jitter=jitter,
        retry_after_sec=retry_after_sec,
    )
    if isinstance(follows, Delay):
        pause_ms = follows.available_at - NOW_MS
        assert 0 <= pause_ms <= max(POLICY.backoff_cap_sec, POLICY.retry_after_cap_sec) * 1000
        if retry_after_sec is not None and 0 <= retry_after_sec <= POLICY.retry_after_cap_sec:
            assert pause_ms == round(retry_after_sec * 1000)
    else:
        assert kind is Trouble.FAILED
        assert attempt >= POLICY.max_attempt


def test_a_receiver_that_is_away_is_left_alone_and_one_that_answers_is_not() -> None:
    breaker = new_breaker(POLICY, 4)
    for _ in range(POLICY.breaker_failures):
        assert breaker.allowance(NOW_MS) == 4
        breaker = breaker_after(breaker, DeliveryError(Trouble.RETRY, "refused"), NOW_MS, 1.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.allowance(NOW_MS) == 0
    assert breaker.allowance(NOW_MS + 5_000) == 1, "one trial"

    for kind in (Trouble.REFUSED, Trouble.GONE):
        assert breaker_after(new_breaker(POLICY, 4), DeliveryError(kind, ""), NOW_MS, 1.0).allowance(NOW_MS) == 4


def test_one_that_is_busy_gets_fewer_and_later() -> None:
    breaker = breaker_after(new_breaker(POLICY, 4), DeliveryError(Trouble.RETRY, "429", 30.0), NOW_MS, 1.0)
    assert breaker.allowance(NOW_MS + 29_999) == 0
    assert breaker.allowance(NOW_MS + 30_000) == 2


def test_an_error_holds_nothing_that_breaks_a_line() -> None:
    error = DeliveryError(Trouble.FAILED, "answered 500: a\r\nX: \x00")
    assert error.message.isprintable()
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, again.message) == (error.kind, error.message)


def test_a_child_is_made_once_for_its_parent_and_receiver() -> None:
    keys = {
        child.key(parent)
        for parent in ("a", "b")
        for child in (Child(DeliveryKind.MESSAGE, 1), Child(DeliveryKind.MESSAGE, 2), Child(DeliveryKind.COPY, 1))
    }
    assert len(keys) == 6
    assert Child(DeliveryKind.MESSAGE, 1, once_key="own").key("a") == "own"
    assert len(Child(DeliveryKind.MESSAGE, 2**62).key("x" * 36)) <= 96


def test_every_kind_of_receiver_is_told_or_archives() -> None:
    assert set(ReceiverKind) == TELLING | ARCHIVES
    assert not TELLING & ARCHIVES


def test_one_message_put_off_for_hours_does_not_stop_the_others_for_as_long() -> None:
    """A quota that is full for one may have room for the next; a minute is enough to be left alone."""
    breaker = new_breaker(POLICY, 4)
    for kind in (Trouble.RETRY, Trouble.FAILED):
        error = DeliveryError(kind, "later", 21_600.0)
        assert breaker_after(breaker, error, 0, 1.0).resume_at <= 60_000
        follows = after_trouble(
            kind, attempt=1, created_at=0, now_ms=0, policy=POLICY, jitter=1.0, retry_after_sec=21_600.0
        )
        assert isinstance(follows, Delay)
        assert follows.available_at == 21_600_000
