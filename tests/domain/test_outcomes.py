import pickle
from dataclasses import replace

import pytest

from camserver.domain.analysis import Analysis
from camserver.domain.facts import CameraView, DeliveryKind, EventAction, EventFacts, IncidentFacts, Still
from camserver.domain.notices import DeliveryPolicy
from camserver.domain.outcomes import Outcome, Policies, decide
from camserver.domain.retention import Retention

from .build import MIN, T0, analysis, box, event, frame, incident, nothing, shipped_vocabulary, view, view_of

VOCABULARY = shipped_vocabulary()
ALL_SINKS = Policies(deliveries=DeliveryPolicy(archive=True, notify=True, llm_review=True))


def kinds(outcome: Outcome) -> list[tuple[str, str]]:
    return [(delivery.kind.value, delivery.reason) for delivery in outcome.deliveries]


def test_a_first_severe_frame_changes_everything_it_should() -> None:
    result = analysis("hazard", severity=3, tags=("hazard.smoke_like",))
    outcome = decide(frame(), result, view(), VOCABULARY, ALL_SINKS, T0)
    assert outcome.retention is Retention.QUARANTINE
    assert outcome.event.action is EventAction.OPEN
    assert outcome.event.retention is Retention.QUARANTINE
    assert outcome.incident is not None
    assert outcome.incident.opened
    assert kinds(outcome) == [("archive", "detected"), ("notify", "incident_opened")]
    assert (outcome.view_version, outcome.touches_state) == (7, True)


def test_without_sinks_nothing_is_delivered() -> None:
    result = analysis("hazard", severity=3, unknown_flag=True)
    assert decide(frame(), result, view(), VOCABULARY, Policies(), T0).deliveries == ()


def test_a_rise_within_an_incident_is_notified() -> None:
    outcome = decide(frame(T0 + MIN), analysis(severity=2), view_of(event()), VOCABULARY, ALL_SINKS, T0 + MIN)
    assert ("notify", "severity_rose") in kinds(outcome)


def test_a_late_rise_past_the_limit_is_notified_once() -> None:
    late = frame(T0, late=True)
    first = decide(late, analysis(severity=2), view_of(event()), VOCABULARY, ALL_SINKS, T0 + 60 * MIN)
    assert ("notify", "late_incident") in kinds(first)
    known = view_of(event(severity_max=2))
    again = decide(late, analysis(severity=3), known, VOCABULARY, ALL_SINKS, T0 + 60 * MIN)
    assert DeliveryKind.NOTIFY not in {delivery.kind for delivery in again.deliveries}


def test_a_late_frame_leaves_the_cameras_state_alone() -> None:
    still = Still("car", 0.1, 0.1, 0.3, 0.3, T0, T0, 1)
    a_view = view(stills=(still,))
    outcome = decide(frame(late=True), analysis("vehicle", boxes=(box(),)), a_view, VOCABULARY, Policies(), T0)
    assert not outcome.touches_state
    assert outcome.stills == (still,)
    assert outcome.event.action is EventAction.PAST


def test_a_frame_has_its_own_class_in_a_stronger_event() -> None:
    a_view = view_of(event(retention=Retention.CASE))
    outcome = decide(frame(T0 + MIN), analysis(), a_view, VOCABULARY, Policies(), T0 + MIN)
    assert (outcome.retention, outcome.event.retention) == (Retention.NORMAL, Retention.CASE)


def test_a_look_that_shows_nothing_changes_no_event() -> None:
    outcome = decide(frame(), nothing(), view_of(event()), VOCABULARY, ALL_SINKS, T0)
    assert (outcome.event.action, outcome.incident, outcome.deliveries) == (EventAction.NONE, None, ())
    assert outcome.retention is Retention.NORMAL


def test_an_outcome_crosses_processes() -> None:
    outcome = decide(frame(), analysis(boxes=(box(),)), view(), VOCABULARY, ALL_SINKS, T0)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert pickle.loads(pickle.dumps(VOCABULARY)).tag("animal.deer") == VOCABULARY.tag("animal.deer")


def follow(a_view: CameraView, outcome: Outcome) -> CameraView:
    """The view after an outcome, for a camera whose events never have more than one incident."""
    change = outcome.event
    after = replace(a_view, version=a_view.version + 1, stills=outcome.stills)
    if change.action is EventAction.NONE or outcome.incident is None:
        return after
    number = change.event_id or (a_view.open_event.event_id + 1 if a_view.open_event else 1)
    opened = EventFacts(
        number,
        1,
        change.primary_event,
        change.start_at,
        change.last_seen_at,
        change.severity_max,
        change.confidence_max,
        change.retention,
        change.best_score,
    )
    return replace(
        after,
        open_event=opened,
        incident=IncidentFacts(1, outcome.incident.start_at, outcome.incident.last_seen_at, 1),
    )


