"""What the dispatcher's benchmark works on: jobs with pictures, a real dispatcher on them, and a clock to move."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count as count_up
from itertools import islice, product
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import uuid_utils

from bench._queue_scene import analyze_tables
from camserver.base.clock import StoreClock
from camserver.base.credentials import seal
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.config.secret_files import make_secrets
from camserver.domain.leases import LeasePolicy
from camserver.domain.people import Principal, Role
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher import service
from camserver.store import Store, frames, jobs, receivers, upkeep
from camserver.store.core import Operation
from camserver.store.epochs import renew_epoch
from camserver.store.first_start import prepare_store
from camserver.store.outcomes import Applied
from camserver.store.receivers import NewReceiver, secrets_of
from tests.store.scenery import NOW_MS, Scene, furnish, look

P = ParamSpec("P")
R = TypeVar("R")

PICTURE = os.urandom(50_000)
LINKS_MAX = 50_000
CAMERA_JOBS_MAX = 100  # the bound of a camera's waiting jobs
ALIVE_MS = 100 * 86_400_000


class MovableClock(StoreClock):
    """Runs as time does, and can be set forward: whoever sleeps wakes when its time has come by this clock."""

    def __init__(self, now_ms: int) -> None:
        super().__init__()
        self._ahead_ms = 0
        self._moved = asyncio.Event()
        self.observe(now_ms, self.boot_ms(), self.boot_ms())

    def boot_ms(self) -> int:
        return super().boot_ms() + getattr(self, "_ahead_ms", 0)

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def move(self, ms: int) -> None:
        self._ahead_ms += ms
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        due_ms = self.boot_ms() + seconds * 1000
        while (left_ms := due_ms - self.boot_ms()) > 0:
            moved = self._moved
            try:
                await asyncio.wait_for(moved.wait(), left_ms / 1000)
            except TimeoutError:
                return


class WatchedStore(Store):
    """The store as it is; notes when jobs were done."""

    def __init__(self, real: Store) -> None:
        super().__init__()
        self.real = real
        self.dialect = real.dialect
        self.done = 0
        self.first_at = 0.0  # seconds, of the first answer
        self.first_done = 0
        self.last_at = 0.0
        self.wanted = 0
        self.finished = asyncio.Event()

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.real.read(operation, *args, **kwargs)

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        answer = await self.real.write(operation, *args, **kwargs)
        if operation.__name__ == "apply" and isinstance(answer, tuple):
            self._note(answer.count(Applied.DONE))
        return answer

    def _note(self, count: int) -> None:
        self.done += count
        self.last_at = time.perf_counter()
        if not self.first_at:
            self.first_at, self.first_done = self.last_at, self.done
        if self.done >= self.wanted:
            self.finished.set()

    def jobs_per_sec(self) -> float:
        """From the first answer on: starting up is not what is measured."""
        return (self.done - self.first_done) / (self.last_at - self.first_at)

    async def database_time_ms(self) -> int | None:
        return await self.real.database_time_ms()

    async def close(self) -> None:
        raise AssertionError("the dispatcher does not own its store")


def _make(folder: Path) -> None:
    folder.mkdir()


@dataclass(slots=True)
class Stage:
    store: WatchedStore
    objects: LocalObjects
    scene: Scene
    clock: MovableClock
    settings: Settings
    kinds: tuple[Kind, ...] = (Kind.INFER,)  # the pictures that a look has

    @staticmethod
    async def open(store: Store, folder: Path, url: str, cameras: int, **jobs_policy: Any) -> "Stage":
        clock = MovableClock(NOW_MS)
        await prepare_store(store, SHIPPED_VERSION, clock.now_ms())
        scene = await furnish(store, cameras)
        await store.write(renew_epoch, scene.epoch_id, NOW_MS + ALIVE_MS)
        # Retention goes over all cameras once an hour, at a first start at once and for as long as is measured here.
        await store.write(upkeep.note_round, NOW_MS)
        settings = load(None, {}, folder)
        settings = replace(
            settings,
            analyzer=replace(settings.analyzer, urls=(url,)),
            jobs=replace(settings.jobs, **jobs_policy),
        )
        return Stage(WatchedStore(store), LocalObjects(folder / "objects"), scene, clock, settings)

    async def add_sinks(self, folder: Path) -> None:
        """An archive in a folder, which gets every detected picture, and a webhook, which gets what is severe."""
        _make(folder)
        self.kinds = (Kind.INFER, Kind.FULL)
        self.settings = replace(
            self.settings,
            deliveries=replace(self.settings.deliveries, allow_loopback=True),
            archive=replace(self.settings.archive, folders=(str(folder),)),
        )
        key = make_secrets(self.settings).credential_key_bytes()
        scoped = self.store.real.as_(Principal(self.scene.tenant_id, None, Role.SYSTEM_ADMIN))
        for kind, config, secrets in (
            ("folder", {"path": str(folder / "copies")}, {}),
            ("webhook", {}, {"url": "http://127.0.0.1:9/hook"}),
        ):
            uuid = str(uuid_utils.uuid7())
            sealed = seal(key, self.scene.tenant_id, secrets_of(uuid), json.dumps(secrets).encode())
            new = NewReceiver(uuid, kind, kind, json.dumps(config), sealed, "ja", None)
            await scoped.write(receivers.add, new, "", self.clock.now_ms())

    async def queue(self, count: int) -> None:
        """Looks of all cameras in turn, a second apart, through the product's own path; each has its picture."""
        cameras = len(self.scene.camera_keys)
        looks = (
            look(self.scene, index % cameras, seq=1 + index // cameras, at_ms=NOW_MS + index // cameras * 1000)
            for index in range(count)
        )
        for number in count_up():
            batch = tuple(islice(looks, 256))
            if not batch:
                break
            model = self._model(number * 256 // LINKS_MAX)
            for one, kind in product(batch, self.kinds):
                key = frame_key(
                    self.scene.epoch_id, one.tenant_id, one.camera_key, one.captured_at, one.frame_uuid, kind
                )
                path = self.objects.root / key
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(model, path)
            full_bytes = len(PICTURE) if Kind.FULL in self.kinds else None
            recorded = tuple(replace(one, received_at=NOW_MS, full_bytes=full_bytes) for one in batch)
            await self.store.real.write(frames.record, recorded, LeasePolicy())
        await self.store.real.write(analyze_tables)
        self.store.wanted = count

    def _model(self, number: int) -> Path:
        """A file that pictures are links to: a file system bounds how many a file may have."""
        model = self.objects.root / f"picture_{number}"
        if not model.exists():
            model.write_bytes(PICTURE)
        return model

    @asynccontextmanager
    async def dispatcher(self) -> AsyncIterator[None]:
        running = asyncio.create_task(service.run(self.store, self.objects, self.clock, self.settings, Ready()))
        try:
            yield
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def counts(self) -> dict[str, int]:
        return await self.store.real.read(jobs.count_by_status)
