"""Counts for the status page, of what the principal reaches. Each costs little however long the tables are."""

from dataclasses import dataclass

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
    health = await tx.all(
        "SELECT CASE WHEN h.health = 'unknown' AND h.health_cause <> '' THEN h.health_cause ELSE h.health END "
        "AS shown, COUNT(*) AS n FROM camera_state h JOIN cameras c ON c.camera_key = h.camera_key "
        "WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c) GROUP BY shown"
    )
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
    failed = await tx.one(
        "SELECT last_error FROM inference_jobs WHERE tenant_id = :tenant_id AND status = 'delayed' "
        f"AND last_error IS NOT NULL AND {_JOB_IN_REACH} ORDER BY job_id DESC LIMIT 1"
    )
    assert cameras is not None
    assert events is not None
    return Counts(
        cameras=cameras["n"],
        health={row["shown"]: row["n"] for row in health},
        sessions={row["state"]: row["n"] for row in sessions},
        unfinished_jobs={row["status"]: row["n"] for row in unfinished},
        recent_jobs={row["status"]: row["n"] for row in recent},
        open_events=events["n"],
        last_done_at=next((row["newest_at"] for row in recent if row["status"] == "done"), None),
        oldest_waiting_at=min((row["oldest_at"] for row in unfinished), default=None),
        # What follows the kind may name hosts.
        last_error_kind=None if failed is None else failed["last_error"].partition(":")[0],
    )
