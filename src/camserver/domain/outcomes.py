"""From an analysis and a camera's state to an outcome: everything one job changes, as data.

`decide` is pure; the store applies an outcome in one transaction under the job's fence and the camera state's
version. When either moved, the caller reads the state again and decides again.
"""

from dataclasses import dataclass, field, replace

from camserver.base.records import record
from camserver.domain import notices
from camserver.domain.analysis import Analysis
from camserver.domain.dwelling import follow, parted, people_in
from camserver.domain.events import LOITERING_SEVERITY, LOITERING_TAG, EventPolicy, change_event, merge_gap_ms
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
from camserver.domain.health import CAMERA_ISSUE, ISSUES, Issue
from camserver.domain.incidents import IncidentPolicy, change_incident
from camserver.domain.notices import DeliveryPolicy, LlmReviewPolicy, NotifyPolicy
from camserver.domain.retention import Retention, classify, strongest
from camserver.domain.stationary import (
    CAMERA_MOVED_TAG,
    StationaryPolicy,
    is_told,
    look_through,
    mark_told,
    nothing_new,
)
from camserver.domain.vocabulary import Vocabulary

# What an analyzer sees of two pictures, and camera health tells once it lasted.
_TAMPERING_TAGS = frozenset({ISSUES[Issue.COVERED].tag_id, ISSUES[Issue.MOVED].tag_id})
# What is true of a covered camera's pictures too.
_POOR_PICTURE_TAGS = frozenset({"camera.blur", "camera.dark", "camera.glare"})

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


@record
class Outcome:
    """All that one analyzed frame changes."""

    frame: FrameFacts
    analysis: Analysis
    retention: Retention  # of the frame
    event: EventChange
    incident: IncidentChange | None
    deliveries: tuple[DeliveryDue, ...]
    stills: tuple[Still, ...]  # the camera's memory afterwards: what stays where it is, and dwellers
    view_version: int  # the CameraView.version this was decided on
    touches_state: bool  # False for late frames: the camera's state row stays as it is
    event_tags: tuple[tuple[str, str], ...] = ()  # what the event is tagged with besides the frame's own, with groups


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
    own_class = classify(analysis, vocabulary)
    things, dwellers = parted(view.stills)
    stills, news = look_through(things, analysis, frame.captured_at, frame.late, policies.stationary)
    is_known = is_told(things, news, frame.captured_at, policies.stationary)
    may_begin = not is_known and not is_healths_to_tell(frame, news, view, policies.stationary)
    dwellers = _dwellers(frame, analysis, dwellers, policies.events)
    event = change_event(frame, news, own_class, view, policies.events, may_begin, dwellers)
    if event.action is not EventAction.NONE and not frame.late:
        stills = mark_told(stills, news, policies.stationary)
    elif event.action is EventAction.NONE and is_known:
        news = nothing_new(news)
    if event.is_loitering:
        news = _loitering(news)
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
        # A picture of somebody who stays is evidence of it.
        retention=strongest((own_class, Retention.QUARANTINE)) if event.is_loitering else own_class,
        event=event,
        incident=incident,
        deliveries=deliveries,
        stills=(*stills, *dwellers),
        view_version=view.version,
        touches_state=not frame.late,
        event_tags=((LOITERING_TAG, vocabulary.group_of(LOITERING_TAG)),) if event.is_loitering else (),
    )


def is_healths_to_tell(frame: FrameFacts, analysis: Analysis, view: CameraView, stationary: StationaryPolicy) -> bool:
    """Whether an analysis tells no more than that a camera was covered or moved, of a look that its health judges.

    Health tells it when it lasted (decision 4), as the one event of it. A camera that stays covered shows nothing
    new against the picture before; its pictures are then poor ones, which is the same news. Vehicles have no tags,
    and one that came with this very look is in the next one too; people and hazards are never passed over.
    """
    if not frame.is_watched or analysis.primary_event != CAMERA_ISSUE or analysis.unknown_flag:
        return False
    tags = frozenset(analysis.tags)
    if not tags or not tags <= _TAMPERING_TAGS | _POOR_PICTURE_TAGS:
        return False
    if any((box.label or "").strip().lower() in stationary.never_labels for box in analysis.boxes):
        return False
    return view.seems_covered or not tags.isdisjoint(_TAMPERING_TAGS)


def _dwellers(
    frame: FrameFacts, analysis: Analysis, before: tuple[Still, ...], policy: EventPolicy
) -> tuple[Still, ...]:
    """Where people were, after this frame. A camera that was moved shows other places."""
    if policy.loitering_overlap == 0 or policy.loitering_sec == 0:
        return ()
    known = () if CAMERA_MOVED_TAG in analysis.tags else before
    gap_ms = merge_gap_ms(policy, frame.interval_ms)
    return follow(known, people_in(analysis.boxes), frame.captured_at, gap_ms, policy.loitering_overlap)


def _loitering(news: Analysis) -> Analysis:
    tags = news.tags if LOITERING_TAG in news.tags else (*news.tags, LOITERING_TAG)
    return replace(news, severity=max(news.severity, LOITERING_SEVERITY), tags=tags)


def _severity_before(incident: IncidentChange | None, view: CameraView) -> int | None:
    """The severity an incident had in the view; None for a new one."""
    known = (*view.incidents, view.incident)
    return next(
        (fact.severity_max for fact in known if fact and incident and fact.incident_id == incident.incident_id),
        None,
    )
