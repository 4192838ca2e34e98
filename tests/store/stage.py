"""A stage for leases: a tenant with a site, workers that are registered and cameras that nobody holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import uuid_utils

from camserver.store import Store, Tx
from camserver.store.epochs import open_epoch
from camserver.store.leases import Claim
from camserver.store.workers import Registered, Registration, register
from tests.store.singles import ensure_session

NOW_MS = 1_800_000_000_000
TTL_MS = 90_000


@dataclass(frozen=True, slots=True)
class Camera:
    key: int
    id: str


@dataclass(frozen=True, slots=True)
class Stage:
    tenant_id: int
    site_id: int
    epoch_id: int
    workers: tuple[Registered, ...]
    cameras: tuple[Camera, ...]

    def claim(self, worker: int, camera: int, generation: int) -> Claim:
        return Claim(self.tenant_id, self.workers[worker].worker_key, self.cameras[camera].id, generation)


def registration(worker_id: str, site: str = "main", epoch_id: int = 1, **changes: object) -> Registration:
    values: dict[str, object] = {
        "worker_id": worker_id,
        "site": site,
        "version": "1",
        "labels": (("room", "attic"),),
        "slots": 10,
        "cpu": 4.0,
        "gpu": 0.0,
        "mem": 8e9,
        "boot_id": "boot-1",
        "connected_epoch": epoch_id,
    }
    return Registration(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


async def build(store: Store, workers: int = 2, cameras: int = 2, name: str = "stage") -> Stage:
    return await store.write(_build, workers, cameras, name, NOW_MS)


async def _build(tx: Tx, workers: int, cameras: int, name: str, now_ms: int) -> Stage:
    tenant_id = await tx.insert(
        "INSERT INTO tenants (tenant_uuid, name, created_at) VALUES (:uuid, :name, :now) RETURNING tenant_id",
        uuid=str(uuid_utils.uuid7()),
        name=name,
        now=now_ms,
    )
    await tx.run("INSERT INTO change_counters (tenant_id) VALUES (:tenant_id)", tenant_id=tenant_id)
    site_id = await add_site(tx, tenant_id, "main", now_ms)
    epoch_id = await open_epoch(tx, "stage", now_ms)
    registered = [
        await register(tx, tenant_id, registration(f"worker-{index}", epoch_id=epoch_id), now_ms)
        for index in range(workers)
    ]
    made = [await add_camera(tx, tenant_id, site_id, f"cam_{index}", now_ms) for index in range(cameras)]
    return Stage(tenant_id, site_id, epoch_id, tuple(registered), tuple(made))


async def add_site(tx: Tx, tenant_id: int, name: str, now_ms: int) -> int:
    return await tx.insert(
        """
        INSERT INTO sites (tenant_id, site_uuid, name, created_at)
        VALUES (:tenant_id, :uuid, :name, :now) RETURNING site_id""",
        tenant_id=tenant_id,
        uuid=str(uuid_utils.uuid7()),
        name=name,
        now=now_ms,
    )


async def add_camera(tx: Tx, tenant_id: int, site_id: int, camera_id: str, now_ms: int) -> Camera:
    camera_key = await tx.insert(
        """
        INSERT INTO cameras (tenant_id, site_id, camera_id, name, created_at, updated_at)
        VALUES (:tenant_id, :site_id, :camera_id, :camera_id, :now, :now) RETURNING camera_key""",
        tenant_id=tenant_id,
        site_id=site_id,
        camera_id=camera_id,
        now=now_ms,
    )
    await tx.run(
        """
        INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url)
        VALUES (:tenant_id, :camera_key, 'main', 'test', 'test://still')""",
        tenant_id=tenant_id,
        camera_key=camera_key,
    )
    await ensure_session(tx, camera_key, now_ms)
    return Camera(camera_key, camera_id)


async def statement(tx: Tx, sql: str, params: dict[str, object]) -> int:
    """Any statement, for what a test must bring about by hand."""
    return await tx.run(sql, **params)


async def session(store: Store, camera_key: int) -> dict[str, object]:
    return await store.read(_session, camera_key)


_COLUMNS = """worker_key generation state lease_expires_at reason intent_id start_sent_at acked_at ready_at
next_attempt_at failures auth_failures credential_version avoid_worker_key moved_at stop_wanted site_id"""


async def _session(tx: Tx, camera_key: int) -> dict[str, object]:
    columns = _COLUMNS.split()
    row = await tx.one(
        f"SELECT {', '.join(columns)} FROM camera_sessions WHERE camera_key = :camera_key",
        camera_key=camera_key,
    )
    assert row is not None
    return {column: row[column] for column in columns}


async def spans(store: Store, camera_key: int) -> Sequence[tuple[int, int, int, int | None, str]]:
    """The whole history of a camera, oldest first."""
    return await store.read(_spans, camera_key)


async def _spans(tx: Tx, camera_key: int) -> Sequence[tuple[int, int, int, int | None, str]]:
    rows = await tx.all(
        """
        SELECT generation, worker_key, granted_at, ended_at, end_reason FROM camera_leases
        WHERE camera_key = :camera_key ORDER BY generation""",
        camera_key=camera_key,
    )
    return [
        (row["generation"], row["worker_key"], row["granted_at"], row["ended_at"], row["end_reason"]) for row in rows
    ]


async def check_history(store: Store, camera_key: int) -> None:
    """What must hold whatever happened: see the head of camserver.store.leases."""
    row = await session(store, camera_key)
    found = await spans(store, camera_key)
    generations = [span[0] for span in found]
    assert generations == sorted(set(generations))
    assert not generations or generations[-1] == row["generation"]
    for earlier, later in pairwise(found):
        assert earlier[3] is not None
        assert earlier[3] <= later[2]
    assert all(span[3] is None or span[3] >= span[2] for span in found)
    current = [span for span in found if span[3] is None]
    if row["worker_key"] is None:
        assert current == []
    else:
        assert [(span[0], span[1]) for span in current] == [(row["generation"], row["worker_key"])]
