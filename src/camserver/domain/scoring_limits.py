"""How many questions may be in flight and how many may be sent a second, found out while asking: nobody tells what a
provider can take.

Providers count what is in flight, or what comes in a time, or both. A refusal (429) does not say which, so it is
told by what went before. A number in flight that was reached for the first time is explained by itself (`Places`).
One that was accepted many times, or a question that is refused alone, is explained by time (`Pace`). After each burst
of refusals one question goes ahead as a trial, and the others wait for the moment in which its refusal would come;
when it is refused too, everybody waits as long as the provider says.

Trials of more cost refusals, so they are paid from a purse that answers fill: `SHARE` of all questions, whatever the
provider. A refused question keeps its place while it waits, so that refusals make sending slower by themselves. Time
is seconds of any clock that never goes back, passed in.
"""

from collections import Counter
from typing import Final

from camserver.domain.scoring_found import Found
from camserver.domain.scoring_pace import Pace
from camserver.domain.scoring_places import Numbers, Places
from camserver.domain.scoring_tickets import Stop, Ticket, Wait
from camserver.domain.scoring_told import Allowance, ToldPace
from camserver.domain.scoring_windows import Moment

__all__ = ["Allowance", "ConcurrencyController", "Ticket", "Wait", "share_of"]

# Without a word of the provider a refused question waits this long, and twice as long after each refused trial.
WAIT_USUAL_SEC: Final = 0.5
WAIT_USUAL_MAX_SEC: Final = 30.0
WAIT_MAX_SEC: Final = 120.0
# A refused question looks so often whether others are answered meanwhile, and after so many answers' time.
LOOK_SEC: Final = 1.0
LOOK_ANSWERS: Final = 2.0
# A trial that is to wait longer than this, and than so many answers take, is refused because of time.
WAIT_BY_TIME_SEC: Final = 5.0
WAIT_BY_TIME_ANSWERS: Final = 10.0
# An answer that takes so many times the usual time counts as this.
STRAGGLER: Final = 3.0
# A refusal within so many answers' time of the one before is of no cause that could be told.
SOON_ANSWERS: Final = 2.0
CUT_SOON: Final = 0.7
# What was accepted so often, and so often of itself, was no number too many.
USUAL_TIMES: Final = 3
USUAL_SHARE: Final = 0.5
FAR: Final = 1.15  # in the time before the last refusal, so much more than now
# With so much fewer in flight than a pace makes, it is not the pace that is met.
RAMP: Final = 0.75
# So many refusals are put down to chance where headers tell the pace.
TOLD_REFUSED_MAX: Final = 5
# Far fewer in flight are too many, again and again: that is no number.
DROP: Final = 0.8
DROPS_MAX: Final = 2
# So few in flight, of those a moment ago, are nearly none.
ALONE: Final = 0.2
SAID_LATE_SEC: Final = 1.0
# A trial is taken for accepted after so many times what a refusal takes.
TRIAL_REFUSALS: Final = 3.0
TRIAL_MIN_SEC: Final = 0.02
TRIAL_MAX_SEC: Final = 0.5
# After a refusal because of time it is tried again when so many questions could be sent, and as long as is said, but
# no longer than this: what is said holds for the refused one, and is often rounded up.
PAUSE_QUESTIONS: Final = 2.0
PAUSE_MAX_SEC: Final = 0.05
# Questions go at least this far apart, of what would be even; and where more are sent than ever before, or everybody
# waited. Late timers may be made up for, and usually a few may go at once.
SPREAD: Final = 0.4
SPREAD_LATE: Final = 0.03
SPREAD_LATE_BOLD: Final = 0.03
SPREAD_BOLD: Final = 0.5
SPREAD_LATE_SEC: Final = 0.003
FULL_CLIMBING: Final = 0.9
# Refusals that may be risked: of all answers, at first, at most, and what is owed at most.
SHARE: Final = 0.0025
# Where few answers come, it is tried after so long without a refusal all the same, each time after twice as long.
PATIENCE_SEC: Final = 30.0
PATIENCE_MAX_SEC: Final = 480.0
PURSE_FIRST: Final = 2.0
PURSE_MOST: Final = 4.0
DEBT_MOST: Final = 1.0


