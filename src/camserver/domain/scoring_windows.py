"""What a provider gives in a time of a certain length, found out by refusals: where nothing comes back for a while,
and then much of it, since what was used comes back as it went, a window's time ago, or all at once at a window's end.

Between two moments at which such a window is whole, all that fits is accepted, whatever the pace: that tells how much
it is, and how long it takes. From then on it fits, or has become a little larger or smaller; one that does not fit at
all was no window, and is forgotten. Where it is used steadily, a refusal says that it is just full.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

# The past is known by marks so far apart, and so many of them.
MARK_SEC: Final = 0.5
MARKS: Final = 240
# A window of fewer questions, or seconds, can't be told from chance.
COUNT_MIN: Final = 20
WINDOW_MIN_SEC: Final = 1.0
# A stop that is shorter, of the window, tells of none.
STOP_SHARE: Final = 0.05
# What a window may hold, of what it held, to be the same one.
SMALLER: Final = 0.6
NEARLY: Final = 0.95
# Marks and weights are not exact: a window that holds so much of its count is full.
FULL: Final = 0.98
LARGER: Final = 1.25


@dataclass(slots=True, eq=False)
class Moment:
    """When a question was sent, and how many up to it were accepted. Refusals take their time to come: one that comes
    later, of a question that was sent before, is taken off."""

    at_sec: float
    number: int  # of the question
    accepted: int


_accepted_of = attrgetter("accepted")


class Past:
    """How many had been accepted, and when."""

    def __init__(self) -> None:
        self._marks: deque[Moment] = deque(maxlen=MARKS)
        self._next_sec = float("-inf")

    def mark(self, now: Moment) -> bool:
        """Whether it was time for one."""
        is_due = now.at_sec >= self._next_sec
        if is_due:
            self._marks.append(now)
            self._next_sec = now.at_sec + MARK_SEC
        return is_due

    def missed(self, number: int) -> None:
        for one in reversed(self._marks):
            if one.number < number:
                return
            one.accepted -= 1

    def accepted_in(self, until: Moment, seconds: float) -> float:
        """How many were accepted in the time before a moment."""
        since_sec = until.at_sec - seconds
        later = until
        for one in reversed(self._marks):
            if one.at_sec > later.at_sec:
                continue
            if one.at_sec <= since_sec:
                passed = (since_sec - one.at_sec) / max(later.at_sec - one.at_sec, 1e-9)
                return until.accepted - one.accepted - passed * (later.accepted - one.accepted)
            later = one
        return float(until.accepted - later.accepted)

    def when(self, accepted: float) -> float | None:
        """When so many had been accepted; None: that was too long ago to be known."""
        marks = self._marks
        later = bisect_right(marks, accepted, key=_accepted_of)
        if not later:
            return None
        before = marks[later - 1]
        if later == len(marks):
            return before.at_sec
        after = marks[later]
        part = (accepted - before.accepted) / max(after.accepted - before.accepted, 1)
        return before.at_sec + part * (after.at_sec - before.at_sec)

    def per_sec(self, until: Moment, seconds: float) -> float:
        """What was accepted a second just before, over no more than so many seconds; 0: that can't be told."""
        since = None
        for one in reversed(self._marks):
            since = one
            if until.at_sec - one.at_sec >= seconds:
                break
        if since is None or until.at_sec - since.at_sec < MARK_SEC:
            return 0.0
        return (until.accepted - since.accepted) / (until.at_sec - since.at_sec)


@dataclass(frozen=True, slots=True)
class Window:
    count: float
    least_sec: float
    most_sec: float

    @property
    def per_sec(self) -> float:
        """At least."""
        return self.count / self.most_sec

    @property
    def per_sec_most(self) -> float:
        return self.count / self.least_sec


def window_of(whole: Moment, nothing_left: Moment, refused_sec: float, again_sec: float) -> Window | None:
    """Of a provider that gave nothing from a moment on, was asked in vain at `refused_sec`, and may give something at
    `again_sec`. None: that is no window."""
    count = nothing_left.accepted - whole.accepted
    least_sec, most_sec = refused_sec - whole.at_sec, again_sec - whole.at_sec
    if count < COUNT_MIN or not WINDOW_MIN_SEC <= least_sec < most_sec:
        return None
    if refused_sec - nothing_left.at_sec < STOP_SHARE * least_sec:
        return None
    return Window(count, least_sec, most_sec)


def refused_in(window: Window, past: Past, nothing_left: Moment, is_steady: bool) -> Window | None:
    """The window after a refusal: it was just full. None: it does not fit. `is_steady`: nothing was refused for as
    long as it takes, so that it may also have become smaller."""
    count = window.count
    # As many as fit were accepted in a time between these, if it is the same window as ever.
    if past.accepted_in(nothing_left, window.least_sec) > LARGER * count:
        return None
    full = FULL * count
    if past.accepted_in(nothing_left, window.most_sec) >= full:
        least_sec, most_sec = window.least_sec, window.most_sec
        for _ in range(8):
            middle_sec = 0.5 * (least_sec + most_sec)
            if past.accepted_in(nothing_left, middle_sec) >= full:
                most_sec = middle_sec
            else:
                least_sec = middle_sec
        # Soon after a stop no more was sent in that time than fits in any longer one: it is at least so long.
        return Window(
            max(count, past.accepted_in(nothing_left, most_sec)), most_sec, most_sec if is_steady else window.most_sec
        )
    fewer = past.accepted_in(nothing_left, window.most_sec)
    return (
        Window(fewer, window.most_sec, window.most_sec)
        if fewer >= (SMALLER if is_steady else NEARLY) * count
        else None
    )
