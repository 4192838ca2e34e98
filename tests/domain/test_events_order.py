"""Frames in any order (decision 19): nothing is lost, and what belongs together lies together."""

import itertools
import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.events import best_score
from camserver.domain.facts import EventAction
from camserver.domain.outcomes import Policies

from .build import MIN, SEC, T0, analysis
from .ledger import Ledger

GAP_MS = 90 * SEC


@dataclass(frozen=True, slots=True)
class Shot:
    at: int
    kind: str
    severity: int
    confidence: float

    @property
    def score(self) -> float:
        return best_score(self.severity, self.confidence, None)


shots = st.lists(
    st.builds(
        Shot,
        st.integers(0, 1800).map(lambda second: T0 + second * SEC),
        st.sampled_from(["human", "vehicle", "animal"]),
        st.integers(0, 3),
        st.sampled_from([0.1, 0.5, 0.9]),
    ),
    max_size=24,
)


def played(order: list[Shot], late: list[bool], now_ms: int) -> Ledger:
    ledger = Ledger(Policies())
    for shot, is_late in zip(order, late, strict=True):
        ledger.look(shot.at, analysis(shot.kind, severity=shot.severity, confidence=shot.confidence), is_late, now_ms)
    return ledger


def runs_of(moments: list[int]) -> list[list[int]]:
    """Moments in order, cut where the pause is longer than the gap."""
    runs: list[list[int]] = []
    for at in sorted(moments):
        if runs and at - runs[-1][-1] <= GAP_MS:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


@given(shots, st.randoms(use_true_random=False), st.data())
def test_any_order_gives_the_same_spans_and_loses_nothing(
    found: list[Shot], chance: random.Random, data: st.DataObject
) -> None:
    order = list(found)
    chance.shuffle(order)
    late = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
    # Decided while everything is fresh, and decided hours later.
    now_ms = data.draw(st.sampled_from([T0, T0 + 7200 * SEC]))
    ledger = played(order, late, now_ms)
    for kind in ("human", "vehicle", "animal"):
        own = [shot for shot in found if shot.kind == kind]
        events = ledger.of(kind)
        # Every frame is in exactly one event of its kind, and the event's span is that of its frames.
        moments = [at for event in events for at in ledger.frames[event.event_id]]
        assert sorted(moments) == sorted(shot.at for shot in own)
        for event in events:
            held = ledger.frames[event.event_id]
            assert (event.start_at, event.last_seen_at) == (min(held), max(held))
            assert len(runs_of(held)) == 1, "an event holds no pause longer than the gap"
        # What runs without a long pause covers the same time, whatever came first.
        for run in runs_of([shot.at for shot in own]):
            inside = [event for event in events if run[0] <= event.start_at <= run[-1]]
            assert min(event.start_at for event in inside) == run[0]
            assert max(event.last_seen_at for event in inside) == run[-1]
            told = [shot for shot in own if run[0] <= shot.at <= run[-1]]
            assert max(event.best_score for event in inside) == max(shot.score for shot in told)


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))))
def test_one_person_seen_five_times_is_one_event_once_the_looks_are_close(order: tuple[int, ...]) -> None:
    """Looks twenty seconds apart: whichever comes first, the others are within the gap of it."""
    ledger = played([Shot(T0 + n * 20 * SEC, "human", 1, 0.5) for n in order], [False] * 5, T0 + 80 * SEC)
    [event] = ledger.of("human")
    assert (event.start_at, event.last_seen_at) == (T0, T0 + 80 * SEC)


def test_a_late_frame_joins_the_event_of_its_kind_though_a_newer_one_of_another_covers_it() -> None:
    """A car came while the person was there: both events reach over the moment."""
    ledger = Ledger(Policies())
    for at_sec, kind in ((0, "human"), (60, "human"), (120, "human"), (150, "vehicle"), (180, "vehicle")):
        ledger.look(T0 + at_sec * SEC, analysis(kind))
    outcome = ledger.look(T0 + 90 * SEC, analysis("human"), late=True, now_ms=T0 + 300 * SEC)
    assert (outcome.event.action, outcome.event.event_id) == (EventAction.MERGE, 1)
    outcome = ledger.look(T0 + 140 * SEC, analysis("vehicle"), late=True, now_ms=T0 + 300 * SEC)
    assert (outcome.event.action, outcome.event.event_id) == (EventAction.MERGE, 2)
    outcome = ledger.look(T0 + 100 * SEC, analysis("animal"), late=True, now_ms=T0 + 300 * SEC)
    assert outcome.event.action is EventAction.PAST
    assert outcome.incident is not None
    assert not outcome.incident.opened, "it is one incident with what happened around it"


def test_an_event_over_midnight_and_over_the_change_of_the_clocks_is_one_event() -> None:
    """Rules know no days: 2026-03-28 23:50 to 2026-03-29 03:10 in Berlin, where 02:00 was skipped."""
    begin = 1_774_738_200_000
    ledger = Ledger(Policies())
    for minute in range(140):
        ledger.look(begin + minute * MIN, analysis("human"))
    [event] = ledger.of("human")
    assert event.last_seen_at - event.start_at == 139 * MIN
    assert len(ledger.incidents) == 1, "one long event keeps its incident"


def test_a_store_clock_that_steps_closes_no_event_twice_and_loses_none() -> None:
    ledger = Ledger(Policies())
    ledger.look(T0, analysis("human"), now_ms=T0)
    ledger.look(T0 + MIN, analysis("human"), now_ms=T0 - 10 * MIN)  # back
    assert ledger.open_id == 1
    ledger.look(T0 + 2 * MIN, analysis("human"), now_ms=T0 + 120 * MIN)  # and far ahead: closed meanwhile
    ledger.look(T0 + 3 * MIN, analysis("human"), now_ms=T0 + 3 * MIN)
    assert sum(len(frames) for frames in ledger.frames.values()) == 4
    assert len(ledger.incidents) == 1
