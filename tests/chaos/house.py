"""A house under test: every service as a real process on one database, cameras that show scenes, a network that can
be cut. It starts, kills and starts again; when and what is somebody else's to say.

On SQLite one `server` process owns the file; on PostgreSQL and MariaDB every service runs alone, with two
dispatchers. Two workers reach control through a proxy each.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN, SECRET_FILES
from tests.chaos.feed_reader import FeedReader
from tests.chaos.ledger import Ledger
from tests.chaos.plan import DATABASE, WORKERS, WRITER, Loss
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.cutter import Cutter
from tests.rig.databases import DatabaseServer
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running, Settings

CAMERAS = 16
INTERVAL_SEC = 1.0  # the shortest the product allows
# What the cameras see one after the other (tests.fakes.analyzer.answers.SCENES). Of two equal ones in a row the
# second is a quiet look: it leaves a frame and no job.
SCENES = (0, 1, 1, 4, 3, 3, 5, 7, 0, 2)
PROCESSES = {
    "sqlite": ("server", *WORKERS),
    "postgres": ("control", "web", "dispatcher-a", "dispatcher-b", *WORKERS),
    "mariadb": ("control", "web", "dispatcher-a", "dispatcher-b", *WORKERS),
}
# Reaching it means that it will never happen, on however slow a machine.
PROGRESS_TIMEOUT_SEC = 120.0
POLICIES: Settings = {
    # As short as the settings allow, so that hand-overs happen within the run.
    "leases": {
        "ttl_sec": 10,
        "heartbeat_sec": 1,
        "margin_sec": 1,
        "restart_grace_sec": 2,
        "retry_elsewhere_sec": 1,
        "camera_retry_cap_sec": 2,
    },
    # Whoever is killed again and again is not the job's fault, so neither attempts nor bounds may end one.
    "jobs": {
        "lock_sec": 5,
        "renew_every_sec": 1,
        "max_attempt": 100,
        "camera_bound": 100_000,
        "backoff_base_sec": 0.1,
        "backoff_cap_sec": 1,
        "breaker_open_sec": 0.2,
        "breaker_open_cap_sec": 1,
    },
    "events": {"merge_gap_sec": 2, "close_grace_sec": 5},
    "gate": {"rule": "threshold"},
    "log": {"level": "debug", "format": "json"},
}


@dataclass(slots=True)
class Member:
    """One process of the house, over all its lives."""

    name: str
    running: Running | None = None
    kills: int = 0
    lives: list[Running] = field(default_factory=list)


class House:
    """`async with House(...)` starts everything; leaving it stops everything and fails when a process is left."""

    def __init__(self, kind: str, url: str, folder: Path, server: DatabaseServer | None = None) -> None:
        self.kind = kind
        self.url = url
        self.folder = folder
        self.server = server
        self.launcher = Launcher(folder)
        self.objects = folder / "objects"
        self.secrets = folder / "secrets"
        self.members = {name: Member(name) for name in PROCESSES[kind]}
        self.nets: dict[str, Cutter] = {}
        self.ledger = Ledger()
        self.web_url = ""
        self.feed: FeedReader | None = None
        # Processes that gave up because the database was away, and were started again as a service manager does.
        self.came_back = 0
        self._ports = {"web": 0, "control": 0}
        self._analyzer_url = ""
        self._stack = AsyncExitStack()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "House":
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        self._stack.push_async_callback(self.launcher.close)
        analyzer = await RemoteAnalyzer.start(self.launcher, self.folder / "vocabulary.json")
        self._analyzer_url = analyzer.url
        self._ports = {"web": free_port(), "control": free_port()}
        self.web_url = f"http://{LOOPBACK}:{self._ports['web']}"
        for worker in WORKERS:
            self.nets[worker] = await self._stack.enter_async_context(Cutter(self._ports["control"]))
        # The first one makes the tables and the secrets.
        for first in [name for name in ("server", "control", "web") if name in self.members]:
            self.start(first)
            await self.until_ready(first)
        for name, member in self.members.items():
            if member.running is None:
                self.start(name)
        await self._add_cameras()
        self.feed = FeedReader(self.web_url, self.secrets)
        self._reading = asyncio.create_task(self.feed.run())
        self._stack.push_async_callback(self.stop_reading)

    async def stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _add_cameras(self) -> None:
        pictures = self.folder / "pictures"
        pictures.mkdir()
        for number, scene in enumerate(SCENES):
            (pictures / f"{number:02d}.jpg").write_bytes(jpeg(scene=scene, size=(160, 120)))
        api = LocalServer(self.web_url, self.secrets / LOCAL_ADMIN_TOKEN)
        for number in range(CAMERAS):
            source = {"url": f"file://{pictures}"}
            body = {"camera_id": f"cam_{number:02d}", "name": f"camera {number}", "source": source}
            await api._call("POST", "/api/cameras", {**body, "polling_interval_sec": INTERVAL_SEC})

    # Processes -------------------------------------------------------------------------------------------------

    def start(self, name: str, slots: int = CAMERAS) -> None:
        """Starts a process; `slots` is how many cameras a worker takes."""
        member = self.members[name]
        running = self.launcher.camserver(name.partition("-")[0], settings=self._settings(name, slots))
        member.running = running
        member.lives.append(running)
        if name in WORKERS:
            self.ledger.follow(name, running.stderr_path)

    def _settings(self, name: str, slots: int) -> Settings:
        data = self.folder / ("server" if self.kind == "sqlite" and name not in WORKERS else name)
        settings: dict[str, dict[str, object]] = {section: dict(values) for section, values in POLICIES.items()}
        settings["server"] = {"data_dir": str(data), "secrets_dir": str(self.secrets)}
        settings["objects"] = {"dir": str(self.objects)}
        settings["web"] = {"port": self._ports["web"]}
        settings["control"] = {"port": self._ports["control"]}
        settings["analyzer"] = {"url": self._analyzer_url}
        if name in WORKERS:
            server_url = f"http://{LOOPBACK}:{self.nets[name].port}"
            settings["worker"] = {"name": name, "server_url": server_url, "slots": slots}
        else:
            settings["store"] = {"url": self.url}
        return settings

    async def until_ready(self, name: str) -> None:
        running = self.members[name].running
        assert running is not None
        port = self._ports["control" if name in ("server", "control") else "web"]
        await running.until_ready(f"http://{LOOPBACK}:{port}/readyz")

    def kill(self, name: str) -> None:
        """kill -9 of one process. Of the database's own, or of SQLite's writer, it is the process that dies, too."""
        if name == DATABASE:
            assert self.server is not None
            self.server.crash()
        elif name == WRITER:
            self._kill_writer()
        else:
            member = self.members[name]
            if member.running is not None:
                member.running.kill()
                member.running = None
                member.kills += 1

    def _kill_writer(self) -> None:
        server = self.members["server"].running
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
        elif name != WRITER and self.members[name].running is None:
            self.start(name)

    async def stop(self, name: str) -> None:
        """SIGTERM; a process that did not end as asked and by its own deadline fails the run."""
        member = self.members[name]
        if member.running is None:
            return
        running, member.running = member.running, None
        code = await running.stop()
        # A process that was still being loaded when the signal came has nothing to put down.
        had_begun = any(line.get("event") == "service starts" for line in running.log())
        if code != Exit.OK and (code != -signal.SIGTERM or had_begun):
            raise AssertionError(
                f"{running.name} ended with {code} when it was told to stop:\n{running.output_tail()}"
            )

    def tend(self) -> None:
        """Starts again who gave up because the database was away. Any other end by itself fails the run."""
        for name, member in self.members.items():
            if member.running is None or member.running.exit_code is None:
                continue
            ended, member.running = member.running, None
            if ended.exit_code != Exit.STORE_AWAY:
                raise AssertionError(
                    f"{ended.name} ended by itself with {ended.exit_code}; its output ends with:\n"
                    f"{ended.output_tail()}"
                )
            self.came_back += 1
            self.start(name)

    async def until(
        self, condition: Callable[[], bool], what: str, timeout_sec: float = PROGRESS_TIMEOUT_SEC
    ) -> None:
        """Waits for something of the outside world, while the house is looked after."""

        async def probe() -> bool:
            self.tend()
            return condition()

        await poll_async(probe, what, timeout_sec)

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

    # The end ---------------------------------------------------------------------------------------------------

    def spooled(self, worker: str) -> set[str]:
        """The looks that wait on a worker's disk."""
        return {path.name for path in (self.folder / worker / "spool" / "looks").glob("*.look")}

    def set_aside(self, worker: str) -> list[str]:
        """Looks that the server refused for good."""
        return sorted(path.name for path in (self.folder / worker / "spool" / "refused").glob("*"))

    async def unfinished_jobs(self) -> int:
        api = LocalServer(self.web_url, self.secrets / LOCAL_ADMIN_TOKEN)
        status = await api._call("GET", "/api/system/status")
        return sum(int(count) for count in status["unfinished_jobs"].values())

    @property
    def worker_kills(self) -> int:
        return sum(self.members[worker].kills for worker in WORKERS)

    def leaked_secrets(self) -> list[str]:
        """Output files in which the value of a secret stands."""
        values = [(self.secrets / name).read_bytes().strip() for name in SECRET_FILES]
        if self.server is not None:
            values.append(self.server.password.encode())
        outputs = [path for member in self.members.values() for life in member.lives
                   for path in (life.stdout_path, life.stderr_path)]  # fmt: skip
        return [path.name for path in outputs if any(value in path.read_bytes() for value in values)]


def _children(pid: int) -> list[int]:
    """The processes that this one started, by any of its threads."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in task.read_text().split()]
    return found
