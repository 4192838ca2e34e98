"""Workers, where cameras are, and why."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from camserver.wire.api.shapes import Answer, Asked

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


class WorkerList(Answer):
    workers: list[Worker]


class WorkerNamed(Asked):
    worker_id: Annotated[str, Field(pattern=WORKER_ID_PATTERN)]


class Placement(Answer):
    camera_id: str
    worker_id: str | None  # who holds it
    wanted_worker_id: str | None  # where it goes next
    pinned_worker_id: str | None


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
