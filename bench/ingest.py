"""Acknowledged looks a second with a 50 kB picture on each database, and the server's memory.

The real server in a process of its own, fed by a worker that speaks the real protocol. Beside it, as the limit, a
bare upload route on the same HTTP server that syncs the same bytes to a file and inserts one row.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import psutil
import uvloop

from bench._cpu import cpu_seconds
from bench._databases import Database, database
from bench._ingest_worker import Worker
from bench._report import QUICK, Row, figure, more_is_better, report, say
from camserver.clients.local_server import LocalServer
from tests.rig.ports import free_port
from tests.rig.processes import Launcher

PICTURE = os.urandom(50_000)
CAMERAS = 64
LANES = 16
MEASURE_SEC = 3.0 if QUICK else 15.0
WARM_SEC = 1.0 if QUICK else 3.0
# A share of what a bare route reaches: ours also checks, fences, numbers, queues a job and writes the feed.
AIM = 0.25

Send = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Figures:
    looks_per_sec: float
    cpu_ms: float  # of the server's processes, a look
    memory_mb: float


async def measure(server_pid: int, send: Send) -> Figures:
    """Sends on `LANES` connections at once; what counts is what was acknowledged within the time."""
    await _drive(send, WARM_SEC)
    before = cpu_seconds(server_pid)
    started = time.perf_counter()
    done = await _drive(send, MEASURE_SEC)
    took = time.perf_counter() - started
    return Figures(done / took, (cpu_seconds(server_pid) - before) / done * 1000, _memory_mb(server_pid))


async def _drive(send: Send, seconds: float) -> int:
    deadline = time.perf_counter() + seconds

    async def lane(number: int) -> int:
        count = 0
        while time.perf_counter() < deadline:
            await send(number)
            count += 1
        return count

    return sum(await asyncio.gather(*(lane(number) for number in range(LANES))))


def _memory_mb(pid: int) -> float:
    process = psutil.Process(pid)
    return float(sum(one.memory_info().rss for one in [process, *process.children(recursive=True)])) / 1e6


async def measure_ours(base: Database, launcher: Launcher) -> Figures:
    web, control = free_port(), free_port()
    data = base.folder / "data"
    settings: dict[str, dict[str, object]] = {
        "server": {"data_dir": str(data)},
        "store": {"url": base.url("ours")},
        "web": {"port": web},
        "control": {"port": control},
        "log": {"level": "error"},
    }
    server = launcher.camserver("server", settings=settings)
    address = f"http://127.0.0.1:{web}"
    await server.until_ready(f"{address}/readyz")
    api = LocalServer(address, data / "secrets" / "local_admin_token")
    for number in range(CAMERAS):
        await api.add_camera(f"cam_{number}", f"cam_{number}", "test://still", None, None)
    token = (data / "secrets" / "worker_token").read_text().strip()
    async with Worker(f"http://127.0.0.1:{control}", token, CAMERAS, PICTURE) as worker:
        found = await measure(server.pid, lambda lane: worker.send(lane, LANES))
    await server.stop()
    return found


async def measure_bare(base: Database, launcher: Launcher) -> Figures:
    port, folder = free_port(), base.folder / "bare"
    folder.mkdir()
    argv = [sys.executable, "-m", "bench._ingest_bare", base.url("bare"), str(folder), str(port)]
    server = launcher.start("bare", argv)
    await server.until_ready(f"http://127.0.0.1:{port}/healthz")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send(_: int) -> None:
            async with session.post(f"http://127.0.0.1:{port}/looks", data=PICTURE) as answer:
                await answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"the bare route answered {answer.status}")

        found = await measure(server.pid, send)
    await server.stop()
    return found


async def main() -> None:
    rows: list[Row] = []
    for name in ("SQLite", "PostgreSQL", "MariaDB"):
        with database(name) as base:
            folder = base.folder / "processes"
            folder.mkdir()
            launcher = Launcher(folder)
            try:
                ours, bare = await measure_ours(base, launcher), await measure_bare(base, launcher)
            finally:
                await launcher.close()
        say(f"{name}: {ours.looks_per_sec:,.0f} looks/s, bare {bare.looks_per_sec:,.0f}")
        rows.append(
            more_is_better(
                f"{name}, acknowledged looks", ours.looks_per_sec, bare.looks_per_sec, "a bare route", "looks/s", AIM
            )
        )
        rows.append(figure(f"{name}, CPU of the server's processes", ours.cpu_ms, "ms/look"))
        rows.append(figure(f"{name}, memory of the server's processes", ours.memory_mb, "MB"))
    report("ingest", rows)


if __name__ == "__main__":
    uvloop.run(main())
