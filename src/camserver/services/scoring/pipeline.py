"""One process at work on one run.

    ChunkScheduler --> Producer --> InvokerPool --> ValidationPool --> journal --> SheetWriter
      claims chunks     tasks        questions       scores             store       the sheet

A result goes into the journal first, together with the answer that is kept for the same question; the sheet gets it
later, and only then it counts as written. Whatever dies, the next process goes on from the journal.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uuid_utils

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.llm.prices import Price
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import PauseReason, RunStatus, ScoringPolicy
from camserver.domain.scoring_limits import ConcurrencyController
from camserver.services.scoring.asking import Model, Pictures
from camserver.services.scoring.budget import Budget
from camserver.services.scoring.following import Following
from camserver.services.scoring.invoking import InvokerPool
from camserver.services.scoring.journal import Journal
from camserver.services.scoring.producing import Producer
from camserver.services.scoring.scheduling import ChunkScheduler
from camserver.services.scoring.slots import Sharing, Slots, key_digest
from camserver.services.scoring.tasks import Interrupted
from camserver.services.scoring.writing import SheetWriter
from camserver.store import Dialect, Store, scoring_journal, scoring_runs
from camserver.store.scoring_journal import Spent
from camserver.store.scoring_runs import Run

log = get_logger(__name__)

# What is in flight when a run is stopped is paid for, and waited for so long.
DRAIN_SEC = 60.0
PRUNE_EVERY_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Models:
    """The model that scores and those to fall back to, and what they cost."""

    clients: Sequence[Model]
    prices: Sequence[Price | None]
    base_url: str | None
    key: Secret | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How this process stands, for a display."""

    limit: float
    in_flight: int
    pace: float | None
    latency_sec: float
    workers: int
    spent: Spent
    write_delay_sec: float
    trouble: str | None  # with the model
    sheet_trouble: str | None


class ScoringPipeline:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        sheet: Sheet,
        run: Run,
        policy: ScoringPolicy,
        models: Models,
        pictures: Pictures | None = None,
        aside: Path | None = None,
    ) -> None:
        """`aside`: a folder of this machine, for answers that are not in the journal yet."""
        self._store = store
        self._clock = clock
        self._run = run
        self._policy = policy
        token = str(uuid_utils.uuid7())
        self._journal = Journal(store, clock, run, token, aside)
        self._budget = Budget(store, run.run_id, run.budget_micro is not None)
        controller = ConcurrencyController(
            policy.concurrency_start, policy.concurrency_max, policy.cut_factor, policy.clean_batches
        )
        self._slots = Slots(controller)
        digest = key_digest(run.spec.provider, models.base_url, models.key)
        self._sharing = Sharing(store, clock, digest, token, self._slots)
        self._invokers = InvokerPool(
            models.clients, models.prices, run.spec, policy, self._slots, self._journal, self._budget, pictures
        )
        following = Following(store, sheet, run.run_id, run.spec.layout.block_size)
        producer = Producer(
            store, clock, sheet, run.run_id, run.tenant_id, run.spec, policy, self._invokers, self._journal, following
        )
        self._writer = SheetWriter(store, clock, sheet, run.run_id, policy, token, self._journal.recorded)
        holder = f"{socket.gethostname()[:90]}:{os.getpid()}"
        self._scheduler = ChunkScheduler(
            store, clock, sheet, run, policy, producer, self._writer, following, holder, token
        )
        self._stopped: asyncio.Event = asyncio.Event()
        self.drain_sec = DRAIN_SEC

    def stop(self) -> None:
        """Pauses: nothing new is asked, what is in flight is waited for and written."""
        self._stopped.set()

    @property
    def standing(self) -> Standing:
        controller = self._slots.controller
        return Standing(
            controller.limit,
            controller.in_flight,
            controller.pace,
            controller.latency_sec,
            self._sharing.workers,
            self._journal.spent,
            self._writer.delay_sec,
            self._invokers.trouble,
            self._writer.trouble,
        )

    async def work(self) -> RunStatus:
        """Until the run is over, paused or cancelled; how it stands then."""
        if self._store.dialect is Dialect.SQLITE:
            await self._store.write(scoring_runs.forget_dead, self._run.run_id)
        await self._sharing.begin()
        await self._journal.begin()
        self._writer.wake()
        try:
            status = await self._stages()
        except Interrupted as error:
            await self._wind_down()
            if error.reason is not PauseReason.ASKED:
                now_ms = self._clock.now_ms()
                await self._store.write(scoring_runs.pause, self._run.run_id, error.reason, error.message, now_ms)
            status = (await self._store.read(scoring_runs.get, self._run.run_id)).status
            if status is RunStatus.RUNNING:
                await self._store.write(scoring_runs.want, self._run.run_id, "pause", self._clock.now_ms())
                status = RunStatus.PAUSED
            return status
        except BaseException:
            await self._wind_down()
            raise
        await self._wind_down()
        return status

    async def _stages(self) -> RunStatus:
        scheduling = asyncio.create_task(self._scheduler.run())
        stopping = asyncio.create_task(self._stopped.wait())
        others: list[asyncio.Task[object]] = [
            asyncio.create_task(work())
            for work in (
                self._invokers.run, self._scheduler.keep, self._writer.run, self._sharing.run, self._prune,
            )
        ]  # fmt: skip
        everyone: set[asyncio.Task[object]] = {scheduling, stopping, *others}
        try:
            while True:
                done, _ = await asyncio.wait(everyone, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    one.result()
                if scheduling in done:
                    return scheduling.result()
                if stopping in done:
                    raise Interrupted(PauseReason.ASKED, "stopped as asked")
                everyone -= done
        finally:
            for one in everyone:
                one.cancel()
            await asyncio.wait(everyone)

    async def _wind_down(self) -> None:
        """What was answered is kept whatever ends the work; the sheet gets what it takes."""
        await self._invokers.drain(self.drain_sec)
        await self._journal.close()
        await self._writer.close()
        await self._scheduler.let_go()
        await self._budget.close()

    async def _prune(self) -> None:
        while True:
            since_ms = self._clock.now_ms() - self._policy.cache_days * 86_400_000
            await self._store.write(scoring_journal.prune_kept, self._run.tenant_id, since_ms, self._policy.cache_max)
            await asyncio.sleep(PRUNE_EVERY_SEC)
