"""What the fake can take at once, a second, or in tokens. A capacity may be changed while it is used."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol


class Capacity(Protocol):
    def take(self, tokens: int) -> float | None:
        """None: taken; else the seconds after which it is worth trying again."""

    def give_back(self) -> None: ...

    def headers(self) -> dict[str, str]: ...


class ByConcurrency:
    """So many at once."""

    def __init__(self, places: int, retry_after_sec: float = 1.0) -> None:
        self.places = places
        self.held = 0
        self.retry_after_sec = retry_after_sec

    def take(self, tokens: int) -> float | None:
        if self.held >= self.places:
            return self.retry_after_sec
        self.held += 1
        return None

    def give_back(self) -> None:
        self.held -= 1

    def headers(self) -> dict[str, str]:
        return {}


class ByRate:
    """A bucket of requests that refills steadily."""

    name = "requests"

    def __init__(self, per_sec: float, burst: float, tells: bool = False) -> None:
        self.per_sec = per_sec
        self.burst = burst
        self._level = burst
        self._at = time.monotonic()
        self._tells = tells

    def _amount(self, tokens: int) -> float:
        return 1.0

    def take(self, tokens: int) -> float | None:
        now = time.monotonic()
        self._level = min(self.burst, self._level + (now - self._at) * self.per_sec)
        self._at = now
        wanted = self._amount(tokens)
        if self._level < wanted:
            return (wanted - self._level) / self.per_sec
        self._level -= wanted
        return None

    def give_back(self) -> None:
        """Time brings it back."""

    def headers(self) -> dict[str, str]:
        if not self._tells:
            return {}
        missing = (self.burst - self._level) / self.per_sec
        return {
            f"x-ratelimit-limit-{self.name}": str(int(self.burst)),
            f"x-ratelimit-remaining-{self.name}": str(int(self._level)),
            f"x-ratelimit-reset-{self.name}": f"{max(missing, 0.001):.3f}s",
        }


class ByTokens(ByRate):
    """The same, of tokens."""

    name = "tokens"

    def _amount(self, tokens: int) -> float:
        return float(tokens)


class ByConcurrencyOverTime(ByConcurrency):
    """So many at once, and from each of these seconds on so many. It does not say how long to wait."""

    def __init__(self, places: int, later: Sequence[tuple[float, int]]) -> None:
        super().__init__(places, 0.0)
        self._later = deque(later)
        self._began: float | None = None

    def take(self, tokens: int) -> float | None:
        now = time.monotonic()
        self._began = self._began if self._began is not None else now
        while self._later and now - self._began >= self._later[0][0]:
            self.places = self._later.popleft()[1]
        return super().take(tokens)


class InAnyWindow:
    """So many tokens in any time of that length: used up at once, nothing comes back until it is over. It does not
    say how long to wait."""

    def __init__(self, tokens: float, window_sec: float) -> None:
        self._most = tokens
        self._window_sec = window_sec
        self._taken: deque[tuple[float, float]] = deque()
        self._used = 0.0

    def take(self, tokens: int) -> float | None:
        now = time.monotonic()
        while self._taken and self._taken[0][0] <= now - self._window_sec:
            self._used -= self._taken.popleft()[1]
        if self._used + tokens > self._most:
            return 0.0
        self._taken.append((now, tokens))
        self._used += tokens
        return None

    def give_back(self) -> None:
        """Time brings it back."""

    def headers(self) -> dict[str, str]:
        return {}
