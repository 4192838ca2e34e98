"""The rows that control's bench begins with, made by PostgreSQL: workers, and cameras, held or not yet known."""

import json
from collections.abc import Sequence

import asyncpg

from camserver.base.clock import wall_time_ms
from camserver.base.credentials import seal
from camserver.store.first_start import Home

# Of a site; a worker's number and a camera's say which one is theirs.
WORKERS_A_SITE = 20
LEASE_MS = 600_000


def site_of(worker: int) -> str:
    return f"site-{worker // WORKERS_A_SITE}"


async def add_workers(connection: asyncpg.Connection, home: Home, workers: int, slots: int) -> None:
    """So many workers, none of them connected yet, in as many sites as they fill."""
    now_ms = wall_time_ms()
    await connection.execute(
        """
        INSERT INTO sites (tenant_id, site_uuid, name, created_at)
        SELECT $1, gen_random_uuid()::text, 'site-' || n, $2 FROM generate_series(0, ($3 - 1) / $4) n""",
        home.tenant_id,
        now_ms,
        workers,
        WORKERS_A_SITE,
    )
    await connection.execute(
        f"""
        INSERT INTO workers (tenant_id, site_id, worker_id, capacity, last_seen_at, created_at)
        SELECT $1, s.site_id, 'worker-' || n, $4::jsonb, $2, $2
        FROM generate_series(0, $3 - 1) n JOIN sites s ON s.name = 'site-' || (n / {WORKERS_A_SITE})""",
        home.tenant_id,
        now_ms,
        workers,
        json.dumps({"slots": slots, "cpu": 4, "gpu": 0, "mem": 8e9}),
    )


async def add_cameras(
    connection: asyncpg.Connection, home: Home, workers: int, cameras_a_worker: int, credential_key: bytes
) -> None:
    """Cameras with a password, in the sites of the workers; nothing of control knows them yet."""
    count, now_ms = workers * cameras_a_worker, wall_time_ms()
    await connection.execute(
        f"""
        INSERT INTO cameras (tenant_id, site_id, camera_id, name, created_at, updated_at)
        SELECT $1, s.site_id, 'cam_' || n, 'Camera ' || n, $2, $2
        FROM generate_series(0, $3 - 1) n
        JOIN sites s ON s.name = 'site-' || (n / $4 / {WORKERS_A_SITE})""",
        home.tenant_id,
        now_ms,
        count,
        cameras_a_worker,
    )
    await connection.execute(
        """
        INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url)
        SELECT c.tenant_id, c.camera_key, k.kind, 'rtsp', 'rtsp://192.0.2.1:554/' || k.kind || '/' || c.camera_id
        FROM cameras c, (VALUES ('main'), ('sub')) AS k(kind)"""
    )
    rows = await connection.fetch("SELECT camera_key, camera_id FROM cameras")
    await connection.executemany(
        """
        INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6)""",
        [_credentials(row, home, credential_key, now_ms) for row in rows],
    )


def _credentials(row: asyncpg.Record, home: Home, key: bytes, now_ms: int) -> Sequence[object]:
    plain = json.dumps({"user": "viewer", "password": f"of {row['camera_id']}"}).encode()
    sealed = seal(key, home.tenant_id, row["camera_id"], plain)
    return row["camera_key"], home.tenant_id, sealed.key_id, sealed.nonce, sealed.ciphertext, now_ms


async def hold_all(connection: asyncpg.Connection, cameras_a_worker: int) -> None:
    """Every camera goes at generation 1, held by the worker whose number its own divides to; some were analyzed."""
    now_ms = wall_time_ms()
    await connection.execute(
        """
        INSERT INTO camera_sessions (camera_key, tenant_id, site_id, worker_key, generation, state, lease_expires_at,
          intent_id, acked_at, ready_at, credential_version, updated_at, load_cpu, load_mem)
        SELECT c.camera_key, c.tenant_id, c.site_id, w.worker_key, 1, 'ACTIVE', $1::bigint + $2::bigint,
          gen_random_uuid()::text, $1, $1, 1, $1, 0.02, 3e7
        FROM cameras c JOIN workers w
          ON w.worker_id = 'worker-' || (replace(c.camera_id, 'cam_', '')::int / $3)""",
        now_ms,
        LEASE_MS,
        cameras_a_worker,
    )
    await connection.execute(
        """
        INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at)
        SELECT camera_key, generation, tenant_id, worker_key, updated_at FROM camera_sessions"""
    )
    await connection.execute(
        """
        INSERT INTO camera_state (camera_key, tenant_id, last_analyzed_at, updated_at)
        SELECT camera_key, tenant_id, CASE WHEN camera_key % 10 = 0 THEN updated_at END, updated_at
        FROM camera_sessions"""
    )
