"""What people review: consecutive events of one camera, of whatever kind (decision 21).

An event's incident is set once, when the event begins; incidents never merge. Who reviewed what is not here.
"""

from dataclasses import dataclass

from camserver.base.errors import Bug
from camserver.domain.facts import (
    CameraView,
    EventAction,
    EventChange,
    EventFacts,
    IncidentChange,
    IncidentFacts,
)
from camserver.domain.policy import setting


@dataclass(frozen=True, slots=True)
class IncidentPolicy:
    """When events of one camera are one incident."""

    cut_min: int = setting(
        30,
        "Minutes after which a new event begins a new incident, however close it follows.",
        min=1,
        max=1440,
    )


def change_incident(
    change: EventChange, view: CameraView, gap_ms: int, policy: IncidentPolicy
) -> IncidentChange | None:
    """What an event's change does to its incident; None when no event changed."""
    if change.action is EventAction.NONE:
        return None
    if change.action is EventAction.MERGE:
        return _grown(incident_of_merge(change, view), change, adds_event=False)
    joined = _joined(change, view, gap_ms, policy)
    if joined is not None:
        return _grown(joined, change, adds_event=True)
    return IncidentChange(
        incident_id=None,
        start_at=change.start_at,
        last_seen_at=change.last_seen_at,
        severity_max=change.severity_max,
        opened=True,
        severity_rose=False,
        adds_event=True,
    )


def incident_of_merge(change: EventChange, view: CameraView) -> IncidentFacts:
    """The incident of the event that a MERGE joins."""
    events = {event.event_id: event for event in (view.open_event, *view.covering) if event is not None}
    event = events.get(change.event_id) if change.event_id is not None else None
    if event is None:
        raise Bug(f"Event {change.event_id} is merged into but not in the camera's view. Report this.")
    return find_incident(event, view)


def find_incident(event: EventFacts, view: CameraView) -> IncidentFacts:
    for incident in _known(view):
        if incident.incident_id == event.incident_id:
            return incident
    raise Bug(
        f"Incident {event.incident_id} of event {event.event_id} is not in the camera's view: the incidents "
        "of the open and the covering event must be read with it. Report this."
    )


def _joined(change: EventChange, view: CameraView, gap_ms: int, policy: IncidentPolicy) -> IncidentFacts | None:
    """The nearest incident that a new event continues, without making it longer than the cut."""
    at = change.start_at
    cut_ms = policy.cut_min * 60_000
    fitting = [
        incident
        for incident in _known(view)
        if _distance_ms(incident, at) <= gap_ms
        and at - incident.start_at < cut_ms
        # An event from behind may lie before the incident's start; then the whole would grow backwards.
        and (at >= incident.start_at or incident.last_seen_at - at < cut_ms)
    ]
    return min(fitting, key=lambda incident: _distance_ms(incident, at), default=None)


def _grown(incident: IncidentFacts, change: EventChange, adds_event: bool) -> IncidentChange:
    return IncidentChange(
        incident_id=incident.incident_id,
        start_at=min(incident.start_at, change.start_at),
        last_seen_at=max(incident.last_seen_at, change.last_seen_at),
        severity_max=max(incident.severity_max, change.severity_max),
        opened=False,
        severity_rose=change.severity_max > incident.severity_max,
        adds_event=adds_event,
    )


def _known(view: CameraView) -> tuple[IncidentFacts, ...]:
    return (view.incident, *view.incidents) if view.incident is not None else view.incidents


def _distance_ms(incident: IncidentFacts, at: int) -> int:
    return max(incident.start_at - at, at - incident.last_seen_at, 0)
