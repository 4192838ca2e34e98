"""Control as its own process on a database, and simulated workers in another: renewing, and a start storm."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from bench._child import Child, child
from bench._control_rows import add_cameras, add_workers, hold_all
from bench._control_storm_rows import Rows, SqliteShell, storm_cameras, storm_counts, storm_workers
from bench._cpu import CpuUsed, cpu_seconds
from bench._databases import Database
from bench._report import say
from camserver.base.clock import wall_time_ms
from camserver.config import load, make_secrets
from camserver.store import open_store
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.first_start import Home, prepare_store
from camserver.store.sql import Dialect
from tests.rig.ports import free_port
from tests.rig.processes import REPOSITORY, Launcher, Running

HEARTBEAT_SEC = 10.0
CAMERAS = 10  # of a worker
SLOTS = 12
CONNECT_AT_ONCE = 64
STORM_LIMIT_SEC = 120.0
STORM_POLL_SEC = 0.05


@dataclass(frozen=True, slots=True)
class Talk:
    """What was said within a time, and what it cost. `cpu` are cores: of control, and of PostgreSQL."""

    messages_per_sec: float  # in both directions
    leases_per_sec: float
    p50_ms: float
    p99_ms: float
    cpu: CpuUsed
    memory_mb: float  # of control

    @property
    def cpu_ms_a_heartbeat(self) -> float:
        return self.cpu.client * 2000 / self.messages_per_sec


@dataclass(frozen=True, slots=True)
class Storm:
    """Seconds from the moment the cameras were there, and CPU seconds meanwhile."""

    assigned_sec: float
    acknowledged_sec: float
    active_sec: float
    cpu: CpuUsed


@dataclass(frozen=True, slots=True)
class Server:
    """A program that workers connect to, and its database if it has one."""

    running: Running
    port: int
    token: str
    database: Database | None = None

    def cpu(self) -> CpuUsed:
        server = None if self.database is None else self.database.server
        return CpuUsed(cpu_seconds(self.running.pid), 0.0 if server is None else cpu_seconds(server.process.pid))

    def memory_mb(self) -> float:
        return float(psutil.Process(self.running.pid).memory_info().rss) / 1e6


class Fleet:
    """Simulated workers, in a process of their own."""

    def __init__(self, crew: Child) -> None:
        self._crew = crew

    async def do(self, **told: Any) -> dict[str, float]:
        self._crew.tell(json.dumps(told))
        answer: dict[str, float] = json.loads(await asyncio.to_thread(self._crew.hear))
        return answer


@contextmanager
def fleet(server: Server, workers: int, cameras: int) -> Iterator[Fleet]:
    with child(
        "_control_workers",
        port=server.port,
        token=server.token,
        workers=workers,
        first=0,
        cameras=cameras,
        slots=SLOTS,
    ) as crew:
        yield Fleet(crew)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def rows_of(url: str) -> AsyncIterator[Rows]:
    if dialect_of(url) is Dialect.SQLITE:
        shell = SqliteShell(str(sqlite_path(url)))
        yield shell
        shell.connection.close()
        return
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def launched(folder: Path) -> AsyncIterator[Launcher]:
    launcher = Launcher(folder)
    try:
        yield launcher
    finally:
        await launcher.close()


async def prepared(url: str) -> Home:
    """Makes the tables, and the tenant that the workers' token belongs to."""
    store = await open_store(url)
    try:
        return await prepare_store(store, load(None, {}).vocabulary.schema_version, wall_time_ms())
    finally:
        await store.close()


async def start_control(launcher: Launcher, database: Database, url: str) -> tuple[Server, bytes]:
    """The running process, and the key that its cameras' passwords are to be sealed with."""
    port, data = free_port(), launcher.folder / "data"
    settings = load(None, {}, data_dir=data)
    secrets = make_secrets(settings)
    running = launcher.camserver(
        "control",
        settings={"server": {"data_dir": str(data)}, "store": {"url": url}, "control": {"port": port}},
        env=_paths(),
    )
    await running.until_ready(f"http://127.0.0.1:{port}/readyz")
    return Server(running, port, secrets.worker_token.reveal(), database), secrets.credential_key_bytes()


async def start_bare(launcher: Launcher) -> Server:
    port = free_port()
    running = launcher.start("bare", [sys.executable, "-m", "bench._control_bare", str(port)], _paths())
    await running.until_ready(f"http://127.0.0.1:{port}/healthz")
    return Server(running, port, "")


