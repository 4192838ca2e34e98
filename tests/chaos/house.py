"""A house under test: every service as a real process on one database, cameras that show scenes, a network that can
be cut. It starts, kills and starts again; when and what is somebody else's to say.

On SQLite one `server` process owns the file; on PostgreSQL and MariaDB every service runs alone, with two
dispatchers. Two workers reach control through a proxy each.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.company import JOBS, Company, is_worker
from tests.chaos.feed_reader import FeedReader
from tests.chaos.plan import DATABASE, WORKERS, WRITER, Loss
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.cutter import Cutter
from tests.rig.databases import DatabaseServer
from tests.rig.ports import LOOPBACK
from tests.rig.processes import Settings

CAMERAS = 16
INTERVAL_SEC = 1.0  # the shortest the product allows
PROCESSES = {
    "sqlite": ("server", *WORKERS),
    "postgres": ("control", "web", "dispatcher-a", "dispatcher-b", *WORKERS),
    "mariadb": ("control", "web", "dispatcher-a", "dispatcher-b", *WORKERS),
}
POLICIES: Settings = {
    "jobs": JOBS,
    "events": {"merge_gap_sec": 2, "close_grace_sec": 5},
}


class House(Company):
    """`async with House(...)` starts everything; leaving it stops everything and fails when a process is left."""

    def __init__(self, kind: str, url: str, folder: Path, server: DatabaseServer | None = None) -> None:
        super().__init__(kind, url, folder, server)
        self.members = PROCESSES[kind]
        self.nets: dict[str, Cutter] = {}
        self.feed: FeedReader | None = None
        self._control = "server" if kind == "sqlite" else "control"
        self._analyzer_url = ""

    async def _open(self) -> None:
        await super()._open()
        analyzer = await RemoteAnalyzer.start(self.launcher, self.folder / "vocabulary.json")
        self._analyzer_url = analyzer.url
        for worker in WORKERS:
            self.nets[worker] = await self._stack.enter_async_context(Cutter(self.ports[self._control]))
        # The first one makes the tables and the secrets.
        for first in [name for name in ("server", "control", "web") if name in self.members]:
            self.start(first)
            await self.until_ready(first)
        for name in self.members:
            if name not in self.running:
                self.start(name)
        await self._add_cameras()
        self.feed = FeedReader(self.web_url, self.secrets)
        self.read_on(self.feed)

    async def _add_cameras(self) -> None:
        pictures = self.draw_pictures()
        for number in range(CAMERAS):
            source = {"url": f"file://{pictures}"}
            body = {"camera_id": f"cam_{number:02d}", "name": f"camera {number}", "source": source}
            await self.call("POST", "/api/cameras", {**body, "polling_interval_sec": INTERVAL_SEC})

    # Processes -------------------------------------------------------------------------------------------------

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        data = self.folder / ("server" if self.kind == "sqlite" and not is_worker(name) else name)
        settings = self._common(data, self._control)
        settings |= {section: dict(values) for section, values in POLICIES.items()}
        settings["analyzer"] = {"url": self._analyzer_url}
        if is_worker(name):
            server_url = f"http://{LOOPBACK}:{self.nets[name].port}"
            settings["worker"] = {"name": name, "server_url": server_url, "slots": CAMERAS, **worker}
        else:
            settings["store"] = {"url": self.url}
        return settings

    def kill(self, name: str, by: signal.Signals = signal.SIGKILL) -> None:
        """kill -9 of one process. Of the database's own, or of SQLite's writer, it is the process that dies, too."""
        if name == DATABASE:
            assert self.server is not None
            self.server.crash()
        elif name == WRITER:
            self._kill_writer()
        elif name in self.running:
            super().kill(name, by)

    def _kill_writer(self) -> None:
        server = self.running.get("server")
        if server is None:
            return
        for pid in _children(server.pid):
            command = Path(f"/proc/{pid}/cmdline")
            if command.exists() and b"sqlite_writer" in command.read_bytes():
                os.kill(pid, signal.SIGKILL)

    async def revive(self, name: str) -> None:
        """Brings back what `kill` ended. The server starts its writer again by itself."""
        if name == DATABASE:
            assert self.server is not None
            await asyncio.to_thread(self.server.start)
        elif name != WRITER and name not in self.running:
            self.start(name)

    # The network -----------------------------------------------------------------------------------------------

    def cut_off(self, worker: str, loss: Loss) -> None:
        net = self.nets[worker]
        if loss is Loss.HELD:
            net.hold()
        elif loss is Loss.SWALLOWED:
            net.swallow()
        else:
            net.refuse()
            net.cut()

    async def heal(self, worker: str, loss: Loss) -> None:
        net = self.nets[worker]
        net.heal()
        await net.accept()
        if loss is Loss.SWALLOWED:
            net.cut()  # streams that lost bytes make no sense any more


def _children(pid: int) -> list[int]:
    """The processes that this one started, by any of its threads."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in task.read_text().split()]
    return found
