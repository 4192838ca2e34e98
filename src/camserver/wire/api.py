"""The HTTP API's messages: what people's browsers and the command line send and get.

Only shapes and bounds; what a request means is decided by the web service. Times are UTC epoch milliseconds.
No model that is sent holds a password or a token, except the CSRF token and the set-up link, which are meant to be.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

CAMERA_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# Of frames, events and incidents; looser than a UUID, strict about what may stand in a path or a signature.
UUID_PATTERN = r"^[A-Za-z0-9-]{1,36}$"
LINK_TTL_MAX_SEC = 604_800

Login = Annotated[str, Field(min_length=1, max_length=128)]
# Short ones are refused by the rule for passwords, which says why; this only bounds.
Password = Annotated[str, Field(max_length=1024, repr=False)]
Language = Literal["ja", "en"]
# infer: the small one that is analyzed, of every look that worked; full: as the camera gave it, of looks that passed.
PictureKind = Literal["infer", "full"]


class Asked(BaseModel):
    """A request's body. Unknown fields are refused, so that a misspelt one is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    # Every field is always sent, so readers of the description need not ask whether it is there.
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class ErrorAnswer(Answer):
    """Every error's body. `error_code` and `details` are for programs, `message` is for people, in their language."""

    error_code: str
    message: str
    details: dict[str, object] = {}


class SetUp(Asked):
    token: Annotated[str, Field(min_length=1, max_length=128, repr=False)]
    login: Login
    password: Password
    display_name: Annotated[str, Field(max_length=128)] = ""
    language: Language | None = None


class SetUpDone(Answer):
    login: str


class SetUpLink(Answer):
    url: str
    expires_at: int


class SignIn(Asked):
    login: Login
    password: Password


class Session(Answer):
    """Who is signed in. `csrf_token` goes into the header X-CSRF-Token of every request that changes something."""

    login: str
    display_name: str
    role: str
    language: str
    permissions: list[str]
    csrf_token: str
    expires_at: int | None


class SourceAsked(Asked):
    type: Literal["rtsp", "http", "file", "test"] | None = None  # None: as the address says
    url: Annotated[str, Field(min_length=1, max_length=1024, repr=False)]
    user: Annotated[str | None, Field(max_length=128)] = None
    password: Annotated[str | None, Field(max_length=255, repr=False)] = None


class CameraAsked(Asked):
    camera_id: Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
    name: Annotated[str, Field(min_length=1, max_length=128)]
    site: Annotated[str, Field(min_length=1, max_length=128)] = "main"
    source: SourceAsked
    polling_interval_sec: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] | None = None


class Source(Answer):
    type: str
    url: str  # never with credentials, and without its query for cameras in the network
    has_credentials: bool


class Look(Answer):
    """The newest look of a camera."""

    frame_uuid: str
    captured_at: int
    received_at: int
    status: Literal["ok", "timeout", "error"]
    error_code: str | None
    detected: bool
    primary_event: str
    severity: int
    has_picture: bool


class PictureRef(Answer):
    """Which frame a picture belongs to, and when it was taken."""

    frame_uuid: str
    captured_at: int


class OpenEvent(Answer):
    """What goes on at a camera now."""

    event_uuid: str
    primary_event: str
    severity_max: int
    start_at: int


class Camera(Answer):
    """`latest_picture` is what latest.jpg shows; it is older than `latest` when looks have failed since."""

    camera_id: str
    name: str
    site: str
    enabled: bool
    state: str  # PENDING, ACTIVE, PAUSED, ORPHANED, TERMINATED
    state_reason: str
    polling_interval_sec: float
    source: Source | None  # only for those who may manage cameras
    created_at: int
    latest: Look | None
    latest_picture: PictureRef | None
    open_event: OpenEvent | None


class CameraPage(Answer):
    cameras: list[Camera]
    next_after: str | None  # asked again as `after`; null on the last page


class Label(Answer):
    """A word of the vocabulary as people read it."""

    id: str
    label_ja: str
    label_en: str


class Tag(Label):
    """A tag. Those of the group investigation_only are shown only to people who may investigate."""

    group: Literal["notify_safe", "investigation_only"]
    severity_default: int


class Vocabulary(Answer):
    schema_version: str
    primary_events: list[Label]
    tags: list[Tag]


