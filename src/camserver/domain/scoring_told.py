"""How many questions may be sent a second where a provider says in headers what is left, of requests or of tokens.

Of what fills up steadily it keeps to what comes back; of a window, to what is left over the rest of it.
"""

from dataclasses import dataclass
from typing import Final

from camserver.domain.scoring_pace import MARGIN, PACE_MIN


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider's headers say is left, of requests or of tokens."""

    limit: float
    remaining: float
    reset_sec: float  # until it is whole again
    what: str = "requests"


# Headers count once so little is left of what they tell.
LOW_SHARE: Final = 0.2
# Half of that is what is left in the end: so much faster with more, and slower with less.
TOLD_GAIN: Final = 0.1
# A window may end a little later than they say.
WINDOW_LATE_SEC: Final = 0.02
# What they say is compared with what they said so long before.
TOLD_APART_SEC: Final = 0.5


class ToldPace:
    """The pace that headers tell, of one thing that is counted."""

    def __init__(self) -> None:
        self.per_sec: float | None = None
        self._refill: float | None = None  # a second, of what is counted
        self._until_sec = 0.0  # when all of it is back
        self._earlier: tuple[float, Allowance] | None = None
        self._is_window = False

    def heed(self, told: Allowance, per_question: float, in_flight: int, now_sec: float) -> None:
        self._tell_apart(told, now_sec)
        self._until_sec = now_sec + told.reset_sec
        if told.reset_sec > 0 and told.limit > told.remaining:
            self._refill = (told.limit - told.remaining) / told.reset_sec
        pace = self._in_window(told) if self._is_window else self._steady(told, per_question * in_flight)
        self.per_sec = None if pace is None else max(pace / per_question, PACE_MIN)

    def _in_window(self, told: Allowance) -> float | None:
        """What is left is spread over the time that is left, once half of it is used."""
        if told.remaining > 0.5 * told.limit or told.reset_sec <= 0:
            return None
        return max(told.remaining - MARGIN * told.limit, 0.0) / told.reset_sec

    def _steady(self, told: Allowance, asked: float) -> float | None:
        """What comes back. Of a small allowance more may be in flight than is left: it is kept to all the time."""
        is_small = 2 * asked >= 0.5 * told.limit
        low = 0.5 * told.limit if is_small else max(2 * asked, LOW_SHARE * told.limit)
        is_plenty = told.remaining > low and not (is_small or (self.per_sec is not None and told.remaining < 2 * low))
        if self._refill is None or is_plenty:
            return None
        above = min(max(told.remaining / (0.5 * low) - 1, -1.0), 1.0)
        return self._refill * (1 + TOLD_GAIN * above)

    def spacing_sec(self, now_sec: float) -> float:
        """Between two questions; none waits longer than until a window ends."""
        if self.per_sec is None:
            return 0.0
        if self._is_window:
            return min(1 / self.per_sec, max(self._until_sec + WINDOW_LATE_SEC - now_sec, 0.0))
        return 1 / self.per_sec

    def _tell_apart(self, told: Allowance, now_sec: float) -> None:
        """Some fill up steadily, so that less left takes longer; some all at once at the end of a window."""
        earlier = self._earlier
        if earlier is not None and now_sec - earlier[0] < TOLD_APART_SEC:
            return
        self._earlier = now_sec, told
        if earlier is None or earlier[1].reset_sec <= 0:
            return
        passed_sec, before = now_sec - earlier[0], earlier[1]
        if told.remaining < before.remaining - 0.01 * told.limit:
            self._is_window = told.reset_sec < before.reset_sec - 0.5 * passed_sec
