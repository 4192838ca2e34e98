"""A provider in simulated time, for the controller: what it can take, and what became of what was sent.

Nothing waits: events are worked off in their order, so a minute of traffic takes a moment.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from camserver.domain.scoring_limits import ConcurrencyController

LATENCY_SEC = 0.2
JITTER_SEC = 0.05
REFUSAL_SEC = 0.002


@dataclass
class ByConcurrency:
    places: Callable[[float], int]
    retry_after_sec: float | None = 1.0
    held: int = 0

    def take(self, now: float) -> float | None:
        """None: it is taken; else how long to wait."""
        if self.held >= self.places(now):
            return self.retry_after_sec or 0.0
        self.held += 1
        return None

    def give_back(self) -> None:
        self.held -= 1


@dataclass
class ByRate:
    """A bucket that refills steadily, or is filled at the beginning of each window."""

    per_sec: float
    burst: float
    window_sec: float | None = None
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.burst

    def take(self, now: float) -> float | None:
        if self.window_sec is not None:
            if now // self.window_sec > self.at // self.window_sec:
                self.level = self.burst
            wait = self.window_sec - now % self.window_sec
        else:
            self.level = min(self.burst, self.level + (now - self.at) * self.per_sec)
            wait = (1 - self.level) / self.per_sec
        self.at = now
        if self.level < 1:
            return wait
        self.level -= 1
        return None

    def give_back(self) -> None:
        """Time brings it back."""


@dataclass
class Played:
    answered: int = 0
    refused: int = 0
    by_second: dict[int, int] = field(default_factory=dict)

    def per_sec(self, begin: int, end: int) -> float:
        return sum(self.by_second.get(second, 0) for second in range(begin, end)) / (end - begin)


def play(controller: ConcurrencyController, server: ByConcurrency | ByRate, seconds: float, seed: int = 1) -> Played:
    """Sends as the controller allows, without end, until the time is over."""
    chance = random.Random(seed)
    order = itertools.count()
    events: list[tuple[float, int, Callable[[float], None]]] = []
    played = Played()
    waiting: list[None] = []  # refused questions whose wait is over, with their places
    wake_at: list[float] = []

    def at(when: float, what: Callable[[float], None]) -> None:
        heapq.heappush(events, (when, next(order), what))

    def send(now: float) -> None:
        ticket = controller.sent(now)
        wait = server.take(now)
        if wait is None:
            took = LATENCY_SEC + chance.uniform(-JITTER_SEC, JITTER_SEC)

            def answer(then: float) -> None:
                server.give_back()
                played.answered += 1
                played.by_second[int(then)] = played.by_second.get(int(then), 0) + 1
                controller.answered(ticket, then)
                controller.release()
                pump(then)

            at(now + took, answer)
            return

        def refuse(then: float) -> None:
            played.refused += 1
            again = controller.refuse(ticket, wait or None, then)

            def back(later: float) -> None:
                waiting.append(None)
                pump(later)

            at(then + again, back)
            pump(then)

        at(now + REFUSAL_SEC, refuse)

    def pump(now: float) -> None:
        while True:
            if not waiting and not controller.has_place:
                return
            delay = controller.wait_sec(now)
            if delay > 0:
                if not wake_at or wake_at[0] > now + delay or wake_at[0] <= now:
                    wake_at[:] = [now + delay]
                    at(now + delay, pump)
                return
            if waiting:
                waiting.pop()
            else:
                controller.take()
            send(now)

    pump(0.0)
    while events and events[0][0] < seconds:
        now, _, what = heapq.heappop(events)
        what(now)
    return played
