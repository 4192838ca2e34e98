"""How many questions may be in flight, found out while asking: nobody tells what a provider can take.

Two bounds are kept. `limit` is how many may be in flight at once: it doubles until the first refusal (429), is cut
once for each burst of refusals, and comes back by one for each batch of clean answers, but only while it is what
holds sending back. At a limit that was refused before it waits longer and longer before it tries again, since each
trial costs a refusal. `pace` is how many may be sent a second: none until refusals come in spite of a cut, which
happens where a provider counts by time and not by what is in flight; or until headers say so.

A refused question keeps its place while it waits, so that refusals make sending slower by themselves. Time is seconds
of any clock that never goes back, passed in.
"""

from dataclasses import dataclass
from typing import Final

# A limit that was refused is tried again after so many clean batches, and no fewer answers than that; at first, and
# at most after it was refused again and again.
PROBE_FIRST: Final = 6.0
PROBE_MAX: Final = 60.0
PROBE_ANSWERS_FIRST: Final = 100
# Once a limit that was refused is found to be free, more is added with each answer, of one, until a refusal.
CLIMB: Final = 0.25
# A ceiling within this of the one before is the same.
SAME_CEILING: Final = 0.1
# Without a word of the provider a refused question waits this long.
WAIT_USUAL_SEC: Final = 0.5
WAIT_MAX_SEC: Final = 120.0
PACE_CUT: Final = 0.95
FAR: Final = 1.5
PACE_GROWTH: Final = 0.01  # of itself, a second
PACE_GROWTH_FIRST: Final = 0.02  # the same until it was refused for the first time
# Timers come late on a busy machine: who was held back longer than it should be may make up for so much.
CATCH_UP_SEC: Final = 0.05
PACE_REST_FIRST_SEC: Final = 4.0
PACE_REST_MAX_SEC: Final = 60.0
# A pace that held nothing back for so long is forgotten.
PACE_IDLE_SEC: Final = 30.0
# Of two times of refusing, the answers in between tell the pace; unless they are further apart.
GATES_APART_MAX_SEC: Final = 90.0
PACE_MIN: Final = 1 / 60
# Headers count once so little is left of what they tell.
LOW_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Ticket:
    """A question that was sent."""

    number: int
    sent_sec: float
    in_flight: int  # itself included
    is_full: bool  # the limit held sending back


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider's headers say is left, of requests or of tokens."""

    limit: float
    remaining: float
    reset_sec: float  # until it is whole again


