"""What becomes of an analysis job: states, back-off, giving up (decisions 14 to 16).

Rules only: claiming, locking and the fence are the store's. `Breaker` says when to stop asking.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from camserver.domain.policy import setting


class JobStatus(StrEnum):
    QUEUED = "queued"
    DELAYED = "delayed"  # waits for its available_at
    RUNNING = "running"  # locked by a dispatcher under a fence
    DONE = "done"
    DEAD = "dead"  # failed for good; a person may look at it
    SKIPPED = "skipped"  # given up on purpose: too old, or too many of its camera


UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.DELAYED, JobStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """Attempts, back-off and bounds of analysis jobs, and the circuit breaker in front of the analyzer."""

    default_priority: int = setting(100, "Priority of a camera's jobs; higher comes first.", min=0, max=255)
    max_attempt: int = setting(5, "Attempts after which a failing job is dead.", min=1, max=100)
    max_age_sec: int = setting(86_400, "Jobs older than this are skipped.", min=60, max=2_592_000)
    lock_sec: int = setting(60, "How long a claim holds without being renewed.", min=5, max=3600)
    renew_every_sec: int = setting(20, "How often a live dispatcher renews its claims.", min=1, max=1800)
    backoff_base_sec: float = setting(2.0, "Pause after the first failure; it doubles.", min=0.1, max=3600)
    backoff_cap_sec: float = setting(300.0, "Longest pause between two attempts.", min=0.1, max=86_400)
    retry_after_cap_sec: float = setting(
        3600.0, "Longest pause that an analyzer's Retry-After is granted.", min=1, max=86_400
    )
    camera_bound: int = setting(100, "Waiting jobs per camera; past it the oldest is skipped.", min=1, max=1_000_000)
    backlog_jobs: int = setting(3, "A camera with more waiting jobs is served newest first.", min=1, max=1000)
    backlog_age_sec: int = setting(
        120, "A camera whose oldest waiting job is older than this is served newest first.", min=1, max=86_400
    )
    batch: int = setting(
        16,
        "Most questions a dispatcher has at one analyzer; a quick one has a few times that claimed ahead.",
        min=1,
        max=1000,
    )
    breaker_failures: int = setting(
        3,
        "Failures in a row to reach the analyzer after which no job is claimed for a while.",
        min=1,
        max=100,
    )
    breaker_open_sec: float = setting(
        2.0, "How long claiming stops at first; it doubles while the analyzer is away.", min=0.1, max=3600
    )
    breaker_open_cap_sec: float = setting(60.0, "Longest stop between two trials.", min=0.1, max=3600)
    breaker_probe_sec: float = setting(30.0, "How long a trial may take before another one is made.", min=1, max=3600)


class ErrorKind(StrEnum):
    """All ways in which an attempt can fail."""

    OVERLOADED = "overloaded"  # 429
    UNAVAILABLE = "unavailable"  # 503
    CONNECTION = "connection"  # refused, reset, no route, no name
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"  # 500 and its like
    BROKEN_ANSWER = "broken_answer"  # a 200 that is malformed or breaks the contract, or a status outside of it
    LOCK_LOST = "lock_lost"  # the claim expired under the dispatcher
    VOCABULARY_MISMATCH = "vocabulary_mismatch"  # 409, also after the vocabulary was sent again
    BAD_REQUEST = "bad_request"  # 400: the analyzer can't use this picture
    UNREADABLE_IMAGE = "unreadable_image"  # our own object is missing or broken


# The analyzer can't take the job now, which says nothing about the job: the attempt is refunded.
REFUNDED = frozenset({ErrorKind.OVERLOADED, ErrorKind.UNAVAILABLE, ErrorKind.CONNECTION})
# The job stays wrong however often it is tried.
HOPELESS = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.UNREADABLE_IMAGE})
# Everything else counts towards max_attempt.

# What a failure says about the analyzer: not there, too slow, or nothing.
_AWAY = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.CONNECTION})
_SLOW = frozenset({ErrorKind.OVERLOADED, ErrorKind.TIMEOUT, ErrorKind.SERVER_ERROR})
# It answers, and nothing can be done with what it says: may be the picture, but not ten times in a row.
_USELESS = frozenset({ErrorKind.BROKEN_ANSWER, ErrorKind.VOCABULARY_MISMATCH})
# These never reached the analyzer, so they say nothing about it.
_OURS = frozenset({ErrorKind.LOCK_LOST, ErrorKind.UNREADABLE_IMAGE})


@dataclass(frozen=True, slots=True)
class Delay:
    """Try again at `available_at` (ms); `refund` gives the attempt back."""

    available_at: int
    refund: bool


@dataclass(frozen=True, slots=True)
class Dead:
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    reason: str


def kind_of_status(status: int) -> ErrorKind:
    """The kind of an HTTP answer that is not 200."""
    known = {
        400: ErrorKind.BAD_REQUEST,
        409: ErrorKind.VOCABULARY_MISMATCH,
        429: ErrorKind.OVERLOADED,
        503: ErrorKind.UNAVAILABLE,
        # A proxy in front of the analyzer speaks for a connection that failed or took too long.
        502: ErrorKind.CONNECTION,
        504: ErrorKind.TIMEOUT,
    }
    if status in known:
        return known[status]
    return ErrorKind.SERVER_ERROR if status >= 500 else ErrorKind.BROKEN_ANSWER


def sends_vocabulary(kind: ErrorKind, sent_already: bool) -> bool:
    """Whether to PUT the active vocabulary and try again in the same attempt; at most once an attempt."""
    return kind is ErrorKind.VOCABULARY_MISMATCH and not sent_already


def after_error(
    kind: ErrorKind,
    *,
    attempt: int,
    created_at: int,
    now_ms: int,
    policy: JobPolicy,
    jitter: float,
    retry_after_sec: float | None = None,
) -> Delay | Dead | Skip:
    """What becomes of a job after a failed attempt.

    `attempt` counts from 1 and includes this one; `jitter` is a random number of 0..1. A vocabulary mismatch
    comes here only after the vocabulary was sent again in vain (see `sends_vocabulary`).
    """
    if kind in HOPELESS:
        return Dead(kind.value)
    if is_too_old(created_at, now_ms, policy):
        return Skip(f"older than {policy.max_age_sec} s")
    refund = kind in REFUNDED
    if not refund and attempt >= policy.max_attempt:
        return Dead(f"{kind.value} in attempt {attempt} of {policy.max_attempt}")
    pause_ms = _retry_after_ms(retry_after_sec, policy)
    if pause_ms is None:
        pause_ms = backoff_ms(attempt, jitter, policy.backoff_base_sec, policy.backoff_cap_sec)
    return Delay(available_at=now_ms + pause_ms, refund=refund)


# Why jobs were given up on purpose, as it is written with them.
_SKIPPED = {"too_old": "older than ", "too_many": "more than "}
REASONS = (*(kind.value for kind in ErrorKind), *_SKIPPED)


def reason_prefix(reason: str) -> str:
    """What the error of a job begins with that failed, or was skipped, for this of REASONS."""
    return _SKIPPED.get(reason, reason)


def reason_of(error: str | None) -> str | None:
    """Which of REASONS a job's error tells of."""
    if error is None:
        return None
    return next((reason for reason in REASONS if error.startswith(reason_prefix(reason))), None)


