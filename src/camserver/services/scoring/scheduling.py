"""ChunkScheduler: claims chunks, has them worked through several at once, tries them again, and ends the run.

Several processes may work on one run: a chunk belongs to whoever holds its lock, which is renewed meanwhile.
"""

import asyncio

from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.clients.sheets.sheet import PASSING, Sheet, SheetError
from camserver.domain.scoring import (
    PauseReason,
    RunStatus,
    ScoringPolicy,
    is_chunk_tried_again,
    plan_chunks,
    retry_delay_sec,
)
from camserver.services.scoring.following import Following
from camserver.services.scoring.producing import Producer
from camserver.services.scoring.tasks import Interrupted, OpenChunk
from camserver.services.scoring.writing import SheetWriter
from camserver.store import Store, scoring_chunks, scoring_runs

log = get_logger(__name__)

# Renewed every few seconds; a chunk of a process that was killed is taken over after this.
LOCK_MS = 30_000
KEEP_EVERY_SEC = 2.0
# How often a process without work looks whether there is some: others may be at it.
IDLE_SEC = 0.5


class ChunkScheduler:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        sheet: Sheet,
        run: scoring_runs.Run,
        policy: ScoringPolicy,
        producer: Producer,
        writer: SheetWriter,
        following: Following,
        holder: str,
        token: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sheet = sheet
        self._run = run
        self._policy = policy
        self._producer = producer
        self._writer = writer
        self._following = following
        self._holder = holder
        self._token = token
        self._open: dict[int, OpenChunk] = {}
        self._over: asyncio.Queue[OpenChunk] = asyncio.Queue()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def open_chunks(self) -> int:
        return len(self._open)

    async def run(self) -> RunStatus:
        """Works until the run is over, and says how. Interrupted when it can't go on, or a person stopped it."""
        while True:
            await self._close_over()
            chunk = await self._next()
            if chunk is not None:
                await self._produce(chunk)
                continue
            if self._open:
                await self._wait_for_one()
                continue
            status = await self._end()
            if status is not RunStatus.RUNNING:
                return status
            await asyncio.sleep(IDLE_SEC)

    async def keep(self) -> None:
        """Renews the locks until cancelled, tells how far each chunk is, and heeds what a person asked for."""
        while True:
            await asyncio.sleep(KEEP_EVERY_SEC)
            try:
                await self._kept()
            except Retry as error:
                log.warning("locks could not be renewed", cause=error.message)

    async def _kept(self) -> None:
        now_ms = self._clock.now_ms()
        counts = tuple(chunk.counts for chunk in self._open.values())
        await self._store.write(scoring_chunks.count, self._run.run_id, self._token, counts, now_ms)
        ours = set(await self._store.write(scoring_chunks.keep, self._run.run_id, self._token, now_ms + LOCK_MS))
        for number in self._open.keys() - ours:
            # Another process has it by now; what is paid for goes into the journal all the same.
            self._open[number].fail("the lock was lost")
        await self._writer.keep()
        run = await self._store.read(scoring_runs.get, self._run.run_id)
        if run.wanted != "run" or run.status is not RunStatus.RUNNING:
            raise Interrupted(PauseReason(run.reason or "asked"), run.message or "stopped as asked")

    async def let_go(self) -> None:
        """When this process stops: what it holds is given back, counted."""
        await self._close_over()
        now_ms = self._clock.now_ms()
        counts = tuple(chunk.counts for chunk in self._open.values())
        await self._store.write(scoring_chunks.count, self._run.run_id, self._token, counts, now_ms)
        await self._store.write(scoring_chunks.let_go, self._run.run_id, self._token, now_ms)

    # -- Inside --------------------------------------------------------------------------------------------------

    async def _next(self) -> OpenChunk | None:
        if len(self._open) >= self._policy.chunks_at_once:
            return None
        now_ms = self._clock.now_ms()
        claimed = await self._store.write(
            scoring_chunks.claim, self._run.run_id, self._holder, self._token, 1, now_ms + LOCK_MS, now_ms
        )
        if not claimed:
            return None
        chunk = OpenChunk(claimed[0].plan, claimed[0].retry_count, self._over.put_nowait)
        self._open[chunk.plan.number] = chunk
        return chunk

    async def _produce(self, chunk: OpenChunk) -> None:
        try:
            await self._producer.produce(chunk)
        except SheetError as error:
            if error.kind not in PASSING:
                chunk.is_abandoned = True
                raise Interrupted(PauseReason.SHEET, error.message) from error
            chunk.fail(error.message)
        except BaseException:
            chunk.is_abandoned = True
            raise
        finally:
            chunk.drop()

    async def _wait_for_one(self) -> None:
        """Until a chunk is over, or it is time to look whether another one is due."""
        try:
            async with asyncio.timeout(IDLE_SEC):
                await self._close(await self._over.get())
        except TimeoutError:
            pass

    async def _close_over(self) -> None:
        while not self._over.empty():
            await self._close(self._over.get_nowait())

    async def _close(self, chunk: OpenChunk) -> None:
        closing = asyncio.ensure_future(self._closed(chunk))
        await asyncio.shield(closing)

    async def _closed(self, chunk: OpenChunk) -> None:
        now_ms = self._clock.now_ms()
        number = chunk.plan.number
        if chunk.error is None and chunk.is_abandoned:
            return  # it is given back when the work has stopped
        if chunk.error is None:
            await self._store.write(scoring_chunks.finish, self._run.run_id, self._token, chunk.counts, now_ms)
            self._writer.wake()
        else:
            again = None
            if is_chunk_tried_again(chunk.retry_count, self._policy):
                again = now_ms + round(1000 * retry_delay_sec(chunk.retry_count + 1))
            log.warning("a chunk failed", chunk=chunk.plan.name, cause=chunk.error, is_tried_again=again is not None)
            await self._store.write(
                scoring_chunks.fail, self._run.run_id, number, self._token, chunk.error, again, now_ms
            )
        self._open.pop(number, None)

    async def _end(self) -> RunStatus:
        """Nothing is left to claim: what is in the journal goes to the sheet, then the run may be over."""
        await self._writer.drain()
        run_id, now_ms = self._run.run_id, self._clock.now_ms()
        await self._store.write(scoring_chunks.complete_all, run_id, now_ms)
        if await self._store.read(scoring_chunks.next_due_ms, run_id) is not None:
            return RunStatus.RUNNING
        run = await self._store.read(scoring_runs.get, run_id)
        try:
            await self._following.follow()
            last_row = (await self._sheet.check()).last_row if self._writer.has_moved else run.last_row
        except CamError as error:
            raise Interrupted(PauseReason.SHEET, error.message) from error
        totals = await self._store.read(scoring_runs.totals, run_id)
        more = plan_chunks(run.last_row + 1, last_row, self._policy.chunk_rows)
        numbered = tuple(type(one)(one.number + totals.chunks, one.row_start, one.row_end) for one in more)
        ended = await self._store.write(scoring_runs.end_if_done, run_id, last_row, numbered, now_ms)
        if ended.is_new_pass:
            self._writer.has_moved = False
            log.info("rows moved meanwhile; one more pass over the sheet")
        return ended.status
