"""Jobs as people see to them: lists with filters, counts, and queueing again what was given up.

Within the principal's tenant and sites. A job's public id is its frame's uuid.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.jobs import reason_of, reason_prefix
from camserver.store import audit, camera_filters
from camserver.store.cameras import public_camera_id
from camserver.store.counts import RECENT_JOBS
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200
REQUEUE_MAX = 1_000
GIVEN_UP = ("dead", "skipped")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are asked for; what is left out does not narrow."""

    statuses: tuple[str, ...] = ()
    camera_ids: tuple[str, ...] = ()
    reason: str | None = None  # one of domain.jobs.REASONS


@dataclass(frozen=True, slots=True)
class JobSummary:
    frame_uuid: str
    camera_id: str
    camera_name: str
    status: str
    attempt: int
    reason: str | None
    error: str | None
    captured_at: int
    created_at: int
    available_at: int | None  # while delayed
    finished_at: int | None
    cursor: str


@dataclass(frozen=True, slots=True)
class JobCounts:
    statuses: dict[str, int]  # `done` among the newest RECENT_JOBS of the installation only
    reasons: dict[str, int]  # of those given up


@dataclass(frozen=True, slots=True)
class Requeued:
    count: int
    more: bool  # further ones fit the filter


_FROM = """
FROM inference_jobs j
JOIN cameras c ON c.camera_key = j.camera_key
JOIN frames f ON f.frame_id = j.frame_id
WHERE j.tenant_id = :tenant_id AND IN_REACH(c)"""
_JOBS = f"""
SELECT j.job_id, j.camera_key, j.status, j.attempt, j.last_error, j.captured_at, j.created_at, j.available_at,
  j.finished_at, f.frame_uuid, c.camera_id, c.name AS camera_name{_FROM}"""
# Literally, because only then is the index of those given up used.
_GIVEN_UP = " AND j.status IN ('dead','skipped')"


async def page(tx: Scoped, wanted: JobFilter, before: str | None, limit: int) -> tuple[JobSummary, ...]:
    """Newest first, from behind the cursor."""
    _, job_id = (0, BEYOND) if before is None else parse_cursor(Listed.JOBS, before)
    await camera_filters.check_known(tx, wanted.camera_ids)
    clauses, params = _narrowed(wanted)
    rows = await tx.all(
        f"{_JOBS}{clauses} AND j.job_id < :before ORDER BY j.job_id DESC LIMIT :limit",
        before=job_id,
        limit=min(limit, PAGE_MAX),
        **params,
    )
    return tuple(_summary(row) for row in rows)


def _narrowed(wanted: JobFilter) -> tuple[str, dict[str, object]]:
    clauses = ""
    params: dict[str, object] = {}
    if wanted.statuses:
        clauses += _GIVEN_UP if set(wanted.statuses) <= set(GIVEN_UP) else ""
        clauses += " AND j.status IN (:statuses...)"
        params["statuses"] = list(wanted.statuses)
    if wanted.camera_ids:
        clauses += " AND c.camera_id IN (:camera_ids...)"
        params["camera_ids"] = list(wanted.camera_ids)
    if wanted.reason is not None:
        prefix = reason_prefix(wanted.reason)
        clauses += f" AND substr(j.last_error, 1, {len(prefix)}) = :prefix"
        params["prefix"] = prefix
    return clauses, params


async def get(tx: Scoped, frame_uuid: str) -> JobSummary:
    return _summary(await _row(tx, frame_uuid))


async def _row(tx: Scoped, frame_uuid: str) -> Row:
    row = await tx.one(f"{_JOBS} AND f.frame_uuid = :frame_uuid", frame_uuid=frame_uuid)
    if row is None:
        raise NotFound(f"there is no job of the frame {frame_uuid}; it may be past its retention", reason="no_job")
    return row


