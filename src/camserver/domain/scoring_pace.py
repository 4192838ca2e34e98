"""How many questions may be sent a second, found out by refusals: where a provider counts by time.

A refusal says that nothing was left at that moment. So what was accepted between two of them is what came back in
between, and tells the pace, the better the more it was. Sending keeps a little below it, which leaves room for what
is late or early, and now and then tries more: slowly at first, faster once more than ever was accepted. Where what
was used comes back only after a while, that is known as a window (scoring_windows.py).
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from camserver.domain.scoring_windows import COUNT_MIN, Moment, Past, Window, refused_in, window_of

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
# Of a pace that another process found out, so much is sure.
SURE_BEFORE: Final = 0.9
REST_FIRST_SEC: Final = 4.0
REST_MAX_SEC: Final = 20.0
# Timers come late on a busy machine: who was held back longer than it should be may make up for so much.
CATCH_UP_SEC: Final = 0.05
# A pace of which no more than this was used for so long holds nothing back, and is forgotten.
IDLE_SHARE: Final = 0.8
IDLE_SEC: Final = 10.0
IDLE_QUESTIONS: Final = 200
# What was accepted in so long before a refusal is what was accepted just now.
RECENT_SEC: Final = 2.0
# Of the time since a window was whole, so much is waited before it is tried again.
WAIT_SHARE: Final = 0.6
# So many may be accepted although a stop goes on.
FEW: Final = 2
# A window explains a refusal once so much of it is used.
USED_UP: Final = 0.8
# A window that is used evenly is tried with so much more, until more was accepted than it holds.
BEYOND_WINDOW: Final = 1.1
# Measured between moments that are further apart, it would tell about another time.
APART_MAX_SEC: Final = 900.0


@dataclass(frozen=True, slots=True)
class _Measured:
    per_sec: float  # what came back, a little less
    most: float  # what it may have been
    count: int  # questions that tell it
    took_sec: float


def _measured(since: Moment | None, until: Moment, unsure_sec: float = 0.0) -> _Measured | None:
    """What came back between two moments at which nothing was left; None: that can't be told."""
    if since is None or not 0 < until.at_sec - since.at_sec <= APART_MAX_SEC or until.accepted <= since.accepted:
        return None
    took_sec, count = until.at_sec - since.at_sec, until.accepted - since.accepted
    most = (count + 1) / max(took_sec - unsure_sec, 0.5 * took_sec)
    return _Measured(count / took_sec * (1 - MARGIN), most * (1 - MARGIN), count, took_sec)


