"""What is kept, what was deleted and why, what the next round would delete, and a round out of its turn."""

from dataclasses import asdict

from camserver.domain.keeping import DAY_MS, Fate, Why, days_until_floor, frame_fate, freed_bytes
from camserver.domain.people import Permission
from camserver.domain.retention import RetentionPolicy
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.routing import Routes
from camserver.store import retention, upkeep
from camserver.store.cameras import public_camera_id
from camserver.store.retention import Place
from camserver.store.upkeep import ShownUsage, Usage
from camserver.wire import api

routes = Routes()

SWEEPS_SHOWN = 50
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
async def get_retention(call: TheCall) -> api.RetentionStatus:
    """What is kept by class and camera, as it was last counted, the last sweeps, and how long the disk will do."""
    policy = call.web.settings.retention
    usages = await call.store.read(upkeep.shown_usage)
    sweeps = await call.store.read(upkeep.shown_reports, SWEEPS_SHOWN)
    free_bytes = await call.web.objects.free_bytes()
    swept_bytes = await call.store.read(upkeep.swept_bytes, call.now_ms - DAY_MS)
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
        round_ended_at=ended_at or None,
        round_wanted_at=wanted_at or None,
    )


@routes.post("/api/retention/run", Permission.MANAGE_SYSTEM, status_code=202)
async def run_retention(call: TheCall) -> api.RoundAsked:
    """Asks for a round now. A dispatcher begins it within some seconds; see `round_ended_at`."""
    await call.web.store.write(upkeep.ask_round, call.now_ms)
    return api.RoundAsked(asked_at=call.now_ms)


@routes.get("/api/retention/preview", Permission.MANAGE_SYSTEM)
async def preview_retention(call: TheCall) -> api.RetentionPreview:
    """What a round would delete for its age now. Nothing is deleted."""
    policy = call.web.settings.retention
    lines = []
    for camera in await call.store.read(upkeep.own_cameras):
        line = await _preview(call, camera.camera_key, public_camera_id(camera.camera_id), policy)
        if line.frames or line.pictures:
            lines.append(line)
    return api.RetentionPreview(
        cameras=lines,
        frames=sum(line.frames for line in lines),
        pictures=sum(line.pictures for line in lines),
        bytes=sum(line.bytes for line in lines),
    )


async def _preview(call: Call, camera_key: int, camera_id: str, policy: RetentionPolicy) -> api.RetentionPreviewLine:
    days = min(policy.frames_days, policy.detected_days, policy.quarantine_days)
    after: Place | None = Place()
    frames, pictures, taken = 0, 0, 0
    while after is not None:
        page = await call.web.store.read(retention.frame_page, camera_key, after, call.now_ms - days * DAY_MS + 1)
        for frame in page.frames:
            is_newest = frame.frame_id == page.newest_frame_id
            fate = frame_fate(Why.AGE, frame, is_newest, policy, call.now_ms)
            frames += fate is Fate.DELETE
            pictures += fate is not Fate.KEEP and freed_bytes(frame, fate) > 0
            taken += freed_bytes(frame, fate)
        after = page.end
    return api.RetentionPreviewLine(camera_id=camera_id, frames=frames, pictures=pictures, bytes=taken)


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
