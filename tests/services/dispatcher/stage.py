"""A furnished stage for the dispatcher: cameras, pictures, a fake analyzer, and a clock that stands still.

stage = await Stage.open(store, analyzer, tmp_path)
await stage.look(0, Seen("human"))
async with stage.dispatcher():
    await stage.until_status(done=1)
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from camserver.base.clock import Clock
from camserver.base.errors import StoreUnavailable
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.config.analyzer_section import AnalyzerSettings
from camserver.domain.jobs import JobPolicy
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import LocalObjects, Objects
from camserver.services.dispatcher import service
from camserver.store import Store, Tx
from camserver.store.core import Operation
from camserver.store.epochs import renew_epoch
from camserver.store.first_start import prepare_store
from tests.fakes.analyzer import FakeAnalyzer, Seen
from tests.rig.clock import ManualClock
from tests.rig.pictures import jpeg
from tests.rig.polling import TIMEOUT_SEC, poll_async, until
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

P = ParamSpec("P")
R = TypeVar("R")
Rows = list[dict[str, Any]]

# Pauses up to this long are looks at a queue or at a store that may be back: they take no time of this clock.
LOOKING_SEC = 1.0
REST_TURNS = 100
# So many loops take so many turns together; where there are more, more turns are waited for.
LOOPS = 5
ALIVE_MS = 100 * 86_400_000
NEVER_SEC = 10**9


class StageClock(ManualClock):
    """Stands still, but loops that look again and again keep looking; `turns` counts these looks."""

    def __init__(self) -> None:
        super().__init__(NOW_MS)
        self.turns = 0
        self._loops: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._woken: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._turned: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._woken.discard(task)
        if seconds > LOOKING_SEC:
            await super().sleep(seconds)
            self._woken.add(task)
            return
        self._loops.add(task)
        await asyncio.sleep(0.01)
        self.turns += 1
        if self._turned is not None and not self._turned.done():
            self._turned.set_result(None)

    async def _rest(self) -> None:
        """Loops that look again and again never come to rest; `some_turns` is how a test waits for them."""
        for _ in range(REST_TURNS):
            await asyncio.sleep(0)

    def leap(self, ms: int) -> None:
        """Moves on at once: nobody does anything between the moment before and the moment after."""
        self._boot_ms += ms
        while self._due_by(self._boot_ms) is not None:
            _, _, wake = heapq.heappop(self._sleepers)
            wake.set_result(None)

    async def until_asleep(self) -> None:
        """Until whoever this clock woke has done what it woke for, and sleeps again or has ended."""
        await until(lambda: all(task.done() for task in self._woken), "whoever was woken sleeps again")

    async def some_turns(self, count: int = 30) -> None:
        """Lets every loop look several times: for tests that something does *not* happen."""
        alive = sum(not task.done() for task in self._loops)
        enough = self.turns + count * max(1, alive // LOOPS)
        try:
            async with asyncio.timeout(TIMEOUT_SEC):
                while self.turns < enough:
                    self._turned = asyncio.get_running_loop().create_future()
                    await self._turned
        except TimeoutError:
            raise TimeoutError(
                f"{enough - self.turns} of {count} turns of the dispatcher's loops are missing"
            ) from None


class SkewedClock:
    """The stage's clock as a machine has it whose idea of the time is wrong."""

    def __init__(self, real: StageClock, ahead_ms: int) -> None:
        self._real = real
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return self._real.now_ms() + self._ahead_ms

    def boot_ms(self) -> int:
        return self._real.boot_ms()

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds)


class StoreProxy(Store):
    """A store whose every call goes through `around`; tests override that to break it."""

    def __init__(self, real: Store) -> None:
        super().__init__()
        self.real = real
        self.dialect = real.dialect

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await call()

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.around(operation.__name__, lambda: self.real.read(operation, *args, **kwargs))

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.around(operation.__name__, lambda: self.real.write(operation, *args, **kwargs))

    async def database_time_ms(self) -> int | None:
        return await self.real.database_time_ms()

    async def close(self) -> None:
        raise AssertionError("the dispatcher does not own its store")


class WatchedStore(StoreProxy):
    """Tells how much is under way in it."""

    def __init__(self, real: Store) -> None:
        super().__init__(real)
        self._calls: set[asyncio.Future[None]] = set()

    @property
    def under_way(self) -> int:
        return len(self._calls)

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls.add(over)
        try:
            return await call()
        finally:
            self._calls.discard(over)
            over.set_result(None)

    async def until_answered(self) -> None:
        """Until all calls are over that are under way now, whatever was begun meanwhile."""
        if self._calls:
            _, left = await asyncio.wait(set(self._calls), timeout=TIMEOUT_SEC)
            if left:
                raise TimeoutError(f"{len(left)} calls of the store have no answer after {TIMEOUT_SEC:g} s")


