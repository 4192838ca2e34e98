"""A provider in simulated time, for the controller: what it can take, and what became of what was sent.

Nothing waits: events are worked off in their order, so a minute of traffic takes a moment.
"""

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from camserver.domain.scoring_limits import Allowance, ConcurrencyController


class Server(Protocol):
    def take(self, now: float, weight: float) -> float | None:
        """None: it is taken; else how long to wait, 0 where that is not said."""

    def give_back(self) -> None: ...

    def told(self, now: float) -> Allowance | None: ...


@dataclass
class ByConcurrency:
    places: Callable[[float], int]
    retry_after_sec: float | None = 1.0
    held: int = 0

    def take(self, now: float, weight: float) -> float | None:
        if self.held >= self.places(now):
            return self.retry_after_sec or 0.0
        self.held += 1
        return None

    def give_back(self) -> None:
        self.held -= 1

    def told(self, now: float) -> Allowance | None:
        return None


@dataclass
class ByRate:
    """A bucket that refills steadily, or is filled at the beginning of each window. `is_whole` says how long to wait
    in whole seconds, as most servers do; `is_silent` does not say it."""

    per_sec: Callable[[float], float] | float
    burst: float
    window_sec: float | None = None
    is_whole: bool = False
    is_silent: bool = False
    tells: bool = False
    is_by_weight: bool = False
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.burst

    def _rate(self, now: float) -> float:
        return self.per_sec(now) if callable(self.per_sec) else self.per_sec

    def take(self, now: float, weight: float) -> float | None:
        weight = weight if self.is_by_weight else 1.0
        self._fill(now)
        if self.level < weight:
            wait = (weight - self.level) / self._rate(now)
            if self.window_sec is not None:
                wait = self.window_sec - now % self.window_sec
            return 0.0 if self.is_silent else float(math.ceil(wait)) if self.is_whole else wait
        self.level -= weight
        return None

    def _fill(self, now: float) -> None:
        if self.window_sec is None:
            self.level = min(self.burst, self.level + (now - self.at) * self._rate(now))
        elif now // self.window_sec > self.at // self.window_sec:
            self.level = self.burst
        self.at = now

    def give_back(self) -> None:
        """Time brings it back."""

    def told(self, now: float) -> Allowance | None:
        if not self.tells:
            return None
        self._fill(now)
        what = "tokens" if self.is_by_weight else "requests"
        if self.window_sec is not None:
            return Allowance(self.burst, self.level, self.window_sec - now % self.window_sec, what)
        return Allowance(self.burst, self.level, max((self.burst - self.level) / self._rate(now), 0.001), what)


@dataclass
class InAnyWindow:
    """So much in any time of that length, of questions or of what they weigh: what was taken comes back as it went,
    that long ago. `says` is how it tells how long to wait."""

    most: Callable[[float], float] | float
    window_sec: float
    is_by_weight: bool = False
    says: str = "nothing"  # or "exactly", or "whole" seconds
    taken: deque[tuple[float, float]] = field(default_factory=deque)
    used: float = 0.0

    def take(self, now: float, weight: float) -> float | None:
        weight = weight if self.is_by_weight else 1.0
        while self.taken and self.taken[0][0] <= now - self.window_sec:
            self.used -= self.taken.popleft()[1]
        most = self.most(now) if callable(self.most) else self.most
        if self.used + weight > most:
            wait = self.taken[0][0] + self.window_sec - now if self.taken else self.window_sec
            return 0.0 if self.says == "nothing" else float(math.ceil(wait)) if self.says == "whole" else wait
        self.taken.append((now, weight))
        self.used += weight
        return None

    def give_back(self) -> None:
        """Time brings it back."""

    def told(self, now: float) -> Allowance | None:
        return None


@dataclass
class Both:
    """Two capacities at once."""

    first: Server
    second: Server

    def take(self, now: float, weight: float) -> float | None:
        wait = self.first.take(now, weight)
        if wait is None and (wait := self.second.take(now, weight)) is not None:
            self.first.give_back()
        return wait

    def give_back(self) -> None:
        self.first.give_back()
        self.second.give_back()

    def told(self, now: float) -> Allowance | None:
        return self.first.told(now) or self.second.told(now)


