"""Delegation with real processes: servers on one database, workers behind a proxy each, simulated RTSP cameras.

Leases are as short as the settings allow, so that they run out within a test. What is seen is seen as operators see
it: by `GET /api/leases`, by logs, and by the rows that are left at the end.
"""

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from camserver.base.errors import CamError
from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from camserver.store import open_store
from tests.chaos import checker
from tests.chaos.checker import Evidence
from tests.chaos.ledger import Ledger
from tests.chaos.records import Records, fetch
from tests.rig.cutter import Cutter
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running, Settings
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.video_files import video_file

CAMERAS = ("cam_1", "cam_2", "cam_3")
# Reaching it means that it will never happen, on however slow a machine.
PATIENCE_SEC = 180.0
TTL_SEC = 10
STOP_ATTEMPTS_MAX = 5
LEASES: Mapping[str, object] = {
    "ttl_sec": TTL_SEC,
    "heartbeat_sec": 1,
    "margin_sec": 1,
    "restart_grace_sec": 2,
    "retry_elsewhere_sec": 1,
    "camera_retry_cap_sec": 1,
    "auth_retry_sec": 1,
    "auth_retry_cap_sec": 1,
}
# SQLite has one process that owns the file; elsewhere there are two of control, and workers may be at either.
SERVERS = {"sqlite": ("server",), "postgres": ("control-a", "control-b", "web"),
           "mariadb": ("control-a", "control-b", "web")}  # fmt: skip
# What delegation promises, of all that the checker knows.
PROMISES = (
    checker.acknowledged_looks_are_rows,
    checker.looks_are_counted_once,
    checker.holes_are_recorded,
    checker.leases_do_not_overlap,
    checker.frames_are_of_their_lease,
    checker.owners_never_interleave,
)

Lease = dict[str, Any]


