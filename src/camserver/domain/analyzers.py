"""Which of several analyzers is asked next, and how many questions each gets at once.

Rules only; asking is the dispatcher's. Each analyzer is a `Lane`: its circuit breaker, whose limit grows by success
and shrinks by refusal and by slowness, and how long its answers take.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from camserver.domain.jobs import SLOW_LIMIT_MIN, Breaker, BreakerState, ErrorKind, JobPolicy

# For at least so long, and for so many times what a claim takes, no analyzer runs out of questions.
AHEAD_MS = 80.0
AHEAD_CLAIMS = 3
# Jobs at hand are locked and their pictures in memory, so there are bounds to how many of them a quick one gets: so
# many times what it is asked at once, and so many in all.
AHEAD_FACTOR_MAX = 4
AHEAD_JOBS_MAX = 256
# How much the newest answer counts in the average.
LATENCY_SHARE = 0.1
# One that is slow even when it is asked little became slower for good; so fast is that believed, an answer.
BEST_SHARE = 0.002
# Answers that take so many times as long as its best ones mean that questions wait in line there.
SLOW_FACTOR = 3.0
# Below this more, it is our own machine that is busy, not the analyzer.
SLOW_EXTRA_MS = 50.0


class LaneState(StrEnum):
    """How an analyzer stands, as people are told."""

    OK = "ok"
    SLOWED = "slowed"  # asked less at once than it could be, or not at all for a moment
    AWAY = "away"  # not asked until it is back
    TRIED = "tried"  # one question tells whether it is back


@dataclass(frozen=True, slots=True)
class Lane:
    """One analyzer as a dispatcher sees it. An immutable value: each report gives the next one."""

    breaker: Breaker
    in_flight: int = 0
    latency_ms: float | None = None  # moving average of good answers
    best_ms: float | None = None  # the least that the average was
    # Since the breaker opened: what health checks say. Only where they say yes is a job spent on a trial.
    is_healthy: bool | None = None

    @classmethod
    def new(cls, policy: JobPolicy) -> "Lane":
        return cls(Breaker.new(policy))

    def is_open_for_business(self, now_ms: int) -> bool:
        """Whether it is asked in earnest, not just tried; it may be full."""
        return self.breaker.state is BreakerState.CLOSED and now_ms >= self.breaker.resume_at

    def free(self, now_ms: int) -> int:
        """How many more questions it gets now. One whose health check failed gets none: no job is spent on it."""
        if self.breaker.state is not BreakerState.CLOSED and not self.is_healthy:
            return 0
        return self.breaker.allowance(now_ms, self.in_flight)

    def state(self, now_ms: int) -> LaneState:
        if self.breaker.state is BreakerState.OPEN:
            return LaneState.AWAY
        if self.breaker.state is BreakerState.HALF_OPEN:
            return LaneState.TRIED
        is_whole = self.breaker.limit == self.breaker.policy.batch and now_ms >= self.breaker.resume_at
        return LaneState.OK if is_whole else LaneState.SLOWED

    # Asked for every question, so made anew without `replace`, which takes several times as long.

    def asked(self, now_ms: int) -> "Lane":
        breaker = self.breaker.claimed(now_ms, 1)
        return Lane(breaker, self.in_flight + 1, self.latency_ms, self.best_ms, self.is_healthy)

    def left(self) -> "Lane":
        """After a question whose end says nothing: whoever asked it gave up."""
        return replace(self, in_flight=self.in_flight - 1)

    def answered(self, latency_ms: float) -> "Lane":
        average = _towards(self.latency_ms, latency_ms, LATENCY_SHARE)
        best = average if self.best_ms is None else min(average, self.best_ms)
        is_slow = average > max(SLOW_FACTOR * best, best + SLOW_EXTRA_MS)
        if is_slow and self.breaker.limit <= SLOW_LIMIT_MIN:
            best = _towards(best, average, BEST_SHARE)
        return Lane(self.breaker.succeeded(is_slow), self.in_flight - 1, average, best, self.is_healthy)

    def failed(self, kind: ErrorKind, now_ms: int, jitter: float, retry_after_sec: float | None = None) -> "Lane":
        return self.left()._judged(self.breaker.failed(kind, now_ms, jitter, retry_after_sec))

    def found_healthy(self, now_ms: int) -> "Lane":
        """After a good health check. One that was away for those too is tried at once; any other serves its time."""
        if self.breaker.state is BreakerState.OPEN and self.is_healthy is False:
            return replace(self, is_healthy=True, breaker=replace(self.breaker, resume_at=now_ms))
        return replace(self, is_healthy=True)

    def found_away(self, now_ms: int, jitter: float) -> "Lane":
        """After a health check that failed. It counts like a question that did not reach the analyzer."""
        if self.breaker.state is BreakerState.CLOSED:
            return self._judged(self.breaker.failed(ErrorKind.CONNECTION, now_ms, jitter))
        return replace(self, is_healthy=False)

    def _judged(self, breaker: Breaker) -> "Lane":
        opens = breaker.state is BreakerState.OPEN and self.breaker.state is not BreakerState.OPEN
        return replace(self, breaker=breaker, is_healthy=None if opens else self.is_healthy)


def choose(lanes: Sequence[Lane], now_ms: int, avoid: Collection[int] = ()) -> int | None:
    """Who is asked next: the least loaded, of equals the quicker.

    Those to `avoid`, where the job failed, come last: while another one answers, a place there is worth waiting for.
    """
    free = [index for index, lane in enumerate(lanes) if lane.free(now_ms) > 0]
    if avoid:
        others = [index for index in free if index not in avoid]
        is_awaited = any(lane.is_open_for_business(now_ms) for index, lane in enumerate(lanes) if index not in avoid)
        free = others if others or is_awaited else free
    return min(free, key=lambda index: _load(lanes[index]), default=None)


def _load(lane: Lane) -> tuple[float, float]:
    return lane.in_flight / lane.breaker.limit, lane.latency_ms or 0.0


def jobs_ahead(lanes: Sequence[Lane], now_ms: int, claim_ms: float = 0.0) -> int:
    """How many jobs are kept at hand beyond what is asked right now, so that no analyzer waits for a claim."""
    ahead_ms = max(AHEAD_MS, AHEAD_CLAIMS * claim_ms)
    return math.ceil(sum(_ahead(lane, ahead_ms) for lane in lanes if lane.is_open_for_business(now_ms)))


def _ahead(lane: Lane, ahead_ms: float) -> float:
    """As many as it answers in that time; at least half of what it is asked at once."""
    limit = lane.breaker.limit
    if lane.latency_ms is None:
        return limit / 2
    answered = limit * ahead_ms / max(lane.latency_ms, 1.0)
    return max(limit / 2, min(answered, limit * AHEAD_FACTOR_MAX, AHEAD_JOBS_MAX))


def jobs_wanted(lanes: Sequence[Lane], now_ms: int, at_hand: int, claim_ms: float = 0.0) -> int:
    """How many jobs to claim now; `at_hand` are claimed and not asked about yet, a claim takes `claim_ms`.

    Half of what is kept at hand may go before more is claimed: few large claims cost less than many small ones.
    """
    ahead = jobs_ahead(lanes, now_ms, claim_ms)
    free = sum(lane.free(now_ms) for lane in lanes)
    return max(0, free + ahead - at_hand) if at_hand - free <= ahead // 2 else 0


def is_anyone_there(lanes: Sequence[Lane], now_ms: int) -> bool:
    """Whether it is worth waiting for a free place."""
    return any(lane.is_open_for_business(now_ms) or lane.free(now_ms) for lane in lanes)


def earliest_resume_at(lanes: Sequence[Lane]) -> int:
    return min(lane.breaker.resume_at for lane in lanes)


def claim_average_ms(average_ms: float, took_ms: float) -> float:
    """What a claim takes, after one more."""
    return _towards(average_ms, took_ms, LATENCY_SHARE)


def _towards(value: float | None, target: float, share: float) -> float:
    return target if value is None else value + (target - value) * share