def _paths() -> dict[str, str]:
    """The processes use the same sources as this one."""
    return {"PYTHONPATH": os.environ.get("PYTHONPATH", str(REPOSITORY))}


# Renewing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Renewing:
    """`steady`: each worker every ten seconds. `flood`: some of them as fast as they are answered."""

    connect_sec: float
    connect_cpu: CpuUsed
    memory_kb_a_worker: float
    steady: Talk
    flood: Talk


async def renew_ours(
    database: Database, folder: Path, workers: int, measure_sec: float, flood_sec: float
) -> Renewing:
    url = database.url("renewing")
    home = await prepared(url)
    async with launched(folder) as launcher:
        secrets = make_secrets(load(None, {}, data_dir=folder / "data"))
        async with connected(url) as connection:
            await add_workers(connection, home, workers, SLOTS)
            await add_cameras(connection, home, workers, CAMERAS, secrets.credential_key_bytes())
            await hold_all(connection, CAMERAS)
            await connection.execute("VACUUM ANALYZE")
        server, _ = await start_control(launcher, database, url)
        return await _renewing(server, workers, measure_sec, flood_sec)


async def renew_bare(folder: Path, workers: int, measure_sec: float, flood_sec: float) -> Renewing:
    async with launched(folder) as launcher:
        return await _renewing(await start_bare(launcher), workers, measure_sec, flood_sec)


async def _renewing(server: Server, workers: int, measure_sec: float, flood_sec: float) -> Renewing:
    with fleet(server, workers, CAMERAS) as crew:
        before_mb, before, begin = server.memory_mb(), server.cpu(), time.perf_counter()
        await crew.do(do="connect", at_once=CONNECT_AT_ONCE)
        connect_sec, connect_cpu = time.perf_counter() - begin, server.cpu() - before
        say(f"{workers:,} workers connected in {connect_sec:.1f} s")
        await crew.do(do="beat", every_sec=HEARTBEAT_SEC)
        # Every worker has renewed once before anything counts.
        await asyncio.sleep(HEARTBEAT_SEC)
        steady = await _talk(server, crew, do="count", for_sec=measure_sec)
        memory_kb = (server.memory_mb() - before_mb) * 1000 / workers
        flood = await _talk(server, crew, do="flood", for_sec=flood_sec, lanes=min(workers, 256))
    return Renewing(connect_sec, connect_cpu, memory_kb, steady, flood)


async def _talk(server: Server, crew: Fleet, **told: Any) -> Talk:
    before, begin = server.cpu(), time.perf_counter()
    found = await crew.do(**told)
    used, took = server.cpu() - before, time.perf_counter() - begin
    if found["lost"] or found["refused"] or found["ended"]:
        raise RuntimeError(f"not every lease was renewed: {found}")
    return Talk(
        messages_per_sec=(found["said"] + found["heard"]) / found["took_sec"],
        leases_per_sec=found["renewed"] / found["took_sec"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
        cpu=CpuUsed(used.client / took, used.server / took),
        memory_mb=server.memory_mb(),
    )


# A start storm -------------------------------------------------------------------------------------------------


async def storm(database: Database, folder: Path, name: str, cameras: int) -> Storm:
    """All workers are connected and idle; then all cameras are there at once."""
    workers = cameras // CAMERAS
    url = database.url(name)
    home = await prepared(url)
    async with launched(folder) as launcher, rows_of(url) as store:
        await store.write(storm_workers, home, workers, SLOTS, wall_time_ms())
        server, credential_key = await start_control(launcher, database, url)
        with fleet(server, workers, cameras=0) as crew:
            await crew.do(do="connect", at_once=CONNECT_AT_ONCE)
            await crew.do(do="beat", every_sec=HEARTBEAT_SEC)
            await store.write(storm_cameras, home, cameras, CAMERAS, credential_key, wall_time_ms())
            return await _until_active(server, store, cameras)


async def _until_active(server: Server, store: Rows, cameras: int) -> Storm:
    before, begin = server.cpu(), time.perf_counter()
    seen: dict[str, float] = {}
    while "active" not in seen:
        await asyncio.sleep(STORM_POLL_SEC)
        counts = await store.read(storm_counts)
        now = time.perf_counter() - begin
        for name, count in counts.items():
            if count == cameras:
                seen.setdefault(name, now)
        if now > STORM_LIMIT_SEC:
            raise RuntimeError(f"after {now:.0f} s of {cameras} cameras: {counts}")
    return Storm(seen["assigned"], seen["acknowledged"], seen["active"], server.cpu() - before)
