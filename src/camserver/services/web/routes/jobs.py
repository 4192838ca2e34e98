"""Analysis jobs: what waits, what was given up and why, queueing it again; and how the analyzers stand."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.domain.people import Permission
from camserver.domain.progress import analysis_standing
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import CameraIds, Cursor
from camserver.services.web.routing import Routes
from camserver.store import analyzers, counts, job_pages
from camserver.store.analyzers import SeenBy
from camserver.store.job_pages import JobFilter, JobSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50

Statuses = Annotated[list[api.JobState], Query(alias="status", max_length=6)]
FrameUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.get("/api/jobs", Permission.MANAGE_CAMERAS)
async def list_jobs(
    call: TheCall,
    statuses: Statuses = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    camera_ids: CameraIds = [],  # noqa: B006 - as above
    reason: api.JobReason | None = None,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=job_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.JobPage:
    """Jobs, newest first. Filters narrow; several values of one are alternatives."""
    wanted = JobFilter(tuple(statuses), tuple(camera_ids), reason)
    found = await call.store.read(job_pages.page, wanted, before, limit)
    return api.JobPage(
        jobs=[_shown(job) for job in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )


@routes.get("/api/jobs/counts", Permission.MANAGE_CAMERAS)
async def count_jobs(call: TheCall) -> api.JobCounts:
    """How many jobs there are in each state, and why jobs were given up."""
    return api.JobCounts.model_validate(asdict(await call.store.read(job_pages.count)))


@routes.get("/api/jobs/status", Permission.READ)
async def jobs_status(call: TheCall) -> api.JobsStatus:
    """How analysis gets on, and how each dispatcher finds each analyzer."""
    found = await call.store.read(counts.count)
    seen = await call.web.store.read(analyzers.seen, call.now_ms)
    return api.JobsStatus(
        now=call.now_ms,
        standing=analysis_standing(found.last_done_at, found.oldest_waiting_at, call.now_ms).value,
        unfinished_jobs=found.unfinished_jobs,
        last_done_at=found.last_done_at,
        oldest_waiting_at=found.oldest_waiting_at,
        analyzers=[_seen(call, one) for one in seen],
    )


@routes.post("/api/jobs/requeue", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def requeue_jobs(call: TheCall, asked: api.JobsRequeueAsked) -> api.JobsRequeued:
    """Queues jobs again that were given up, newest first, up to the limit."""
    wanted = JobFilter(asked.statuses, asked.camera_ids, asked.reason)
    done = await call.store.write(job_pages.requeue_all, wanted, asked.limit, call.address, call.now_ms)
    return api.JobsRequeued(requeued=done.count, more=done.more)


@routes.post("/api/jobs/{frame_uuid}/requeue", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def requeue_job(call: TheCall, frame_uuid: FrameUuid) -> api.Job:
    """Queues one job again that was given up. Its attempts and its age begin anew."""
    return _shown(await call.store.write(job_pages.requeue, frame_uuid, call.address, call.now_ms))


def _shown(job: JobSummary) -> api.Job:
    return api.Job.model_validate(asdict(job))


def _seen(call: Call, one: SeenBy) -> api.AnalyzerSeen:
    """Addresses and what they answered are for those who run the system."""
    shown = {"dispatcher": one.dispatcher, **asdict(one.seen), "seen_at": one.seen_at}
    if not call.principal.may(Permission.MANAGE_SYSTEM):
        shown |= {"dispatcher": None, "url": None, "last_error": None}
    return api.AnalyzerSeen.model_validate(shown)