class Grounds:
    """`async with Grounds(...)` starts the servers and the cameras; workers come when they are told to."""

    def __init__(self, kind: str, url: str, folder: Path, **leases: object) -> None:
        self.kind = kind
        self.url = url
        self.folder = folder
        self.launcher = Launcher(folder)
        self.objects = folder / "objects"
        self.secrets = folder / "secrets"
        self.running: dict[str, Running] = {}
        self.lives: list[tuple[str, Running]] = []
        self.nets: dict[str, Cutter] = {}
        self.ledger = Ledger()
        self.kills = 0
        self.env: dict[str, dict[str, str]] = {}  # of a process, beside the usual
        self.within: dict[str, tuple[str, ...]] = {}  # a command that runs the process
        self.server_urls: dict[str, str] = {}  # of workers that have no proxy
        self.camera_socket: socket.socket | None = None  # where the cameras listen; None: any port on loopback
        self.ports = {name: free_port() for name in ("web", "server", "control-a", "control-b")}
        self._leases = {**LEASES, **leases}
        self._stack = AsyncExitStack()
        self._simulator: Simulator | None = None

    async def __aenter__(self) -> "Grounds":
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
        video = video_file(self.folder / "cam.mp4", seconds=1, keyframes_apart=5, bf="0", size=(160, 96))
        asked = [CameraAsked(name, str(video)) for name in CAMERAS]
        self._simulator = await self._stack.enter_async_context(
            simulated(self.folder / "cache", *asked, sock=self.camera_socket)
        )
        for name in SERVERS[self.kind]:
            self.start(name)
            await self.until_ready(name)

    # Processes -------------------------------------------------------------------------------------------------

    def start(self, name: str, **worker: object) -> Running:
        """Starts a server or a worker, of which `worker` are settings."""
        command = name.partition("-")[0]
        running = self.launcher.camserver(
            command,
            settings=self._settings(name, worker),
            env=self.env.get(name),
            within=self.within.get(name, ()),
        )
        self.running[name] = running
        self.lives.append((name, running))
        if command == "worker":
            self.ledger.follow(name, running.stderr_path)
        return running

    async def worker(self, name: str, control: str | None = None, **settings: object) -> Running:
        """Starts a worker behind a proxy of its own, in front of that control process, and waits until it is in."""
        if name not in self.nets and name not in self.server_urls:
            at = control or ("server" if self.kind == "sqlite" else "control-a")
            self.nets[name] = await self._stack.enter_async_context(Cutter(self.ports[at]))
        running = self.start(name, **settings)
        await running.until_logged("registered", PATIENCE_SEC)
        return running

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        data = self.folder / (name if name not in SERVERS[self.kind] else "server")
        control = name if name in ("control-a", "control-b") else "server"
        settings: dict[str, dict[str, object]] = {
            "server": {"data_dir": str(data), "secrets_dir": str(self.secrets)},
            "objects": {"dir": str(self.objects)},
            "web": {"port": self.ports["web"]},
            "control": {"port": self.ports[control]},
            # Nobody analyzes here: jobs wait.
            "analyzer": {"url": f"http://{LOOPBACK}:1"},
            "leases": dict(self._leases),
            "gate": {"rule": "threshold"},
            "log": {"level": "debug", "format": "json"},
        }
        if name.startswith("worker"):
            url = self.server_urls.get(name) or f"http://{LOOPBACK}:{self.nets[name].port}"
            at = {"name": name, "server_url": url}
            settings["worker"] = {**at, "allow_loopback": True, **worker}
        else:
            settings["store"] = {"url": self.url}
        return settings

    async def until_ready(self, name: str) -> None:
        await self.running[name].until_ready(f"http://{LOOPBACK}:{self.ports[name]}/readyz", PATIENCE_SEC)

    def kill(self, name: str, by: signal.Signals = signal.SIGKILL) -> None:
        """kill -9, or another signal that nobody survives."""
        self.running.pop(name).kill(by)
        self.kills += name.startswith("worker")

    def freeze(self, name: str) -> None:
        self.running[name].send(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self.running[name].send(signal.SIGCONT)

    def tend(self) -> None:
        """Starts again who gave up because the database was away, as a service manager does."""
        for name, running in list(self.running.items()):
            if running.exit_code is None:
                continue
            assert running.exit_code == Exit.STORE_AWAY, f"{name} ended by itself:\n{running.output_tail()}"
            self.start(name)

    async def stop(self) -> None:
        """Stops the workers, then the servers."""
        for name in sorted(self.running, key=lambda name: not name.startswith("worker")):
            await self._stop_one(name)
            # What a worker could not send in its time to stop, its next life sends.
            for _ in range(STOP_ATTEMPTS_MAX):
                if not self.spooled(name):
                    break
                self.start(name, slots=1)
                left = self._spooled_names(name)
                await in_time(lambda name=name, left=left: not left & self._spooled_names(name), f"{name} sends")
                await self._stop_one(name)

    async def _stop_one(self, name: str) -> None:
        running = self.running.pop(name)
        code = await running.stop()
        assert code == Exit.OK, f"{name} ended with {code}:\n{running.output_tail()}"

    # The API ---------------------------------------------------------------------------------------------------

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        api = LocalServer(f"http://{LOOPBACK}:{self.ports['web']}", self.secrets / LOCAL_ADMIN_TOKEN)
        answer: dict[str, Any] = await api._call(method, path, body)
        return answer

    async def hang(self, *names: str, password: str = PASSWORD, at: str | None = None) -> None:
        """Adds simulated cameras, looked at every second; `at` is one whose pictures they show."""
        assert self._simulator is not None
        for name in names:
            source = {"url": self._simulator.url(at or name), "user": USER, "password": password}
            body = {"camera_id": name, "name": name, "source": source, "polling_interval_sec": 1}
            await self.call("POST", "/api/cameras", body)

    async def leases(self) -> dict[str, Lease]:
        """By camera; none while the web can't answer."""
        self.tend()
        try:
            page = await self.call("GET", "/api/leases")
        except CamError:
            return {}
        return {lease["camera_id"]: lease for lease in page["leases"]}

    async def generations(self) -> dict[str, int]:
        """The newest generation of each camera. Asked before the end: workers that stop hand their cameras on."""
        return {name: lease["generation"] for name, lease in (await self.leases()).items()}

    async def until_lease(
        self, is_it: Callable[[Lease], bool], what: str, cameras: Iterable[str] = CAMERAS[:1]
    ) -> dict[str, Lease]:
        """The leases of these cameras, when each is as it should be."""
        seen: list[dict[str, Lease]] = [{}]

        async def probe() -> dict[str, Lease] | None:
            seen[0] = await self.leases()
            found = {name: seen[0][name] for name in cameras if name in seen[0]}
            return found if len(found) == len(tuple(cameras)) and all(map(is_it, found.values())) else None

        try:
            return await poll_async(probe, what, PATIENCE_SEC)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the leases are {seen[0]}") from error

    async def until_active(self, *cameras: str, worker: str | None = None) -> dict[str, Lease]:
        """Until cameras run, at that worker or at any."""
        return await self.until_lease(
            lambda lease: lease["state"] == "ACTIVE" and worker in (None, lease["worker_id"]),
            f"{', '.join(cameras)} run at {worker or 'a worker'}",
            cameras,
        )

    # Looks -----------------------------------------------------------------------------------------------------

    def looks(self, camera_id: str, generation: int | None = None, standing: str | None = None) -> int:
        """How many looks of a camera were acknowledged to the workers."""
        self.ledger.catch_up()
        return sum(
            one.camera_id == camera_id and generation in (None, one.generation) and standing in (None, one.standing)
            for one in self.ledger.acknowledged
        )

    async def more_looks(self, *cameras: str, count: int = 2) -> None:
        """Until each of the cameras has so many more acknowledged looks."""
        wanted = {name: self.looks(name) + count for name in cameras}

        async def probe() -> bool:
            self.tend()
            return all(self.looks(name) >= enough for name, enough in wanted.items())

        await poll_async(probe, f"{count} more looks of {', '.join(cameras)}", PATIENCE_SEC)

    def spooled(self, worker: str) -> int:
        return len(self._spooled_names(worker))

    def _spooled_names(self, worker: str) -> set[str]:
        return {path.name for path in (self.folder / worker / "spool" / "looks").glob("*.look")}

    # The end ---------------------------------------------------------------------------------------------------

    async def judged(self) -> Records:
        """Stops everything; the rows that are left, after the checker found nothing wrong with them."""
        await self.stop()
        store = await open_store(self.url)
        try:
            records = await fetch(store, self.objects)
        finally:
            await store.close()
        self.ledger.catch_up()
        evidence = Evidence(records, self.ledger.acknowledged, worker_kills=self.kills)
        wrong = [sentence for promise in PROMISES for sentence in promise(evidence)]
        wrong += [f"a look was given up: {line}" for line in self.ledger.given_up]
        assert not wrong, "\n".join(wrong)
        return records


def logged_at_ms(line: Mapping[str, object]) -> float:
    """When a line of a log was written."""
    return datetime.fromisoformat(str(line["timestamp"])).timestamp() * 1000


class Stopwatch:
    """Says how long something took. Nothing depends on it."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, what: str) -> None:
        print(f"{what}: {time.monotonic() - self._begun:.2f} s")


async def in_time(condition: Callable[[], bool], what: str) -> None:
    async def probe() -> bool:
        return condition()

    await poll_async(probe, what, PATIENCE_SEC)


async def restart_database(server: Any) -> None:
    """kill -9 of the database's own process, and started again with what it had made durable."""
    server.crash()
    await asyncio.to_thread(server.start)
