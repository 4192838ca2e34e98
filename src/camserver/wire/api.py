"""The HTTP API's messages: what people's browsers and the command line send and get.

Only shapes and bounds; what a request means is decided by the web service. Times are UTC epoch milliseconds.
No model that is sent holds a password or a token, except the CSRF token and the set-up link, which are meant to be.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from camserver.domain.polygons import POINTS_MAX, POLYGONS_MAX, ZONE_NAME_MAX_CHARS

CAMERA_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# Of frames, events and incidents; looser than a UUID, strict about what may stand in a path or a signature.
UUID_PATTERN = r"^[A-Za-z0-9-]{1,36}$"
LINK_TTL_MAX_SEC = 604_800
ERRAND_WAIT_MAX_SEC = 25

Login = Annotated[str, Field(min_length=1, max_length=128)]
# Short ones are refused by the rule for passwords, which says why; this only bounds.
Password = Annotated[str, Field(max_length=1024, repr=False)]
Language = Literal["ja", "en"]
# infer: the small one that is analyzed, of every look that worked; full: as the camera gave it, of looks that passed.
PictureKind = Literal["infer", "full"]
# `clip` of a frame is that of its event.
MediaKind = Literal["infer", "full", "clip"]


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
    type: Literal["rtsp", "http", "webcam", "file", "test"] | None = None  # None: as the address says
    url: Annotated[str, Field(min_length=1, max_length=1024, repr=False)]
    user: Annotated[str | None, Field(max_length=128)] = None
    password: Annotated[str | None, Field(max_length=255, repr=False)] = None


# [x, y] in shares (0..1) of the picture as it is shown after rotation. What makes a polygon is checked by its rule,
# which says what is wrong; this only bounds.
Points = Annotated[
    list[Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]],
    Field(max_length=POINTS_MAX),
]
Polygons = Annotated[list[Points], Field(max_length=POLYGONS_MAX)]


class Zone(BaseModel):
    """A part of the picture with a name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=ZONE_NAME_MAX_CHARS)]
    points: Points


class CameraValues(Asked):
    """A camera's own values. None, and null in a change: the configured default."""

    polling_interval_sec: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] | None = None
    connect_timeout_sec: Annotated[float, Field(ge=0.1, le=60, allow_inf_nan=False)] | None = None
    infer_width: Annotated[int, Field(ge=64, le=3840)] | None = None
    diff_width: Annotated[int, Field(ge=32, le=1920)] | None = None
    force_infer_every_n: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    detect_every_n_frames: Annotated[int, Field(ge=1, le=1000)] | None = None
    job_priority: Annotated[int, Field(ge=0, le=255)] | None = None
    transport: Literal["tcp", "udp"] | None = None
    # sha256 of the camera's certificate, hex, with or without colons. None: checked against the CAs.
    tls_pin: Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$")] | None = None
    rotation: Literal[0, 90, 180, 270] | None = None  # clockwise
    ignore_masks: Polygons | None = None  # the gate does not watch there
    privacy_masks: Polygons | None = None  # black before anything else sees the picture
    zones: Annotated[list[Zone], Field(max_length=POLYGONS_MAX)] | None = None  # if any: the gate watches there only
    mask_clock: bool | None = None  # whether burned-in clocks that are found are masked
    device: Annotated[str, Field(max_length=128)] | None = None  # cameras with the same one share a device
    streams_max: Annotated[int, Field(ge=1, le=64)] | None = None  # connections that device bears at once
    clip_sec: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] | None = None  # 0: no clips


class CameraAsked(CameraValues):
    camera_id: Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
    name: Annotated[str, Field(min_length=1, max_length=128)]
    site: Annotated[str, Field(min_length=1, max_length=128)] = "main"
    source: SourceAsked
    sub: SourceAsked | None = None  # the small stream, with the same login
    do_not_process: bool = False
    network_zone: Literal["local", "vpn"] = "local"


class CredentialsAsked(Asked):
    user: Annotated[str, Field(max_length=128)] = ""
    password: Annotated[str, Field(max_length=255, repr=False)] = ""