def test_a_parked_car_stays_one_event_and_its_frames_keep_what_was_seen() -> None:
    a_view, actions = view(), []
    car = analysis("vehicle", boxes=(box(),))
    for look in range(60):
        outcome = decide(frame(T0 + look * MIN), car, a_view, VOCABULARY, ALL_SINKS, T0 + look * MIN)
        assert outcome.analysis is car
        actions.append(outcome.event.action)
        a_view = follow(a_view, outcome)
    assert actions.count(EventAction.OPEN) == 1
    assert actions[0] is EventAction.OPEN
    assert actions[10:] == [EventAction.NONE] * 50
    assert outcome.deliveries == ()


def test_somebody_passing_a_parked_car_does_not_reopen_it() -> None:
    a_view = view(incident=incident(T0 - 60 * MIN))
    car, person = box(), box(0.6, 0.5, "person")
    for look in range(10):
        looked = analysis("vehicle", boxes=(car,))
        a_view = replace(
            a_view, stills=decide(frame(T0 + look * MIN), looked, a_view, VOCABULARY, Policies(), T0).stills
        )
    at = T0 + 10 * MIN
    passing = decide(frame(at), analysis("human", boxes=(person, car)), a_view, VOCABULARY, Policies(), at)
    assert (passing.event.action, passing.event.primary_event) == (EventAction.OPEN, "human")
    a_view = follow(a_view, passing)
    later = frame(at + MIN)
    alone = decide(later, analysis("vehicle", boxes=(car,)), a_view, VOCABULARY, Policies(), at + MIN)
    assert alone.event.action is EventAction.NONE


def test_somebody_who_stands_still_stays_an_event() -> None:
    a_view, actions = view(), []
    person = analysis("human", boxes=(box(label="person"),))
    for look in range(60):
        outcome = decide(frame(T0 + look * MIN), person, a_view, VOCABULARY, Policies(), T0 + look * MIN)
        actions.append(outcome.event.action)
        a_view = follow(a_view, outcome)
    assert actions == [EventAction.OPEN] + [EventAction.MERGE] * 59
    assert outcome.event.last_seen_at - outcome.event.start_at == 59 * MIN


COVERED = analysis("camera_issue", tags=("camera.blur", "camera.occluded"), severity=2, confidence=None)
MOVED = analysis("camera_issue", tags=("camera.moved",), severity=2, confidence=None)
DARK = analysis("camera_issue", tags=("camera.blur", "camera.dark"), confidence=None)


@pytest.mark.parametrize(
    ("result", "is_watched", "seems_covered", "action"),
    [
        (COVERED, True, False, EventAction.NONE),
        (MOVED, True, False, EventAction.NONE),
        (replace(MOVED, boxes=(box(),)), True, False, EventAction.NONE),
        # The looks after a cover differ in nothing any more; they are only poor.
        (DARK, True, True, EventAction.NONE),
        (DARK, True, False, EventAction.OPEN),
        # Where the look has no measurements, nobody else would tell.
        (COVERED, False, False, EventAction.OPEN),
        (MOVED, False, False, EventAction.OPEN),
        (DARK, False, True, EventAction.OPEN),
        # More than that the camera was touched.
        (replace(MOVED, tags=("camera.moved", "count.single")), True, False, EventAction.OPEN),
        (replace(MOVED, boxes=(box(label="person"),)), True, False, EventAction.OPEN),
        (replace(MOVED, unknown_flag=True), True, False, EventAction.OPEN),
        (replace(MOVED, tags=("camera.frozen", "camera.moved")), True, False, EventAction.OPEN),
        (replace(MOVED, tags=()), True, True, EventAction.OPEN),
        (analysis("human"), True, True, EventAction.OPEN),
    ],
)
def test_a_touched_camera_is_told_by_its_health_where_that_is_judged(
    result: Analysis, is_watched: bool, seems_covered: bool, action: EventAction
) -> None:
    looked = frame(is_watched=is_watched)
    outcome = decide(looked, result, view(seems_covered=seems_covered), VOCABULARY, ALL_SINKS, T0)
    assert outcome.event.action is action
    # Whoever tells of it, the frame keeps what was said, and its picture is evidence.
    assert outcome.analysis is result
    assert ("archive", "unknown" if result.unknown_flag else "detected") in kinds(outcome)
    assert (DeliveryKind.NOTIFY in {delivery.kind for delivery in outcome.deliveries}) is (
        action is EventAction.OPEN and (result.severity >= 2 or result.unknown_flag)
    )


def test_a_covered_camera_neither_ends_nor_lengthens_somebodys_event() -> None:
    there = view_of(event())
    outcome = decide(frame(T0 + MIN, is_watched=True), COVERED, there, VOCABULARY, ALL_SINKS, T0 + MIN)
    assert (outcome.event.action, outcome.event.close_event_id) == (EventAction.NONE, None)
    assert outcome.retention is Retention.QUARANTINE
