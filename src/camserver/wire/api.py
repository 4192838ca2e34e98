"""The HTTP API's messages: what people's browsers and the command line send and get.

Only shapes and bounds; what a request means is decided by the web service. Times are UTC epoch milliseconds.
No model that is sent holds a password or a token, except the CSRF token and the set-up link, which are meant to be.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

CAMERA_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Login = Annotated[str, Field(min_length=1, max_length=128)]
# Short ones are refused by the rule for passwords, which says why; this only bounds.
Password = Annotated[str, Field(max_length=1024, repr=False)]
Language = Literal["ja", "en"]


class Asked(BaseModel):
    """A request's body. Unknown fields are refused, so that a misspelt one is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


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


class Camera(Answer):
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


class CameraPage(Answer):
    cameras: list[Camera]
    next_after: str | None  # asked again as `after`; null on the last page


class Event(Answer):
    event_uuid: str
    incident_uuid: str | None
    camera_id: str
    camera_name: str
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
    tags: list[str]


class EventPage(Answer):
    events: list[Event]
    next_before: str | None  # asked again as `before`; null on the last page


class Change(Answer):
    seq: int
    kind: str
    at: int
    camera_id: str | None
    event_uuid: str | None


class ChangePage(Answer):
    """`resync`: the cursor is older than what is kept. Read everything anew and go on from `last_seq`."""

    changes: list[Change]
    last_seq: int
    resync: bool


class SystemStatus(Answer):
    now: int
    version: str
    store: Literal["sqlite", "postgres", "mariadb"]
    cameras: int
    sessions: dict[str, int]
    unfinished_jobs: dict[str, int]
    recent_jobs: dict[str, int]
    open_events: int
    ready: bool
    checks: dict[str, str | None]


class Health(Answer):
    status: Literal["alive"] = "alive"


class Readiness(Answer):
    ready: bool
    checks: dict[str, str | None]  # null: ready, else why not
