"""Services and workers as real processes on one database, each under its name over all its lives.

What runs where, and with which settings, is its subclasses' to say; when something dies, somebody else's. A name's
first word is the command: `control-b` is a second `camserver control`.
"""

import asyncio
import json
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN, SECRET_FILES
from tests.chaos.feed_reader import FeedReader
from tests.chaos.ledger import Ledger
from tests.rig.databases import DatabaseServer
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running, Settings

# What the cameras see one after the other (tests.fakes.analyzer.answers.SCENES). Of two equal ones in a row the
# second is a quiet look: it leaves a frame and no job.
SCENES = (0, 1, 1, 4, 3, 3, 5, 7, 0, 2)
WORKER = "worker"
# Reaching it means that it will never happen, on however slow a machine.
PATIENCE_SEC = 180.0
STOP_ATTEMPTS_MAX = 5
# As short as the settings allow, so that leases run out and move within a run.
TTL_SEC = 10
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
# Whoever is killed again and again is not the job's fault, so neither attempts nor bounds may end one.
JOBS: Mapping[str, object] = {
    "lock_sec": 5,
    "renew_every_sec": 1,
    "max_attempt": 100,
    "camera_bound": 100_000,
    "backoff_base_sec": 0.1,
    "backoff_cap_sec": 1,
    "breaker_open_sec": 0.2,
    "breaker_open_cap_sec": 1,
}


def is_worker(name: str) -> bool:
    return name.partition("-")[0] == WORKER