class ConcurrencyController:
    """One for all that use the same key. Not for several threads."""

    def __init__(self, start: int, most: int, cut_factor: float = 0.9, clean_batches: int = 1) -> None:
        self.limit = float(min(start, most))
        self.in_flight = 0
        self.pace: float | None = None
        self.refused = 0  # 429s, all of them
        self.cuts = 0
        self.latency_sec = 0.0  # of answers, smoothed
        self._most = float(most)
        self._cut_factor = cut_factor
        self._clean_batches = clean_batches
        self._sent = 0
        self._is_slow_start = True
        self._last_cut_number = 0
        self._cut_at_sec = 0.0
        self._cut_until_sec = 0.0  # as long as the refusal that led to the cut asked to wait
        self._ceiling: float | None = None  # this many were too many
        self._clean = 0.0  # batches at the ceiling
        self._probe_after = PROBE_FIRST
        self._refused_again = 0
        self._is_climbing = False
        self._gate_until_sec = 0.0
        self._gates: tuple[float, int] | None = None  # when, and answers until then
        self._answered = 0
        self._next_send_sec = 0.0
        self._pace_rest_sec = PACE_REST_FIRST_SEC
        self._pace_grows_at_sec = 0.0
        self._pace_held_at_sec = 0.0
        self._pace_told = False
        self._spread_left = 0

    # -- Sending -------------------------------------------------------------------------------------------------

    @property
    def places(self) -> int:
        return max(1, int(self.limit))

    @property
    def has_place(self) -> bool:
        return self.in_flight < self.places

    def wait_sec(self, now_sec: float) -> float:
        """How long until the next question may be sent, if there is a place for it."""
        if self.pace is not None and self._next_send_sec > now_sec:
            self._pace_held_at_sec = now_sec
        return max(0.0, self._gate_until_sec - now_sec, self._next_send_sec - now_sec)

    def take(self) -> None:
        """Takes a place. It is given back by `release`."""
        self.in_flight += 1

    def release(self) -> None:
        self.in_flight -= 1

    def sent(self, now_sec: float) -> Ticket:
        """A question with a place is sent, for the first time or again."""
        self._sent += 1
        spacing = 1 / self.pace if self.pace is not None else 0.0
        if self._spread_left > 0:
            # After everybody waited, not all at once: the first refusal shall come before the last is sent.
            self._spread_left -= 1
            spacing = max(spacing, self.latency_sec / self.places)
        if spacing:
            self._next_send_sec = max(self._next_send_sec, now_sec - min(CATCH_UP_SEC, spacing * 8)) + spacing
        return Ticket(self._sent, now_sec, self.in_flight, self.in_flight >= self.places - 1)

    # -- What comes back -----------------------------------------------------------------------------------------

    def answered(self, ticket: Ticket, now_sec: float) -> None:
        """An answer of any kind that is no refusal for being too many."""
        took_sec = max(now_sec - ticket.sent_sec, 0.0)
        self.latency_sec = took_sec if not self._answered else 0.9 * self.latency_sec + 0.1 * took_sec
        self._answered += 1
        if ticket.is_full and ticket.number > self._last_cut_number:
            self._grow()
        self._grow_pace(now_sec)

    def refuse(self, ticket: Ticket, retry_after_sec: float | None, now_sec: float) -> float:
        """The question was refused for being too many: how long it waits, keeping its place."""
        self.refused += 1
        given = retry_after_sec is not None and retry_after_sec > 0
        wait_sec = min(retry_after_sec if given and retry_after_sec else WAIT_USUAL_SEC, WAIT_MAX_SEC)
        if ticket.number <= self._last_cut_number:
            return wait_sec  # of the burst that was cut for already
        if now_sec < self._cut_until_sec or self.pace is not None or ticket.in_flight <= 1:
            # Sent after the cut and refused before the wait was over, or alone: what counts here is time.
            self._gate(now_sec, wait_sec)
        self._cut(ticket, now_sec, wait_sec, by_time=self.pace is not None)
        return wait_sec

    def heed(self, told: Allowance, per_question: float, now_sec: float) -> None:
        """Paces sending by a provider's headers; `per_question` is how much of it a question takes."""
        low = max(2 * self.in_flight * per_question, LOW_SHARE * told.limit)
        if told.reset_sec <= 0 or told.remaining > low or told.limit <= told.remaining:
            if self._pace_told and told.remaining > 2 * low:
                self.pace, self._pace_told = None, False
            return
        refill = (told.limit - told.remaining) / told.reset_sec
        pace = max(refill / per_question, PACE_MIN)
        self.pace = pace if self.pace is None or self._pace_told else min(self.pace, pace)
        self._pace_told = True
        self._pace_held_at_sec = now_sec
        if told.remaining < per_question:
            self._gate_until_sec = max(self._gate_until_sec, now_sec + min(per_question / refill, WAIT_MAX_SEC))

    def share(self, limit: float) -> None:
        """Others use the same key: from now on this many are ours."""
        self.limit = min(max(limit, 1.0), self._most)
        self._is_slow_start = False
        self._ceiling = None

    # -- Inside --------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        if self._is_slow_start or self._is_climbing:
            self.limit = min(self.limit + (1 if self._is_slow_start else CLIMB), self._most)
            return
        step = 1 / (self.limit * self._clean_batches)
        if self._ceiling is None or self.limit + step < self._ceiling:
            self.limit = min(self.limit + step, self._most)
            return
        self._clean += step
        if self.limit >= self._ceiling:
            self._is_climbing = self._clean >= 1
        elif self._clean >= max(
            self._probe_after, self._probe_after / PROBE_FIRST * PROBE_ANSWERS_FIRST / self.limit
        ):
            # Just below what was refused before, for long enough.
            self.limit = min(self._ceiling, self._most)
            self._clean = 0.0

    def _cut(self, ticket: Ticket, now_sec: float, wait_sec: float, *, by_time: bool) -> None:
        # Refusals may come in another order than the questions went: one that was sent alone tells little.
        too_many = max(float(ticket.in_flight), 0.5 * self.limit, 1.0)
        before = self._ceiling
        is_same = before is not None and abs(too_many - before) <= max(SAME_CEILING * before, 2.0)
        self._refused_again = self._refused_again + 1 if is_same else 0
        self._probe_after = min(PROBE_FIRST * 3.0 ** min(self._refused_again, 5), PROBE_MAX)
        # Where time is what counts, how many were in flight says nothing for later.
        self._ceiling = None if by_time else too_many
        self._is_climbing = False
        self._clean = 0.0
        self.limit = max(1.0, min(self.limit, too_many) * self._cut_factor)
        self._is_slow_start = False
        self._last_cut_number = self._sent
        self._cut_at_sec = now_sec
        self._cut_until_sec = now_sec + max(wait_sec, self.latency_sec)
        self.cuts += 1

    def _gate(self, now_sec: float, wait_sec: float) -> None:
        """Nobody sends until the wait is over; the answers since the last such moment tell the pace."""
        measured: float | None = None
        if self._gates is not None and 0 < now_sec - self._gates[0] <= GATES_APART_MAX_SEC:
            measured = max(self._answered - self._gates[1], 1) / (now_sec - self._gates[0])
        if self.pace is not None and not self._pace_told:
            cut = self.pace * PACE_CUT
            # Far above what was answered: not one step, but all the way.
            self.pace = max(min(cut, measured * FAR) if measured is not None else cut, PACE_MIN)
            self._pace_rest_sec = min(self._pace_rest_sec * 2, PACE_REST_MAX_SEC)
        elif measured is not None:
            self.pace = max(measured, PACE_MIN)
        self._gates = now_sec, self._answered
        self._gate_until_sec = max(self._gate_until_sec, now_sec + wait_sec)
        self._pace_grows_at_sec = self._gate_until_sec + self._pace_rest_sec
        self._pace_held_at_sec = now_sec
        self._spread_left = self.places

    def _grow_pace(self, now_sec: float) -> None:
        if self.pace is None or self._pace_told or now_sec < self._pace_grows_at_sec:
            return
        if now_sec - self._pace_held_at_sec > PACE_IDLE_SEC:
            self.pace = None
            return
        # Once an answer: so that a second's answers together make it.
        self.pace += PACE_GROWTH_FIRST if self._pace_rest_sec == PACE_REST_FIRST_SEC else PACE_GROWTH


def share_of(limit: float, before: int, now: int, together: float) -> float | None:
    """What a process takes when the number of those that use a key changed; `together` is what all have, this one
    included. `before` 0: it has just come. None: nothing changed."""
    if before == now or now < 1:
        return None
    if before == 0:
        # What the others have found out is shared with the newcomer; they make room as soon as they see it.
        return max(1.0, (together - limit) / now) if now > 1 else None
    return max(1.0, limit * before / now)
