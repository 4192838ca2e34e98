"""When frames become one event, and when an event ends (decisions 18 to 20).

A camera has at most one open event. Frames may come in any order: a worker's spool, retries and several
dispatchers see to that. So a frame that lies *behind* what is already known of its camera may extend an
event, but never opens or closes one. What stays where it is has been left out before (see stationary).

Somebody who stays is loitering: a property of the event's length, which no analyzer could know. Where it is known
where people were, somebody must have stayed near one place, too (see dwelling).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.analysis import Analysis
from camserver.domain.dwelling import somebody_stays
from camserver.domain.facts import CameraView, EventAction, EventChange, EventFacts, FrameFacts, Still
from camserver.domain.policy import setting
from camserver.domain.retention import Retention, strongest
from camserver.domain.vocabulary import NO_EVENT, UNKNOWN_EVENT

HUMAN_EVENT = "human"
# What an event is besides, when somebody stays. No single picture shows it, so no frame has the tag.
LOITERING_TAG = "behavior.loitering"
LOITERING_SEVERITY = 2
# An event stays open at least this much longer than a frame may still join it.
CLOSE_MARGIN_MS = 30_000


@dataclass(frozen=True, slots=True)
class EventPolicy:
    """When frames of one camera are one event."""

    close_grace_sec: int = setting(
        120,
        "An open event ends when nothing was seen for this long (longer for long intervals).",
        min=1,
        max=86_400,
    )
    merge_gap_sec: int = setting(
        90,
        "Frames at most this far apart belong to one event (1.5 intervals, if that is more).",
        min=1,
        max=86_400,
    )
    loitering_sec: int = setting(
        180,
        "An event of people that lasts this long is loitering, which is severe: it notifies and is kept longer. "
        "0: never.",
        min=0,
        max=86_400,
    )
    loitering_overlap: float = setting(
        0.4,
        "How much the boxes of somebody who loiters overlap from look to look (intersection over union). People who "
        "pass one after the other, as through a busy door, do not. 0: the length of the event decides alone.",
        min=0.0,
        max=0.9,
    )


def merge_gap_ms(policy: EventPolicy, interval_ms: int) -> int:
    """The longest pause within an event: one missed look of the camera must not cut it in two."""
    return max(policy.merge_gap_sec * 1000, interval_ms * 3 // 2)


def close_after_ms(policy: EventPolicy, interval_ms: int) -> int:
    return max(policy.close_grace_sec * 1000, merge_gap_ms(policy, interval_ms) + CLOSE_MARGIN_MS)


def event_kind(analysis: Analysis) -> str | None:
    """The primary event this analysis feeds, or None when it has nothing to tell."""
    if analysis.detected and analysis.primary_event != NO_EVENT:
        return analysis.primary_event
    if analysis.unknown_flag:
        return analysis.primary_event if analysis.primary_event != NO_EVENT else UNKNOWN_EVENT
    return None


def best_score(severity: int, confidence: float | None, blur_score: float | None) -> float:
    """How good a frame shows its event; a missing figure neither helps nor hurts."""
    return severity * 1000 + (confidence or 0.0) * 100 - (blur_score or 0.0) * 0.1


def can_merge(event: EventFacts, primary_event: str, captured_at: int, gap_ms: int) -> bool:
    """Whether a frame is of the event's kind and no further than the gap from its span, on either side."""
    return event.primary_event == primary_event and _distance_ms(event, captured_at) <= gap_ms


def is_loitering(primary_event: str, start_at: int, last_seen_at: int, policy: EventPolicy) -> bool:
    """Whether an event with this span tells of somebody who stays."""
    return (
        primary_event == HUMAN_EVENT
        and policy.loitering_sec > 0
        and last_seen_at - start_at >= policy.loitering_sec * 1000
    )


def is_behind(frame: FrameFacts, view: CameraView) -> bool:
    """Whether the frame is too late to open or close an event: something newer of its camera is known."""
    known = [thing.last_seen_at for thing in (view.open_event, view.incident) if thing is not None]
    return frame.late or any(frame.captured_at < last_seen_at for last_seen_at in known)


