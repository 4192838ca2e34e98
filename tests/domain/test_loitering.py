"""Loitering: an event of people that lasts (decision 18). Told once, severe, kept longer; no frame has the tag."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.events import LOITERING_TAG, EventPolicy, is_loitering
from camserver.domain.facts import DeliveryKind
from camserver.domain.notices import CONTINUES, INCIDENT_OPENED, LATE_INCIDENT, SEVERITY_ROSE
from camserver.domain.outcomes import Outcome
from camserver.domain.retention import Retention
from camserver.domain.vocabulary import NOTIFY_SAFE

from .build import MIN, SEC, T0, analysis, nothing
from .ledger import POLICIES, Ledger

SOMEBODY = analysis("human", severity=1, tags=("count.single",))


def told(outcome: Outcome) -> list[str]:
    return [due.reason for due in outcome.deliveries if due.kind is DeliveryKind.NOTIFY]


@pytest.mark.parametrize(
    ("kind", "length_ms", "limit_sec", "expected"),
    [
        ("human", 180 * SEC, 180, True),
        ("human", 180 * SEC - 1, 180, False),
        ("human", 0, 1, False),
        ("human", 10 * 3600 * SEC, 0, False),  # switched off
        ("vehicle", 600 * SEC, 180, False),
        ("animal", 600 * SEC, 180, False),
        ("unknown", 600 * SEC, 180, False),
    ],
)
def test_an_event_of_people_that_lasts(kind: str, length_ms: int, limit_sec: int, expected: bool) -> None:
    assert is_loitering(kind, T0, T0 + length_ms, EventPolicy(loitering_sec=limit_sec)) is expected


def test_it_begins_at_three_minutes_raises_the_severity_and_is_told_once() -> None:
    ledger = Ledger()
    looks = [ledger.look(T0 + minute * MIN, SOMEBODY) for minute in range(5)]
    assert [outcome.event.is_loitering for outcome in looks] == [False, False, False, True, True]
    assert [outcome.event.severity_max for outcome in looks] == [1, 1, 1, 2, 2]
    assert [outcome.event.retention for outcome in looks] == [Retention.NORMAL] * 3 + [Retention.QUARANTINE] * 2
    # From then on it goes on, which is told by the cooldown alone.
    assert [told(outcome) for outcome in looks] == [[], [], [], [SEVERITY_ROSE], [CONTINUES]]
    assert ledger.tags == {1: {"count.single", LOITERING_TAG}}
    assert looks[3].event_tags == ((LOITERING_TAG, NOTIFY_SAFE),)
    assert [incident.severity_max for incident in ledger.incidents.values()] == [2]


def test_a_frame_keeps_what_was_seen_on_it_and_is_kept_as_evidence() -> None:
    ledger = Ledger()
    looks = [ledger.look(T0 + minute * MIN, SOMEBODY) for minute in range(4)]
    assert all(outcome.analysis is SOMEBODY for outcome in looks)
    assert [outcome.retention for outcome in looks] == [Retention.NORMAL] * 3 + [Retention.QUARANTINE]
    # The best picture is the clearest one, not the one at which the time was up.
    assert not looks[3].event.is_best_frame


def test_who_leaves_and_comes_back_does_not_loiter() -> None:
    ledger = Ledger()
    for minute in (0, 1, 3, 4, 6, 7):
        outcome = ledger.look(T0 + minute * MIN + minute // 2 * SEC, SOMEBODY)
        assert not outcome.event.is_loitering
    assert len(ledger.of("human")) == 3


def test_a_missed_look_does_not_end_it() -> None:
    ledger = Ledger(interval_ms=30 * SEC)
    for at_sec, said in ((0, SOMEBODY), (30, nothing()), (60, nothing()), (90, SOMEBODY), (180, SOMEBODY)):
        outcome = ledger.look(T0 + at_sec * SEC, said)
    assert outcome.event.is_loitering
    assert len(ledger.events) == 1


def test_what_is_severe_already_does_not_rise_again() -> None:
    ledger = Ledger()
    for minute in range(4):
        outcome = ledger.look(T0 + minute * MIN, replace(SOMEBODY, severity=3))
    assert told(outcome) == [CONTINUES]
    assert outcome.event.severity_max == 3
    assert outcome.event_tags


def test_a_late_frame_that_makes_it_long_enough_is_told_as_late() -> None:
    ledger = Ledger()
    for minute in (3, 4, 5):
        ledger.look(T0 + minute * MIN, SOMEBODY)
    assert not ledger.decided[-1].event.is_loitering
    outcome = ledger.look(T0 + 2 * MIN, SOMEBODY, late=True, now_ms=T0 + 10 * MIN)
    assert outcome.event.is_loitering
    assert told(outcome) == [LATE_INCIDENT]
    assert told(ledger.look(T0 + MIN, SOMEBODY, late=True, now_ms=T0 + 10 * MIN)) == []


def test_switched_off_nobody_loiters() -> None:
    ledger = Ledger(replace(POLICIES, events=EventPolicy(loitering_sec=0)))
    for minute in range(60):
        outcome = ledger.look(T0 + minute * MIN, SOMEBODY)
    assert not outcome.event.is_loitering
    assert outcome.event.severity_max == 1


def test_an_incident_that_is_severe_from_the_start_is_told_when_it_opens() -> None:
    ledger = Ledger()
    assert told(ledger.look(T0, replace(SOMEBODY, severity=2))) == [INCIDENT_OPENED]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=40), st.integers(1, 600))
def test_an_event_has_the_tag_exactly_when_it_lasts(pauses_sec: list[int], limit_sec: int) -> None:
    ledger = Ledger(replace(POLICIES, events=EventPolicy(loitering_sec=limit_sec)))
    at = T0
    rises = 0
    for pause_sec in pauses_sec:
        at += pause_sec * SEC
        rises += told(ledger.look(at, SOMEBODY)) == [SEVERITY_ROSE]
    long = {e.event_id for e in ledger.of("human") if e.last_seen_at - e.start_at >= limit_sec * SEC}
    assert {key for key, tags in ledger.tags.items() if LOITERING_TAG in tags} == long
    assert {e.event_id for e in ledger.of("human") if e.severity_max == 2} == long
    assert {e.event_id for e in ledger.of("human") if e.retention is Retention.QUARANTINE} == long
    # At most once for each incident, however many of its events last.
    assert rises == len({ledger.events[key].incident_id for key in long})
