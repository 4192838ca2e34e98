"""Frames in any order, late ones too, against a small model of the rows that a store would hold."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from camserver.domain.events import close_due, merge_gap_ms
from camserver.domain.facts import CameraView, EventAction, EventFacts, IncidentFacts
from camserver.domain.outcomes import Outcome, Policies, decide
from camserver.domain.retention import strongest
from tests.rig.effort import times

from .build import MIN, SEC, T0, analysis, frame, shipped_vocabulary

VOCABULARY = shipped_vocabulary()
POLICIES = Policies()
GAP_MS = merge_gap_ms(POLICIES.events, MIN)
LOITERING_MS = POLICIES.events.loitering_sec * SEC
CUT_MS = POLICIES.incidents.cut_min * MIN


@dataclass
class EventRow:
    facts: EventFacts
    is_open: bool
    end_at: int | None


def away_ms(event: EventFacts, at: int) -> int:
    return max(event.start_at - at, at - event.last_seen_at, 0)


class Events(RuleBasedStateMachine):
    """One camera: its events and incidents, changed by nothing but outcomes and the sweep."""

    def __init__(self) -> None:
        super().__init__()
        self.events: dict[int, EventRow] = {}
        self.incidents: dict[int, IncidentFacts] = {}
        self.frames = 0
        self.told = 0  # frames that had something to tell
        self.now_ms = T0
        self.opened_incident_id = 0  # of the event that was opened last

    @initialize(start_sec=st.integers(0, 300))
    def begin(self, start_sec: int) -> None:
        self.now_ms = T0 + start_sec * SEC

    def view(self, captured_at: int) -> CameraView:
        opened = [row.facts for row in self.events.values() if row.is_open]
        covering = [
            row.facts
            for row in self.events.values()
            if row.facts.start_at - GAP_MS <= captured_at <= row.facts.last_seen_at + GAP_MS
        ]
        newest = self.incidents.get(self.opened_incident_id)
        open_event = opened[0] if opened else None
        nearest: dict[str, EventFacts] = {}
        for each in sorted(covering, key=lambda e: (away_ms(e, captured_at), -e.start_at, -e.event_id)):
            nearest.setdefault(each.primary_event, each)
        own = {e.incident_id for e in (open_event, *nearest.values()) if e} - (
            {newest.incident_id} if newest else set()
        )
        return CameraView(
            version=self.frames,
            open_event=open_event,
            incident=newest,
            covering=tuple(nearest.values()),
            incidents=tuple(self.incidents[key] for key in sorted(own)),
        )

    @rule(
        age_sec=st.one_of(st.just(0), st.integers(0, 600), st.integers(0, 7200)),
        kind=st.sampled_from(["none", "human", "human", "vehicle", "hazard"]),
        severity=st.integers(0, 3),
        confidence=st.one_of(st.none(), st.floats(0, 1)),
        blur_score=st.one_of(st.none(), st.floats(0, 100)),
        late=st.booleans(),
    )
    def frame_is_analyzed(
        self,
        age_sec: int,
        kind: str,
        severity: int,
        confidence: float | None,
        blur_score: float | None,
        late: bool,
    ) -> None:
        self.frames += 1
        a_frame = frame(self.now_ms - age_sec * SEC, late=late, blur_score=blur_score)
        result = analysis(kind, severity=severity, confidence=confidence)
        before = self.view(a_frame.captured_at)
        outcome = decide(a_frame, result, before, VOCABULARY, POLICIES, self.now_ms)
        assert outcome.view_version == before.version
        assert outcome.touches_state is not late
        assert outcome.deliveries == ()
        self.told += kind != "none"
        assert (outcome.event.action is EventAction.NONE) == (kind == "none")
        if late:
            assert outcome.event.action is not EventAction.OPEN
        self.apply(outcome)

    def apply(self, outcome: Outcome) -> None:
        change = outcome.event
        if change.action is EventAction.NONE:
            assert outcome.incident is None
            return
        incident_id = self.apply_incident(outcome)
        if change.action is EventAction.MERGE:
            assert change.event_id is not None
            event_id = change.event_id
            self.check_merge(event_id, outcome, incident_id)
        else:
            event_id = len(self.events) + 1
        if change.close_event_id is not None:
            closed = self.events[change.close_event_id]
            assert closed.is_open
            assert change.close_end_at == closed.facts.last_seen_at <= change.start_at
            closed.is_open, closed.end_at = False, change.close_end_at
        row = EventRow(
            EventFacts(
                event_id=event_id,
                incident_id=incident_id,
                primary_event=change.primary_event,
                start_at=change.start_at,
                last_seen_at=change.last_seen_at,
                severity_max=change.severity_max,
                confidence_max=change.confidence_max,
                retention=change.retention,
                best_score=change.best_score,
            ),
            is_open=change.action is EventAction.OPEN
            or (change.action is EventAction.MERGE and self.events[event_id].is_open),
            end_at=change.last_seen_at,
        )
        self.events[event_id] = row
        if change.action is EventAction.OPEN:
            self.opened_incident_id = incident_id

    def apply_incident(self, outcome: Outcome) -> int:
        change = outcome.incident
        assert change is not None
        if change.incident_id is None:
            assert change.opened
            assert change.adds_event
            incident_id = len(self.incidents) + 1
        else:
            incident_id = change.incident_id
            was = self.incidents[incident_id]
            assert not change.opened
            assert change.start_at <= was.start_at
            assert change.last_seen_at >= was.last_seen_at
            assert change.severity_max >= was.severity_max
            assert change.severity_rose == (change.severity_max > was.severity_max)
            if change.adds_event:
                # The cut: a new event never begins half an hour or more away from the incident's other end.
                assert outcome.event.start_at - was.start_at < CUT_MS
        assert change.adds_event == (outcome.event.action is not EventAction.MERGE)
        self.incidents[incident_id] = IncidentFacts(
            incident_id, change.start_at, change.last_seen_at, change.severity_max
        )
        return incident_id

    def check_merge(self, event_id: int, outcome: Outcome, incident_id: int) -> None:
        was, change = self.events[event_id].facts, outcome.event
        assert change.primary_event == was.primary_event
        assert incident_id == was.incident_id, "an event's incident is set once"
        assert was.start_at - GAP_MS <= change.start_at <= was.start_at
        assert change.start_moved == (change.start_at < was.start_at)
        assert was.last_seen_at <= change.last_seen_at <= was.last_seen_at + GAP_MS
        is_long = change.primary_event == "human" and change.last_seen_at - change.start_at >= LOITERING_MS
        assert change.is_loitering == is_long
        assert change.severity_max == max(was.severity_max, outcome.analysis.severity, 2 if is_long else 0)
        assert change.confidence_max >= was.confidence_max
        assert change.retention is strongest([was.retention, outcome.retention])
        assert change.best_score >= was.best_score
        assert change.is_best_frame == (change.best_score > was.best_score)

    @rule(seconds=st.integers(1, 200))
    def time_passes(self, seconds: int) -> None:
        self.now_ms += seconds * SEC

    @rule(unfinished_age_sec=st.one_of(st.none(), st.integers(0, 900)))
    def sweep(self, unfinished_age_sec: int | None) -> None:
        oldest = None if unfinished_age_sec is None else self.now_ms - unfinished_age_sec * SEC
        for row in self.events.values():
            if not row.is_open:
                continue
            end_at = close_due(row.facts, self.now_ms, MIN, oldest, POLICIES.events)
            if end_at is not None:
                assert end_at == row.facts.last_seen_at
                assert oldest is None or oldest > end_at + GAP_MS, "a frame that could join was still to come"
                row.is_open, row.end_at = False, end_at

    @invariant()
    def at_most_one_event_is_open(self) -> None:
        assert sum(row.is_open for row in self.events.values()) <= 1

    @invariant()
    def spans_are_whole_and_within_their_incident(self) -> None:
        for row in self.events.values():
            incident = self.incidents[row.facts.incident_id]
            assert incident.start_at <= row.facts.start_at <= row.facts.last_seen_at <= incident.last_seen_at
            assert row.facts.severity_max <= incident.severity_max
            assert row.is_open or row.end_at == row.facts.last_seen_at

    @invariant()
    def incidents_have_events_and_end_with_one(self) -> None:
        for incident in self.incidents.values():
            own = [row.facts for row in self.events.values() if row.facts.incident_id == incident.incident_id]
            assert min(e.start_at for e in own) == incident.start_at
            assert max(e.last_seen_at for e in own) == incident.last_seen_at
            assert max(e.severity_max for e in own) == incident.severity_max

    @invariant()
    def something_told_is_never_lost(self) -> None:
        assert bool(self.events) == bool(self.told)


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=times(60, 600), stateful_step_count=40, deadline=None)
