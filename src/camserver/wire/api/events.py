"""What was seen: frames, events, incidents, clips and the words for them."""

from typing import Any, Literal

from pydantic import Field

from camserver.wire.api.shapes import UUID_PATTERN, Answer, Asked, Label, PictureKind, Tag


class Vocabulary(Answer):
    schema_version: str
    primary_events: list[Label]
    tags: list[Tag]


class VocabularyVersion(Answer):
    schema_version: str
    is_active: bool
    created_at: int
    activated_at: int | None  # when it last became the active one


class VocabularyVersions(Answer):
    versions: list[VocabularyVersion]


class VocabularyDocument(Answer):
    """A vocabulary as an analyzer gets it."""

    schema_version: str
    document: dict[str, Any]


class NewVocabulary(Asked):
    document: dict[str, Any]  # with schema_version, primary_events, tag_groups and tags


class VocabularyChoice(Asked):
    schema_version: str = Field(min_length=1, max_length=32)


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
    warnings: list[str]  # what the analyzer had to say besides, such as a name in hints that means nothing
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
    issue: Label | None  # what is wrong with the camera, where its last event is about that
    is_ongoing: bool  # its last event is not over
    reviewed_at: int | None  # when the reader reviewed it; null when they did not, or it grew since
    reviewers: int  # how many people's reviews hold


class ReviewAsked(Asked):
    """What the reader saw. An incident that has become worse or longer since stays unreviewed; left out: as it is."""

    severity_max: int | None = Field(None, ge=0, le=3)
    last_event_uuid: str | None = Field(None, pattern=UUID_PATTERN)


class IncidentCounts(Answer):
    """How many of the newest incidents that fit the filters are of each severity."""

    by_severity: list[int]  # of 0, 1, 2 and 3
    is_complete: bool  # false: there are older ones that were not counted


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


class LlmBudget(Answer):
    """What the language model was asked on a day (UTC), and how much it may be. Costs in millionths of a dollar."""

    is_configured: bool
    provider: str
    model: str
    day: str
    calls: int
    calls_max: int
    tokens_in: int
    tokens_out: int
    cost_micro: int
    cost_micro_max: int | None  # null: money is not counted


class LlmReview(Answer):
    """What a language model said of an event's picture: an opinion, which nothing else follows from."""

    label: Label
    memo: str
    provider: str
    model: str
    created_at: int


class EventScore(Answer):
    """What a language model scored an event at."""

    category: str
    score: float
    scored_at: int


class EventDetail(Event):
    """An event with what its page shows first; all its frames are a list of their own."""

    incident: Incident | None
    best_frame: Frame | None
    clip: Clip | None  # null: none was asked for, or the reader may not see it
    llm_review: LlmReview | None  # null: there is none, or the reader may not investigate
    scores: list[EventScore]  # the highest first; none for those who may not investigate
