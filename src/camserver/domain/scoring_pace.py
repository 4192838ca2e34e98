"""How many questions may be sent a second: where a provider counts by time, or says in headers what is left.

A refusal says that nothing was left at that moment. So what was accepted between two of them is what came back in
between, and tells the pace, the better the more it was. Sending keeps a little below it, which leaves room for what
is late or early, and now and then tries more: slowly at first, faster once more than ever was accepted.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

PACE_MIN: Final = 1 / 120
# Sending keeps so much below what was measured.
MARGIN: Final = 0.03
# A pace that was refused goes down at least to this; to no less than that the first time, and to no less than the
# last where few questions tell it.
CUT: Final = 0.97
CUT_ONCE: Final = 0.93
CUT_FEW: Final = 0.5
LONG_SEC: Final = 3.0
# The first pace is measured while less was sent than would fit.
UNSURE: Final = 1.5
# So many accepted questions make a measurement that stands by itself; with fewer, the one before is gone on with.
ENOUGH: Final = 20
# Growth a second, of itself: while it is tried whether more fits; beyond what was measured by so much; and so much.
GROWTHS: Final = ((1.5, 0.2), (1.1, 0.05), (0.0, 0.01))
# So far above what was measured it goes only once more was accepted than that brings, by this, and so many questions.
CAUTIOUS: Final = 1.25
BEYOND: Final = 1.03
BEYOND_MIN: Final = 3
# What is not known for lack of questions is gone through in this time.
UNSURE_SEC: Final = 5.0
REST_FIRST_SEC: Final = 4.0
REST_MAX_SEC: Final = 20.0
# Timers come late on a busy machine: who was held back longer than it should be may make up for so much.
CATCH_UP_SEC: Final = 0.05
# A pace that held nothing back for so long is forgotten.
IDLE_SEC: Final = 30.0
# The last seconds are known by marks so far apart.
MARK_SEC: Final = 0.5
MARKS: Final = 4
# Measured between moments that are further apart, it would tell about another time.
APART_MAX_SEC: Final = 900.0


@dataclass(frozen=True, slots=True)
class _Moment:
    """Nothing was left then; and how many questions had been accepted."""

    at_sec: float
    accepted: int


@dataclass(frozen=True, slots=True)
class _Measured:
    per_sec: float  # what came back, a little less
    most: float  # what it may have been
    count: int  # questions that tell it
    took_sec: float


def _measured(since: _Moment | None, until_sec: float, accepted: int, unsure_sec: float = 0.0) -> _Measured | None:
    """What came back between two moments at which nothing was left; None: that can't be told."""
    if since is None or not 0 < until_sec - since.at_sec <= APART_MAX_SEC or accepted <= since.accepted:
        return None
    took_sec, count = until_sec - since.at_sec, accepted - since.accepted
    most = (count + 1) / max(took_sec - unsure_sec, 0.5 * took_sec)
    return _Measured(count / took_sec * (1 - MARGIN), most * (1 - MARGIN), count, took_sec)


