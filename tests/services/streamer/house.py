"""Server, worker and streamer in one process, on SQLite, with real sockets between them and a simulated camera."""

import asyncio
import concurrent.futures.thread as pools
import dataclasses
import json
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import psutil

from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.config import Settings, load, media_keys
from camserver.domain.live_links import LiveKeys, live_keys, snapshot_url, stream_url
from camserver.domain.timeline import Pause
from camserver.objects.local import LocalObjects
from camserver.services.control import service as control
from camserver.services.streamer import service as streamer
from camserver.services.worker import service as worker
from camserver.store import Store, Tx, camera_changes, cameras, look_pauses
from camserver.store.camera_changes import CameraChange
from camserver.store.first_start import prepare_store
from camserver.store.worker_news import StreamFault, parse_fault
from tests.rig.polling import poll_async
from tests.rig.ports import listening_socket
from tests.services.streamer.live_rig import Watcher
from tests.store.people_rows import admin_of
from tests.store.stage import add_camera, statement


@dataclasses.dataclass(slots=True)
class House:
    store: Store
    settings: Settings
    keys: LiveKeys
    clock: StoreClock
    session: aiohttp.ClientSession
    streamer_port: int
    tenant_id: int
    site_id: int
    running: dict[str, "asyncio.Task[None]"] = dataclasses.field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.streamer_port}"

    async def hang_camera(self, camera_id: str, url: str, sub_url: str | None = None, **values: object) -> None:
        """`values` are its own, by the columns of camera_overrides. RTSP, or a file that is played as such."""
        now_ms = self.clock.now_ms()
        await self.store.write(_hang, self.tenant_id, self.site_id, camera_id, url, sub_url, values, now_ms)

    async def stream_fault(self, camera_id: str, is_it: Callable[[StreamFault], bool]) -> StreamFault:
        """What a worker said last of one of the camera's streams, once it is what is waited for."""

        async def found() -> StreamFault | None:
            fault = await self.store.read(_stream_fault, camera_id)
            return fault if fault is not None and is_it(fault) else None

        return await poll_async(found, "what the worker says of a stream")

    async def pauses(self, camera_id: str) -> tuple[Pause, ...]:
        """When its looks were put off."""
        mine, now_ms = self.store.as_(admin_of(self.tenant_id)), self.clock.now_ms()
        camera_key = await mine.read(cameras.find_key, camera_id)
        return (await mine.read(look_pauses.within, [camera_key], 0, now_ms, now_ms))[camera_key]

    async def admit(self, camera_id: str, quality: str = "sub", transcode: bool = False) -> str:
        """A viewing, as web would make it."""
        lease_id = str(uuid.uuid4())
        streamer_id = self.settings.streamer.name
        await self.store.write(_admit, lease_id, camera_id, quality, transcode, streamer_id, self.clock.now_ms())
        return lease_id

    async def mask(self, camera_id: str, polygons: list[list[tuple[float, float]]]) -> None:
        """Somebody draws privacy masks."""
        await self.change(camera_id, privacy_masks=json.dumps(polygons))

    async def change(self, camera_id: str, **values: object) -> None:
        """Somebody changes its own values, by the columns of camera_overrides."""
        change = CameraChange(values=tuple(values.items()))
        mine = self.store.as_(admin_of(self.tenant_id))
        await mine.write(camera_changes.change, camera_id, change, "", self.clock.now_ms())

    async def is_transcoded(self, lease_id: str) -> bool:
        return bool(await self.store.read(_transcode, lease_id))

    async def end(self, lease_id: str) -> None:
        await self.store.write(
            statement, "DELETE FROM modal_leases WHERE lease_id = :lease_id", {"lease_id": lease_id}
        )

    async def watch(self, camera_id: str, lease_id: str, hears: bool = False) -> Watcher:
        url = stream_url(self.keys, self.origin, camera_id, lease_id) + ("&sound=1" if hears else "")
        return Watcher(await self.session.ws_connect(url, max_msg_size=0))

    async def snapshot(self, lease_id: str) -> tuple[int, bytes]:
        async with self.session.get(snapshot_url(self.keys, self.origin, lease_id)) as answer:
            return answer.status, await answer.read()

    async def about(self) -> dict[str, Any]:
        async with self.session.get(f"{self.origin}/readyz") as answer:
            about: dict[str, Any] = await answer.json()
            return about

    async def restart_worker(self) -> None:
        """It ends as it does when its process is stopped, and another one of its name begins."""
        old = self.running["worker"]
        old.cancel()
        await asyncio.gather(old, return_exceptions=True)
        self.running["worker"] = asyncio.ensure_future(worker.run(StoreClock(), self.settings, Ready()))

    async def nothing_left(self) -> None:
        async def is_left() -> bool:
            about = await self.about()
            return (about["streams"], about["viewers"], about["feeds"]) == (0, 0, 0)

        await poll_async(is_left, "no stream, viewer or feed is left")

    async def held(self, camera_id: str) -> None:
        """Until a worker looks after the camera."""

        async def is_active() -> bool:
            return await self.store.read(_state, camera_id) == "ACTIVE"

        await poll_async(is_active, f"{camera_id} is held")


