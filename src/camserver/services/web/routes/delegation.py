"""Workers and where cameras are: list, empty (drain), move, pin, reclaim; and why a camera runs or does not."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.domain.people import Permission
from camserver.domain.why import explain
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import SiteNames
from camserver.services.web.routing import Routes
from camserver.store import delegation, feature_flags, lease_desk
from camserver.store.delegation import Placement, WorkerSummary
from camserver.store.feature_flags import FlagSummary
from camserver.store.lease_desk import LeaseSummary
from camserver.wire import api

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
WorkerId = Annotated[str, Path(pattern=api.WORKER_ID_PATTERN)]
PAGE_USUAL = 100


@routes.get("/api/workers", Permission.MANAGE_WORKERS)
async def list_workers(
    call: TheCall,
    sites: SiteNames = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    after: Annotated[str, Query(max_length=64, description="The worker that the page before ended with.")] = "",
    limit: Annotated[int, Query(ge=1, le=delegation.PAGE_MAX)] = PAGE_USUAL,
) -> api.WorkerPage:
    """The workers of the sites that the caller may see, in the order of their ids."""
    found = await call.store.read(delegation.workers, sites, after, limit)
    return api.WorkerPage(
        workers=[_worker(one) for one in found], next_after=found[-1].worker_id if len(found) == limit else None
    )


@routes.post("/api/workers/{worker_id}/drain", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def drain_worker(call: TheCall, worker_id: WorkerId) -> api.Worker:
    """Empties a worker: it gets no further camera, and those it has move to others as far as they have room."""
    return _worker(await call.store.write(delegation.drain, worker_id, True, call.address, call.now_ms))


@routes.post("/api/workers/{worker_id}/undrain", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def undrain_worker(call: TheCall, worker_id: WorkerId) -> api.Worker:
    """Lets a worker take cameras again."""
    return _worker(await call.store.write(delegation.drain, worker_id, False, call.address, call.now_ms))


@routes.post("/api/cameras/{camera_id}/reassign", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def reassign_camera(call: TheCall, camera_id: CameraId, asked: api.WorkerNamed) -> api.Placement:
    """Sends a camera to another worker of its site, once. Its holder stops first."""
    return _placed(await call.store.write(delegation.move, camera_id, asked.worker_id, call.address, call.now_ms))


@routes.post("/api/cameras/{camera_id}/pin", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def pin_camera(call: TheCall, camera_id: CameraId, asked: api.WorkerNamed) -> api.Placement:
    """Lets only that worker take the camera, until it is unpinned."""
    return _placed(await call.store.write(delegation.pin, camera_id, asked.worker_id, call.address, call.now_ms))


@routes.delete("/api/cameras/{camera_id}/pin", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def unpin_camera(call: TheCall, camera_id: CameraId) -> api.Placement:
    """Lets any worker of its site take the camera again."""
    return _placed(await call.store.write(delegation.pin, camera_id, None, call.address, call.now_ms))


@routes.get("/api/leases", Permission.MANAGE_WORKERS)
async def list_leases(
    call: TheCall,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=lease_desk.PAGE_MAX)] = PAGE_USUAL,
) -> api.LeasePage:
    """Who holds each camera and until when, in the order of the cameras' ids; cameras that nobody holds too."""
    found = await call.store.read(lease_desk.page, after, limit, call.now_ms)
    return api.LeasePage(
        leases=[_lease(one) for one in found],
        next_after=found[-1].camera_id if len(found) == limit else None,
        ttl_ms=call.web.settings.leases.ttl_sec * 1000,
    )


@routes.post("/api/leases/reclaim", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def reclaim_lease(call: TheCall, asked: api.ReclaimAsked) -> api.Reclaimed:
    """Takes a camera back from its worker, so that it is given out anew without waiting for its lease to run out."""
    outcome = await call.store.write(lease_desk.reclaim, asked.camera_id, asked.force, call.address, call.now_ms)
    lease = await call.store.read(lease_desk.get, asked.camera_id, call.now_ms)
    return api.Reclaimed(outcome=outcome, lease=_lease(lease))


@routes.get("/api/cameras/{camera_id}/why", Permission.MANAGE_CAMERAS)
async def why_camera(call: TheCall, camera_id: CameraId) -> api.CameraWhy:
    """Why a camera runs or does not, in plain words."""
    leases = call.web.settings.leases
    seen_since = call.now_ms - leases.missed_heartbeats * leases.heartbeat_sec * 1000
    interval_sec = call.web.settings.looks.polling_interval_sec
    facts = await call.store.read(delegation.why_facts, camera_id, seen_since, interval_sec)
    told = explain(facts.camera, facts.need, facts.workers, facts.offers, facts.quota, call.now_ms)
    return api.CameraWhy(
        camera_id=camera_id,
        is_running=told.is_running,
        lines=[api.WhyLine(code=line.code, text_ja=line.text.ja, text_en=line.text.en) for line in told.lines],
    )


def _worker(one: WorkerSummary) -> api.Worker:
    return api.Worker.model_validate(asdict(one))


def _lease(one: LeaseSummary) -> api.Lease:
    return api.Lease.model_validate(asdict(one))


def _placed(one: Placement) -> api.Placement:
    return api.Placement.model_validate(asdict(one))


@routes.get("/api/flags", Permission.MANAGE_SYSTEM)
async def list_flags(call: TheCall) -> api.FlagList:
    """Feature flags by site."""
    return _flags(await call.store.read(feature_flags.flags))


@routes.post("/api/flags", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def set_flag(call: TheCall, asked: api.FlagAsked) -> api.FlagList:
    """Sets a feature flag for a site or for all; null clears it."""
    return _flags(
        await call.store.write(feature_flags.set_flag, asked.name, asked.site, asked.value, call.address, call.now_ms)
    )


@routes.get("/api/quota", Permission.MANAGE_WORKERS)
async def get_quota(call: TheCall) -> api.Quota:
    """How many cameras may run at once, and how many do."""
    return api.Quota.model_validate(asdict(await call.store.read(feature_flags.quota)))


@routes.post("/api/quota", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def set_quota(call: TheCall, asked: api.QuotaAsked) -> api.Quota:
    """Sets how many cameras may run at once. Those that run go on."""
    done = await call.store.write(feature_flags.set_quota, asked.cameras_running_max, call.address, call.now_ms)
    return api.Quota.model_validate(asdict(done))


def _flags(found: tuple[FlagSummary, ...]) -> api.FlagList:
    return api.FlagList(flags=[api.Flag.model_validate(asdict(one)) for one in found])
