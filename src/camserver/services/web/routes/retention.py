"""What is kept, what was deleted and why, what the next round would delete, and a round out of its turn."""

from dataclasses import asdict, replace
from typing import Annotated

from fastapi import Query

from camserver.domain.keeping import DAY_MS, days_until_floor
from camserver.domain.people import Permission
from camserver.domain.retention import RetentionPolicy
from camserver.domain.tenants import kept_bytes_max
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.retention_forecast import Forecast
from camserver.services.web.routing import Routes
from camserver.store import garbage, tenant_quotas, upkeep, upkeep_pages
from camserver.store.cameras import public_camera_id
from camserver.store.upkeep import Usage
from camserver.store.upkeep_pages import OwnCamera, ShownUsage
from camserver.wire import api

routes = Routes()

SWEEPS_SHOWN = 50
# Counting reads all rows of a camera. Of further cameras the last count is shown.
COUNTED_NOW_MAX = 200
_DAYS = (
    "frames",
    "detected",
    "quarantine",
    "events",
    "notifications",
    "deliveries",
    "statistics",
    "audit",
    "case_grace",
)


@routes.get("/api/retention", Permission.MANAGE_CAMERAS)
async def get_retention(
    call: TheCall,
    now: Annotated[bool, Query(description="Count now, for up to 200 cameras, not as a round last did.")] = False,
) -> api.RetentionStatus:
    """What is kept by class and camera, as it was last counted, the last sweeps, and how long the disk will do."""
    policy = await _own_policy(call)
    usages = await call.store.read(upkeep_pages.shown_usage)
    if now:
        usages = await _counted_now(call, usages)
    sweeps = await call.store.read(upkeep_pages.shown_reports, SWEEPS_SHOWN)
    free_bytes = await call.web.objects.free_bytes()
    swept_bytes = await call.store.read(upkeep_pages.swept_bytes, call.now_ms - DAY_MS)
    grown = sum(one.usage.day_bytes for one in usages) - swept_bytes
    ended_at = await call.web.store.read(upkeep.round_ended_at)
    wanted_at = await call.web.store.read(upkeep.round_wanted_at)
    return api.RetentionStatus(
        days={name: getattr(policy, f"{name}_days") for name in _DAYS},
        camera_max_bytes=policy.camera_max_bytes,
        tenant_max_bytes=policy.tenant_max_bytes,
        free_min_bytes=policy.free_min_bytes,
        free_bytes=free_bytes,
        kept=_together(usages),
        cameras=_by_camera(usages),
        sweeps=[api.Sweep.model_validate(asdict(sweep)) for sweep in sweeps],
        grown_bytes_a_day=grown,
        days_until_floor=days_until_floor(free_bytes, grown, policy),
        counted_at=min((one.counted_at for one in usages), default=call.now_ms if now else ended_at or None),
        round_ended_at=ended_at or None,
        round_wanted_at=wanted_at or None,
    )


async def _own_policy(call: Call) -> RetentionPolicy:
    """The installation's, with the tenant's own quota of bytes where that is less."""
    policy = call.web.settings.retention
    quota = await call.store.read(tenant_quotas.own_kept_bytes)
    return replace(policy, tenant_max_bytes=kept_bytes_max(policy.tenant_max_bytes, quota))


@routes.post("/api/retention/run", Permission.MANAGE_SYSTEM, status_code=202, repeat=Repeat.ANSWER)
async def run_retention(call: TheCall) -> api.RoundAsked:
    """Asks for a round now. A dispatcher begins it within some seconds; see `round_ended_at`."""
    await call.store.write_beyond(upkeep.ask_round, call.address, call.now_ms)
    return api.RoundAsked(asked_at=call.now_ms)


async def _counted_now(call: Call, before: tuple[ShownUsage, ...]) -> tuple[ShownUsage, ...]:
    cameras = await call.store.read(upkeep_pages.own_cameras)
    counted = [
        ShownUsage(camera.camera_id, camera.name, camera.removed, usage, call.now_ms)
        for camera in cameras[:COUNTED_NOW_MAX]
        for usage in await call.web.store.read(upkeep.count_usage, camera.camera_key, call.now_ms)
    ]
    beyond = {camera.camera_id for camera in cameras[COUNTED_NOW_MAX:]}
    return tuple(counted + [one for one in before if one.camera_id in beyond])


@routes.get("/api/retention/preview", Permission.MANAGE_SYSTEM)
async def preview_retention(call: TheCall) -> api.RetentionPreview:
    """What a round would delete now, of which kind, and why. Nothing is deleted."""
    cameras = await call.store.read(upkeep_pages.own_cameras)
    forecast = Forecast(call.web.store.read, await _own_policy(call), cameras, call.now_ms)
    await forecast.make(call.principal.tenant_id, await call.web.objects.free_bytes())
    trash, trash_is_whole = await _trash(call)
    going = [
        api.GoingMedia(what=what, reason=why.value, count=one.count, bytes=one.bytes)
        for (what, why), one in forecast.going.items()
    ]
    return api.RetentionPreview(
        cameras=_preview_lines(forecast, cameras),
        going=[*going, trash] if trash.count else going,
        frames=sum(one.count for one in going if one.what == "frames"),
        pictures=sum(one.count for one in going if one.what == "pictures"),
        bytes=forecast.freed_bytes + trash.bytes,
        whole=forecast.is_whole and trash_is_whole,
    )


async def _trash(call: Call) -> tuple[api.GoingMedia, bool]:
    """What was deleted already, but for its files; whether all of them were looked at."""
    number = await call.web.store.read(garbage.count, call.principal.tenant_id)
    keys = await call.web.store.read(garbage.some_keys, call.principal.tenant_id)
    sizes = [await call.web.objects.size_bytes(key) for key in keys]
    taken = sum(size or 0 for size in sizes)
    return api.GoingMedia(what="garbage", reason="unlinked", count=number, bytes=taken), number <= len(keys)


def _preview_lines(forecast: Forecast, cameras: tuple[OwnCamera, ...]) -> list[api.RetentionPreviewLine]:
    names = {camera.camera_key: public_camera_id(camera.camera_id) for camera in cameras}
    return [
        api.RetentionPreviewLine(camera_id=names[key], count=one.count, bytes=one.bytes)
        for key, one in forecast.by_camera.items()
        if one.count
    ]


def _together(usages: tuple[ShownUsage, ...]) -> list[api.KeptMedia]:
    by_class: dict[str, list[Usage]] = {}
    for one in usages:
        by_class.setdefault(one.usage.retention_class, []).append(one.usage)
    return [_kept(upkeep.together(name, parts)) for name, parts in sorted(by_class.items())]


def _by_camera(usages: tuple[ShownUsage, ...]) -> list[api.CameraKept]:
    found: dict[str, api.CameraKept] = {}
    for one in usages:
        camera = found.setdefault(
            one.camera_id,
            api.CameraKept(
                camera_id=public_camera_id(one.camera_id),
                camera_name=one.camera_name,
                removed=one.removed,
                kept=[],
                counted_at=one.counted_at,
            ),
        )
        camera.kept.append(_kept(one.usage))
    return list(found.values())


def _kept(usage: Usage) -> api.KeptMedia:
    return api.KeptMedia.model_validate(asdict(usage))
