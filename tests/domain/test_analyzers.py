"""Which analyzer is asked next, and how many questions each gets at once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analyzers import (
    AHEAD_FACTOR_MAX,
    SLOW_EXTRA_MS,
    Lane,
    LaneState,
    choose,
    earliest_resume_at,
    is_anyone_there,
    jobs_wanted,
)
from camserver.domain.jobs import BreakerState, ErrorKind, JobPolicy
from tests.domain.build import SEC, T0

POLICY = JobPolicy()


def busy(in_flight: int, latency_ms: float | None = None) -> Lane:
    return replace(Lane.new(POLICY), in_flight=in_flight, latency_ms=latency_ms)


def away(now_ms: int = T0) -> Lane:
    lane = Lane.new(POLICY)
    for _ in range(POLICY.breaker_failures):
        lane = lane.asked(now_ms).failed(ErrorKind.CONNECTION, now_ms, 1.0)
    return lane


@pytest.mark.parametrize(
    ("lanes", "avoid", "chosen"),
    [
        ([busy(3), busy(1), busy(2)], set(), 1),
        ([busy(3), busy(1), busy(2)], {1}, 2),
        ([busy(3), busy(1), busy(2)], {1, 2}, 0),
        ([busy(3), busy(1), busy(2)], {0, 1, 2}, 1),
        ([busy(1, 40.0), busy(1, 20.0)], set(), 1),
        ([busy(1, 20.0), busy(1, 40.0)], set(), 0),
        ([busy(16), busy(16)], set(), None),
        ([busy(16), busy(15)], {1}, None),
        ([away(), busy(15)], {1}, 1),
        ([away(), busy(15)], set(), 1),
        ([away()], set(), None),
        ([], set(), None),
    ],
    ids=["least", "not there again", "the third", "failed at all", "quicker", "quicker first", "full",
         "worth waiting for", "only there", "one away", "away", "none"],
)  # fmt: skip
def test_who_is_asked_next(lanes: list[Lane], avoid: set[int], chosen: int | None) -> None:
    assert choose(lanes, T0, avoid) == chosen


def test_load_is_measured_by_what_each_can_bear() -> None:
    small = replace(Lane.new(replace(POLICY, batch=2)), in_flight=1)
    assert choose([small, busy(5)], T0) == 1, "five of sixteen are less than one of two"


def test_one_that_is_away_is_tried_only_after_a_health_check() -> None:
    lane = away()
    later = T0 + 60 * SEC
    assert (lane.free(later), lane.state(T0)) == (0, LaneState.AWAY)
    assert lane.found_healthy(later).free(later) == 1
    assert lane.found_away(later, 1.0).free(later) == 0


def test_one_that_was_away_for_health_checks_too_is_tried_as_soon_as_it_is_back() -> None:
    lane = away().found_away(T0, 1.0)
    assert lane.breaker.resume_at > T0
    assert lane.found_healthy(T0 + 1).free(T0 + 1) == 1


def test_one_that_is_healthy_and_refuses_all_the_same_serves_its_time() -> None:
    lane = Lane.new(POLICY)
    for _ in range(POLICY.breaker_failures):
        lane = lane.asked(T0).failed(ErrorKind.UNAVAILABLE, T0, 1.0, retry_after_sec=40)
    lane = lane.found_healthy(T0 + SEC)
    assert lane.free(T0 + 39 * SEC) == 0
    assert lane.free(T0 + 40 * SEC) == 1


def test_a_trial_that_succeeds_brings_it_back() -> None:
    at = T0 + 2 * SEC
    lane = away().found_healthy(at).asked(at)
    assert (lane.state(at), lane.free(at)) == (LaneState.TRIED, 0)
    lane = lane.answered(20.0)
    assert (lane.state(at), lane.free(at), lane.in_flight) == (LaneState.SLOWED, 1, 0)
    for _ in range(200):
        lane = lane.asked(at).answered(20.0)
    assert (lane.state(at), lane.free(at)) == (LaneState.OK, POLICY.batch)


def test_health_checks_that_fail_while_nothing_is_asked_open_the_breaker_too() -> None:
    lane = Lane.new(POLICY)
    for _ in range(POLICY.breaker_failures):
        assert lane.breaker.state is BreakerState.CLOSED
        lane = lane.found_away(T0, 1.0)
    assert lane.breaker.state is BreakerState.OPEN


def test_refusals_and_failures_halve_how_many_are_asked() -> None:
    for kind in (ErrorKind.OVERLOADED, ErrorKind.TIMEOUT, ErrorKind.SERVER_ERROR):
        lane = busy(1).failed(kind, T0, 1.0)
        assert (lane.breaker.limit, lane.in_flight) == (POLICY.batch // 2, 0)


@pytest.mark.parametrize(("parallel", "low", "high"), [(1, 4, 8), (2, 4, 10), (16, 16, 16)])
def test_a_line_at_the_analyzer_makes_it_asked_less(parallel: int, low: int, high: int) -> None:
    """It works on some at once, 100 ms each: whatever is asked beyond that only waits there."""
    lane, now_ms = Lane.new(POLICY), 0
    places = [0] * parallel  # when each is free again
    answers: list[tuple[int, int]] = []  # when it comes, when it was asked
    for _ in range(5000):
        while lane.free(now_ms):
            lane = lane.asked(now_ms)
            place = places.index(min(places))
            places[place] = max(places[place], now_ms) + 100
            answers.append((places[place], now_ms))
        now_ms, asked_ms = min(answers)
        answers.remove((now_ms, asked_ms))
        lane = lane.answered(now_ms - asked_ms)
    assert low <= lane.breaker.limit <= high


def test_an_analyzer_that_became_slower_for_good_is_asked_as_much_again() -> None:
    lane = Lane.new(POLICY)
    for number in range(1500):
        lane = lane.asked(T0).answered(20.0 if number < 100 else 200.0)
        if number == 400:
            assert lane.breaker.limit < POLICY.batch
    assert lane.breaker.limit == POLICY.batch


def test_answers_that_take_a_little_longer_are_our_own_machines_doing() -> None:
    lane = Lane.new(POLICY)
    for number in range(500):
        lane = lane.asked(T0).answered(2.0 if number < 10 else 2.0 + SLOW_EXTRA_MS - 1)
    assert lane.breaker.limit == POLICY.batch


def test_whoever_gives_up_says_nothing_about_the_analyzer() -> None:
    lane = busy(4)
    assert lane.left() == busy(3)


# How many jobs are claimed.


@pytest.mark.parametrize(
    ("lanes", "at_hand", "wanted"),
    [
        ([busy(0)], 0, 24),
        ([busy(0)], 10, 14),
        ([busy(16)], 0, 8),
        ([busy(16)], 4, 4),
        ([busy(16)], 5, 0),
        ([busy(16), busy(0)], 0, 32),
        ([busy(0, 10.0)], 0, 16 + 64),
        ([busy(0, 40.0)], 0, 16 + 32),
        ([busy(0, 40.0)], 32, 16),
        ([busy(0, 40.0)], 33, 0),
        ([busy(0, 1000.0)], 0, 16 + 8),
        ([busy(16), away()], 0, 8),
        ([away()], 0, 0),
        ([], 0, 0),
    ],
    ids=[
        "idle",
        "some at hand",
        "full",
        "half gone",
        "enough",
        "two",
        "very quick",
        "quick",
        "quick, half gone",
        "quick, enough",
        "slow",
        "one away",
        "away",
        "none",
    ],
)
def test_how_many_jobs_are_claimed(lanes: list[Lane], at_hand: int, wanted: int) -> None:
    assert jobs_wanted(lanes, T0, at_hand) == wanted


@pytest.mark.parametrize(("batch", "ahead"), [(1, 4), (16, 64), (64, 256), (100, 256), (1000, 500)])
def test_what_is_kept_at_hand_for_a_quick_one_is_bounded(batch: int, ahead: int) -> None:
    lane = replace(Lane.new(JobPolicy(batch=batch)), latency_ms=1.0)
    assert jobs_wanted([lane], T0, 0) == batch + ahead


def test_slow_claims_are_made_further_ahead() -> None:
    lanes = [busy(0, 80.0)]
    assert jobs_wanted(lanes, T0, 0, claim_ms=20.0) == 16 + 16
    assert jobs_wanted(lanes, T0, 0, claim_ms=80.0) == 16 + 48
    assert jobs_wanted(lanes, T0, 0, claim_ms=8000.0) == 16 + 64


def test_a_trial_claims_one_job_and_none_ahead() -> None:
    at = T0 + 10 * SEC
    lane = away().found_healthy(at)
    assert jobs_wanted([lane], at, 0) == 1
    assert jobs_wanted([lane], at, 1) == 0
    assert jobs_wanted([lane.asked(at)], at, 0) == 0


def test_whether_waiting_is_any_use() -> None:
    assert is_anyone_there([busy(16), away()], T0)
    assert not is_anyone_there([away(), away()], T0)
    paused = busy(0).asked(T0).failed(ErrorKind.OVERLOADED, T0, 1.0, retry_after_sec=9)
    assert not is_anyone_there([paused], T0)
    assert is_anyone_there([paused], T0 + 9 * SEC)
    assert earliest_resume_at([away(), paused]) == away().breaker.resume_at


REPORTS = st.lists(
    st.tuples(
        st.sampled_from(["asked", "answered", "left", "healthy", "away", *ErrorKind]),
        st.integers(0, 5000),
        st.floats(0, 1),
        st.floats(0, 100_000),
    ),
    max_size=80,
)


@given(REPORTS)
def test_whatever_happens_it_is_bounded_and_comes_back(reports: list[tuple[str, int, float, float]]) -> None:
    lane, now_ms = Lane.new(POLICY), T0
    for what, wait_ms, jitter, latency_ms in reports:
        now_ms += wait_ms
        if what == "asked":
            if lane.free(now_ms):
                lane = lane.asked(now_ms)
        elif what == "healthy":
            lane = lane.found_healthy(now_ms)
        elif what == "away":
            lane = lane.found_away(now_ms, jitter)
        elif lane.in_flight:
            if what == "answered":
                lane = lane.answered(latency_ms)
            elif what == "left":
                lane = lane.left()
            else:
                lane = lane.failed(ErrorKind(what), now_ms, jitter)
        assert lane.in_flight >= 0
        assert 0 <= lane.free(now_ms) <= POLICY.batch
        assert 0 <= jobs_wanted([lane], now_ms, 0) <= (1 + AHEAD_FACTOR_MAX) * POLICY.batch
    assert lane.found_healthy(now_ms).free(now_ms + 3_600 * SEC) >= (lane.in_flight < lane.breaker.limit)