class Company:
    """`async with` starts it; leaving it stops everything, and fails when a process is left."""

    def __init__(self, kind: str, url: str, folder: Path, server: DatabaseServer | None = None) -> None:
        self.kind = kind
        self.url = url
        self.folder = folder
        self.server = server
        self.launcher = Launcher(folder)
        self.objects = folder / "objects"
        self.secrets = folder / "secrets"
        self.running: dict[str, Running] = {}
        self.lives: list[tuple[str, Running]] = []
        self.ledger = Ledger()
        self.worker_kills = 0
        # Processes that gave up because the database was away, and were started again as a service manager does.
        self.came_back = 0
        self.env: dict[str, dict[str, str]] = {}  # of a process, beside the usual
        self.within: dict[str, tuple[str, ...]] = {}  # a command that runs the process
        self.ports = {name: free_port() for name in ("web", "server", "control", "control-a", "control-b")}
        self._reading: asyncio.Task[None] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
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
        """Starts what is there from the beginning, and leaves on the stack what is to be closed."""
        self._stack.push_async_callback(self.launcher.close)

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        """Settings of this process; `worker` are those that were asked for a worker."""
        raise NotImplementedError

    def _common(self, data: Path, control: str) -> dict[str, dict[str, object]]:
        """What the settings of all have in common."""
        return {
            "server": {"data_dir": str(data), "secrets_dir": str(self.secrets)},
            "objects": {"dir": str(self.objects)},
            "web": {"port": self.ports["web"]},
            "control": {"port": self.ports[control]},
            "leases": dict(LEASES),
            "gate": {"rule": "threshold"},
            "log": {"level": "debug", "format": "json"},
        }

    # What they see, and what is told of it -------------------------------------------------------------------

    def draw_pictures(self) -> Path:
        """The folder of what a camera sees, one picture after the other."""
        pictures = self.folder / "pictures"
        pictures.mkdir()
        for number, scene in enumerate(SCENES):
            (pictures / f"{number:02d}.jpg").write_bytes(jpeg(scene=scene, size=(160, 120)))
        return pictures

    def read_on(self, feed: FeedReader) -> None:
        """Reads the change feed until the end, or until `stop_reading`."""
        self._reading = asyncio.create_task(feed.run())
        self._stack.push_async_callback(self.stop_reading)

    async def stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    # Processes -------------------------------------------------------------------------------------------------

    def start(self, name: str, **worker: object) -> Running:
        """Starts a service or a worker, of which `worker` are settings."""
        running = self.launcher.camserver(
            name.partition("-")[0],
            settings=self._settings(name, worker),
            env=self.env.get(name),
            within=self.within.get(name, ()),
        )
        self.running[name] = running
        self.lives.append((name, running))
        if is_worker(name):
            self.ledger.follow(name, running.stderr_path)
        return running

    async def until_ready(self, name: str) -> None:
        """However often it has to be started: its database may be away just then."""
        url = f"http://{LOOPBACK}:{self.ports[name]}/readyz"
        while True:
            running = self.running[name]
            try:
                await running.until_ready(url, PATIENCE_SEC)
                return
            except RuntimeError:
                if running.exit_code != Exit.STORE_AWAY:
                    raise
                self.tend()

    def kill(self, name: str, by: signal.Signals = signal.SIGKILL) -> None:
        """kill -9, or another signal that nobody survives."""
        self.running.pop(name).kill(by)
        self.worker_kills += is_worker(name)

    def freeze(self, name: str) -> None:
        self.running[name].send(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self.running[name].send(signal.SIGCONT)

    def thaw_all(self) -> None:
        """A frozen process would not hear that it is to end."""
        for running in self.running.values():
            if running.exit_code is None:
                running.send(signal.SIGCONT)

    def tend(self) -> None:
        """Starts again who gave up because the database was away. Any other end by itself fails the run."""
        for name, running in list(self.running.items()):
            if running.exit_code is None:
                continue
            if running.exit_code != Exit.STORE_AWAY:
                raise AssertionError(f"{name} ended by itself with {running.exit_code}:\n{running.output_tail()}")
            self.came_back += 1
            self.start(name)

    async def stop_one(self, name: str, *also: Exit) -> None:
        """SIGTERM; a process that did not end as asked (or as is fine, too) and by its deadline fails the run."""
        running = self.running.pop(name)
        code = await running.stop()
        # A process that was still being loaded when the signal came has nothing to put down.
        had_begun = any(line.get("event") == "service starts" for line in running.log())
        if code not in (Exit.OK, *also) and (code != -signal.SIGTERM or had_begun):
            raise AssertionError(f"{name} ended with {code} when it was told to stop:\n{running.output_tail()}")

    async def drain(self, worker: str) -> None:
        """Stops a worker with an empty spool. What it could not send in its time to stop, its next life sends.

        That one takes a single camera, so that it sends faster than it looks on however slow a machine.
        """
        if worker in self.running:
            await self.stop_one(worker)
        for _ in range(STOP_ATTEMPTS_MAX):
            if not (left := self.spooled_names(worker)):
                return
            self.start(worker, slots=1)
            await self.until(partial(self._is_sent, worker, left), f"{worker} sends {len(left)} looks")
            await self.stop_one(worker)
        raise AssertionError(
            f"{worker} leaves {self.spooled_names(worker)} in its spool, however often it is started"
        )

    def _is_sent(self, worker: str, looks: set[str]) -> bool:
        return not looks & self.spooled_names(worker)

    async def until(self, condition: Callable[[], bool], what: str, timeout_sec: float = PATIENCE_SEC) -> None:
        """Waits for something of the outside world, while the processes are looked after."""

        async def probe() -> bool:
            self.tend()
            return condition()

        await poll_async(probe, what, timeout_sec)

    async def restart_database(self) -> None:
        """kill -9 of the database's own process, and started again with what it had made durable."""
        assert self.server is not None
        self.server.crash()
        await asyncio.to_thread(self.server.start)

    # What it looks like from outside ----------------------------------------------------------------------------

    @property
    def web_url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports['web']}"

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        api = LocalServer(self.web_url, self.secrets / LOCAL_ADMIN_TOKEN)
        answer: dict[str, Any] = await api._call(method, path, body)
        return answer

    async def unfinished_jobs(self) -> int:
        status = await self.call("GET", "/api/system/status")
        return sum(int(count) for count in status["unfinished_jobs"].values())

    def spooled_names(self, worker: str) -> set[str]:
        """The looks that wait on a worker's disk."""
        return {path.name for path in (self.folder / worker / "spool" / "looks").glob("*.look")}

    def set_aside(self, worker: str) -> list[str]:
        """Looks that the server refused for good."""
        return sorted(path.name for path in (self.folder / worker / "spool" / "refused").glob("*"))

    def leaked_secrets(self) -> list[str]:
        """Output files in which the value of a secret stands."""
        paths = [self.secrets / name for name in SECRET_FILES]
        values = [path.read_bytes().strip() for path in paths if path.exists()]
        if self.server is not None:
            values.append(self.server.password.encode())
        outputs = [path for _, life in self.lives for path in (life.stdout_path, life.stderr_path)]
        return [path.name for path in outputs if any(value in path.read_bytes() for value in values)]

    def tracebacks(self) -> list[str]:
        """Errors that nobody expected: whatever is killed, the others know what to do."""
        found = []
        for name, life in self.lives:
            for text in life.stderr_path.read_text(errors="replace").splitlines():
                if '"exception"' in text:
                    line = json.loads(text)
                    found.append(f"{name} logged {line['event']!r} with {str(line['exception'])[-400:]}")
        return found
