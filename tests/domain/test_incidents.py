import pytest

from camserver.base.errors import Bug
from camserver.domain.facts import CameraView, EventAction, EventChange, IncidentChange
from camserver.domain.incidents import IncidentPolicy, change_incident

from .build import MIN, SEC, T0, event, incident, view, view_of

POLICY = IncidentPolicy()
GAP_MS = 90 * SEC


def begun(at: int, action: EventAction = EventAction.OPEN, severity: int = 1) -> EventChange:
    return EventChange(action, primary_event="human", start_at=at, last_seen_at=at, severity_max=severity)


def merged(event_id: int, start_at: int, last_seen_at: int, severity: int = 1) -> EventChange:
    return EventChange(
        EventAction.MERGE, event_id, "human", start_at=start_at, last_seen_at=last_seen_at, severity_max=severity
    )


def changed(change: EventChange, a_view: CameraView) -> IncidentChange:
    result = change_incident(change, a_view, GAP_MS, POLICY)
    assert result is not None
    return result


def test_no_event_no_incident() -> None:
    assert change_incident(EventChange(EventAction.NONE), view_of(event()), GAP_MS, POLICY) is None


def test_the_first_event_opens_an_incident() -> None:
    assert changed(begun(T0), view()) == IncidentChange(None, T0, T0, 1, True, False, True)


@pytest.mark.parametrize(("gap_ms", "joins"), [(0, True), (GAP_MS, True), (GAP_MS + 1, False)])
def test_an_event_within_the_gap_joins(gap_ms: int, joins: bool) -> None:
    result = changed(begun(T0 + gap_ms), view(incident=incident()))
    assert result.incident_id == (100 if joins else None)
    assert result.opened is not joins
    assert result.adds_event


@pytest.mark.parametrize(("length_ms", "joins"), [(30 * MIN - 1, True), (30 * MIN, False)])
def test_an_incident_is_cut_at_30_minutes(length_ms: int, joins: bool) -> None:
    at = T0 + length_ms
    result = changed(begun(at), view(incident=incident(T0, at)))
    assert result.incident_id == (100 if joins else None)


def test_one_long_event_keeps_its_incident() -> None:
    long_event = event(T0, T0 + 120 * MIN)
    result = changed(merged(10, T0, T0 + 121 * MIN), view_of(long_event))
    assert (result.incident_id, result.last_seen_at, result.adds_event) == (100, T0 + 121 * MIN, False)


@pytest.mark.parametrize(("severity", "rose"), [(0, False), (1, False), (2, True)])
def test_a_rise_in_severity_is_told(severity: int, rose: bool) -> None:
    result = changed(merged(10, T0, T0 + MIN, severity), view_of(event()))
    assert result.severity_rose is rose
    assert result.severity_max == max(severity, 1)


def test_a_merge_changes_the_incident_of_its_own_event_not_the_newest() -> None:
    old = incident(T0 - 60 * MIN, incident_id=50)
    covering = event(T0 - 60 * MIN, event_id=5, incident_id=50)
    a_view = view(incident=incident(), covering=(covering,), incidents=(old,))
    result = changed(merged(5, T0 - 61 * MIN, T0 - 60 * MIN, 3), a_view)
    assert (result.incident_id, result.start_at, result.severity_rose) == (50, T0 - 61 * MIN, True)


def test_a_merge_without_its_incident_in_the_view_is_a_bug() -> None:
    with pytest.raises(Bug, match="Incident 50"):
        change_incident(merged(5, T0, T0), view(covering=(event(event_id=5, incident_id=50),)), GAP_MS, POLICY)
    with pytest.raises(Bug, match="Event 6"):
        change_incident(merged(6, T0, T0), view_of(event()), GAP_MS, POLICY)


def test_a_past_event_joins_backwards_within_gap_and_cut() -> None:
    newest = view(incident=incident(T0, T0 + 10 * MIN))
    near = changed(begun(T0 - MIN, EventAction.PAST), newest)
    assert (near.incident_id, near.start_at, near.last_seen_at) == (100, T0 - MIN, T0 + 10 * MIN)
    assert changed(begun(T0 - 2 * MIN, EventAction.PAST), newest).incident_id is None
    grown = view(incident=incident(T0, T0 + 29 * MIN))
    assert changed(begun(T0 - MIN, EventAction.PAST), grown).incident_id is None


def test_of_two_incidents_the_nearer_takes_a_past_event() -> None:
    older = incident(T0 - 10 * MIN, T0 - 100 * SEC, incident_id=50)
    a_view = view(incident=incident(), incidents=(older,))
    assert changed(begun(T0 - 80 * SEC, EventAction.PAST), a_view).incident_id == 50
    assert changed(begun(T0 - 10 * SEC, EventAction.PAST), a_view).incident_id == 100