def given_up_words(reason: str, error: str) -> str:
    """What is written with a job that is given up: why, and what the last attempt said, the kind named once."""
    kind = reason.partition(" ")[0]
    return f"{reason}: {error.removeprefix(f'{kind}: ')}"


def backoff_ms(attempt: int, jitter: float, base_sec: float, cap_sec: float) -> int:
    """A pause that doubles with each attempt up to the cap, spread over its upper half by `jitter` 0..1."""
    # 2**60 s is past any cap; the bound keeps the power itself small.
    full_sec = min(base_sec * 2.0 ** min(max(attempt, 1) - 1, 60), cap_sec)
    return round(full_sec * (0.5 + 0.5 * jitter) * 1000)


def is_too_old(created_at: int, now_ms: int, policy: JobPolicy) -> bool:
    return now_ms - created_at > policy.max_age_sec * 1000


def is_backlog(waiting: int, oldest_age_ms: int, policy: JobPolicy) -> bool:
    """Whether a camera is so far behind that its newest job comes first."""
    return waiting > policy.backlog_jobs or oldest_age_ms > policy.backlog_age_sec * 1000


def jobs_to_skip(waiting: int, policy: JobPolicy) -> int:
    """How many of a camera's oldest waiting jobs are past its bound."""
    return max(0, waiting - policy.camera_bound)


def _retry_after_ms(retry_after_sec: float | None, policy: JobPolicy) -> int | None:
    """What the analyzer asked for, within bounds; None when it asked nothing that makes sense."""
    if retry_after_sec is None or not math.isfinite(retry_after_sec) or retry_after_sec < 0:
        return None
    return round(min(retry_after_sec, policy.retry_after_cap_sec) * 1000)


