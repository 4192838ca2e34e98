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
    # Live view: not overloaded; the load of the busiest streamer, null while none reports; units for viewings, and
    # those of them that are left; what was asked for and refused in the last 24 hours.
    healthy: bool
    cpu_percent: float | None
    memory_percent: float | None
    load_warnings: list[Literal["cpu", "memory", "swap"]]
    active_modals: int
    modal_budget: int
    modal_budget_remaining: int
    modal_requests_24h: int
    modal_rejections_24h: int
    suggest_active: bool
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


class Setting(Answer):
    """One setting in force. `value` null: not set; a secret's is masked."""

    section: str
    key: str
    value: bool | int | float | str | list[str] | None
    source: str
    doc: str


class SettingList(Answer):
    settings: list[Setting]
    warnings: list[str]


class Health(Answer):
    status: Literal["alive"] = "alive"


class Readiness(Answer):
    ready: bool
    checks: dict[str, str | None]  # null: ready, else why not
