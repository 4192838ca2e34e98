"""What time does to rows and objects: locks run out, back-offs end, events close, orphans go.

Any number of dispatchers may sweep at once: each step takes only what nobody else has locked, and repeats nothing.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.objects.keys import epoch_prefix, frame_uuid_of, is_draft
from camserver.objects.local import Objects
from camserver.store import Store, changes, epochs, errand_orders, events, frames, garbage, jobs

log = get_logger(__name__)

# A writer of objects that was not seen for this long is dead; it renews every ten seconds.
EPOCH_DEAD_MS = 60_000
# How far back a browser may catch up with the change feed.
CHANGES_KEPT_MS = 24 * 3_600_000
# How much longer than a renewal takes to come round the locks stand after the store was away.
RENEWAL_MARGIN_SEC = 5
PAGE = 500
# Rounds a step takes per turn, so that a flood in one never starves the others.
ROUNDS_MAX = 20
# Pages of garbage of which nothing could be deleted, after which a turn is over: the objects' store may be away.
GARBAGE_IN_VAIN_MAX = 3


@dataclass(frozen=True, slots=True)
class Step:
    every_sec: float
    name: str
    sweep: Callable[[], Awaitable[int]]  # answers how many it dealt with; PAGE or more means that there are more


@dataclass(slots=True)
class Sweeper:
    store: Store
    objects: Objects
    clock: Clock
    jobs: JobPolicy
    events: EventPolicy
    default_interval_ms: int
    # While the store was away nobody could renew a lock, so nobody is thought dead before they had time to.
    _locks_stand_until_boot_ms: int = 0
    _garbage_after: int = 0

    async def run(self) -> None:
        """Sweeps for ever; each step at its own pace, the first time at once (decisions 22)."""
        rows = (
            Step(1.0, "promoted", self.promote_delayed),
            Step(5.0, "locks_returned", self.return_expired),
            Step(10.0, "events_closed", self.close_events),
            Step(10.0, "jobs_skipped", self.skip_jobs),
            Step(60.0, "changes_pruned", self.prune_changes),
        )
        # Apart from the rows, because a folder with millions of pictures takes its time.
        objects = (
            Step(30.0, "orphans_deleted", self.delete_orphans),
            Step(30.0, "garbage_deleted", self.delete_garbage),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(rows))
            group.create_task(self._repeat(objects))

    async def _repeat(self, steps: Sequence[Step]) -> None:
        due = [0] * len(steps)
        while True:
            for index, step in enumerate(steps):
                started_boot_ms = self.clock.boot_ms()
                if started_boot_ms >= due[index]:
                    await self._turn(step)
                    go_on_unless_cancelled()
                    # From its start: what became due while it ran was not seen by it.
                    due[index] = started_boot_ms + round(step.every_sec * 1000)
            await self.clock.sleep(1.0)

    async def _turn(self, step: Step) -> None:
        try:
            for _ in range(ROUNDS_MAX):
                count = await step.sweep()
                if count:
                    log.info("swept", what=step.name, count=count)
                if count < PAGE:
                    break
        except Retry as error:
            rest_ms = (self.jobs.renew_every_sec + RENEWAL_MARGIN_SEC) * 1000
            self._locks_stand_until_boot_ms = self.clock.boot_ms() + rest_ms
            log.warning("sweep_failed", what=step.name, why=error.message)
        except Exception:
            # One step that is broken must not keep the others, nor the analysis, from going on.
            log.exception("sweep_broke", what=step.name)

    async def promote_delayed(self) -> int:
        return await self.store.write(jobs.promote_delayed, self.clock.now_ms())

    async def return_expired(self) -> int:
        if self.clock.boot_ms() < self._locks_stand_until_boot_ms:
            return 0
        return await self.store.write(jobs.return_expired, self.clock.now_ms(), self.jobs, random.random())

    async def close_events(self) -> int:
        return await self.store.write(events.close_stale, self.clock.now_ms(), self.events, self.default_interval_ms)

    async def skip_jobs(self) -> int:
        now_ms = self.clock.now_ms()
        old = await self.store.write(jobs.skip_old, now_ms, self.jobs)
        return old + await self.store.write(jobs.skip_beyond_bound, now_ms, self.jobs)

    async def prune_changes(self) -> int:
        return await self.store.write(changes.prune, self.clock.now_ms() - CHANGES_KEPT_MS)

    async def delete_garbage(self) -> int:
        """Goes over all of it, a page at a time. Where page after page stays, the next turn goes on behind them."""
        deleted, in_vain = 0, 0
        while in_vain < GARBAGE_IN_VAIN_MAX:
            trash = await self.store.read(garbage.oldest, self._garbage_after)
            gone = [item.garbage_id for item in trash if await self._is_deleted(item.object_key)]
            if gone:
                await self.store.write(garbage.forget, tuple(gone))
            deleted += len(gone)
            in_vain = 0 if gone else in_vain + 1
            if len(trash) < garbage.BATCH:
                self._garbage_after = 0
                break
            self._garbage_after = trash[-1].garbage_id
        return deleted

    async def _is_deleted(self, key: str) -> bool:
        """Deletes an object. One that can't be deleted now is reported and kept for later; the others go on."""
        try:
            await self.objects.delete(key)
        except (CamError, OSError) as error:
            log.warning("object_not_deleted", key=key, why=str(error))
            return False
        return True

    async def delete_orphans(self) -> int:
        """Ends dead epochs, then deletes what lies under ended ones without a row (decisions 13)."""
        now_ms = self.clock.now_ms()
        await self.store.write(epochs.end_dead, now_ms - EPOCH_DEAD_MS, now_ms)
        deleted = 0
        for epoch_id in await self.store.read(epochs.unswept):
            deleted += await self._delete_orphans_of(epoch_id)
        return deleted

    async def _delete_orphans_of(self, epoch_id: int) -> int:
        deleted, after, whole = 0, "", True
        while keys := await self.objects.list(epoch_prefix(epoch_id), PAGE, after):
            uuids = tuple({frame_uuid_of(key) for key in keys})
            kept = await self.store.read(frames.with_rows, epoch_id, uuids)
            named = await self.store.read(errand_orders.named, epoch_id, tuple(keys))
            for key in keys:
                if is_draft(key) or (frame_uuid_of(key) not in kept and key not in named):
                    is_deleted = await self._is_deleted(key)
                    deleted += is_deleted
                    whole = whole and is_deleted
            after = keys[-1]
        if whole:
            await self.store.write(epochs.mark_swept, epoch_id, self.clock.now_ms())
        return deleted
