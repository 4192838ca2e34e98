import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.jobs import (
    HOPELESS,
    REFUNDED,
    UNFINISHED,
    USELESS_MAX,
    Breaker,
    BreakerState,
    Dead,
    Delay,
    ErrorKind,
    JobPolicy,
    JobStatus,
    Skip,
    after_error,
    backoff_ms,
    given_up_words,
    is_backlog,
    jobs_to_skip,
    kind_of_status,
    sends_vocabulary,
)

from .build import MIN, SEC, T0

POLICY = JobPolicy()
KINDS = st.sampled_from(ErrorKind)
JITTER = st.floats(0, 1)
COUNTING = set(ErrorKind) - REFUNDED - HOPELESS


def after(
    kind: ErrorKind,
    attempt: int = 1,
    age_ms: int = 0,
    retry_after_sec: float | None = None,
    jitter: float = 1.0,
) -> Delay | Dead | Skip:
    return after_error(
        kind,
        attempt=attempt,
        created_at=T0 - age_ms,
        now_ms=T0,
        policy=POLICY,
        jitter=jitter,
        retry_after_sec=retry_after_sec,
    )


def test_the_states_of_a_job() -> None:
    assert [status.value for status in JobStatus] == ["queued", "delayed", "running", "done", "dead", "skipped"]
    assert {status.value for status in UNFINISHED} == {"queued", "delayed", "running"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.BAD_REQUEST),
        (409, ErrorKind.VOCABULARY_MISMATCH),
        (429, ErrorKind.OVERLOADED),
        (500, ErrorKind.SERVER_ERROR),
        (501, ErrorKind.SERVER_ERROR),
        (502, ErrorKind.CONNECTION),
        (503, ErrorKind.UNAVAILABLE),
        (504, ErrorKind.TIMEOUT),
        (201, ErrorKind.BROKEN_ANSWER),
        (302, ErrorKind.BROKEN_ANSWER),
        (404, ErrorKind.BROKEN_ANSWER),
    ],
)
def test_the_kind_of_an_http_answer(status: int, kind: ErrorKind) -> None:
    assert kind_of_status(status) is kind


# The contract's table: what the dispatcher does with each error.


@pytest.mark.parametrize("kind", [ErrorKind.BAD_REQUEST, ErrorKind.UNREADABLE_IMAGE])
def test_a_picture_nobody_can_read_is_dead_at_once(kind: ErrorKind) -> None:
    assert after(kind) == Dead(kind.value)


@pytest.mark.parametrize("kind", [ErrorKind.OVERLOADED, ErrorKind.UNAVAILABLE, ErrorKind.CONNECTION])
def test_an_analyzer_that_is_away_refunds_the_attempt_however_often(kind: ErrorKind) -> None:
    assert after(kind) == Delay(T0 + 2 * SEC, refund=True)
    assert isinstance(after(kind, attempt=10_000), Delay)


@pytest.mark.parametrize(
    "kind",
    [
        ErrorKind.TIMEOUT,
        ErrorKind.SERVER_ERROR,
        ErrorKind.BROKEN_ANSWER,
        ErrorKind.LOCK_LOST,
        ErrorKind.VOCABULARY_MISMATCH,
    ],
)
def test_an_ordinary_failure_counts_until_max_attempt(kind: ErrorKind) -> None:
    pauses = [after(kind, attempt) for attempt in (1, 2, 3, 4)]
    assert pauses == [Delay(T0 + seconds * SEC, refund=False) for seconds in (2, 4, 8, 16)]
    last = after(kind, attempt=5)
    assert isinstance(last, Dead)
    assert kind.value in last.reason


def test_every_kind_is_one_of_three() -> None:
    assert {
        ErrorKind.TIMEOUT,
        ErrorKind.SERVER_ERROR,
        ErrorKind.BROKEN_ANSWER,
        ErrorKind.LOCK_LOST,
        ErrorKind.VOCABULARY_MISMATCH,
    } == COUNTING


