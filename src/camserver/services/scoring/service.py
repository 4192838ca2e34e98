"""The scoring service: looks at sheets that were brought on the web, works on runs that were asked for there, and
makes the files that people download.

Several may run on several machines: each claims chunks of the same run, and one of them writes. What can't be worked
on here (a file that is on another machine, say) is left to others and looked at again later. Killed at any moment,
the next one goes on: everything is in rows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.clients.sheets.sheet import PASSING, SheetError
from camserver.domain.scoring import PauseReason, RunStatus
from camserver.domain.scoring_sheets import SheetKind
from camserver.domain.sheet_layout import changed_headers
from camserver.objects.interface import Objects
from camserver.services.scoring import spool
from camserver.services.scoring.filling import fill
from camserver.services.scoring.looking import look_at_next
from camserver.services.scoring.opening import open_models
from camserver.services.scoring.pipeline import ScoringPipeline
from camserver.services.scoring.places import Places
from camserver.services.scoring.spool import aside_in
from camserver.services.scoring.telling import tell
from camserver.store import Store, scoring_desk, scoring_runs
from camserver.store.scoring_runs import Run

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

LOOK_EVERY_SEC = 1.0
PRUNE_EVERY_SEC = 3600.0
FORGET_EVERY_SEC = 60.0
# How long a run that can't be worked on here is left alone.
LEFT_ALONE_SEC = 60.0
# A process that stops has a few seconds; what is in flight then is paid for, and waited for that long.
STOP_DRAIN_SEC = 4.0
DAY_MS = 86_400_000


async def run(store: Store, objects: Objects, clock: Clock, settings: "Settings", ready: Ready) -> None:
    serving = Serving(store, objects, clock, settings)
    ready.set("scoring")
    async with asyncio.TaskGroup() as group:
        for turn in (serving.look, serving.work, serving.fill, serving.forget):
            group.create_task(_repeat(clock, turn))


async def _repeat(clock: Clock, turn: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await turn()
        except Retry as error:
            log.warning("scoring can't go on just now", cause=error.message)
        except Exception:
            # One sheet that is broken must not keep the others from going on.
            log.exception("scoring broke")
        go_on_unless_cancelled()
        await clock.sleep(LOOK_EVERY_SEC)


class Serving:
    def __init__(self, store: Store, objects: Objects, clock: Clock, settings: "Settings") -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._settings = settings
        self._places = Places(store, objects, clock, settings)
        self._working: dict[int, asyncio.Task[None]] = {}
        self._left_alone: dict[int, int] = {}
        self._prune_boot_ms = 0
        self._forget_boot_ms = 0

    async def look(self) -> None:
        while await look_at_next(self._store, self._clock, self._settings, self._places):
            go_on_unless_cancelled()

    async def fill(self) -> None:
        for run_id in await self._store.read(scoring_desk.unfilled):
            if run_id not in self._working and not self._is_left_alone(run_id):
                try:
                    await fill(self._store, self._objects, self._clock, self._settings, run_id)
                except CamError as error:
                    self._leave_alone(run_id, error)
        if self._clock.boot_ms() >= self._prune_boot_ms:
            now_ms = self._clock.now_ms()
            before_ms = now_ms - self._settings.scoring.sheet_days * DAY_MS
            while await self._store.write(scoring_desk.prune, before_ms, now_ms):
                go_on_unless_cancelled()
            self._prune_boot_ms = self._clock.boot_ms() + round(1000 * PRUNE_EVERY_SEC)

    async def forget(self) -> None:
        """What killed processes left of runs that are gone, with their sheet or with their tenant. Nobody will go on
        with those, and what an erased tenant had must not be here any longer than its rows."""
        if self._clock.boot_ms() < self._forget_boot_ms:
            return
        aside = aside_in(self._settings.server.data_dir)
        found = await asyncio.to_thread(spool.runs_in, aside)
        if found:
            there = await self._store.read(scoring_runs.there, found)
            await asyncio.to_thread(spool.forget, aside, [one for one in found if one not in there])
        self._forget_boot_ms = self._clock.boot_ms() + round(1000 * FORGET_EVERY_SEC)

    async def work(self) -> None:
        """Begins with runs that wait, and stays until none is worked on: a turn that is cancelled ends them all."""
        try:
            while True:
                await self._begin()
                if not self._working:
                    return
                await asyncio.wait(
                    self._working.values(), timeout=LOOK_EVERY_SEC, return_when=asyncio.FIRST_COMPLETED
                )
                self._working = {one: task for one, task in self._working.items() if not task.done()}
        except BaseException:
            for task in self._working.values():
                task.cancel()
            if self._working:
                await asyncio.wait(self._working.values())
            self._working = {}
            raise

    async def _begin(self) -> None:
        room = self._settings.scoring.runs_at_once - len(self._working)
        for run_id in await self._store.read(scoring_runs.waiting):
            if room > 0 and run_id not in self._working and not self._is_left_alone(run_id):
                self._working[run_id] = asyncio.create_task(self._work_on(run_id))
                room -= 1

    async def _work_on(self, run_id: int) -> None:
        try:
            chosen = await self._store.read(scoring_runs.get, run_id)
            status = await work_on(self._store, self._clock, self._settings, self._places, chosen)
            log.info("a run was worked on", run=chosen.run_uuid, status=status.value)
        except CamError as error:
            self._leave_alone(run_id, error)
        except Exception:
            log.exception("a run broke", run_id=run_id)
            self._left_alone[run_id] = self._clock.boot_ms() + round(1000 * LEFT_ALONE_SEC)

    def _leave_alone(self, run_id: int, error: CamError) -> None:
        log.warning("a run can't be worked on here", run_id=run_id, cause=error.message)
        self._left_alone[run_id] = self._clock.boot_ms() + round(1000 * LEFT_ALONE_SEC)

    def _is_left_alone(self, run_id: int) -> bool:
        return self._left_alone.get(run_id, 0) > self._clock.boot_ms()


async def work_on(store: Store, clock: Clock, settings: "Settings", places: Places, chosen: Run) -> RunStatus:
    """Works on one run until it is over, paused or cancelled. Cancelled itself, it lets go of everything."""
    held = None if chosen.sheet_id is None else await store.read(scoring_desk.sheet_of, chosen.sheet_id)
    if held is None:
        return RunStatus.CANCELLED  # its sheet was removed, and it with it
    async with AsyncExitStack() as stack:
        try:
            sheet = await places.open(held.sheet, chosen.spec.layout, chosen.run_id)
            stack.push_async_callback(sheet.close)
            changed = changed_headers(chosen.spec.layout, chosen.spec.categories, await sheet.categories())
        except SheetError as error:
            if error.kind in PASSING:
                raise
            return await _paused(store, clock, chosen, error.message)
        if changed is not None:
            return await _paused(store, clock, chosen, changed)
        models, clients = open_models(settings.llm, chosen.spec)
        for client in clients:
            stack.push_async_callback(client.close)
        pictures = places.picture if held.sheet.kind is SheetKind.EVENTS else None
        pipeline = ScoringPipeline(
            store, clock, sheet, chosen, settings.scoring, models, pictures, aside_in(settings.server.data_dir)
        )
        return await _worked(store, clock, chosen, pipeline)


async def _worked(store: Store, clock: Clock, chosen: Run, pipeline: ScoringPipeline) -> RunStatus:
    working = asyncio.create_task(pipeline.work())
    telling = asyncio.create_task(tell(store, clock, chosen.run_id, pipeline))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        pipeline.drain_sec = STOP_DRAIN_SEC
        working.cancel()
        await asyncio.wait([working])
        raise
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def _paused(store: Store, clock: Clock, chosen: Run, why: str) -> RunStatus:
    await store.write(scoring_runs.pause, chosen.run_id, PauseReason.SHEET, why, clock.now_ms())
    return RunStatus.PAUSED