async def _hang(
    tx: Tx,
    tenant_id: int,
    site_id: int,
    camera_id: str,
    url: str,
    sub_url: str | None,
    values: dict[str, object],
    now_ms: int,
) -> None:
    camera = await add_camera(tx, tenant_id, site_id, camera_id, now_ms)
    await tx.run(
        "UPDATE camera_streams SET source_type = :kind, url = :url WHERE camera_key = :key",
        kind=url.partition(":")[0],
        url=url,
        key=camera.key,
    )
    if sub_url is not None:
        await tx.run(
            "INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url) "
            "VALUES (:tenant_id, :key, 'sub', 'rtsp', :url)",
            tenant_id=tenant_id,
            key=camera.key,
            url=sub_url,
        )

    if values:
        names = ", ".join(values)
        await tx.run(
            f"INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, {names}) "
            f"VALUES (:key, :tenant_id, :now_ms, {', '.join(f':{name}' for name in values)})",
            key=camera.key,
            tenant_id=tenant_id,
            now_ms=now_ms,
            **values,
        )


async def _stream_fault(tx: Tx, camera_id: str) -> StreamFault | None:
    row = await tx.one(
        "SELECT s.stream_fault FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key "
        "WHERE c.camera_id = :camera_id",
        camera_id=camera_id,
    )
    return None if row is None else parse_fault(row["stream_fault"])


async def _transcode(tx: Tx, lease_id: str) -> int:
    row = await tx.one("SELECT transcode FROM modal_leases WHERE lease_id = :lease_id", lease_id=lease_id)
    return 0 if row is None else int(row["transcode"])


async def _admit(
    tx: Tx, lease_id: str, camera_id: str, quality: str, transcode: bool, streamer_id: str, now_ms: int
) -> None:
    await tx.run(
        """
        INSERT INTO modal_leases (lease_id, tenant_id, site_id, camera_key, streamer_id, user_id, quality, units,
          transcode, created_at, expires_at, last_heartbeat, valid_until)
        SELECT :lease_id, tenant_id, site_id, camera_key, :streamer_id, :lease_id, :quality, 1, :transcode,
          :now_ms, :until, :now_ms, :until
        FROM cameras WHERE camera_id = :camera_id""",
        lease_id=lease_id,
        streamer_id=streamer_id,
        quality=quality,
        transcode=int(transcode),
        camera_id=camera_id,
        now_ms=now_ms,
        until=now_ms + 300_000,
    )


async def _state(tx: Tx, camera_id: str) -> str | None:
    row = await tx.one(
        "SELECT s.state FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key "
        "WHERE c.camera_id = :camera_id",
        camera_id=camera_id,
    )
    return None if row is None else str(row["state"])


@asynccontextmanager
async def house(store: Store, folder: Path, **environ: str) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        socks = {name: stack.enter_context(listening_socket()) for name in ("control", "streamer")}
        ports = {name: sock.getsockname()[1] for name, sock in socks.items()}
        settings = load(
            None,
            {
                "CAMSERVER_SERVER_DATA_DIR": str(folder),
                "CAMSERVER_CONTROL_PORT": str(ports["control"]),
                "CAMSERVER_STREAMER_PORT": str(ports["streamer"]),
                "CAMSERVER_WORKER_ALLOW_LOOPBACK": "true",
                "CAMSERVER_WORKER_NAME": "worker-1",
                "CAMSERVER_STREAMER_NAME": "streamer-1",
                **environ,
            },
        )
        clock = StoreClock()
        first = await prepare_store(store, None, clock.now_ms())
        key, _ = media_keys(settings)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        made = House(
            store,
            settings,
            live_keys(key.reveal().encode()),
            clock,
            session,
            ports["streamer"],
            first.tenant_id,
            first.site_id,
        )
        objects = LocalObjects(settings.objects.dir)
        works: dict[str, Coroutine[Any, Any, None]] = {
            "control": control.run(store, objects, clock, settings, Ready(), socks["control"]),
            "streamer": streamer.run(StoreClock(), settings, _expecting("streamer"), socks["streamer"], None),
            "worker": worker.run(StoreClock(), settings, Ready()),
        }
        for name, work in works.items():
            made.running[name] = asyncio.ensure_future(work)
        try:
            yield made
        finally:
            for task in made.running.values():
                task.cancel()
            await asyncio.gather(*made.running.values(), return_exceptions=True)


class Left(NamedTuple):
    tasks: int
    threads: int
    children: int
    descriptors: int

    def __le__(self, other: tuple[object, ...]) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))  # type: ignore[operator]


def left_over() -> Left:
    """What this process has of what could be forgotten."""
    process = psutil.Process()
    threads = sum(not _is_pooled(thread) for thread in threading.enumerate())
    return Left(len(asyncio.all_tasks()), threads, len(process.children()), process.num_fds())


def _is_pooled(thread: threading.Thread) -> bool:
    """One of those that wait for work, as many at most as their pool may have: they begin when there is some."""
    return thread in pools._threads_queues or "-reader-" in thread.name  # the latter are of LeanThreads


def _expecting(name: str) -> Ready:
    ready = Ready()
    ready.expect(name)
    return ready
