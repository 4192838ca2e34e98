"""Analysis jobs and analyzers. A job's id is its frame's."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api.shapes import CAMERA_ID_PATTERN, Answer, Asked

JobState = Literal["queued", "delayed", "running", "done", "dead", "skipped"]
GivenUp = Literal["dead", "skipped"]
JobReason = Literal[
    "overloaded",
    "unavailable",
    "connection",
    "timeout",
    "server_error",
    "broken_answer",
    "lock_lost",
    "vocabulary_mismatch",
    "bad_request",
    "unreadable_image",
    "too_old",
    "too_many",
]
CameraId = Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
JOBS_REQUEUED_MAX = 1000


class Job(Answer):
    frame_uuid: str
    camera_id: str
    camera_name: str
    status: JobState
    attempt: int
    reason: JobReason | None  # of `error`, for programs
    error: str | None  # of the last attempt that failed; kept until one succeeds
    captured_at: int
    created_at: int  # or when it was queued again by hand
    available_at: int | None  # while delayed: when it is tried again
    finished_at: int | None


class JobPage(Answer):
    jobs: list[Job]
    next_before: str | None


class JobCounts(Answer):
    """`done` is counted among the newest 10,000 jobs only."""

    statuses: dict[str, int]
    reasons: dict[str, int]  # of those dead or skipped


class JobsRequeueAsked(Asked):
    """Which of the jobs that were given up are queued again; what is left out does not narrow."""

    statuses: Annotated[tuple[GivenUp, ...], Field(max_length=2)] = ("dead",)
    camera_ids: Annotated[tuple[CameraId, ...], Field(max_length=50)] = ()
    reason: JobReason | None = None
    limit: Annotated[int, Field(ge=1, le=JOBS_REQUEUED_MAX)] = JOBS_REQUEUED_MAX


class JobsRequeued(Answer):
    requeued: int
    more: bool  # ask again for the rest


class AnalyzerSeen(Answer):
    """One analyzer as one dispatcher sees it."""

    # These two and `last_error` are null for those who may not manage the system.
    dispatcher: str | None
    url: str | None
    state: Literal["ok", "slowed", "away", "tried"]
    in_flight: int
    concurrency: int  # most questions it gets at once now
    latency_ms: int | None
    last_error: str | None
    seen_at: int


class JobsStatus(Answer):
    now: int
    standing: Literal["working", "idle", "stalled"]
    unfinished_jobs: dict[str, int]
    last_done_at: int | None
    oldest_waiting_at: int | None
    analyzers: list[AnalyzerSeen]