def test_the_vocabulary_is_sent_once_an_attempt() -> None:
    assert sends_vocabulary(ErrorKind.VOCABULARY_MISMATCH, sent_already=False)
    assert not sends_vocabulary(ErrorKind.VOCABULARY_MISMATCH, sent_already=True)
    assert not any(sends_vocabulary(kind, False) for kind in ErrorKind if kind != "vocabulary_mismatch")


@pytest.mark.parametrize("kind", sorted(REFUNDED | COUNTING))
def test_a_job_older_than_a_day_is_skipped(kind: ErrorKind) -> None:
    day_ms = 86_400 * SEC
    assert isinstance(after(kind, age_ms=day_ms), Delay)
    assert isinstance(after(kind, age_ms=day_ms + 1), Skip)


@pytest.mark.parametrize(
    ("retry_after_sec", "pause_ms"),
    [(7, 7000), (0, 0), (0.5, 500), (10**9, 3_600_000), (-1, 2000), (float("nan"), 2000), (float("inf"), 2000)],
)
def test_retry_after_wins_within_bounds(retry_after_sec: float, pause_ms: int) -> None:
    assert after(ErrorKind.OVERLOADED, retry_after_sec=retry_after_sec) == Delay(T0 + pause_ms, refund=True)


@given(KINDS, st.integers(1, 10**6), st.integers(0, 2 * 86_400 * SEC), st.none() | st.floats(), JITTER)
def test_whatever_fails_is_bounded(
    kind: ErrorKind, attempt: int, age_ms: int, retry_after_sec: float | None, jitter: float
) -> None:
    result = after(kind, attempt, age_ms, retry_after_sec, jitter)
    if isinstance(result, Delay):
        assert kind not in HOPELESS
        assert result.refund == (kind in REFUNDED)
        assert result.refund or attempt < POLICY.max_attempt
        assert T0 <= result.available_at <= T0 + 3_600 * SEC
    else:
        assert result.reason


@given(st.integers(1, 10**9), JITTER, st.floats(0.1, 10), st.floats(10, 1000))
def test_backoff_grows_to_its_cap_and_keeps_at_least_half(
    attempt: int, jitter: float, base_sec: float, cap_sec: float
) -> None:
    pause_ms = backoff_ms(attempt, jitter, base_sec, cap_sec)
    assert pause_ms <= backoff_ms(attempt + 1, jitter, base_sec, cap_sec)
    full_ms = backoff_ms(attempt, 1.0, base_sec, cap_sec)
    assert full_ms / 2 - 1 <= pause_ms <= full_ms <= cap_sec * 1000 + 1


@pytest.mark.parametrize(
    ("waiting", "age_ms", "backlog"),
    [(3, 120 * SEC, False), (4, 0, True), (1, 120 * SEC + 1, True), (0, 0, False)],
)
def test_backlog(waiting: int, age_ms: int, backlog: bool) -> None:
    assert is_backlog(waiting, age_ms, POLICY) is backlog


def test_past_the_bound_of_a_camera_the_oldest_are_skipped() -> None:
    assert [jobs_to_skip(waiting, POLICY) for waiting in (0, 100, 101, 150)] == [0, 0, 1, 50]


# The circuit breaker.


def opened(now_ms: int = T0) -> Breaker:
    breaker = Breaker.new(POLICY)
    for _ in range(POLICY.breaker_failures):
        breaker = breaker.failed(ErrorKind.CONNECTION, now_ms, 1.0)
    return breaker