class CameraChange(CameraValues):
    """What is to change; a field that is not there stays as it is.

    A new source at the same host keeps the credentials, one at another host does not: they must be given again.
    """

    name: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    enabled: bool | None = None
    site: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    source: SourceAsked | None = None
    sub: SourceAsked | None = None  # null removes it
    credentials: CredentialsAsked | None = None  # null removes them
    do_not_process: bool | None = None
    network_zone: Literal["local", "vpn"] | None = None


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


class Label(Answer):
    """A word of the vocabulary, or one of ours, as people read it."""

    id: str
    label_ja: str
    label_en: str


class CameraIssue(Label):
    """Something that is wrong with a camera itself: offline, covered, moved or frozen."""

    since: int
    event_uuid: str


class CameraHealth(Answer):
    """Whether a camera works. `unknown` with the cause `unattended` says that no worker looks at it."""

    state: Literal["up", "down", "unknown"]
    since: int | None
    cause: Label | None  # in plain words; also while a camera that is still up fails
    issues: list[CameraIssue]


class CameraOwn(Answer):
    """What a camera has of its own; null: the configured default."""

    polling_interval_sec: float | None
    connect_timeout_sec: float | None
    infer_width: int | None
    diff_width: int | None
    force_infer_every_n: int | None
    detect_every_n_frames: int | None
    job_priority: int | None
    transport: Literal["tcp", "udp"] | None
    tls_pin: str | None
    rotation: int | None
    ignore_masks: list[list[list[float]]] | None
    privacy_masks: list[list[list[float]]] | None
    zones: list[Zone] | None
    mask_clock: bool | None
    device: str | None
    streams_max: int | None
    clip_sec: float | None
    network_zone: Literal["local", "vpn"]


class Camera(Answer):
    """`latest_picture` is what latest.jpg shows; it is older than `latest` when looks have failed since."""

    camera_id: str
    name: str
    site: str
    enabled: bool
    state: str  # PENDING, ACTIVE, PAUSED, ORPHANED, TERMINATED
    state_reason: str
    polling_interval_sec: float
    source: Source | None  # only for those who may manage cameras, as are `sub` and `own`
    sub: Source | None
    own: CameraOwn | None
    do_not_process: bool
    caps: dict[str, JsonValue] | None  # what the last probe found: codec, res, fps
    last_probe_at: int | None
    created_at: int
    latest: Look | None
    latest_picture: PictureRef | None
    open_event: OpenEvent | None
    health: CameraHealth


class CameraPage(Answer):
    cameras: list[Camera]
    next_after: str | None  # asked again as `after`; null on the last page


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
    issue: Label | None  # of an event about the camera itself (primary_event camera_issue): which
    cause: Label | None  # of that issue, in plain words
    tags: list[Tag]


class EventPage(Answer):
    events: list[Event]
    next_before: str | None  # asked again as `before`; null on the last page


class Clip(Answer):
    """The short film of an event. Of one that is not ready, the times are those that were asked for."""

    state: Literal["asked", "ready", "none"]
    reason: Label | None  # why there is none
    begin_at: int
    end_at: int
    bytes: int
    codec: str  # h264, hevc; empty unless ready
    width: int
    height: int


class EventDetail(Event):
    """An event with what its page shows first; all its frames are a list of their own."""

    incident: Incident | None
    best_frame: Frame | None
    clip: Clip | None  # null: none was asked for, or the reader may not see it


class MediaLinkAsked(Asked):
    frame_uuid: Annotated[str, Field(pattern=UUID_PATTERN)]
    kind: MediaKind = "infer"
    ttl_sec: Annotated[int, Field(ge=1, le=LINK_TTL_MAX_SEC)] | None = None  # None: media.link_ttl_sec


class MediaLink(Answer):
    """Whoever has the address can open the picture or clip until then."""

    url: str
    expires_at: int


class Errand(Answer):
    """A short task for a worker. Ask for it again, with wait_sec, until `state` is neither waiting nor sent."""

    errand_uuid: str
    kind: Literal["probe", "discover", "look", "explain", "clip"]
    camera_id: str | None
    state: Literal["waiting", "sent", "done", "failed", "expired"]
    message: str  # what is wrong, or what was found
    result: dict[str, JsonValue] | None
    has_picture: bool  # at /api/errands/{errand_uuid}/picture
    created_at: int
    expires_at: int
    done_at: int | None


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
    health: dict[str, int]  # cameras by up, down, unattended, off, unknown
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
