"""From an analysis and a camera's state to an outcome: everything one job changes, as data.

`decide` is pure; the store applies an outcome in one transaction under the job's fence and the camera state's
version. When either moved, the caller reads the state again and decides again.
"""

from dataclasses import dataclass, field

from camserver.domain import notices
from camserver.domain.analysis import Analysis
from camserver.domain.events import EventPolicy, change_event, merge_gap_ms
from camserver.domain.facts import (
    CameraView,
    DeliveryDue,
    DeliveryKind,
    EventAction,
    EventChange,
    EventFacts,
    FrameFacts,
    IncidentChange,
    IncidentFacts,
    Still,
)
from camserver.domain.incidents import IncidentPolicy, change_incident
from camserver.domain.notices import DeliveryPolicy, LlmReviewPolicy, NotifyPolicy
from camserver.domain.retention import Retention, classify
from camserver.domain.stationary import StationaryPolicy, look_through
from camserver.domain.vocabulary import Vocabulary

__all__ = [
    "CameraView",
    "DeliveryDue",
    "DeliveryKind",
    "EventAction",
    "EventChange",
    "EventFacts",
    "FrameFacts",
    "IncidentChange",
    "IncidentFacts",
    "Outcome",
    "Policies",
    "Still",
    "decide",
]


@dataclass(frozen=True, slots=True)
class Policies:
    """The settings `decide` works by."""

    events: EventPolicy = field(default_factory=EventPolicy)
    incidents: IncidentPolicy = field(default_factory=IncidentPolicy)
    stationary: StationaryPolicy = field(default_factory=StationaryPolicy)
    notify: NotifyPolicy = field(default_factory=NotifyPolicy)
    llm_review: LlmReviewPolicy = field(default_factory=LlmReviewPolicy)
    deliveries: DeliveryPolicy = field(default_factory=DeliveryPolicy)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that one analyzed frame changes."""

    frame: FrameFacts
    analysis: Analysis
    retention: Retention  # of the frame
    event: EventChange
    incident: IncidentChange | None
    deliveries: tuple[DeliveryDue, ...]
    stills: tuple[Still, ...]  # the camera's stationary memory afterwards
    view_version: int  # the CameraView.version this was decided on
    touches_state: bool  # False for late frames: the camera's state row stays as it is


def decide(
    frame: FrameFacts,
    analysis: Analysis,
    view: CameraView,
    vocabulary: Vocabulary,
    policies: Policies,
    now_ms: int,
) -> Outcome:
    """What one analyzed frame changes.

    The frame keeps the analysis as it is, with the class that follows from it; events, incidents and
    deliveries see it without the things that stay where they are.
    """
    retention = classify(analysis, vocabulary)
    stills, news = look_through(view.stills, analysis, frame.captured_at, frame.late, policies.stationary)
    event = change_event(frame, news, retention, view, policies.events)
    gap_ms = merge_gap_ms(policies.events, frame.interval_ms)
    incident = change_incident(event, view, gap_ms, policies.incidents)
    deliveries = notices.due(
        frame,
        news,
        event,
        incident,
        _severity_before(incident, view),
        policies.deliveries,
        policies.notify,
        policies.llm_review,
        now_ms,
    )
    return Outcome(
        frame=frame,
        analysis=analysis,
        retention=retention,
        event=event,
        incident=incident,
        deliveries=deliveries,
        stills=stills,
        view_version=view.version,
        touches_state=not frame.late,
    )


def _severity_before(incident: IncidentChange | None, view: CameraView) -> int | None:
    """The severity an incident had in the view; None for a new one."""
    known = (*view.incidents, view.incident)
    return next(
        (fact.severity_max for fact in known if fact and incident and fact.incident_id == incident.incident_id),
        None,
    )