@pytest.mark.parametrize("kind", [ErrorKind.CONNECTION, ErrorKind.UNAVAILABLE])
def test_failures_in_a_row_stop_claiming(kind: ErrorKind) -> None:
    breaker = Breaker.new(POLICY)
    for _ in range(POLICY.breaker_failures - 1):
        breaker = breaker.failed(kind, T0, 1.0)
        assert breaker.allowance(T0) == POLICY.batch
    breaker = breaker.failed(kind, T0, 1.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.allowance(T0) == 0
    assert breaker.allowance(T0 + 2 * SEC - 1) == 0
    assert breaker.allowance(T0 + 2 * SEC) == 1


def test_a_success_between_failures_starts_the_count_again() -> None:
    breaker = Breaker.new(POLICY)
    for _ in range(20):
        breaker = breaker.failed(ErrorKind.CONNECTION, T0, 1.0).succeeded()
    assert breaker.state is BreakerState.CLOSED


def test_one_trial_at_a_time() -> None:
    at = T0 + 2 * SEC
    breaker = opened().claimed(at, 1)
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.allowance(at + SEC) == 0
    # A trial that never reports does not hold the breaker for ever.
    assert breaker.allowance(at + 30 * SEC) == 1


def test_nothing_to_claim_is_no_trial() -> None:
    breaker = opened()
    assert breaker.claimed(T0 + 2 * SEC, 0) is breaker


def test_a_good_trial_closes_and_the_number_grows_back() -> None:
    breaker = opened().claimed(T0 + 2 * SEC, 1).succeeded()
    assert (breaker.state, breaker.allowance(T0 + 2 * SEC)) == (BreakerState.CLOSED, 1)
    limits = []
    for _ in range(200):
        breaker = breaker.succeeded()
        limits.append(breaker.limit)
    assert limits[:7] == [2, 2, 3, 3, 3, 4, 4], "one more each time that all who were asked have answered"
    assert breaker.allowance(T0 + 2 * SEC) == POLICY.batch


def test_slow_answers_take_back_what_good_ones_gave() -> None:
    breaker = Breaker.new(POLICY)
    for _ in range(1000):
        breaker = breaker.succeeded(is_slow=True)
    assert (breaker.limit, breaker.state) == (4, BreakerState.CLOSED)
    refused = breaker.failed(ErrorKind.OVERLOADED, T0, 1.0).failed(ErrorKind.OVERLOADED, T0, 1.0)
    assert refused.succeeded(is_slow=True).limit == 1, "slowness never raises it either"


@pytest.mark.parametrize("kind", [ErrorKind.CONNECTION, ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT])
def test_a_failed_trial_doubles_the_stop_up_to_its_cap(kind: ErrorKind) -> None:
    breaker, at, stops = opened(), T0, []
    for _ in range(8):
        at = breaker.resume_at
        breaker = breaker.claimed(at, 1).failed(kind, at, 1.0)
        stops.append((breaker.resume_at - at) // SEC)
    assert stops == [4, 8, 16, 32, 60, 60, 60, 60]


@pytest.mark.parametrize("kind", [ErrorKind.BAD_REQUEST, ErrorKind.SERVER_ERROR, ErrorKind.OVERLOADED])
def test_any_answer_to_a_trial_shows_that_it_is_back(kind: ErrorKind) -> None:
    breaker = opened().claimed(T0 + 2 * SEC, 1).failed(kind, T0 + 3 * SEC, 1.0)
    assert (breaker.state, breaker.allowance(T0 + 3 * SEC)) == (BreakerState.CLOSED, 1)


USELESS = [ErrorKind.BROKEN_ANSWER, ErrorKind.VOCABULARY_MISMATCH]


@pytest.mark.parametrize("kind", USELESS)
def test_one_that_only_talks_nonsense_is_as_good_as_away(kind: ErrorKind) -> None:
    breaker = Breaker.new(POLICY)
    for _ in range(USELESS_MAX - 1):
        breaker = breaker.failed(kind, T0, 1.0)
        assert breaker.allowance(T0) == POLICY.batch, "a few say nothing about the analyzer"
    sound = breaker.succeeded()
    assert (sound.state, sound.useless) == (BreakerState.CLOSED, 0), "one good answer in between, and all is well"
    breaker = breaker.failed(kind, T0, 1.0)
    assert (breaker.state, breaker.allowance(T0)) == (BreakerState.OPEN, 0)
    again = breaker.claimed(breaker.resume_at, 1).failed(kind, breaker.resume_at, 1.0)
    assert again.state is BreakerState.OPEN
    assert again.resume_at - breaker.resume_at > breaker.resume_at - T0, "a trial that fails doubles the stop"
    assert again.claimed(again.resume_at, 1).succeeded().state is BreakerState.CLOSED


@pytest.mark.parametrize("kind", USELESS)
def test_nonsense_between_slow_answers_is_counted_on(kind: ErrorKind) -> None:
    breaker = Breaker.new(POLICY)
    for _ in range(USELESS_MAX):
        breaker = breaker.failed(kind, T0, 1.0).failed(ErrorKind.SERVER_ERROR, T0, 1.0)
    assert breaker.state is BreakerState.OPEN


def test_overload_slows_and_honours_retry_after() -> None:
    breaker = Breaker.new(POLICY).failed(ErrorKind.OVERLOADED, T0, 1.0, retry_after_sec=20)
    assert breaker.allowance(T0 + 19 * SEC) == 0
    assert breaker.allowance(T0 + 20 * SEC) == POLICY.batch // 2
    for _ in range(20):
        breaker = breaker.failed(ErrorKind.OVERLOADED, T0, 1.0)
    assert breaker.allowance(T0 + MIN) == 1


def test_jobs_in_flight_count() -> None:
    breaker = Breaker.new(POLICY)
    assert breaker.allowance(T0, in_flight=POLICY.batch - 1) == 1
    assert breaker.allowance(T0, in_flight=POLICY.batch + 5) == 0


@pytest.mark.parametrize("kind", [ErrorKind.LOCK_LOST, ErrorKind.UNREADABLE_IMAGE])
def test_our_own_failures_say_nothing_about_the_analyzer(kind: ErrorKind) -> None:
    for breaker in (Breaker.new(POLICY), opened()):
        assert breaker.failed(kind, T0, 1.0) is breaker


REPORTS = st.lists(
    st.tuples(st.sampled_from([None, *ErrorKind]), st.integers(0, 5000), JITTER, st.none() | st.floats()),
    max_size=60,
)


@given(REPORTS)
def test_the_breaker_is_bounded_and_always_tries_again(
    reports: list[tuple[ErrorKind | None, int, float, float | None]],
) -> None:
    breaker, now_ms = Breaker.new(POLICY), T0
    for kind, wait_ms, jitter, retry_after_sec in reports:
        now_ms += wait_ms
        allowed = breaker.allowance(now_ms)
        assert 0 <= allowed <= POLICY.batch
        breaker = breaker.claimed(now_ms, min(allowed, 1))
        breaker = breaker.succeeded() if kind is None else breaker.failed(kind, now_ms, jitter, retry_after_sec)
        assert 1 <= breaker.limit <= POLICY.batch
        assert breaker.resume_at <= now_ms + 3_600 * SEC
        assert breaker.allowance(now_ms + 3_600 * SEC) >= 1


def test_an_analyzer_that_one_at_a_time_overloads_is_left_alone_for_a_growing_while() -> None:
    policy = JobPolicy(batch=2, breaker_open_sec=2.0, breaker_open_cap_sec=60.0)
    breaker = Breaker.new(policy).failed(ErrorKind.OVERLOADED, 0, 1.0)
    assert (breaker.limit, breaker.allowance(0)) == (1, 1), "first it is asked less at once"
    pauses = []
    now_ms = 0
    for _ in range(8):
        breaker = breaker.failed(ErrorKind.OVERLOADED, now_ms, 1.0)
        pauses.append(breaker.resume_at - now_ms)
        assert breaker.allowance(breaker.resume_at - 1) == 0
        now_ms = breaker.resume_at
        assert breaker.allowance(now_ms) == 1
    assert pauses == [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
    healed = breaker.succeeded()
    assert (healed.limit, healed.opened) == (2, 0)
    assert healed.failed(ErrorKind.OVERLOADED, now_ms, 1.0).allowance(now_ms) == 1, "and it begins anew"


@pytest.mark.parametrize(
    ("reason", "error", "told"),
    [
        ("bad_request", "bad_request: no picture", "bad_request: no picture"),
        ("timeout in attempt 5 of 5", "timeout: no answer", "timeout in attempt 5 of 5: no answer"),
        ("older than 5 s", "timeout: no answer", "older than 5 s: timeout: no answer"),
    ],
)
def test_a_kind_is_named_once(reason: str, error: str, told: str) -> None:
    assert given_up_words(reason, error) == told