class CutStore(StoreProxy):
    """Away while `is_cut`, as behind a network that is gone."""

    is_cut = False

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if self.is_cut:
            raise StoreUnavailable("cut off by the test")
        return await call()


@dataclass(slots=True)
class Stage:
    store: Store
    objects: Objects
    analyzer: FakeAnalyzer
    clock: StageClock
    scene: Scene
    settings: Settings
    seqs: dict[int, int] = field(default_factory=dict)
    in_use: list[WatchedStore] = field(default_factory=list)  # of the dispatchers that run

    @staticmethod
    async def open(store: Store, analyzer: FakeAnalyzer, folder: Path, cameras: int = 3) -> "Stage":
        clock = StageClock()
        await prepare_store(store, SHIPPED_VERSION, clock.now_ms())
        scene = await furnish(store, cameras)
        # Whoever writes the looks' pictures stays alive however far a test moves the clock.
        await store.write(renew_epoch, scene.epoch_id, NOW_MS + ALIVE_MS)
        settings = load(None, {}, folder)
        # The real time-out: in tests an answer comes at once or is held on purpose.
        # Nobody renews leases here, so cameras are soon unattended: of no interest where nothing is said about it.
        calm = replace(settings.health, unattended_told_after_sec=NEVER_SEC)
        analyzer_settings = AnalyzerSettings(url=analyzer.url, analyze_timeout_sec=60.0)
        settings = replace(settings, analyzer=analyzer_settings, health=calm)
        return Stage(store, LocalObjects(folder / "objects"), analyzer, clock, scene, settings)

    @property
    def policy(self) -> JobPolicy:
        return self.settings.jobs

    def with_jobs(self, **changes: Any) -> None:
        self.settings = replace(self.settings, jobs=replace(self.policy, **changes))

    def key(self, frame_uuid: str, camera: int, at_ms: int, epoch_id: int | None = None) -> str:
        scene = self.scene
        epoch = scene.epoch_id if epoch_id is None else epoch_id
        return frame_key(epoch, scene.tenant_id, scene.camera_keys[camera], at_ms, frame_uuid, Kind.INFER)

    async def look(
        self, camera: int = 0, seen: Seen | bytes | None = None, at_ms: int | None = None, **changes: Any
    ) -> str:
        """A look that wants analysis, its picture stored first; answers its frame. `None` stores no picture."""
        at_ms = self.clock.now_ms() if at_ms is None else at_ms
        self.seqs[camera] = self.seqs.get(camera, 0) + 1
        made = look(self.scene, camera, self.seqs[camera], at_ms, **changes)
        if seen is not None:
            picture = jpeg(seen.hint()) if isinstance(seen, Seen) else seen
            await self.objects.put(self.key(made.frame_uuid, camera, at_ms), picture)
        await recorded(self.store, made)
        return made.frame_uuid

    @asynccontextmanager
    async def dispatcher(
        self, store: Store | None = None, objects: Objects | None = None, clock: Clock | None = None
    ) -> AsyncIterator[asyncio.Task[None]]:
        """Runs one until the block ends; it must not have ended by itself before that."""
        ready = Ready()
        used = WatchedStore(store or self.store)
        self.in_use.append(used)
        task = asyncio.create_task(
            service.run(used, objects or self.objects, clock or self.clock, self.settings, ready)
        )
        try:
            await poll_async(lambda: _is_up(task, ready), "the dispatcher is ready")
            yield task
            if task.done() and not task.cancelled():
                task.result()
                raise AssertionError("the dispatcher ended by itself")
        finally:
            task.cancel()
            await _must_end(task)
            self.in_use.remove(used)

    async def pass_time(self, total_sec: int, step_sec: int, *, settling: bool = False) -> None:
        """Moves the clock in steps, and lets every loop do what each step brings.

        Steps are shorter than a lock holds, and each waits for the calls of the store that are under way: a claim
        locks its jobs from the moment at which it was asked for, however long a slow machine takes for it. With
        `settling`, each step waits for the jobs under way, too, so that no lock runs out by this clock.
        """
        assert step_sec < self.policy.lock_sec / 2 + 1
        for _ in range(0, total_sec, step_sec):
            await self.clock.advance(step_sec * 1000)
            await self.clock.some_turns(6)
            for store in list(self.in_use):
                await store.until_answered()
            if settling:
                await self.until(self._none_runs, "no job under way")

    async def leap(self, total_sec: int) -> None:
        """Moves the clock at once, for times in which nothing happens, and lets every loop look."""
        self.clock.leap(total_sec * 1000)
        await self.clock.some_turns(6)

    async def pass_time_until(self, condition: Callable[[], bool], what: str, step_sec: int = 30) -> None:
        """Moves the clock on, step by step, until it holds: for loops whose turn may just be over."""

        async def moved_on() -> bool:
            await self.pass_time(step_sec, step_sec)
            return condition()

        await poll_async(moved_on, what)

    async def pass_time_until_found(self, probe: Callable[[], Awaitable[bool]], what: str, step_sec: int = 5) -> None:
        """The same for what the store has to be asked; no time passes where it is so already."""

        async def moved_on() -> bool:
            if await probe():
                return True
            await self.pass_time(step_sec, step_sec)
            return False

        await poll_async(moved_on, what)

    async def pass_time_until_nothing_waits(self, step_sec: int = 5) -> None:
        await self.pass_time_until_found(self._nothing_waits, "no unfinished job", step_sec)

    async def _nothing_waits(self) -> bool:
        return not set(await self.counts()) & {"queued", "delayed", "running"}

    async def _none_runs(self) -> bool:
        return "running" not in await self.counts()

    async def until(self, probe: Callable[[], Awaitable[int]], what: str) -> None:
        """Until it answers something else than nothing."""

        async def found() -> bool:
            return bool(await probe())

        await poll_async(found, what)

    async def rows(self, sql: str, **params: object) -> Rows:
        return await self.store.read(_rows, sql, params)

    async def jobs(self) -> Rows:
        return await self.rows(
            """
            SELECT j.job_id, j.camera_key, j.status, j.attempt, j.last_error, j.available_at, j.locked_by,
              j.locked_until, j.finished_at, f.frame_uuid, f.analyzed, f.primary_event, f.event_id
            FROM inference_jobs j JOIN frames f ON f.frame_id = j.frame_id ORDER BY j.job_id"""
        )

    async def job(self, frame_uuid: str) -> dict[str, Any]:
        (found,) = [job for job in await self.jobs() if job["frame_uuid"] == frame_uuid]
        return found

    async def events(self) -> Rows:
        return await self.rows(
            """
            SELECT e.*, f.frame_uuid AS best_uuid FROM events e LEFT JOIN frames f ON f.frame_id = e.best_frame_id
            ORDER BY e.event_id"""
        )

    async def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for job in await self.jobs():
            counts[job["status"]] = counts.get(job["status"], 0) + 1
        return counts

    async def until_status(self, **wanted: int) -> None:
        """Until exactly so many jobs are in exactly these states."""

        async def reached() -> bool:
            return await self.counts() == wanted

        try:
            await poll_async(reached, f"jobs {wanted}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; they are {await self.jobs()}") from error

    async def analyzed(self, *looks: tuple[int, Seen, int]) -> None:
        """Looks (camera, what is seen, when), one after the other, each done before the next comes."""
        for camera, seen, at_ms in looks:
            await self.look(camera, seen, at_ms)
            await self.until_nothing_waits()

    async def until_nothing_waits(self) -> None:
        await poll_async(self._nothing_waits, "no unfinished job")


async def _must_end(task: asyncio.Task[None]) -> None:
    """A loop that forgets that it was told to stop would be waited for without end."""
    ended, _ = await asyncio.wait([task], timeout=TIMEOUT_SEC)
    if not ended:
        left = "\n".join(_whereabouts(one) for one in asyncio.all_tasks())
        raise AssertionError(f"the dispatcher did not stop; these tasks are left:\n{left}")


def _whereabouts(task: asyncio.Task[Any]) -> str:
    """Where it waits, from the outermost call to the innermost."""
    calls, inner = [], task.get_coro()
    while (frame := getattr(inner, "cr_frame", None)) is not None:
        calls.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        inner = getattr(inner, "cr_await", None)
    return f"{task.get_name()} ({task.cancelling()} cancellations): {' > '.join(calls)} > {inner!r}"


async def _is_up(task: asyncio.Task[None], ready: Ready) -> bool:
    if task.done():
        task.result()
    return ready.is_ready


async def _rows(tx: Tx, sql: str, params: dict[str, object]) -> Rows:
    rows: Any = await tx.all(sql, **params)  # each driver has its own kind of row; all of them make a dict
    return [dict(row) for row in rows]
