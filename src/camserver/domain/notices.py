"""When a frame is worth telling outside: notification, LLM review, archive (decisions 24, 26 and 27).

These rules say which deliveries are due. Whether a due notification is really sent is decided again at
sending (`may_send`), because cooldowns start only with a successful send. Who gets it is in routing, its text in
messages.
"""

from dataclasses import dataclass
from typing import Literal

from camserver.domain.analysis import Analysis
from camserver.domain.facts import (
    DeliveryDue,
    DeliveryKind,
    EventAction,
    EventChange,
    FrameFacts,
    IncidentChange,
)
from camserver.domain.policy import setting
from camserver.domain.vocabulary import is_hazard

# Reasons of a notification, as stored with the delivery.
INCIDENT_OPENED = "incident_opened"
SEVERITY_ROSE = "severity_rose"
CONTINUES = "continues"
LATE_INCIDENT = "late_incident"
BACK = "back"  # a camera's own issue is over
# Reasons of an LLM review or an archive copy.
UNKNOWN = "unknown"
LOW_CONFIDENCE = "low_confidence"
DETECTED = "detected"

_CAMERA_OFFLINE = "camera.offline"
_HAZARD_EVENT = "hazard"

REVIEW_LABELS = (
    "person", "animal", "vehicle", "weather", "light", "insect", "object", "camera_problem", "nothing", "unsure",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NotifyPolicy:
    """When people are told."""

    min_severity: int = setting(
        2, "Least severity that notifies; hazards, a camera offline and unknown always do.", min=0, max=3
    )
    cooldown_sec: int = setting(
        300, "Least time between two notifications of one camera and primary event.", min=0, max=86_400
    )
    camera_cooldown_sec: int = setting(60, "Least time between two notifications of one camera.", min=0, max=86_400)
    stale_sec: int = setting(
        600,
        "A frame older than this when it is decided notifies like a late one: once per incident.",
        min=1,
        max=86_400,
    )
    notify_back: bool = setting(True, "Whether people are told, too, when a camera's own issue is over.")


@dataclass(frozen=True, slots=True)
class LlmReviewPolicy:
    """When an LLM is asked about a frame."""

    low_confidence_too: bool = setting(
        False, "Whether severe events of low confidence are reviewed too, besides unknown ones."
    )
    min_severity: int = setting(2, "Least severity of a low-confidence review.", min=0, max=3)
    low_confidence: float = setting(0.5, "Confidence below which an event counts as doubtful.", min=0.0, max=1.0)
    cooldown_sec: int = setting(600, "Least time between two reviews of one camera.", min=0, max=86_400)
    language: Literal["ja", "en"] = setting("ja", "Language of the model's memo.")
    picture: Literal["infer", "full"] = setting(
        "infer", "Which picture is sent: the small one that is analyzed, or the camera's own, which costs more."
    )
    labels: tuple[str, ...] = setting(
        REVIEW_LABELS, 'The labels a model may choose from; "unsure" is always one of them.'
    )


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Which sinks exist. No delivery row is made for one that is not configured."""

    archive: bool = setting(False, "Whether an archive is configured.")
    notify: bool = setting(False, "Whether a receiver of notifications is configured.")
    llm_review: bool = setting(False, "Whether an LLM is configured.")


def is_notable(analysis: Analysis, policy: NotifyPolicy) -> bool:
    """Whether a frame may notify at all."""
    return (
        analysis.severity >= policy.min_severity
        or analysis.unknown_flag
        or analysis.primary_event == _HAZARD_EVENT
        or any(is_hazard(tag) or tag == _CAMERA_OFFLINE for tag in analysis.tags)
    )


def notify_reason(
    frame: FrameFacts,
    analysis: Analysis,
    incident: IncidentChange | None,
    severity_before: int | None,
    policy: NotifyPolicy,
    now_ms: int,
) -> str | None:
    """Why people are to be told, or None. `severity_before` is the incident's so far, None when it is new."""
    if incident is None or not is_notable(analysis, policy):
        return None
    if frame.late or now_ms - frame.captured_at > policy.stale_sec * 1000:
        before = -1 if severity_before is None else severity_before
        crossed = before < policy.min_severity <= incident.severity_max
        return LATE_INCIDENT if crossed else None
    if incident.opened:
        return INCIDENT_OPENED
    return SEVERITY_ROSE if incident.severity_rose else CONTINUES


def issue_reason(tag_id: str, severity: int, incident_opened: bool, policy: NotifyPolicy) -> str | None:
    """Why people are to be told of a camera's own issue that begins, or None. That it goes on is not told again."""
    if tag_id != _CAMERA_OFFLINE and severity < policy.min_severity:
        return None
    return INCIDENT_OPENED if incident_opened else CONTINUES


def back_reason(tag_id: str, severity: int, policy: NotifyPolicy) -> str | None:
    """Why people are to be told that a camera's own issue is over, or None. At sending, only those hear of it who
    heard that it began."""
    is_told = issue_reason(tag_id, severity, True, policy) is not None
    return BACK if policy.notify_back and is_told else None


def told_as(reason: str, was_told: bool) -> str:
    """As what a message is worded. To whoever heard nothing of it yet, what goes on begins: a receiver may be new, or
    the beginning may have fallen into its quiet hours."""
    return INCIDENT_OPENED if reason == CONTINUES and not was_told else reason


def cooldown_scope(primary_event: str, subject: str) -> str:
    """What a cooldown is about, besides its camera: the primary event, or one kind of the camera's own issues."""
    return f"issue:{subject}"[:32] if subject else primary_event


def may_send(reason: str, scope_until: int | None, camera_until: int | None, now_ms: int) -> bool:
    """Whether a due notification may go out now, by the ends of the cooldowns of its scope and of its camera.

    A rise in severity is news, a late incident is told only once, and that an issue is over belongs to a message
    that was sent: none of them waits. What is held back is counted by the caller, and the next message says how
    many there were.
    """
    return reason in (SEVERITY_ROSE, LATE_INCIDENT, BACK) or max(scope_until or 0, camera_until or 0) <= now_ms


def waits_for_cooldown(reason: str, subject: str) -> bool:
    """Whether a message goes out when the cooldown is over, where others are only counted.

    A camera's own issue is told once, when it begins. Whoever covers a camera a moment after being told of must not
    go unnoticed.
    """
    return bool(subject) and reason == INCIDENT_OPENED


def cooldown_ends(reason: str, policy: NotifyPolicy, sent_at: int) -> tuple[int, int] | None:
    """Until when a sent message holds back others of its scope, and of its camera; None when it does not.

    One about the past must not hold back what happens now.
    """
    if reason in (LATE_INCIDENT, BACK):
        return None
    return sent_at + policy.cooldown_sec * 1000, sent_at + policy.camera_cooldown_sec * 1000


def llm_reason(analysis: Analysis, event: EventChange, policy: LlmReviewPolicy) -> str | None:
    """Why an LLM shall look at the event's best frame, or None.

    Due whenever a frame becomes its event's best; that an event is reviewed once, and a camera not too often,
    is kept by the delivery's row and by `may_review`.
    """
    if event.action is EventAction.NONE or not event.is_best_frame:
        return None
    if analysis.unknown_flag:
        return UNKNOWN
    doubtful = analysis.confidence is not None and analysis.confidence < policy.low_confidence
    if policy.low_confidence_too and doubtful and analysis.severity >= policy.min_severity:
        return LOW_CONFIDENCE
    return None


def may_review(reviewed_camera_at: int | None, policy: LlmReviewPolicy, now_ms: int) -> bool:
    return _is_over(reviewed_camera_at, policy.cooldown_sec, now_ms)


def archive_reason(analysis: Analysis) -> str | None:
    """Why the full picture goes to the archive, or None. The daily quota is checked at sending."""
    if analysis.unknown_flag:
        return UNKNOWN
    return DETECTED if analysis.detected else None


def due(
    frame: FrameFacts,
    analysis: Analysis,
    event: EventChange,
    incident: IncidentChange | None,
    severity_before: int | None,
    sinks: DeliveryPolicy,
    notify: NotifyPolicy,
    llm_review: LlmReviewPolicy,
    now_ms: int,
) -> tuple[DeliveryDue, ...]:
    """All deliveries that one frame makes due, in a fixed order; none for a sink that is not configured."""
    reasons = (
        (DeliveryKind.ARCHIVE, archive_reason(analysis) if sinks.archive else None),
        (
            DeliveryKind.NOTIFY,
            notify_reason(frame, analysis, incident, severity_before, notify, now_ms) if sinks.notify else None,
        ),
        (DeliveryKind.LLM_REVIEW, llm_reason(analysis, event, llm_review) if sinks.llm_review else None),
    )
    return tuple(DeliveryDue(kind, reason) for kind, reason in reasons if reason is not None)


def _is_over(last_at: int | None, cooldown_sec: int, now_ms: int) -> bool:
    return last_at is None or now_ms - last_at >= cooldown_sec * 1000
