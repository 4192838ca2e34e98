"""A furnished store: a tenant, a site, cameras with leases, and looks for them."""

from dataclasses import dataclass

import uuid_utils

from camserver.domain.leases import LeasePolicy
from camserver.store import Store, Tx
from camserver.store.epochs import open_epoch
from camserver.store.frames import Look, Recorded, record

NOW_MS = 1_800_000_000_000
INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Scene:
    tenant_id: int
    site_id: int
    worker_key: int
    epoch_id: int
    camera_keys: tuple[int, ...]


async def furnish(store: Store, cameras: int = 3, now_ms: int = NOW_MS, name: str = "scene") -> Scene:
    """Makes a tenant whose cameras are all held by one worker in generation 1."""
    return await store.write(_furnish, cameras, now_ms, name)


async def _furnish(tx: Tx, cameras: int, now_ms: int, name: str) -> Scene:
    tenant_id = await tx.insert(
        "INSERT INTO tenants (tenant_uuid, name, created_at) VALUES (:uuid, :name, :now_ms) RETURNING tenant_id",
        uuid=str(uuid_utils.uuid7()),
        name=name,
        now_ms=now_ms,
    )
    await tx.run("INSERT INTO change_counters (tenant_id, last_seq) VALUES (:tenant_id, 0)", tenant_id=tenant_id)
    site_id = await tx.insert(
        """
        INSERT INTO sites (tenant_id, site_uuid, name, created_at)
        VALUES (:tenant_id, :uuid, 'main', :now_ms) RETURNING site_id""",
        tenant_id=tenant_id,
        uuid=str(uuid_utils.uuid7()),
        now_ms=now_ms,
    )
    worker_key = await tx.insert(
        """
        INSERT INTO workers (tenant_id, site_id, worker_id, capacity, created_at)
        VALUES (:tenant_id, :site_id, 'worker', '{"slots": 1000}', :now_ms) RETURNING worker_key""",
        tenant_id=tenant_id,
        site_id=site_id,
        now_ms=now_ms,
    )
    epoch_id = await open_epoch(tx, "scenery", now_ms)
    camera_keys = [
        await _hang_camera(tx, tenant_id, site_id, worker_key, f"cam_{index}", now_ms) for index in range(cameras)
    ]
    return Scene(tenant_id, site_id, worker_key, epoch_id, tuple(camera_keys))


async def _hang_camera(tx: Tx, tenant_id: int, site_id: int, worker_key: int, camera_id: str, now_ms: int) -> int:
    camera_key = await tx.insert(
        """
        INSERT INTO cameras (tenant_id, site_id, camera_id, name, created_at, updated_at)
        VALUES (:tenant_id, :site_id, :camera_id, :camera_id, :now_ms, :now_ms) RETURNING camera_key""",
        tenant_id=tenant_id,
        site_id=site_id,
        camera_id=camera_id,
        now_ms=now_ms,
    )
    params = {
        "camera_key": camera_key,
        "tenant_id": tenant_id,
        "site_id": site_id,
        "worker_key": worker_key,
        "now_ms": now_ms,
        "expires_at": now_ms + 90_000,
    }
    await tx.run(
        "INSERT INTO camera_state (camera_key, tenant_id, updated_at) VALUES (:camera_key, :tenant_id, :now_ms)",
        **params,
    )
    await tx.run(
        """
        INSERT INTO camera_sessions (camera_key, tenant_id, site_id, worker_key, generation, state, lease_expires_at,
          updated_at)
        VALUES (:camera_key, :tenant_id, :site_id, :worker_key, 1, 'ACTIVE', :expires_at, :now_ms)""",
        **params,
    )
    await tx.run(
        """
        INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at)
        VALUES (:camera_key, 1, :tenant_id, :worker_key, :now_ms)""",
        **params,
    )
    return camera_key


def look(scene: Scene, camera: int = 0, seq: int = 1, at_ms: int = NOW_MS, **changes: object) -> Look:
    """A look that passed the gate, with an infer picture."""
    values: dict[str, object] = {
        "worker_key": scene.worker_key,
        "tenant_id": scene.tenant_id,
        "site_id": scene.site_id,
        "camera_key": scene.camera_keys[camera],
        "generation": 1,
        "seq": seq,
        "frame_uuid": str(uuid_utils.uuid7()),
        "captured_at": at_ms,
        "worker_at": at_ms,
        "received_at": at_ms,
        "collector_status": "ok",
        "verdict": "analyze",
        "priority": 100,
        "diff_ratio": 0.01,
        "luma_delta": -1.5,
        "blur_score": 20.0,
        "epoch_id": scene.epoch_id,
        "infer_bytes": 1000,
        "full_bytes": 5000,
    }
    return Look(**{**values, **changes})  # type: ignore[arg-type]  # the names are Look's own


async def recorded(store: Store, *looks: Look) -> tuple[Recorded, ...]:
    return await store.write(record, looks, LeasePolicy())
