"""Cameras: what is asked of them, and how they are shown."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from camserver.domain.hints import NAME_CHARS_MAX, NAMES_MAX
from camserver.domain.polygons import POINTS_MAX, POLYGONS_MAX, ZONE_NAME_MAX_CHARS
from camserver.domain.presets import Preset
from camserver.wire.api.names import NAME, ONE_LINE
from camserver.wire.api.shapes import CAMERA_ID_PATTERN, Answer, Asked, Label


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


class Zone(Asked):
    """A part of the picture with a name."""

    name: Annotated[str, Field(min_length=1, max_length=ZONE_NAME_MAX_CHARS), ONE_LINE]
    points: Points


class ZoneAsked(Zone):
    """The same of a request. What was kept before is answered with whatever it is called."""

    name: Annotated[str, Field(min_length=1, max_length=ZONE_NAME_MAX_CHARS), NAME]


# A label of the model (`car`), a category (`vehicle`) or a tag (`animal.bird`).
HintName = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX, pattern=r"^[a-z0-9][a-z0-9_. -]*$")]
HintNames = Annotated[list[HintName], Field(max_length=NAMES_MAX)]
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CameraHints(Asked):
    """What the analyzer is told of a camera. What is not null stands in the place of what the preset says."""

    preset: Preset | None = None
    expected_objects: HintNames | None = None  # no event by themselves
    excluded_objects: HintNames | None = None  # not there, whatever it looks like
    thresholds: Annotated[dict[HintName, Threshold], Field(max_length=NAMES_MAX)] | None = None  # least confidence
    shelf_roi: Points | None = None  # a region that things shall not vanish from


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
    # If there is any, the gate watches there only.
    zones: Annotated[list[ZoneAsked], Field(max_length=POLYGONS_MAX)] | None = None
    mask_clock: bool | None = None  # whether burned-in clocks that are found are masked
    device: Annotated[str, Field(max_length=128)] | None = None  # cameras with the same one share a device
    streams_max: Annotated[int, Field(ge=1, le=64)] | None = None  # connections that device bears at once
    clip_sec: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] | None = None  # 0: no clips
    hints: CameraHints | None = None  # replaced as a whole
    suggest_weight: Annotated[int, Field(ge=0, le=10)] | None = None  # how readily it is suggested; null: 5
    live_sound: bool | None = None  # false: the worker never asks the camera for sound


class CameraAsked(CameraValues):
    camera_id: Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
    name: Annotated[str, Field(min_length=1, max_length=128), NAME]
    site: Annotated[str, Field(min_length=1, max_length=128)] | None = None  # null: the oldest one
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

    name: Annotated[str, Field(min_length=1, max_length=128), NAME] | None = None
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


class CameraIssue(Label):
    """Something that is wrong with a camera itself: offline, unattended, covered, moved or frozen."""

    since: int
    event_uuid: str


class CameraHealth(Answer):
    """Whether a camera works. `unknown` with the cause `unattended` says that no worker looks at it."""

    state: Literal["up", "down", "unknown"]
    since: int | None
    cause: Label | None  # in plain words; also while a camera that is still up fails
    issues: list[CameraIssue]


class StreamFault(Answer):
    """The last fault of one of a camera's two streams, while the other did its work."""

    stream: str  # main, sub
    cause: Label
    message: str
    at: int
    over_at: int | None  # null: it lasts


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
    hints: CameraHints | None
    suggest_weight: int | None
    live_sound: bool | None
    network_zone: Literal["local", "vpn"]


class Camera(Answer):
    """`latest_picture` is what latest.jpg shows; it is older than `latest` when looks have failed since."""

    camera_id: str
    name: str
    site: str
    enabled: bool
    state: str  # PENDING, ACTIVE, PAUSED, ORPHANED, TERMINATED
    state_reason: str
    worker_id: str | None  # who holds it; only for those who may manage cameras
    polling_interval_sec: float
    source: Source | None  # only for those who may manage cameras, as are `sub` and `own`
    sub: Source | None
    own: CameraOwn | None
    do_not_process: bool
    caps: dict[str, JsonValue] | None  # what the last probe found: codec, res, fps; error: why it failed
    last_probe_at: int | None
    created_at: int
    latest: Look | None
    latest_picture: PictureRef | None
    open_event: OpenEvent | None
    health: CameraHealth
    stream_fault: StreamFault | None  # to those who may not manage cameras only `watched_live`, while it lasts
    # Names in its hints that nothing here is called by: misspelled, or of another analyzer.
    unknown_hints: list[str] | None  # only for those who may manage cameras


class CameraPage(Answer):
    cameras: list[Camera]
    next_after: str | None  # asked again as `after`; null on the last page