class Pace:
    """The pace that refusals tell."""

    def __init__(self) -> None:
        self.per_sec: float | None = None
        self.catch_up_sec = CATCH_UP_SEC
        self._last: Moment | None = None
        self._before: Moment | None = None
        self._measured = 0.0
        self._count = 0  # questions that told it
        self._most = 0.0  # what it may be, with as few questions as told it
        self._sure = 0.0  # measured over a long time: no less than this comes back
        self._rest_sec = REST_FIRST_SEC
        self._grown_at_sec = 0.0
        self._held_at_sec = 0.0
        self._used_at_sec = 0.0
        self._past = Past()
        self._whole: Moment | None = None  # as much was left as there can be: at the beginning, after a long stop
        self._whole_before = Moment(0.0, 0, 0)
        self._stopped: Moment | None = None  # the last long stop began
        self._window: Window | None = None
        self._refused_at_sec = 0.0

    def missed(self, number: int) -> None:
        """This question was refused: it was counted as accepted until that was known."""
        self._past.missed(number)
        for one in {
            id(one): one
            for one in (self._last, self._before, self._whole, self._whole_before, self._stopped)
            if one is not None
        }.values():
            if one.number >= number:
                one.accepted -= 1

    def go_on(self, per_sec: float) -> None:
        """Before the first question: another process found out this much."""
        self.per_sec = self._measured = self._most = max(per_sec, PACE_MIN)
        self._sure = SURE_BEFORE * self.per_sec

    def begin(self, at_sec: float) -> None:
        """The first question is sent."""
        if self.per_sec is not None:
            self._rest(at_sec)
        self._whole = Moment(at_sec, 0, 0)
        self._past.mark(Moment(at_sec, 0, 0))

    def note(self, nothing_left: Moment) -> None:
        """A refusal that may have had another cause."""
        self._before, self._last = self._last, nothing_left

    def refused(self, nothing_left: Moment, now_sec: float) -> bool:
        """A refusal because of time; whether a pace is known now."""
        since = self._last
        if self._window is not None:
            self._window = self._refused_in(self._window, nothing_left)
            if self._window is None:
                self.per_sec = None  # it told the pace
        if self._window is not None:
            self._fit(self._window)
        else:
            self._decide(_measured(since, nothing_left), nothing_left)
        self.catch_up_sec /= 2
        self._held_at_sec = self._used_at_sec = now_sec
        accepted = nothing_left.accepted - (since.accepted if since is not None else 0)
        if since is None or accepted >= ENOUGH or nothing_left.at_sec - since.at_sec > LONG_SEC:
            self._last = nothing_left
        self._before = since
        self._rest(now_sec)
        return self.per_sec is not None

    def _decide(self, found: "_Measured | None", nothing_left: Moment) -> None:
        before = self.per_sec
        if before is None:
            if found is not None:
                self._take(found, found.per_sec, UNSURE * found.most)
            return
        if found is None or found.count < ENOUGH:
            pace = max(self._sure, found.per_sec if found is not None else 0.0, before * CUT_FEW)
            self.per_sec = self._most = max(min(pace, before * CUT), PACE_MIN)
            self._measured = min(self._measured, self.per_sec)
            return
        # Where little can be saved up, what was not used is lost, and more came back than was measured.
        recent = min(before, self._past.per_sec(nothing_left, RECENT_SEC))
        pace = max(found.per_sec, recent * CUT_ONCE) if found.took_sec >= LONG_SEC else found.per_sec
        self._sure = found.per_sec
        self._take(found, min(pace, before * CUT), 0.0)

    def _take(self, found: "_Measured", pace: float, most: float) -> None:
        if found.per_sec > 1.1 * self._measured:
            self._rest_sec = REST_FIRST_SEC
        self._measured, self._count = found.per_sec, found.count
        self.per_sec = max(pace, PACE_MIN)
        self._most = max(most, self.per_sec)

    def _is_binding(self, now_sec: float) -> bool:
        """Whether it is what holds sending back."""
        return self.per_sec is not None and now_sec - self._held_at_sec <= max(1.0, 2 / self.per_sec)

    def stopped(self, until: Moment, unsure_sec: float) -> None:
        """It was refused again at once: nothing comes before `until`, or up to `unsure_sec` earlier, which is when
        the provider counts anew."""
        found = _measured(self._before, until, unsure_sec)
        # A few questions just after a measurement by more of them tell nothing.
        is_few = found is not None and found.count < min(ENOUGH, self._count) and found.took_sec < LONG_SEC
        if found is not None and not is_few and self.per_sec is not None and self._window is None:
            self._take(found, max(found.per_sec, min(self.per_sec, found.most) if unsure_sec else 0.0), found.most)
        self._last = until
        if self._window is None:
            self._rest(until.at_sec)

    def comes_back_sec(self, accepted: int) -> float:
        """When a window that is known has room for one more; 0: it has, or none is known."""
        if self._window is None or self.per_sec is None:
            return 0.0
        window_sec = self._window.most_sec
        went_sec = self._past.when(accepted + 1 - self.per_sec * window_sec)
        return went_sec + window_sec if went_sec is not None else 0.0

    def is_used_up(self, nothing_left: Moment) -> bool:
        """Whether a window that is known explains a refusal."""
        window = self._window
        return window is not None and self._past.accepted_in(nothing_left, window.most_sec) >= USED_UP * window.count

    def alone(self, nothing_left: Moment, refused_sec: float, again_sec: float) -> bool:
        """A question that went alone was refused, too: nothing comes back for a while. The next one goes at
        `again_sec`, and is taken for accepted. Whether that is a window."""
        if self._whole is None:
            return False
        if self._stopped is not None and self._is_stopped_still(nothing_left):
            self._whole, nothing_left = self._whole_before, self._stopped
        self._stopped = nothing_left
        window = window_of(self._whole, nothing_left, refused_sec, again_sec)
        if window is not None:
            self._window = window
            self._fit(window)
            self._grown_at_sec = self._used_at_sec = again_sec
            self._refused_at_sec = refused_sec
            return True
        refused = Moment(refused_sec, nothing_left.number, nothing_left.accepted)
        if self._window is not None and self._refused_in(self._window, refused) is None:
            again = Moment(again_sec, nothing_left.number, nothing_left.accepted)
            self._window = self.per_sec = None
            self._decide(_measured(self._whole, again), again)
        return False

    def _refused_in(self, window: Window, nothing_left: Moment) -> Window | None:
        is_steady = nothing_left.at_sec - self._refused_at_sec >= window.most_sec
        self._refused_at_sec = nothing_left.at_sec
        return refused_in(window, self._past, nothing_left, is_steady)

    def _is_stopped_still(self, nothing_left: Moment) -> bool:
        """Whether only a few were accepted since the last stop: short ones, that fit into what is left of a window,
        which did not begin anew with them."""
        if self._whole is None or self._stopped is None or self._whole.number <= self._stopped.number:
            return False
        return nothing_left.accepted - self._stopped.accepted <= FEW

    def wait_most_sec(self, refused: Moment) -> float:
        """For the end of what may be a window it is not waited much longer than that takes."""
        if self._whole is None or refused.accepted - self._whole.accepted < COUNT_MIN:
            return math.inf
        return WAIT_SHARE * (refused.at_sec - self._whole.at_sec)

    def resumed(self, at: Moment) -> None:
        """The first question after such a stop is accepted."""
        if self._whole is not None:
            self._whole_before = self._whole
        self._whole = at
        self._refused_at_sec = at.at_sec
        if self._window is not None:
            self._last = at

    def _fit(self, window: Window) -> None:
        found = _Measured(
            window.per_sec * (1 - MARGIN), window.per_sec_most * (1 - MARGIN), int(window.count), window.most_sec
        )
        self._take(found, found.per_sec, found.most)

    def _rest(self, now_sec: float) -> None:
        window_sec = self._window.most_sec if self._window is not None else 0.0
        self._grown_at_sec = self._used_at_sec = now_sec + max(self._rest_sec, window_sec)
        self._rest_sec = min(self._rest_sec * 2, REST_MAX_SEC)

    def scale(self, factor: float) -> None:
        """Others use the same key from now on, or no longer."""
        if self.per_sec is not None:
            self.per_sec = max(self.per_sec * factor, PACE_MIN)
            self._measured *= factor
            self._most *= factor
            self._sure *= factor
        if self._window is not None:
            self._window = replace(self._window, count=self._window.count * factor)
        self._last = self._before = None

    def doubt(self) -> None:
        """More in flight than was refused before is accepted now: the provider gives more than it did, and what was
        measured then may be too little as well."""
        if self.per_sec is not None:
            self._most = max(self._most, UNSURE * self.per_sec)

    def forget(self) -> None:
        """It was no matter of time."""
        self.per_sec = self._window = None
        self._sure = 0.0

    def held(self, now_sec: float) -> None:
        """It holds sending back."""
        self._held_at_sec = now_sec

    @property
    def _cautious(self) -> float:
        return CAUTIOUS if self._window is None else BEYOND_WINDOW

    def _is_beyond(self, now: Moment) -> bool:
        """Whether more was accepted since nothing was left than came back by what was measured: there is more. Before
        that, what was saved up is used up, and fast sending would run into many refusals at once."""
        if self._window is not None:
            return self._past.accepted_in(now, self._window.most_sec) > BEYOND * self._window.count
        if self._last is None:
            return True
        came_back = self._measured / (1 - MARGIN) * (now.at_sec - self._last.at_sec)
        return now.accepted - self._last.accepted > BEYOND * came_back + BEYOND_MIN

    def answered(self, now: Moment, may_try: bool) -> None:
        is_mark = self._past.mark(now)
        if self.per_sec is None:
            return
        now_sec = now.at_sec
        if is_mark and self._past.per_sec(now, RECENT_SEC) >= IDLE_SHARE * self.per_sec:
            self._used_at_sec = max(self._used_at_sec, now_sec)
        idle_sec = IDLE_SEC if self._window is None else max(IDLE_SEC, 2 * self._window.most_sec)
        if now_sec - self._used_at_sec > max(idle_sec, IDLE_QUESTIONS / self.per_sec):
            self.forget()
            return
        passed_sec = now_sec - self._grown_at_sec
        if passed_sec <= 0:
            return
        self._grown_at_sec = now_sec
        if not self._is_binding(now_sec):
            return
        if self.per_sec < self._most:
            growth = self._most / UNSURE_SEC
            if self._window is not None:
                growth = min(growth, (self._most - self._measured) / self._window.most_sec)
            self.per_sec = min(self.per_sec + growth * passed_sec, self._most)
        elif self.per_sec > self._cautious * self._measured and not self._is_beyond(now):
            return
        elif may_try or self.per_sec > 1.1 * self._measured:
            growth = next(growth for above, growth in GROWTHS if self.per_sec >= above * self._measured)
            self.per_sec *= 1 + growth * min(passed_sec, 1.0)