class Box(Answer):
    """Where something is: shares (0..1) of the infer picture, its letterbox margins included."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str | None
    conf: float | None


class Letterbox(Answer):
    """Margins that were added to the infer picture, in its pixels."""

    top: int
    left: int
    bottom: int
    right: int


class Frame(Answer):
    """One look. Measures are null where there was nothing to measure, results until it is analyzed."""

    frame_uuid: str
    event_uuid: str | None
    camera_id: str
    camera_name: str
    site: str
    captured_at: int
    received_at: int
    late: bool
    status: Literal["ok", "timeout", "error"]
    error_code: str | None
    verdict: Literal["skip", "analyze", "forced"]  # the gate's
    diff_ratio: float | None
    luma_delta: float | None
    blur_score: float | None
    full_w: int | None
    full_h: int | None
    infer_w: int | None
    infer_h: int | None
    letterbox: Letterbox | None
    infer_hash64_hex: str | None
    pictures: list[PictureKind]  # those the reader can open
    analyzed: bool
    detected: bool
    primary_event: str
    unknown_flag: bool
    severity: int
    confidence: float | None
    count_hint: int | None
    retention_class: str
    boxes: list[Box]
    tags: list[Tag]


class FramePage(Answer):
    frames: list[Frame]
    next_after: str | None  # asked again as `after`; null on the last page


class Incident(Answer):
    """Consecutive events of one camera; what people review."""

    incident_uuid: str
    camera_id: str
    camera_name: str
    site: str
    start_at: int
    last_seen_at: int
    severity_max: int
    event_count: int
    last_event_uuid: str | None
    best_frame_uuid: str | None  # of its last event
    primary_event: str | None  # of its last event


class IncidentPage(Answer):
    incidents: list[Incident]
    next_before: str | None  # asked again as `before`; null on the last page


class Event(Answer):
    event_uuid: str
    incident_uuid: str | None
    camera_id: str
    camera_name: str
    site: str
    state: Literal["open", "closed"]
    primary_event: str
    start_at: int
    last_seen_at: int
    end_at: int | None
    severity_max: int
    confidence_max: float
    frame_count: int
    retention_class: str
    best_frame_uuid: str | None
    tags: list[Tag]


class EventPage(Answer):
    events: list[Event]
    next_before: str | None  # asked again as `before`; null on the last page


class EventDetail(Event):
    """An event with what its page shows first; all its frames are a list of their own."""

    incident: Incident | None
    best_frame: Frame | None


class MediaLinkAsked(Asked):
    frame_uuid: Annotated[str, Field(pattern=UUID_PATTERN)]
    kind: PictureKind = "infer"
    ttl_sec: Annotated[int, Field(ge=1, le=LINK_TTL_MAX_SEC)] | None = None  # None: media.link_ttl_sec


class MediaLink(Answer):
    """Whoever has the address can open the picture until then."""

    url: str
    expires_at: int


class Change(Answer):
    """That something changed, never its content. `object` is the uuid of a frame, an event or an incident."""

    seq: int
    kind: str  # camera, session, look, frame, event, incident
    at: int
    site: str | None
    camera_id: str | None
    object: str | None


class ChangePage(Answer):
    """`resync`: the cursor is older than what is kept. Read everything anew and go on from `last_seq`."""

    changes: list[Change]
    last_seq: int
    resync: bool


class FeedChanges(Answer):
    """Changes on the feed's socket. `live` is false for those that happened before it was opened."""

    type: Literal["changes"] = "changes"
    changes: list[Change]
    last_seq: int
    live: bool


class FeedResync(Answer):
    """Changes were missed for good: read everything anew. The feed goes on behind `last_seq`."""

    type: Literal["resync"] = "resync"
    last_seq: int


class FeedPing(Answer):
    """The connection lives. Nothing is expected in return."""

    type: Literal["ping"] = "ping"
    last_seq: int


class FeedMessage(RootModel[Annotated[FeedChanges | FeedResync | FeedPing, Field(discriminator="type")]]):
    """What the server sends on the feed's socket; clients send nothing."""


class AnalyzerStatus(Answer):
    """How analysis gets on, as far as this tenant's jobs show it."""

    standing: Literal["working", "idle", "stalled"]
    last_done_at: int | None  # of the newest jobs; null: none of them succeeded
    oldest_waiting_at: int | None
    last_error_kind: str | None  # of the newest job that waits to be tried again


class SystemStatus(Answer):
    now: int
    version: str
    store: Literal["sqlite", "postgres", "mariadb"]
    cameras: int
    sessions: dict[str, int]
    unfinished_jobs: dict[str, int]
    recent_jobs: dict[str, int]
    open_events: int
    analyzer: AnalyzerStatus
    ready: bool
    checks: dict[str, str | None]


class Health(Answer):
    status: Literal["alive"] = "alive"


class Readiness(Answer):
    ready: bool
    checks: dict[str, str | None]  # null: ready, else why not