# Slow answers alone never bring it below this; slowness has many reasons, a refusal one.
SLOW_LIMIT_MIN = 4
# Useless answers in a row after which an analyzer is as good as away: else a quick one would spend all attempts.
USELESS_MAX = 10


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Breaker:
    """A circuit breaker: how many jobs may be claimed now, from what the analyzer answered lately.

        CLOSED ── away `breaker_failures` times in a row, or USELESS_MAX useless answers ──> OPEN
        OPEN ── its time is up: one trial is taken ──> HALF_OPEN
        HALF_OPEN ── an answer ──> CLOSED, one at a time ;  ── away or useless again ──> OPEN, for twice as long

    While closed, an overloaded analyzer or one that fails halves how many are asked at once; as many successes as are
    asked at once add one, or take one away when the answers are slow. One that is overloaded even by one at a time is
    left alone for a growing while. An immutable value: each report gives the next one.
    """

    policy: JobPolicy
    limit: int  # most jobs in flight while closed, 1..policy.batch
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0  # in a row, while closed
    opened: int = 0  # times in a row it opened, or was too much by one, without a success between
    resume_at: int = 0  # ms; before it nothing is claimed
    successes: int = 0  # since the limit last moved
    useless: int = 0  # answers in a row that nothing could be done with, while closed

    @classmethod
    def new(cls, policy: JobPolicy) -> "Breaker":
        return cls(policy=policy, limit=policy.batch)

    def allowance(self, now_ms: int, in_flight: int = 0) -> int:
        """How many more jobs may be claimed now."""
        if now_ms < self.resume_at:
            return 0
        if self.state is not BreakerState.CLOSED:
            return 1
        return max(0, self.limit - in_flight)

    def claimed(self, now_ms: int, count: int) -> "Breaker":
        """After `count` jobs were claimed. While open that is the trial, and no other until it reports."""
        if self.state is BreakerState.CLOSED or count == 0:
            return self
        # A trial whose dispatcher vanished must not keep the breaker half open for ever.
        return replace(
            self, state=BreakerState.HALF_OPEN, resume_at=now_ms + round(self.policy.breaker_probe_sec * 1000)
        )

    def succeeded(self, is_slow: bool = False) -> "Breaker":
        """After an answer the analyzer gave in good order, whatever it said. `is_slow`: they take ever longer."""
        if self.state is not BreakerState.CLOSED:
            return Breaker(policy=self.policy, limit=1)
        if self.limit == self.policy.batch and not (is_slow or self.failures or self.opened or self.useless):
            return self
        if self.successes + 1 < self.limit:
            return replace(self, failures=0, opened=0, useless=0, successes=self.successes + 1)
        slower = max(min(self.limit, SLOW_LIMIT_MIN), self.limit - 1)
        limit = slower if is_slow else min(self.limit + 1, self.policy.batch)
        return replace(self, failures=0, opened=0, useless=0, successes=0, limit=limit)

    def failed(self, kind: ErrorKind, now_ms: int, jitter: float, retry_after_sec: float | None = None) -> "Breaker":
        """After a failed attempt; `jitter` is a random number of 0..1."""
        if kind in _OURS:
            return self
        if kind in _AWAY or (kind is ErrorKind.TIMEOUT and self.state is BreakerState.HALF_OPEN):
            return self._away(now_ms, jitter, retry_after_sec)
        if kind in _SLOW:
            return self._slower(kind, now_ms, jitter, retry_after_sec)
        if kind in _USELESS:
            return self._useless(now_ms, jitter)
        return self.succeeded()

    def _away(self, now_ms: int, jitter: float, retry_after_sec: float | None) -> "Breaker":
        if self.state is BreakerState.OPEN:
            # Requests that were under way when it opened; only a longer wait is news.
            return replace(self, resume_at=max(self.resume_at, self._retry_at(now_ms, retry_after_sec)))
        failures = self.failures + 1
        if self.state is BreakerState.CLOSED and failures < self.policy.breaker_failures:
            return replace(
                self,
                failures=failures,
                resume_at=max(self.resume_at, self._retry_at(now_ms, retry_after_sec)),
            )
        return self._opening(now_ms, jitter, retry_after_sec)

    def _useless(self, now_ms: int, jitter: float) -> "Breaker":
        if self.state is BreakerState.OPEN:
            return self
        if self.state is BreakerState.CLOSED and self.useless + 1 < USELESS_MAX:
            return replace(self, failures=0, useless=self.useless + 1)
        return self._opening(now_ms, jitter, None)

    def _opening(self, now_ms: int, jitter: float, retry_after_sec: float | None) -> "Breaker":
        opened = self.opened + 1
        pause_ms = backoff_ms(opened, jitter, self.policy.breaker_open_sec, self.policy.breaker_open_cap_sec)
        return replace(
            self,
            state=BreakerState.OPEN,
            failures=0,
            useless=0,
            opened=opened,
            resume_at=max(now_ms + pause_ms, self._retry_at(now_ms, retry_after_sec)),
        )

    def _slower(self, kind: ErrorKind, now_ms: int, jitter: float, retry_after_sec: float | None) -> "Breaker":
        if self.state is BreakerState.OPEN:
            return self
        limit = 1 if self.state is BreakerState.HALF_OPEN else max(1, self.limit // 2)
        resume_at = 0 if self.state is BreakerState.HALF_OPEN else self.resume_at
        opened = 0
        if kind is ErrorKind.OVERLOADED:
            resume_at = max(resume_at, self._retry_at(now_ms, retry_after_sec))
            if self.limit == 1:
                # One at a time is still too much for it; only waiting is less.
                opened = self.opened + 1
                pause_ms = backoff_ms(opened, jitter, self.policy.breaker_open_sec, self.policy.breaker_open_cap_sec)
                resume_at = max(resume_at, now_ms + pause_ms)
        return Breaker(policy=self.policy, limit=limit, opened=opened, resume_at=resume_at, useless=self.useless)

    def _retry_at(self, now_ms: int, retry_after_sec: float | None) -> int:
        if retry_after_sec is None or not 0 <= retry_after_sec < float("inf"):
            return 0
        return now_ms + round(min(retry_after_sec, self.policy.retry_after_cap_sec) * 1000)
