"""A whole fleet as real processes: cameras, workers, control, dispatcher, web, an analyzer that only answers, and
PostgreSQL as it is run in earnest. Each service is a process of its own, so what each takes can be told apart."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg

from bench._cameras import PASSWORD, USER, name_of
from bench._child import child
from bench._cpu import cpu_seconds
from bench._databases import Database
from camserver.base.secrets import Secret
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running

SERVICES = ("control", "dispatcher", "web")
PATIENCE_SEC = 180.0
# The analyzer answers at once: what a model costs is bench-analyzer's.
ANALYZER = {"parallel": 16, "took_ms": 0}


@dataclass(slots=True)
class Fleet:
    folder: Path
    database: Database
    url: str
    launcher: Launcher
    settings: dict[str, dict[str, object]]
    rows: asyncpg.Pool
    services: dict[str, Running] = field(default_factory=dict)
    workers: dict[str, Running] = field(default_factory=dict)

    @property
    def web_url(self) -> str:
        return f"http://{LOOPBACK}:{self.settings['web']['port']}"

    @property
    def api(self) -> LocalServer:
        return LocalServer(self.web_url, self.token_file)

    @property
    def token_file(self) -> Path:
        return self.folder / "secrets" / LOCAL_ADMIN_TOKEN

    def start(self, process: str, name: str, more: dict[str, dict[str, object]] | None = None) -> Running:
        data = {"data_dir": str(self.folder / name), "secrets_dir": str(self.folder / "secrets")}
        return self.launcher.camserver(process, settings={**self.settings, "server": data, **(more or {})})

    def start_worker(self, name: str, slots: int, site: str | None = None) -> Running:
        worker: dict[str, object] = {
            "name": name,
            "server_url": f"http://{LOOPBACK}:{self.settings['control']['port']}",
            "slots": slots,
            "allow_loopback": True,
        }
        if site is not None:
            worker["site_id"] = site
        self.workers[name] = self.start("worker", name, {"worker": worker})
        return self.workers[name]

    async def start_services(self) -> None:
        for name in SERVICES:
            self.services[name] = self.start(name, name)
            if name != "dispatcher":
                port = self.settings[name]["port"]
                await self.services[name].until_ready(f"http://{LOOPBACK}:{port}/readyz")

    async def add_cameras(self, port: int, numbers: Sequence[int], **values: object) -> None:
        for number in numbers:
            name = name_of(number)
            url = f"rtsp://{LOOPBACK}:{port}/{name}"
            await self.api.add_camera(name, name, url, USER, Secret(PASSWORD), **values)

    async def until_looked(self, cameras: int) -> None:
        """Until every camera was seen once: that look is due at once and not by the grid."""

        async def all_looked() -> bool:
            self.must_run()
            seen = "(SELECT DISTINCT camera_key FROM frames WHERE collector_status = 'ok') f"
            return await self.count(seen) >= cameras

        await poll_async(all_looked, f"a look at each of {cameras} cameras", PATIENCE_SEC)

    async def count(self, what: str, *args: object) -> int:
        return int(await self.rows.fetchval(f"SELECT count(*) FROM {what}", *args))

    def must_run(self) -> None:
        for running in (*self.services.values(), *self.workers.values()):
            if running.exit_code is not None:
                raise RuntimeError(f"{running.name} ended by itself:\n{running.output_tail()}")

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far: of each service, of the workers together, and of the database server."""
        server = self.database.server
        assert server is not None
        return {
            "look and gate (workers)": sum(cpu_seconds(worker.pid) for worker in self.workers.values()),
            "record (control)": cpu_seconds(self.services["control"].pid),
            "decide (dispatcher)": cpu_seconds(self.services["dispatcher"].pid),
            "show (web)": cpu_seconds(self.services["web"].pid),
            "database": cpu_seconds(server.process.pid),
        }


@asynccontextmanager
async def fleet(database: Database, more: dict[str, dict[str, object]]) -> AsyncIterator[Fleet]:
    """Services that run and are ready, without workers and cameras."""
    folder = database.folder / "fleet"
    folder.mkdir()
    launcher = Launcher(folder)
    port = free_port()
    url = database.url("fleet")
    settings: dict[str, dict[str, object]] = {
        "store": {"url": url},
        "objects": {"dir": str(folder / "objects")},
        "web": {"port": free_port()},
        "control": {"port": free_port()},
        "analyzer": {"url": f"http://{LOOPBACK}:{port}"},
        "log": {"level": "error", "format": "json"},
        **more,
    }
    with child("_dispatch_analyzer", port=port, **ANALYZER) as analyzer:
        await asyncio.to_thread(analyzer.hear)
        rows = await asyncpg.create_pool(url, min_size=1, max_size=4)
        try:
            made = Fleet(folder, database, url, launcher, settings, rows)
            await made.start_services()
            yield made
        finally:
            await launcher.close()
            await rows.close()


@asynccontextmanager
async def watched(made: Fleet, names: Sequence[str], interval_sec: float) -> AsyncIterator[None]:
    """Somebody has the wall open: of every camera the newest picture, once between two looks."""
    token = made.token_file.read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}

    async def watch() -> None:
        async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=4)) as session:
            pause_sec = interval_sec / max(len(names), 1)
            while True:
                for name in names:
                    began = time.monotonic()
                    async with session.get(f"{made.web_url}/api/cameras/{name}/latest.jpg") as answer:
                        await answer.read()
                    await asyncio.sleep(max(pause_sec - (time.monotonic() - began), 0))

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def add_sites(made: Fleet, names: Sequence[str]) -> None:
    for name in names:
        await made.rows.execute(
            "INSERT INTO sites (tenant_id, site_uuid, name, created_at) "
            "SELECT tenant_id, gen_random_uuid()::text, $1, created_at FROM tenants ORDER BY tenant_id LIMIT 1",
            name,
        )


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}
