"""Counts for the status page, of what the principal reaches. Each costs little however long the tables are."""

from dataclasses import dataclass

from camserver.domain.progress import Standing, analysis_standing
from camserver.store import suggestions, viewings
from camserver.store.tx import Scoped

# Finished jobs are counted among the newest so many of the installation: counting all reads the whole table.
RECENT_JOBS = 10_000
_JOB_IN_REACH = "(:all_sites = 1 OR camera_key IN (SELECT c.camera_key FROM cameras c WHERE IN_REACH(c)))"


@dataclass(frozen=True, slots=True)
class Counts:
    cameras: int
    health: dict[str, int]  # cameras by up, down, unattended, off, unknown
    sessions: dict[str, int]  # by state
    unfinished_jobs: dict[str, int]  # queued, delayed, running
    recent_jobs: dict[str, int]  # done, dead, skipped among the newest RECENT_JOBS
    open_events: int
    last_done_at: int | None  # among those newest jobs
    oldest_waiting_at: int | None
    last_error_kind: str | None  # of the newest job that failed and waits to be tried again


async def count(tx: Scoped) -> Counts:
    cameras = await tx.one(
        "SELECT COUNT(*) AS n FROM cameras WHERE tenant_id = :tenant_id AND deleted_at IS NULL AND IN_REACH()"
    )
    health = await _health(tx)
    sessions = await tx.all(
        "SELECT state, COUNT(*) AS n FROM camera_sessions WHERE tenant_id = :tenant_id AND IN_REACH() GROUP BY state"
    )
    unfinished = await tx.all(
        "SELECT status, COUNT(*) AS n, MIN(created_at) AS oldest_at FROM inference_jobs "
        "WHERE tenant_id = :tenant_id AND status IN ('queued','delayed','running') "
        f"AND {_JOB_IN_REACH} GROUP BY status"
    )
    recent = await tx.all(
        "SELECT status, COUNT(*) AS n, MAX(finished_at) AS newest_at FROM inference_jobs "
        "WHERE tenant_id = :tenant_id AND job_id > "
        f"(SELECT COALESCE(MAX(job_id), 0) - {RECENT_JOBS} FROM inference_jobs) "
        f"AND status IN ('done','dead','skipped') AND {_JOB_IN_REACH} GROUP BY status"
    )
    events = await tx.one(
        "SELECT COUNT(*) AS n FROM events WHERE tenant_id = :tenant_id "
        "AND (open_key IS NOT NULL OR issue_key IS NOT NULL) AND IN_REACH()"
    )
    assert cameras is not None
    assert events is not None
    return Counts(
        cameras=cameras["n"],
        health=health,
        sessions={row["state"]: row["n"] for row in sessions},
        unfinished_jobs={row["status"]: row["n"] for row in unfinished},
        recent_jobs={row["status"]: row["n"] for row in recent},
        open_events=events["n"],
        last_done_at=next((row["newest_at"] for row in recent if row["status"] == "done"), None),
        oldest_waiting_at=min((row["oldest_at"] for row in unfinished), default=None),
        last_error_kind=await _last_error_kind(tx),
    )


@dataclass(frozen=True, slots=True)
class Signs:
    """What of the status people should see a change of, of what the principal reaches."""

    health: tuple[tuple[str, int], ...]  # cameras by health
    active_modals: int
    suggest_active: bool
    is_stalled: bool  # analysis: whether it works or idles changes with every look, and is no sign
    last_error_kind: str | None


async def signs(tx: Scoped, now_ms: int) -> Signs:
    """Cheaper than `count`: finished jobs are looked at only when one waits for long."""
    waiting = await tx.one(
        "SELECT MIN(created_at) AS oldest_at FROM inference_jobs WHERE tenant_id = :tenant_id "
        f"AND status IN ('queued','delayed','running') AND {_JOB_IN_REACH}"
    )
    oldest_at = None if waiting is None else waiting["oldest_at"]
    is_stalled = analysis_standing(None, oldest_at, now_ms) is Standing.STALLED
    if is_stalled:
        done = await tx.one(
            "SELECT MAX(finished_at) AS newest_at FROM inference_jobs WHERE tenant_id = :tenant_id AND job_id > "
            f"(SELECT COALESCE(MAX(job_id), 0) - {RECENT_JOBS} FROM inference_jobs) "
            f"AND status = 'done' AND {_JOB_IN_REACH}"
        )
        last_done_at = None if done is None else done["newest_at"]
        is_stalled = analysis_standing(last_done_at, oldest_at, now_ms) is Standing.STALLED
    return Signs(
        health=tuple(sorted((await _health(tx)).items())),
        active_modals=await viewings.count_modals(tx, now_ms),
        suggest_active=await suggestions.is_active(tx, now_ms),
        is_stalled=is_stalled,
        last_error_kind=await _last_error_kind(tx),
    )


async def _health(tx: Scoped) -> dict[str, int]:
    rows = await tx.all(
        "SELECT CASE WHEN h.health = 'unknown' AND h.health_cause <> '' THEN h.health_cause ELSE h.health END "
        "AS shown, COUNT(*) AS n FROM camera_state h JOIN cameras c ON c.camera_key = h.camera_key "
        "WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c) GROUP BY shown"
    )
    return {row["shown"]: row["n"] for row in rows}


async def _last_error_kind(tx: Scoped) -> str | None:
    failed = await tx.one(
        "SELECT last_error FROM inference_jobs WHERE tenant_id = :tenant_id AND status = 'delayed' "
        f"AND last_error IS NOT NULL AND {_JOB_IN_REACH} ORDER BY job_id DESC LIMIT 1"
    )
    # What follows the kind may name hosts.
    return None if failed is None else str(failed["last_error"]).partition(":")[0]
