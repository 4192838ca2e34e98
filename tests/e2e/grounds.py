"""Delegation with real processes: servers on one database, workers behind a proxy each, simulated RTSP cameras.

Leases are as short as the settings allow, so that they run out within a test. What is seen is seen as operators see
it: by `GET /api/leases`, by logs, and by the rows that are left at the end.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from camserver.base.errors import CamError
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from camserver.store import open_store
from tests.chaos import checker
from tests.chaos.checker import Evidence
from tests.chaos.company import PATIENCE_SEC, Company, is_worker
from tests.chaos.records import Records, fetch
from tests.rig.cutter import Cutter
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK
from tests.rig.processes import Running, Settings
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.video_files import video_file

CAMERAS = ("cam_1", "cam_2", "cam_3")
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


class Grounds(Company):
    """`async with Grounds(...)` starts the servers and the cameras; workers come when they are told to."""

    def __init__(self, kind: str, url: str, folder: Path, **leases: object) -> None:
        super().__init__(kind, url, folder)
        self.nets: dict[str, Cutter] = {}
        self.server_urls: dict[str, str] = {}  # of workers that have no proxy
        self.camera_socket: socket.socket | None = None  # where the cameras listen; None: any port on loopback
        self._leases = leases
        self._simulator: Simulator | None = None

    async def _open(self) -> None:
        await super()._open()
        video = video_file(self.folder / "cam.mp4", seconds=1, keyframes_apart=5, bf="0", size=(160, 96))
        asked = [CameraAsked(name, str(video)) for name in CAMERAS]
        self._simulator = await self._stack.enter_async_context(
            simulated(self.folder / "cache", *asked, sock=self.camera_socket)
        )
        for name in SERVERS[self.kind]:
            self.start(name)
            await self.until_ready(name)

    async def worker(self, name: str, control: str | None = None, **settings: object) -> Running:
        """Starts a worker behind a proxy of its own, in front of that control process, and waits until it is in."""
        if name not in self.nets and name not in self.server_urls:
            at = control or ("server" if self.kind == "sqlite" else "control-a")
            self.nets[name] = await self._stack.enter_async_context(Cutter(self.ports[at]))
        running = self.start(name, **settings)
        await running.until_logged("registered", PATIENCE_SEC)
        return running

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        data = self.folder / (name if is_worker(name) else "server")
        settings = self._common(data, name if name in ("control-a", "control-b") else "server")
        settings["leases"] |= self._leases
        # Nobody analyzes here: jobs wait.
        settings["analyzer"] = {"url": f"http://{LOOPBACK}:1"}
        if is_worker(name):
            url = self.server_urls.get(name) or f"http://{LOOPBACK}:{self.nets[name].port}"
            settings["worker"] = {"name": name, "server_url": url, "allow_loopback": True, **worker}
        else:
            settings["store"] = {"url": self.url}
        return settings

    async def stop(self) -> None:
        """Stops the workers, then the servers."""
        for name in sorted(self.running, key=lambda name: not is_worker(name)):
            await (self.drain(name) if is_worker(name) else self.stop_one(name))

    # The API ---------------------------------------------------------------------------------------------------

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
        return len(self.spooled_names(worker))

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
        evidence = Evidence(records, self.ledger.acknowledged, worker_kills=self.worker_kills)
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
