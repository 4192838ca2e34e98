"""What the rules about one analyzed frame read (facts) and answer (changes).

Data only. The rules are in events, incidents, stationary and notices; `outcomes.decide` puts them together.
"""

from enum import StrEnum

from camserver.base.records import record
from camserver.domain.retention import Retention


@record
class FrameFacts:
    """The frame a job is about."""

    frame_id: int
    tenant_id: int
    site_id: int
    camera_key: int
    captured_at: int  # ms
    late: bool
    blur_score: float | None
    interval_ms: int  # the camera's polling interval, for the merge gap
    # Whether camera health judges its picture (domain/sight.py): it was measured by whoever took it, and is not late.
    is_watched: bool = False


@record
class EventFacts:
    """An event as the rules see it; times in ms, `best_score` of its best frame."""

    event_id: int
    incident_id: int
    primary_event: str
    start_at: int
    last_seen_at: int
    severity_max: int
    confidence_max: float
    retention: Retention
    best_score: float


@record
class IncidentFacts:
    incident_id: int
    start_at: int
    last_seen_at: int
    severity_max: int


@record
class Still:
    """One thing that stays where it is; see domain.stationary."""

    label: str
    x1: float
    y1: float
    x2: float
    y2: float
    first_seen_at: int
    last_seen_at: int
    seen: int  # how many analyzed looks held it
    missed: int = 0  # analyzed looks in a row, up to the newest, that showed its place without it
    told: str = ""  # the kind of event that a look with it fed last; empty while none did


@record
class CameraView:
    """A camera's state as read with the job; an outcome holds only for this `version`."""

    version: int
    open_event: EventFacts | None
    incident: IncidentFacts | None  # the camera's newest: that of the event it opened last
    # For a frame from behind: of each kind the event nearest to captured_at, no further from it than the gap.
    covering: tuple[EventFacts, ...] = ()
    stills: tuple[Still, ...] = ()
    # The incidents of open_event and of those covering, where they are not `incident`: a merge changes the event's
    # own incident, so its values must be known.
    incidents: tuple[IncidentFacts, ...] = ()
    seems_covered: bool = False  # camera health holds it to be covered, or suspects it


class EventAction(StrEnum):
    NONE = "none"  # nothing to tell: no event is touched
    OPEN = "open"  # a new open event (closing the one before it, if any)
    MERGE = "merge"  # joins the event `event_id`, open or closed
    PAST = "past"  # a closed event of its own, for a frame that came too late to open one


@record
class EventChange:
    """What happens to events. The values are final, not deltas; the store writes them as they are."""

    action: EventAction
    event_id: int | None = None  # MERGE: which
    primary_event: str = "none"
    start_at: int = 0
    last_seen_at: int = 0
    severity_max: int = 0
    confidence_max: float = 0.0
    retention: Retention = Retention.NORMAL
    best_score: float = 0.0
    is_best_frame: bool = False  # this frame becomes the event's best
    start_moved: bool = False  # MERGE: start_at went back, so copies of it must follow
    is_loitering: bool = False  # somebody has been there for long: the event carries the tag of it
    close_event_id: int | None = None  # OPEN: the event this one replaces
    close_end_at: int = 0


@record
class IncidentChange:
    """The incident an event belongs to. `incident_id` None makes a new one. Values are final."""

    incident_id: int | None
    start_at: int
    last_seen_at: int
    severity_max: int
    opened: bool
    severity_rose: bool
    adds_event: bool  # the event is new in this incident


class DeliveryKind(StrEnum):
    ARCHIVE = "archive"  # a picture is to be kept elsewhere too
    NOTIFY = "notify"  # people are to be told of something
    LLM_REVIEW = "llm_review"
    SUMMARY = "summary"  # of a day
    MESSAGE = "message"  # a notice or summary for one receiver
    COPY = "copy"  # a picture for one archive receiver


@record
class DeliveryDue:
    kind: DeliveryKind
    reason: str  # e.g. incident_opened, severity_rose, unknown, detected
