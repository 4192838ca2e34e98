"""The rows of a start storm, made and counted beside the running control, on any database."""

import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import uuid_utils

from bench._control_rows import WORKERS_A_SITE, site_of
from camserver.base.credentials import seal
from camserver.store.first_start import Home
from camserver.store.sqlite_tx import SqliteTx, connect
from camserver.store.tx import Tx, drive

P = ParamSpec("P")
R = TypeVar("R")
Operation = Callable[Concatenate[Tx, P], Coroutine[Any, Any, R]]


class Rows(Protocol):
    """What a store does, or the like."""

    def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]: ...

    def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]: ...


class SqliteShell:
    """A file that a server has open, used as people do with SQLite's own shell: no second store may own it."""

    def __init__(self, path: str) -> None:
        self.connection: sqlite3.Connection = connect(path)

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return drive(operation(SqliteTx(self.connection), *args, **kwargs))

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        self.connection.execute("BEGIN IMMEDIATE")
        result = await self.read(operation, *args, **kwargs)
        self.connection.execute("COMMIT")
        return result


async def storm_workers(tx: Tx, home: Home, workers: int, slots: int, now_ms: int) -> None:
    """So many workers, none of them connected yet, in as many sites as they fill."""
    for first in range(0, workers, WORKERS_A_SITE):
        site_id = await tx.insert(
            """
            INSERT INTO sites (tenant_id, site_uuid, name, created_at)
            VALUES (:tenant_id, :uuid, :name, :now_ms) RETURNING site_id""",
            tenant_id=home.tenant_id,
            uuid=str(uuid_utils.uuid7()),
            name=site_of(first),
            now_ms=now_ms,
        )
        await tx.many(
            """
            INSERT INTO workers (tenant_id, site_id, worker_id, capacity, last_seen_at, created_at)
            VALUES (:tenant_id, :site_id, :worker_id, :capacity, :now_ms, :now_ms)""",
            [
                {
                    "tenant_id": home.tenant_id,
                    "site_id": site_id,
                    "worker_id": f"worker-{number}",
                    "capacity": json.dumps({"slots": slots, "cpu": 4, "gpu": 0, "mem": 8e9}),
                    "now_ms": now_ms,
                }
                for number in range(first, min(first + WORKERS_A_SITE, workers))
            ],
        )


async def storm_cameras(tx: Tx, home: Home, cameras: int, cameras_a_worker: int, key: bytes, now_ms: int) -> None:
    """Cameras with a password, in the sites of the workers, all in one transaction; control knows nothing of them."""
    sites = {row["name"]: row["site_id"] for row in await tx.all("SELECT site_id, name FROM sites")}
    await tx.many(
        """
        INSERT INTO cameras (tenant_id, site_id, camera_id, name, created_at, updated_at)
        VALUES (:tenant_id, :site_id, :camera_id, :camera_id, :now_ms, :now_ms)""",
        [
            {
                "tenant_id": home.tenant_id,
                "site_id": sites[site_of(number // cameras_a_worker)],
                "camera_id": f"cam_{number}",
                "now_ms": now_ms,
            }
            for number in range(cameras)
        ],
    )
    rows = await tx.all("SELECT camera_key, camera_id FROM cameras ORDER BY camera_key")
    await tx.many(
        """
        INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url)
        VALUES (:tenant_id, :camera_key, :kind, 'rtsp', :url)""",
        [
            {
                "tenant_id": home.tenant_id,
                "camera_key": row["camera_key"],
                "kind": kind,
                "url": f"rtsp://192.0.2.1:554/{kind}/{row['camera_id']}",
            }
            for row in rows
            for kind in ("main", "sub")
        ],
    )
    await tx.many(
        """
        INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at)
        VALUES (:camera_key, :tenant_id, :key_id, :nonce, :ciphertext, :now_ms)""",
        [_credentials(row["camera_key"], row["camera_id"], home.tenant_id, key, now_ms) for row in rows],
    )


def _credentials(camera_key: int, camera_id: str, tenant_id: int, key: bytes, now_ms: int) -> dict[str, object]:
    plain = json.dumps({"user": "viewer", "password": f"of {camera_id}"}).encode()
    sealed = seal(key, tenant_id, camera_id, plain)
    return {
        "camera_key": camera_key,
        "tenant_id": tenant_id,
        "key_id": sealed.key_id,
        "nonce": sealed.nonce,
        "ciphertext": sealed.ciphertext,
        "now_ms": now_ms,
    }


async def storm_counts(tx: Tx) -> dict[str, int]:
    """How far the sessions are."""
    row = await tx.one(
        """
        SELECT count(worker_key) AS assigned, count(acked_at) AS acknowledged,
          COALESCE(sum(CASE WHEN state = 'ACTIVE' THEN 1 ELSE 0 END), 0) AS active
        FROM camera_sessions"""
    )
    assert row is not None
    return {name: int(row[name]) for name in ("assigned", "acknowledged", "active")}
