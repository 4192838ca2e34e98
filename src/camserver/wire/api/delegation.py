"""Workers, where cameras are, and why."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from camserver.wire.api.shapes import CAMERA_ID_PATTERN, Answer, Asked

WORKER_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class Worker(Answer):
    worker_id: str
    site: str
    status: str
    version: str
    slots: int  # cameras at once
    used: int
    cpu: float  # cores; 0: it did not say
    gpu: float
    mem: float  # bytes
    labels: dict[str, str]
    is_connected: bool
    is_draining: bool  # it gets no camera, and those it has go elsewhere
    last_seen_at: int | None
    metrics: dict[str, float]  # what it measured last; empty: it did not say
    metrics_at: int | None


class WorkerPage(Answer):
    workers: list[Worker]
    next_after: str | None


class WorkerNamed(Asked):
    worker_id: Annotated[str, Field(pattern=WORKER_ID_PATTERN)]


class Placement(Answer):
    camera_id: str
    worker_id: str | None  # who holds it
    wanted_worker_id: str | None  # where it goes next
    pinned_worker_id: str | None


class Lease(Answer):
    """Who holds a camera, and until when."""

    camera_id: str
    site: str
    worker_id: str | None  # who holds it, or held it until it ran out; null: nobody
    generation: int
    state: str
    reason: str
    granted_at: int | None
    expires_at: int | None
    left_ms: int | None  # until it runs out; 0: it has
    is_holder_connected: bool
    is_orphaned_soon: bool  # its worker is away, and it runs out unless the worker comes back
    is_stopping: bool
    failures: int  # of the camera, in a row
    auth_failures: int
    next_attempt_at: int | None


class LeasePage(Answer):
    leases: list[Lease]
    next_after: str | None
    ttl_ms: int  # how long a renewal holds


class ReclaimAsked(Asked):
    camera_id: Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
    force: bool = False  # also from a worker that is connected, without asking it to stop first


class Reclaimed(Answer):
    outcome: Literal["free", "stopping", "reclaimed"]
    lease: Lease


class WhyLine(Answer):
    code: str
    text_ja: str
    text_en: str


class CameraWhy(Answer):
    camera_id: str
    is_running: bool
    lines: list[WhyLine]  # the first one is the answer, the others say more


FlagName: TypeAlias = Literal["assignment.style", "assignment.shadow"]
FlagValue: TypeAlias = Literal["spread", "pack"]


class Flag(Answer):
    name: str
    site: str | None  # null: all sites
    value: str
    updated_at: int


class FlagList(Answer):
    flags: list[Flag]


class FlagAsked(Asked):
    name: FlagName
    site: Annotated[str, Field(max_length=128)] | None = None  # name or id; null: all sites
    value: FlagValue | None  # null clears it


class Quota(Answer):
    cameras_running_max: int | None  # null: any number
    running: int


class QuotaAsked(Asked):
    cameras_running_max: Annotated[int, Field(ge=0, le=1_000_000)] | None