async def count(tx: Scoped) -> JobCounts:
    unfinished = await tx.all(
        f"SELECT j.status, count(*) AS n{_FROM} AND j.status IN ('queued','delayed','running') GROUP BY j.status",
    )
    done = await tx.one(
        f"SELECT count(*) AS n{_FROM} AND j.status = 'done' AND j.job_id > "
        f"(SELECT COALESCE(MAX(job_id), 0) - {RECENT_JOBS} FROM inference_jobs)",
    )
    # By the beginning of the error: what follows differs from job to job.
    given_up = await tx.all(
        f"SELECT j.status, substr(j.last_error, 1, 24) AS error, count(*) AS n{_FROM}{_GIVEN_UP} "
        "GROUP BY j.status, substr(j.last_error, 1, 24)",
    )
    statuses = dict.fromkeys(("queued", "delayed", "running", "done", *GIVEN_UP), 0)
    statuses |= {row["status"]: row["n"] for row in unfinished}
    statuses["done"] = 0 if done is None else done["n"]
    reasons: dict[str, int] = {}
    for row in given_up:
        statuses[row["status"]] += row["n"]
        reason = reason_of(row["error"]) or "other"
        reasons[reason] = reasons.get(reason, 0) + row["n"]
    return JobCounts(statuses, reasons)


async def requeue(tx: Scoped, frame_uuid: str, address: str, now_ms: int) -> JobSummary:
    """Queues a job again that was given up, as if it were new: attempts and age begin anew."""
    row = await _row(tx, frame_uuid)
    if await _queue(tx, [row], now_ms) == 0:
        raise Conflict(
            f"the job of the frame {frame_uuid} is {row['status']}; only one that is dead or skipped can be queued "
            "again",
            reason="job_not_given_up",
        )
    entry = audit.Entry("job_requeued", now_ms, address, "frame", frame_uuid)
    await audit.add_own(tx, entry)
    return await get(tx, frame_uuid)


async def requeue_all(tx: Scoped, wanted: JobFilter, limit: int, address: str, now_ms: int) -> Requeued:
    """The same for those that fit, newest first, up to a bound."""
    limit = min(limit, REQUEUE_MAX)
    await camera_filters.check_known(tx, wanted.camera_ids)
    clauses, params = _narrowed(wanted)
    rows = await tx.all(
        f"{_JOBS}{clauses}{_GIVEN_UP} ORDER BY j.job_id DESC LIMIT :limit",
        limit=limit + 1,
        **params,
    )
    done = await _queue(tx, rows[:limit], now_ms)
    if done:
        details: dict[str, str | int] = {"jobs": done, "reason": wanted.reason or ""}
        await audit.add_own(tx, audit.Entry("jobs_requeued", now_ms, address, "jobs", "", details))
    return Requeued(done, len(rows) > limit)


async def _queue(tx: Scoped, rows: Sequence[Row], now_ms: int) -> int:
    """Those that are still given up; the condition is the fence against whoever does the same."""
    if not rows:
        return 0
    waiting = await tx.all(
        "SELECT camera_key, count(*) AS n FROM inference_jobs WHERE tenant_id = :tenant_id "
        "AND camera_key IN (:camera_keys...) AND status IN ('queued','delayed','running') GROUP BY camera_key",
        camera_keys=sorted({row["camera_key"] for row in rows}),
    )
    lap_of = {row["camera_key"]: row["n"] for row in waiting}
    done = 0
    # In the order of their ids, as everybody who locks several.
    for row in sorted(rows, key=lambda row: int(row["job_id"])):
        lap = lap_of.get(row["camera_key"], 0)
        if await tx.run(_QUEUE_AGAIN, job_id=row["job_id"], lap=lap, now_ms=now_ms):
            lap_of[row["camera_key"]] = lap + 1
            done += 1
    return done


# The error stays until an attempt succeeds, so that people see why it was queued again.
_QUEUE_AGAIN = """
UPDATE inference_jobs SET status = 'queued', attempt = 0, lap = :lap, available_at = :now_ms, created_at = :now_ms,
  finished_at = NULL
WHERE job_id = :job_id AND tenant_id = :tenant_id AND status IN ('dead','skipped')"""


def _summary(row: Row) -> JobSummary:
    return JobSummary(
        frame_uuid=row["frame_uuid"],
        camera_id=public_camera_id(row["camera_id"]),
        camera_name=row["camera_name"],
        status=row["status"],
        attempt=row["attempt"],
        reason=reason_of(row["last_error"]),
        error=row["last_error"],
        captured_at=row["captured_at"],
        created_at=row["created_at"],
        available_at=row["available_at"] if row["status"] == "delayed" else None,
        finished_at=row["finished_at"],
        cursor=make_cursor(Listed.JOBS, 0, row["job_id"]),
    )