@dataclass(frozen=True)
class Way:
    """The way to the provider, and how it answers."""

    latency_sec: float = 0.2
    jitter_sec: float = 0.05
    refusal_sec: float = 0.002
    late_sec: float = 0.002  # timers come late by up to this
    straggler_share: float = 0.0
    straggler_sec: float = 2.0
    failing_share: float = 0.0  # answered by nobody: sent again
    weights: tuple[float, float] = (1.0, 1.0)


@dataclass
class Played:
    answered: int = 0
    refused: int = 0
    by_second: dict[int, float] = field(default_factory=dict)
    refused_at: list[float] = field(default_factory=list)

    def per_sec(self, begin: int, end: int) -> float:
        return sum(self.by_second.get(second, 0) for second in range(begin, end)) / (end - begin)


class World:
    """Sends as the controller allows, without end, until the time is over."""

    def __init__(self, controller: ConcurrencyController, server: Server, way: Way, seed: int) -> None:
        self._controller = controller
        self._server = server
        self._way = way
        self._chance = random.Random(seed)
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._again: list[float] = []  # weights of refused questions whose wait is over, with their places
        self._wake_at = math.inf
        self._mean = sum(way.weights) / 2
        self.played = Played()

    def run(self, seconds: float) -> Played:
        self._pump(0.0)
        while self._events and self._events[0][0] < seconds:
            now, _, what = heapq.heappop(self._events)
            what(now)
        return self.played

    def _at(self, when: float, what: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), what))

    def _pump(self, now: float) -> None:
        if now >= self._wake_at:
            self._wake_at = math.inf
        while self._again or self._controller.has_place:
            delay = self._controller.wait_sec(now)
            if delay > 0:
                due = now + delay + self._chance.uniform(0, self._way.late_sec)
                if due < self._wake_at:
                    self._wake_at = due
                    self._at(due, self._pump)
                return
            if self._again:
                self._send(now, self._again.pop())
            else:
                self._controller.take()
                self._send(now, self._chance.uniform(*self._way.weights))

    def _send(self, now: float, weight: float) -> None:
        ticket = self._controller.sent(now)
        way, chance = self._way, self._chance

        def answered(then: float) -> None:
            self._server.give_back()
            played = self.played
            played.answered += 1
            played.by_second[int(then)] = played.by_second.get(int(then), 0) + weight / self._mean
            self._controller.answered(ticket, then)
            if (told := self._server.told(then)) is not None:
                self._controller.heed(told, self._mean if told.what == "tokens" else 1.0, then)
            self._controller.release()
            self._pump(then)

        def lost(then: float) -> None:
            self._server.give_back()
            self._controller.lost(ticket)
            self._at(then + 0.2, back)

        def refused(then: float, wait: float) -> None:
            self.played.refused += 1
            self.played.refused_at.append(then)
            waiting = self._controller.refuse(ticket, wait or None, then)

            def look(now: float) -> None:
                left = self._controller.left_sec(waiting, now)
                if left > 0:
                    self._at(now + left * chance.uniform(1.0, 1.1), look)
                else:
                    back(now)

            look(then)
            self._pump(then)

        def back(then: float) -> None:
            self._again.append(weight)
            self._pump(then)

        wait = self._server.take(now, weight)
        if wait is not None:
            self._at(now + way.refusal_sec * chance.uniform(0.5, 1.5), lambda then: refused(then, wait))
        else:
            took = way.latency_sec + chance.uniform(-way.jitter_sec, way.jitter_sec)
            took += way.straggler_sec if chance.random() < way.straggler_share else 0.0
            is_lost = chance.random() < way.failing_share
            self._at(now + took, lost if is_lost else answered)


def play(
    controller: ConcurrencyController, server: Server, seconds: float, way: Way | None = None, seed: int = 1
) -> Played:
    return World(controller, server, way or Way(), seed).run(seconds)
