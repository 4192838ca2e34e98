"""How many questions may be in flight at once, found out by refusals: where a provider counts what is in flight.

The limit grows fast until the first refusal, is cut for each burst of them, and comes back by one for each batch of
clean answers, but only while it is what holds sending back. Just below what was refused it waits, longer each time
the same number is refused again, since each trial costs a refusal; once a number that was refused turns out to be
free, it climbs quickly.
"""

from collections import deque
from typing import Final

# A limit that was refused is tried again after so many clean batches, and no fewer answers than that; at first, and
# at most after it was refused again and again.
PROBE_FIRST: Final = 6.0
PROBE_MAX: Final = 24.0
PROBE_ANSWERS_FIRST: Final = 100
# Once a limit that was refused is found to be free, more is added with each answer, of one, until a refusal.
CLIMB: Final = 0.25
# At the beginning one is added with each answer, up to so many; then less.
GENTLE_FROM: Final = 48.0
# Far below what was refused it comes back faster.
FAR_BELOW: Final = 0.85
RETURN: Final = 0.05
# A ceiling within this of the one before is the same.
SAME_CEILING: Final = 0.1
# Two refusals in a row of about the same number are of that number, where nearly as many were accepted.
SENT_MAX: Final = 256
SAME_NUMBER: Final = 0.1
NEARLY: Final = 0.8
NUMBER_MIN: Final = 8  # less is met by chance too often
# Where another process went on before, it is begun with so much of what that had: its last questions may still be
# in flight.
BEGIN_SHARE: Final = 0.5


class Places:
    def __init__(self, start: int, most: int, cut_factor: float, clean_batches: int) -> None:
        self.limit = float(min(start, most))
        self.cuts = 0
        self._most = float(most)
        self._cut_factor = cut_factor
        self._clean_batches = clean_batches
        self._is_slow_start = True
        self._slow_until: float | None = None  # so many were found to fit before
        self._is_climbing = False
        self._ceiling: float | None = None  # this many were too many
        self._clean = 0.0  # batches at the ceiling
        self._probe_after = PROBE_FIRST
        self._refused_again = 0

    @property
    def count(self) -> int:
        return max(1, int(self.limit))

    @property
    def _batches(self) -> float:
        """How many batches count as one: of a few questions each, more."""
        return max(1.0, PROBE_ANSWERS_FIRST / (PROBE_FIRST * self.limit))

    @property
    def is_climbing(self) -> bool:
        """It grows until the next refusal."""
        return self._is_slow_start or self._is_climbing

    def answered(self, may_try: bool, is_overdue: bool) -> None:
        """A clean answer while the limit held sending back. `may_try`: a refusal may be risked; `is_overdue`: it has
        not been for long."""
        if self.is_climbing:
            # The more are in flight, the more are sent before the first refusal comes.
            step = CLIMB if self._is_climbing else min(1.0, max(CLIMB, GENTLE_FROM / self.limit))
            self.limit = min(self.limit + step, self._most)
            if self._slow_until is not None and self.limit >= self._slow_until:
                self._stop_growing()
            return
        step = 1 / (self.limit * self._clean_batches)
        if self._ceiling is not None and self.limit < FAR_BELOW * self._ceiling:
            step = max(step, RETURN / self._clean_batches)
        if self._ceiling is None or self.limit + step < self._ceiling:
            self.limit = min(self.limit + step, self._most)
            return
        self._clean += step
        if self.limit >= self._ceiling:
            self._is_climbing = self._clean >= 1
        elif is_overdue or (may_try and self._clean >= self._probe_after * self._batches):
            # Just below what was refused before, for long enough.
            self.limit = min(self._ceiling, self._most)
            self._clean = 0.0

    def cut(self, in_flight: int, factor: float | None = None) -> None:
        """So many were too many. `factor` stands for the usual one."""
        # Refusals may come in another order than the questions went: one that was sent alone tells little.
        too_many = max(float(in_flight), 1.0) if factor else max(float(in_flight), 0.5 * self.limit, 1.0)
        before = self._ceiling
        is_same = before is not None and abs(too_many - before) <= max(SAME_CEILING * before, 2.0)
        self._refused_again = self._refused_again + 1 if is_same else 0
        self._probe_after = min(PROBE_FIRST * 3.0 ** min(self._refused_again, 5), PROBE_MAX)
        self._ceiling = too_many
        self._stop_growing()
        self.limit = max(1.0, min(self.limit, too_many) * (factor or self._cut_factor))
        self.cuts += 1

    @property
    def too_many(self) -> float | None:
        """So many were refused, when it was tried last."""
        return self._ceiling

    def go_on(self, limit: float, too_many: float | None) -> None:
        """Before the first question: another process found out this much."""
        limit = min(max(limit, 1.0), self._most)
        self.limit = max(self.limit, BEGIN_SHARE * limit)
        self._ceiling = too_many
        if too_many is not None:
            self.limit = min(self.limit, limit)
            self._slow_until = limit

    def hold(self, limit: float) -> None:
        """From here on, with nothing known about what is too many."""
        self.limit = min(max(limit, 1.0), self._most)
        self._ceiling = None
        self._stop_growing()

    def _stop_growing(self) -> None:
        self._is_slow_start = self._is_climbing = False
        self._slow_until = None
        self._clean = 0.0


class Numbers:
    """Tells whether the last refusals are about how many were in flight: as many were too many each time, and never
    were as many accepted in between."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque(maxlen=SENT_MAX)  # questions, and how many were in flight
        self._before: tuple[int, int] | None = None  # the last that was refused
        self._accepted = 0  # most in flight since then, of what is no longer among those

    def sent(self, number: int, in_flight: int) -> None:
        if len(self._sent) == SENT_MAX:
            self._accepted = max(self._accepted, self._sent[0][1])
        self._sent.append((number, in_flight))

    def refused(self, number: int, in_flight: int) -> bool:
        """The first of a burst. Refusals come in the order of the questions: all that went before it are accepted."""
        accepted = max((level for sent, level in self._sent if sent < number), default=0)
        accepted = max(accepted, self._accepted)
        before, self._before = self._before, (number, in_flight)
        self._sent = deque(((sent, level) for sent, level in self._sent if sent > number), maxlen=SENT_MAX)
        self._accepted = 0
        if before is None or min(in_flight, before[1]) < NUMBER_MIN:
            return False
        is_same = abs(in_flight - before[1]) <= max(SAME_NUMBER * in_flight, 1)
        return is_same and NEARLY * in_flight <= accepted < min(in_flight, before[1])

    def missed(self, number: int) -> None:
        """Another one of a burst: it was not accepted."""
        for one in self._sent:
            if one[0] == number:
                self._sent.remove(one)
                return
