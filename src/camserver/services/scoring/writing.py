"""SheetWriter: gives the sheet what is in the journal, and marks it once the sheet has accepted it.

It reads from the journal and not from the other stages, so a slow sheet holds no memory, a crash loses nothing, and
results of every machine come out of one place: one process at a time has the right to write to a run's sheet.
"""

import asyncio
import time
from collections.abc import Sequence

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.clients.sheets.sheet import PASSING, WRITE_MAX, Sheet, SheetError
from camserver.domain.scoring import PauseReason, ResultState, ScoringPolicy, retry_delay_sec
from camserver.domain.sheet_rows import FINAL, Outcome, RowOutcome, RowScores
from camserver.services.scoring.tasks import Interrupted
from camserver.store import Store, scoring_journal, scoring_runs
from camserver.store.scoring_journal import Settled, Unwritten

log = get_logger(__name__)

# The right to write is renewed meanwhile; of a process that was killed it is free after this.
LOCK_MS = 60_000
_STATES = {
    Outcome.WRITTEN: ResultState.WRITTEN,
    Outcome.CHANGED: ResultState.MOVED,
    Outcome.KEPT: ResultState.REFUSED,
    Outcome.PROTECTED: ResultState.REFUSED,
}


class SheetWriter:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        sheet: Sheet,
        run_id: int,
        policy: ScoringPolicy,
        token: str,
        recorded: asyncio.Event,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sheet = sheet
        self._run_id = run_id
        self._policy = policy
        self._token = token
        self._recorded = recorded
        self._staged = 0  # given to the sheet, not settled
        self._after_id = 0
        self._turn = asyncio.Lock()
        self._failures = 0
        self._is_writing = False
        self.has_moved = False
        self.delay_sec = 0.0  # how long the last write took
        self.trouble: str | None = None

    def wake(self) -> None:
        self._recorded.set()

    async def run(self) -> None:
        """Writes until cancelled, whenever there is enough or it has waited long enough."""
        while True:
            await self._recorded.wait()
            await asyncio.sleep(self._policy.flush_interval_sec)
            self._recorded.clear()
            async with self._turn:
                await self._write_all(final=False)
            if self._failures:
                await asyncio.sleep(retry_delay_sec(self._failures))
                self._recorded.set()

    async def drain(self) -> None:
        """Everything that is in the journal goes to the sheet now. Interrupted when it does not take it."""
        self._failures = 0
        while True:
            async with self._turn:
                is_done = await self._write_all(final=True)
            if is_done:
                return
            if self._failures > self._policy.write_retries:
                raise Interrupted(
                    PauseReason.SHEET,
                    f"{self.trouble}; results wait in the journal, and the same command goes on with them",
                )
            await asyncio.sleep(retry_delay_sec(self._failures) if self._failures else 0.5)

    async def close(self) -> None:
        """Writes what can be written, once, and gives the right to write back."""
        try:
            async with self._turn:
                await self._write_all(final=True)
        except (Interrupted, Retry) as error:
            log.warning("results wait in the journal", cause=str(error))
        await self._store.write(scoring_runs.leave_writing, self._run_id, self._token)

    async def _write_all(self, final: bool) -> bool:
        """Whether nothing is left that is known to be in the journal."""
        self._is_writing = await self._take()
        if not self._is_writing:
            return not await self._store.read(scoring_journal.unwritten, self._run_id, 0, 1)
        began = time.monotonic()
        try:
            while batch := await self._batch():
                outcomes = await self._sheet.write(
                    [RowScores(one.row, one.identity, one.first_category, one.scores) for one in batch]
                )
                self._staged += len(batch)
                self._after_id = max(self._after_id, batch[-1].result_id)
                await self._settle(outcomes)
            async for outcomes in self._sheet.flush(final=final):
                await self._settle(outcomes)
        except SheetError as error:
            if error.kind not in PASSING:
                raise Interrupted(PauseReason.SHEET, error.message) from error
            self._failures += 1
            self.trouble = error.message
            log.warning("the sheet could not be written", cause=error.message, kind=error.kind.value)
            return False
        finally:
            self._is_writing = False
        self._failures, self.trouble = 0, None
        self.delay_sec = time.monotonic() - began
        if not self._staged and self._after_id and final:
            # Results of other processes may have become visible out of order, and earlier ones may be due again.
            self._after_id = 0
            return not await self._store.read(scoring_journal.unwritten, self._run_id, 0, 1)
        return not self._staged

    async def _take(self) -> bool:
        now_ms = self._clock.now_ms()
        return await self._store.write(scoring_runs.take_writing, self._run_id, self._token, now_ms + LOCK_MS, now_ms)

    async def keep(self) -> None:
        """Renews the right to write while it is used: a large file takes its time."""
        if self._is_writing:
            await self._take()

    async def _batch(self) -> Sequence[Unwritten]:
        return await self._store.read(scoring_journal.unwritten, self._run_id, self._after_id, WRITE_MAX)

    async def _settle(self, outcomes: Sequence[RowOutcome]) -> None:
        settled: list[Settled] = []
        has_moved = False
        for one in outcomes:
            if one.outcome not in FINAL:
                continue
            has_moved = has_moved or one.outcome is Outcome.CHANGED or one.now_row not in (0, one.row)
            state = _STATES[one.outcome]
            settled.append(Settled(one.row, one.first_category, one.identity, state, one.reason or None))
        self._staged = max(self._staged - len(settled), 0)
        if settled:
            self.has_moved = self.has_moved or has_moved
            await self._store.write(
                scoring_journal.settle, self._run_id, tuple(settled), has_moved, self._clock.now_ms()
            )