class Pace:
    """The pace that refusals tell."""

    def __init__(self) -> None:
        self.per_sec: float | None = None
        self.catch_up_sec = CATCH_UP_SEC
        self._last: _Moment | None = None
        self._before: _Moment | None = None
        self._measured = 0.0
        self._most = 0.0  # what it may be, with as few questions as told it
        self._sure = 0.0  # measured over a long time: no less than this comes back
        self._rest_sec = REST_FIRST_SEC
        self._grown_at_sec = 0.0
        self._held_at_sec = 0.0
        self._marks: deque[_Moment] = deque(maxlen=MARKS)  # how many had been accepted, of late

    def note(self, now_sec: float, accepted: int) -> None:
        """A refusal that may have had another cause."""
        self._before, self._last = self._last, _Moment(now_sec, accepted)

    def refused(self, now_sec: float, accepted: int) -> bool:
        """A refusal because of time; whether a pace is known now."""
        since = self._last
        self._decide(_measured(since, now_sec, accepted), now_sec, accepted)
        self.catch_up_sec /= 2
        self._held_at_sec = now_sec
        if since is None or accepted - since.accepted >= ENOUGH or now_sec - since.at_sec > LONG_SEC:
            self._last = _Moment(now_sec, accepted)
        self._before = since
        self._rest(now_sec)
        return self.per_sec is not None

    def _recent(self, now_sec: float, accepted: int) -> float:
        """What was accepted a second just now: no more than that came back, but for what was saved up."""
        if not self._marks or now_sec - self._marks[0].at_sec < MARK_SEC:
            return 0.0
        return (accepted - self._marks[0].accepted) / (now_sec - self._marks[0].at_sec)

    def _mark(self, now_sec: float, accepted: int) -> None:
        if not self._marks or now_sec - self._marks[-1].at_sec >= MARK_SEC:
            self._marks.append(_Moment(now_sec, accepted))

    def _decide(self, found: "_Measured | None", now_sec: float, accepted: int) -> None:
        before = self.per_sec
        if before is None:
            if found is not None:
                self._take(found, found.per_sec, UNSURE * found.most)
            return
        if found is None or found.count < ENOUGH:
            pace = max(self._sure, found.per_sec if found is not None else 0.0, before * CUT_FEW)
            self.per_sec = self._most = max(min(pace, before * CUT), PACE_MIN)
            return
        # Where little can be saved up, what was not used is lost, and more came back than was measured.
        recent = min(before, self._recent(now_sec, accepted))
        pace = max(found.per_sec, recent * CUT_ONCE) if found.took_sec >= LONG_SEC else found.per_sec
        self._sure = found.per_sec
        self._take(found, min(pace, before * CUT), 0.0)

    def _take(self, found: "_Measured", pace: float, most: float) -> None:
        if found.per_sec > 1.1 * self._measured:
            self._rest_sec = REST_FIRST_SEC
        self._measured = found.per_sec
        self.per_sec = max(pace, PACE_MIN)
        self._most = max(most, self.per_sec)

    def _is_binding(self, now_sec: float) -> bool:
        """Whether it is what holds sending back."""
        return self.per_sec is not None and now_sec - self._held_at_sec <= max(1.0, 2 / self.per_sec)

    def stopped(self, until_sec: float, accepted: int, unsure_sec: float) -> None:
        """It was refused again at once: nothing comes before `until_sec`, or up to `unsure_sec` earlier, which is
        when the provider counts anew."""
        found = _measured(self._before, until_sec, accepted, unsure_sec)
        if found is not None and self.per_sec is not None:
            self._take(found, max(found.per_sec, min(self.per_sec, found.most) if unsure_sec else 0.0), found.most)
        self._last = _Moment(until_sec, accepted)
        self._rest(until_sec)

    def _rest(self, now_sec: float) -> None:
        self._grown_at_sec = now_sec + self._rest_sec
        self._rest_sec = min(self._rest_sec * 2, REST_MAX_SEC)

    def scale(self, factor: float) -> None:
        """Others use the same key from now on, or no longer."""
        if self.per_sec is not None:
            self.per_sec = max(self.per_sec * factor, PACE_MIN)
            self._measured *= factor
            self._most *= factor
            self._sure *= factor
        self._last = self._before = None

    def held(self, now_sec: float) -> None:
        """It holds sending back."""
        self._held_at_sec = now_sec

    def _is_beyond(self, now_sec: float, accepted: int) -> bool:
        """Whether more was accepted since nothing was left than came back by what was measured: there is more. Before
        that, what was saved up is used up, and fast sending would run into many refusals at once."""
        if self._last is None:
            return True
        came_back = self._measured / (1 - MARGIN) * (now_sec - self._last.at_sec)
        return accepted - self._last.accepted > BEYOND * came_back + BEYOND_MIN

    def answered(self, now_sec: float, accepted: int, may_try: bool) -> None:
        self._mark(now_sec, accepted)
        if self.per_sec is None:
            return
        if now_sec - self._held_at_sec > IDLE_SEC:
            self.per_sec = None
            return
        passed_sec = now_sec - self._grown_at_sec
        if passed_sec <= 0:
            return
        self._grown_at_sec = now_sec
        if not self._is_binding(now_sec):
            return
        if self.per_sec < self._most:
            self.per_sec = min(self.per_sec + self._most * passed_sec / UNSURE_SEC, self._most)
        elif self.per_sec > CAUTIOUS * self._measured and not self._is_beyond(now_sec, accepted):
            return
        elif may_try or self.per_sec > 1.1 * self._measured:
            growth = next(growth for above, growth in GROWTHS if self.per_sec >= above * self._measured)
            self.per_sec *= 1 + growth * min(passed_sec, 1.0)


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