def change_event(
    frame: FrameFacts,
    analysis: Analysis,
    retention: Retention,
    view: CameraView,
    policy: EventPolicy,
    may_begin: bool = True,
    dwellers: Sequence[Still] = (),
) -> EventChange:
    """What this frame does to its camera's events. `retention` is the frame's own class.

    `may_begin` False: all it shows has been told, so it may go on with an event but not begin one. `dwellers` are
    the places where people were, this frame's included; none when nothing is known of places.
    """
    kind = event_kind(analysis)
    if kind is None:
        return EventChange(EventAction.NONE)
    gap_ms = merge_gap_ms(policy, frame.interval_ms)
    behind = is_behind(frame, view)
    # A closed event takes in only frames from behind. A new frame after it begins a new event: what is closed
    # has been told as over, and the incident holds the two together.
    candidates = (view.open_event, *view.covering) if behind else (view.open_event,)
    near = [event for event in candidates if event and can_merge(event, kind, frame.captured_at, gap_ms)]
    if near:
        nearest = min(near, key=lambda event: _distance_ms(event, frame.captured_at))
        return _merged(nearest, frame, analysis, retention, policy, dwellers)
    if not may_begin:
        return EventChange(EventAction.NONE)
    return _begun(kind, frame, analysis, retention, None if behind else view.open_event, behind)


def close_due(
    open_event: EventFacts,
    now_ms: int,
    interval_ms: int,
    oldest_unfinished_captured_at: int | None,
    policy: EventPolicy,
) -> int | None:
    """When the event ended, or None while it has to stay open.

    `oldest_unfinished_captured_at` is the capture time of the camera's oldest queued, delayed or running job:
    as long as one was captured before the event's time is up, it may still belong to the event.
    """
    time_is_up = open_event.last_seen_at + close_after_ms(policy, interval_ms)
    if now_ms <= time_is_up:
        return None
    if oldest_unfinished_captured_at is not None and oldest_unfinished_captured_at <= time_is_up:
        return None
    return open_event.last_seen_at


def _distance_ms(event: EventFacts, captured_at: int) -> int:
    """How far outside the event's span a moment lies; 0 within."""
    return max(event.start_at - captured_at, captured_at - event.last_seen_at, 0)


def _merged(
    event: EventFacts,
    frame: FrameFacts,
    analysis: Analysis,
    retention: Retention,
    policy: EventPolicy,
    dwellers: Sequence[Still],
) -> EventChange:
    score = best_score(analysis.severity, analysis.confidence, frame.blur_score)
    start_at = min(event.start_at, frame.captured_at)
    last_seen_at = max(event.last_seen_at, frame.captured_at)
    loitering = is_loitering(event.primary_event, start_at, last_seen_at, policy) and (
        somebody_stays(dwellers, start_at, policy.loitering_sec * 1000) is not False
    )
    return EventChange(
        action=EventAction.MERGE,
        event_id=event.event_id,
        primary_event=event.primary_event,
        start_at=start_at,
        last_seen_at=last_seen_at,
        severity_max=max(event.severity_max, analysis.severity, LOITERING_SEVERITY if loitering else 0),
        confidence_max=max(event.confidence_max, analysis.confidence or 0.0),
        retention=strongest((event.retention, retention, Retention.QUARANTINE if loitering else retention)),
        best_score=max(event.best_score, score),
        is_best_frame=score > event.best_score,
        start_moved=frame.captured_at < event.start_at,
        is_loitering=loitering,
    )


def _begun(
    kind: str,
    frame: FrameFacts,
    analysis: Analysis,
    retention: Retention,
    replaced: EventFacts | None,
    behind: bool,
) -> EventChange:
    return EventChange(
        action=EventAction.PAST if behind else EventAction.OPEN,
        primary_event=kind,
        start_at=frame.captured_at,
        last_seen_at=frame.captured_at,
        severity_max=analysis.severity,
        confidence_max=analysis.confidence or 0.0,
        retention=retention,
        best_score=best_score(analysis.severity, analysis.confidence, frame.blur_score),
        is_best_frame=True,
        close_event_id=replaced.event_id if replaced else None,
        close_end_at=replaced.last_seen_at if replaced else 0,
    )
