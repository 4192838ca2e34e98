"""Live view: viewings ("modal lease" in the seeds), streams, and the camera to watch now."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from camserver.domain.suggest import MANUAL_MAX_SEC
from camserver.wire.api.shapes import CAMERA_ID_PATTERN, Answer, Asked

CameraId = Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
LeaseId = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
StreamQuality = Literal["sub", "main"]
# What is shown is not what was asked for, and why.
ViewingNote = Literal[
    "",
    "no_main_stream",
    "no_sub_stream",
    "lowered_no_budget",
    "other_codec",
    "transcoded_codec",
    "transcoded_mask",
]


class ViewingAsked(Asked):
    camera_id: CameraId
    quality: StreamQuality = "sub"
    # modal: a view that somebody opened; suggest: the camera of GET /api/suggest, paid from its own reserve.
    purpose: Literal["modal", "suggest"] = "modal"
    # Video codecs that this browser plays.
    plays: Annotated[tuple[Literal["h264", "h265"], ...], Field(min_length=1, max_length=4)] = ("h264",)


class Viewing(Answer):
    """An admitted viewing. The addresses work while it is valid: within its time, and while heartbeats come."""

    lease_id: str
    camera_id: str
    allowed_quality: StreamQuality
    expires_at: str  # ISO 8601, UTC
    remaining_sec: int
    ttl_sec: int
    heartbeat_interval_sec: int
    heartbeat_grace_sec: int
    stream_url: str  # WebSocket: fragmented MP4 for MediaSource
    hls_url: str
    snapshot_url: str
    units: int
    transcoded: bool
    note: ViewingNote


class HeartbeatDone(Answer):
    ok: Literal[True] = True
    remaining_sec: int


class Released(Answer):
    ok: Literal[True] = True


class StreamAsked(Asked):
    """A viewing that is there already, or a camera for a new one."""

    lease_id: LeaseId | None = None
    camera_id: CameraId | None = None
    quality: StreamQuality = "sub"

    @model_validator(mode="after")
    def _one_of_them(self) -> "StreamAsked":
        if (self.lease_id is None) == (self.camera_id is None):
            raise ValueError("give either lease_id or camera_id")
        return self


class StreamStarted(Answer):
    session_id: str  # the viewing's lease_id
    lease_id: str
    hls_url: str
    stream_url: str
    expires_at: str  # ISO 8601, UTC


class StreamStopAsked(Asked):
    session_id: LeaseId


class Suggestion(Answer):
    camera_id: str
    camera_name: str
    site: str
    score: float  # now; falls by one a second
    reason_code: str  # a primary event, or manual
    reason: str  # in the reader's language
    manual: bool
    event_uuid: str | None
    since: int
    until: int


class SuggestionShown(Answer):
    """`suggestion` null: there is none, or its camera is not within the caller's reach."""

    suggestion: Suggestion | None


class SuggestionAsked(Asked):
    camera_id: CameraId
    duration_sec: Annotated[int, Field(ge=1, le=MANUAL_MAX_SEC)]
