"""How the installation is."""

from typing import Literal

from camserver.wire.api.shapes import Answer


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