class ConcurrencyController:
    """One for all that use the same key. Not for several threads."""

    def __init__(self, start: int, most: int, cut_factor: float = 0.9, clean_batches: int = 1) -> None:
        self.in_flight = 0  # places that are taken
        self.refused = 0  # 429s, all of them
        self.latency_sec = 0.0  # of answers, smoothed
        self._places = Places(start, most, cut_factor, clean_batches)
        self._pace = Pace()
        self._told: dict[str, ToldPace] = {}
        self._purse = PURSE_FIRST
        self._patience_sec = PATIENCE_SEC
        self._sent = 0
        self._answered = 0
        self._answered_last = 0  # the latest question that was answered
        self._full_number = 0  # the last question with which the limit was reached
        self._flying = 0  # sent, and nothing came back yet
        self._levels: Counter[int] = Counter()  # questions since the last burst, by how many were in flight
        self._earlier: Counter[int] = Counter()  # the same, of the time before
        self._burst_number = 0  # the last question that was sent before the last burst was known
        self._burst_sec: float | None = None
        self._is_time = False  # explains the last burst
        self._limit_before: float | None = None  # cut since then for what may be explained by time
        self._told_refused = 0
        self._numbers = Numbers()
        self._drops = 0  # times in a row that far fewer in flight were too many, and the trial with still fewer too
        self._dropped_from = 0
        self._refusal_sec = 0.0  # how long a refusal takes to come
        self._trial_number: int | None = None  # 0: the next question that is sent
        self._trial_until_sec = 0.0
        self._stops = 0
        self._stop: Stop | None = None
        self._gate_until_sec = 0.0
        self._next_send_sec = 0.0
        self._spread_left = 0
        self._is_paced = False  # the pace that refusals told is what the next question waits for

    def go_on(self, found: Found) -> None:
        """Before the first question: with what another process found out. It is a beginning only, since much may have
        changed; but nothing is risked to find out the same again."""
        self.latency_sec = found.latency_sec
        self._places.go_on(found.places, found.too_many)
        if found.pace is not None:
            self._pace.go_on(found.pace)
        self._purse = 0.0

    @property
    def found(self) -> Found | None:
        """For the next process; None: nothing is known yet."""
        if not self._answered:
            return None
        return Found(self.limit, self._places.too_many, self._pace.per_sec, self.latency_sec)

    # -- Sending -------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> float:
        return self._places.limit

    @property
    def places(self) -> int:
        return self._places.count

    @property
    def cuts(self) -> int:
        return self._places.cuts

    @property
    def pace(self) -> float | None:
        """Questions a second; None: as many as fit."""
        learned = self._pace.per_sec
        if not self._told:
            return learned
        known = [one.per_sec for one in self._told.values() if one.per_sec is not None]
        return min([*known, learned] if learned is not None else known, default=None)

    @property
    def has_place(self) -> bool:
        return self.in_flight < self._places.count

    def wait_sec(self, now_sec: float) -> float:
        """How long until the next question may be sent, if there is a place for it."""
        if self._is_paced and self._next_send_sec > now_sec:
            self._pace.held(now_sec)
        return max(
            0.0, self._gate_until_sec - now_sec, self._trial_until_sec - now_sec, self._next_send_sec - now_sec
        )

    def take(self) -> None:
        """Takes a place. It is given back by `release`."""
        self.in_flight += 1

    def release(self) -> None:
        self.in_flight -= 1

    def sent(self, now_sec: float) -> Ticket:
        """A question with a place is sent, for the first time or again."""
        if not self._sent:
            self._pace.begin(now_sec)
        self._sent += 1
        self._flying += 1
        self._levels[self._flying] += 1
        self._numbers.sent(self._sent, self._flying)
        spacing = 1 / self._pace.per_sec if self._pace.per_sec is not None else 0.0
        self._is_paced = spacing > 0
        for told in self._told.values():
            if (told_sec := told.spacing_sec(now_sec)) > spacing:
                spacing, self._is_paced = told_sec, False
        late_sec = min(self._pace.catch_up_sec, spacing * 8)
        is_bold = self._spread_left > 0 or self._places.is_climbing
        self._spread_left = max(self._spread_left - 1, 0)
        # Not all at once, as answers may come: the first refusal shall come before the last is sent.
        even_sec = (SPREAD_BOLD if is_bold else SPREAD) * self.latency_sec / self._places.count
        if even_sec > spacing:
            spacing, self._is_paced = even_sec, False
            late_sec = max(SPREAD_LATE_SEC, (SPREAD_LATE_BOLD if is_bold else SPREAD_LATE) * self.latency_sec)
        self._next_send_sec = max(self._next_send_sec, now_sec - late_sec) + spacing
        if (again_sec := self._pace.comes_back_sec(self._sent - self.refused)) > self._next_send_sec:
            self._next_send_sec, self._is_paced = again_sec, True
        if self._trial_number == 0:
            self._trial_number = self._sent
            patience_sec = min(max(TRIAL_REFUSALS * self._refusal_sec, TRIAL_MIN_SEC), TRIAL_MAX_SEC)
            self._trial_until_sec = now_sec + patience_sec
        # While it climbs, questions go one after the other, and what is in flight is always a little behind.
        full = FULL_CLIMBING * self._places.count if self._places.is_climbing else self._places.count - 1
        is_full = self.in_flight >= full
        if is_full:
            self._full_number = self._sent
        return Ticket(self._sent, now_sec, self._flying, is_full)

    # -- What comes back -----------------------------------------------------------------------------------------

    def answered(self, ticket: Ticket, now_sec: float) -> None:
        """An answer of any kind that is no refusal for being too many."""
        self._flying -= 1
        took_sec = max(now_sec - ticket.sent_sec, 0.0)
        if not self.latency_sec:
            self.latency_sec = took_sec
        # A straggler tells nothing about the others.
        self.latency_sec = 0.9 * self.latency_sec + 0.1 * min(took_sec, STRAGGLER * self.latency_sec)
        self._answered += 1
        self._answered_last = max(self._answered_last, ticket.number)
        self._purse = min(self._purse + SHARE, PURSE_MOST)
        if ticket.number == self._trial_number:
            self._trial_number, self._trial_until_sec = None, 0.0
        is_overdue = self._is_overdue(now_sec)
        may_try = self._purse >= 1 or is_overdue
        if ticket.number > self._burst_number:
            self._stops = 0
            if self._stop is not None and self._stop.was_alone:
                self._pace.resumed(Moment(ticket.sent_sec, ticket.number, ticket.number - self.refused - 1))
            self._stop = None
            # While it climbs, all of a batch count that was in flight when the limit was reached, not its last only.
            if ticket.is_full or (self._places.is_climbing and ticket.number <= self._full_number):
                was_climbing = self._places.is_climbing
                self._places.answered(may_try, is_overdue)
                if self._places.is_climbing and not was_climbing:
                    self._pace.doubt()
        self._pace.answered(Moment(now_sec, self._sent, self._sent - self.refused), may_try)

    def lost(self, ticket: Ticket) -> None:
        """Nothing came back, or what says nothing about how many fit."""
        self._flying -= 1

    def refuse(self, ticket: Ticket, retry_after_sec: float | None, now_sec: float) -> Wait:
        """The question was refused for being too many."""
        self.refused += 1
        self._flying -= 1
        self._pace.missed(ticket.number)
        self._purse = max(self._purse - 1, -DEBT_MOST)
        self._refusal_sec = max(now_sec - ticket.sent_sec, 0.5 * self._refusal_sec)
        is_said = retry_after_sec is not None and retry_after_sec > 0
        wait_sec = min(retry_after_sec if is_said and retry_after_sec else WAIT_USUAL_SEC, WAIT_MAX_SEC)
        if ticket.number > self._burst_number:
            if not is_said:
                refused = Moment(now_sec, ticket.number, ticket.number - self.refused)
                most_sec = max(WAIT_USUAL_SEC, min(self._pace.wait_most_sec(refused), WAIT_USUAL_MAX_SEC))
                wait_sec = min(wait_sec * 2.0**self._stops, most_sec)
            self._burst(ticket, wait_sec, now_sec, is_said)
        else:
            self._numbers.missed(ticket.number)
        return Wait(now_sec, max(now_sec + wait_sec, self._gate_until_sec), self._sent)

    def left_sec(self, wait: Wait, now_sec: float) -> float:
        """How long to go on waiting before looking again; 0: it may be sent. Nobody waits out a long time that a
        provider says while questions that were sent later are answered; and where all wait, one goes as the trial."""
        left_sec = wait.until_sec - now_sec
        if wait.after is None:
            return max(left_sec, 0.0)
        look_sec = max(LOOK_SEC, LOOK_ANSWERS * self.latency_sec)
        is_trial_due = not self._flying and self._trial_number == 0 and now_sec >= self._gate_until_sec
        if left_sec <= 0 or self._answered_last > wait.after:
            return 0.0
        if is_trial_due and now_sec - wait.since_sec >= look_sec:
            return 0.0
        return min(left_sec, look_sec)

    def heed(self, told: Allowance, per_question: float, now_sec: float) -> None:
        """Paces sending by a provider's headers; `per_question` is how much of it a question takes."""
        of = self._told.get(told.what)
        if of is None:
            of = self._told[told.what] = ToldPace()
        of.heed(told, per_question, self._flying, now_sec)

    def share(self, limit: float, pace_factor: float = 1.0) -> None:
        """Others use the same key: from now on this many are ours, and this part of the pace."""
        self._places.hold(limit)
        self._pace.scale(pace_factor)

    # -- Inside --------------------------------------------------------------------------------------------------

    def _burst(self, ticket: Ticket, wait_sec: float, now_sec: float, is_said: bool) -> None:
        """The first refusal of a burst: those of questions that were sent before it came say nothing new."""
        if self._is_overdue(now_sec) and self._purse < 1:
            self._patience_sec = min(2 * self._patience_sec, PATIENCE_MAX_SEC)
        # Of those that were sent before it, all that were refused are known by now, or are missed later.
        accepted = ticket.number - self.refused
        nothing_left = Moment(ticket.sent_sec, ticket.number, accepted)
        is_trial = ticket.number == self._trial_number
        if self._stop is None:
            self._stop = Stop(nothing_left, ticket.in_flight)
        is_soon = self._burst_sec is not None and now_sec - self._burst_sec < SOON_ANSWERS * self.latency_sec
        is_long = is_said and wait_sec >= max(WAIT_BY_TIME_SEC, WAIT_BY_TIME_ANSWERS * self.latency_sec)
        self._stopped(self._stop, ticket, is_trial, is_long, now_sec + wait_sec)
        is_number = self._numbers.refused(ticket.number, ticket.in_flight)
        if is_number:
            self._pace.forget()
        self._is_time = not is_number and (
            (is_trial and (self._is_time or is_long)) or self._is_by_time(ticket, nothing_left)
        )
        if self._is_time:
            self._refused_by_time(nothing_left, now_sec, wait_sec, is_trial)
        else:
            self._pace.note(nothing_left)
            is_unclear = is_soon or is_trial
            self._limit_before = (self._limit_before or self.limit) if is_unclear or is_long else None
            self._places.cut(ticket.in_flight, CUT_SOON if is_unclear else None)
            if is_trial and not self._stops:
                self._drops = self._drops + 1 if ticket.in_flight < DROP * self._dropped_from else 1
                self._dropped_from = ticket.in_flight
        if is_trial:
            self._stops += 1
            self._gate_until_sec = max(self._gate_until_sec, now_sec + wait_sec)
            unsure_sec = (1.0 if wait_sec.is_integer() else 0.0) if is_said else wait_sec
            until_sec = self._gate_until_sec if is_said else now_sec
            self._pace.stopped(Moment(until_sec, ticket.number, accepted), unsure_sec)
            self._spread_left = self._places.count
            if not self._is_time or wait_sec > self.latency_sec:
                # After a stop that long, what was accepted before it says nothing any more.
                self._levels.clear()
        if not self._is_time or is_trial:
            self._earlier, self._levels = self._levels, Counter()
        self._burst_number, self._burst_sec = self._sent, now_sec
        self._trial_number, self._trial_until_sec = 0, 0.0

    def _stopped(self, stop: Stop, ticket: Ticket, is_trial: bool, is_long: bool, again_sec: float) -> None:
        """Far fewer in flight than a moment ago are refused as well, or all have to wait long: that is no number."""
        is_said = is_trial and is_long
        if is_trial:
            # What is said is often rounded up to whole seconds.
            stop.refused_sec = max(ticket.sent_sec, again_sec - SAID_LATE_SEC) if is_said else ticket.sent_sec
        if not is_said and ticket.in_flight > ALONE * stop.in_flight:
            return
        stop.was_alone = True
        again_sec = again_sec if is_trial else self._gate_until_sec
        is_window = self._pace.alone(stop.nothing_left, stop.refused_sec, again_sec)
        if is_window and self._limit_before is not None:
            self._places.hold(self._limit_before)
            self._limit_before = None

    def _is_overdue(self, now_sec: float) -> bool:
        return self._burst_sec is not None and now_sec - self._burst_sec >= self._patience_sec

    def _refused_by_time(self, nothing_left: Moment, now_sec: float, wait_sec: float, is_trial: bool) -> None:
        self._told_refused = self._told_refused + 1 if any(one.per_sec for one in self._told.values()) else 0
        is_told = 0 < self._told_refused <= TOLD_REFUSED_MAX
        if (
            not is_trial
            and not is_told
            and self._pace.refused(nothing_left, now_sec)
            and self._limit_before is not None
        ):
            self._places.hold(self._limit_before)
            self._limit_before = None
        # What comes back has to be waited for before it is tried.
        pace = self._pace.per_sec
        pause_sec = max(min(wait_sec, PAUSE_MAX_SEC), PAUSE_QUESTIONS / pace if pace is not None else 0.0)
        # Of a window that is known it is known when that will be.
        again_sec = 0.0 if is_trial else self._pace.comes_back_sec(self._sent - self.refused)
        self._next_send_sec = max(self._next_send_sec, now_sec + pause_sec, again_sec)

    def _is_by_time(self, ticket: Ticket, nothing_left: Moment) -> bool:
        pace = self._pace.per_sec
        is_alone = self._stop is not None and self._stop.was_alone
        if ticket.in_flight <= 1 or is_alone or self._pace.is_used_up(nothing_left):
            return True
        if pace is not None and not ticket.is_full and ticket.in_flight > RAMP * pace * self.latency_sec:
            return True  # as many as the pace makes
        if self._drops >= DROPS_MAX and ticket.in_flight < DROP * self._dropped_from:
            return True
        enough = max(USUAL_TIMES, USUAL_SHARE * ticket.in_flight)
        if sum(times for level, times in self._levels.items() if level >= ticket.in_flight) > enough:
            return True
        return sum(times for level, times in self._earlier.items() if level >= FAR * ticket.in_flight) > enough


def share_of(limit: float, before: int, now: int, together: float) -> float | None:
    """What a process takes when the number of those that use a key changed; `together` is what all have, this one
    included. `before` 0: it has just come. None: nothing changed."""
    if before == now or now < 1:
        return None
    if before == 0:
        # What the others have found out is shared with the newcomer; they make room as soon as they see it.
        return max(1.0, (together - limit) / now) if now > 1 else None
    return max(1.0, limit * before / now)
