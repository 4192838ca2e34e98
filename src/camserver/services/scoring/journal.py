"""Makes results durable, many in one transaction, and remembers what was answered a moment ago.

A transaction costs as much as a question, so results wait for others: for a part of the time that an answer
takes, and no longer than until there are enough of them. What was paid for and is not durable is bounded by that, and
kept aside meanwhile (spool.py), so that a kill does not lose it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.domain.scoring import ResultState, retry_delay_sec
from camserver.services.scoring import spool
from camserver.services.scoring.spool import Spool
from camserver.store import Store, scoring_journal
from camserver.store.scoring_journal import Entry, Kept, Spent
from camserver.store.scoring_runs import Run

log = get_logger(__name__)

BATCH_MAX = 100
# Results on their way into the journal (decision 48); further ones wait for them.
WAITING_MAX = 100
LINGER_MAX_SEC = 0.1
# Between the look into the cache and the answer lie the tasks that wait; this is far more.
RECENT_MAX = 5_000
NOTHING = Spent()
# A result that may be asked for again: a new one takes its place.
_ASKED_AGAIN = frozenset({ResultState.FAILED, ResultState.MOVED, ResultState.AWAY})

_Waiting = tuple[Entry, Callable[[], None]]


class Journal:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        run: Run,
        token: str,
        aside: Path | None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`aside`: the folder for what is not durable yet. `on_failure` is told what keeps an entry from being
        written, now and for good."""
        self._store = store
        self._clock = clock
        self._run = run
        self._token = token
        self._aside = aside
        self._spool: Spool | None = None
        self._recent: OrderedDict[str, Kept] = OrderedDict()
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._is_enough = asyncio.Event()
        self._progress = asyncio.Event()
        self._is_closing = False
        self.on_failure = on_failure
        self.linger_sec = 0.0  # how long a result waits for others
        self.enough = 1  # so many are not waited for
        self.unsettled = 0  # entries that are not durable
        self.unsettled_paid = 0  # those of them that cost a call
        self.recorded = asyncio.Event()  # set whenever there is something new for the sheet
        self.spent = NOTHING  # of this process, since its start

    async def begin(self) -> None:
        """Takes over what killed processes of this run were about to write."""
        if self._aside is None:
            return
        run_uuid = self._run.run_uuid
        try:
            for entry in await asyncio.to_thread(spool.left_by, self._aside, run_uuid):
                await self._take_over(entry)
            await asyncio.to_thread(spool.sweep, self._aside, run_uuid, self._clock.now_ms())
            self._spool = await asyncio.to_thread(Spool, self._aside, run_uuid, self._token)
        except OSError as error:
            log.warning("answers can't be kept aside", cause=str(error))

    async def _take_over(self, entry: Entry) -> None:
        if not entry.results or await self._is_durable(entry):
            return
        try:
            await self._record([entry])
        except Retry:
            raise
        except CamError as error:
            # It is asked again; a run must not stand still for it.
            log.warning("an answer that was kept aside can't be written", code=error.code, cause=error.message)

    async def _is_durable(self, entry: Entry) -> bool:
        first = entry.results[0]
        known = await self._store.read(scoring_journal.of_chunk, self._run.run_id, first.row, first.row)
        state = known.get((first.row, first.first_category, first.identity))
        return state is not None and (state not in _ASKED_AGAIN or first.scores is None)

    def put(self, entry: Entry, then: Callable[[], None]) -> None:
        """`then` is called once it is durable. Ask for room first."""
        self.unsettled += 1
        if entry.spent.calls > 0:
            self.unsettled_paid += 1
            if self._spool is not None:
                self._spool.add([entry])
        self._waiting.append((entry, then))
        if len(self._waiting) >= self.enough or self._is_closing:
            self._is_enough.set()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def room(self) -> None:
        """Waits while too much is on its way into the journal."""
        while self.unsettled >= WAITING_MAX:
            self._progress.clear()
            await self._progress.wait()

    async def progress(self) -> None:
        """Waits until more is durable, which begins now."""
        self._is_enough.set()
        self._progress.clear()
        await self._progress.wait()

    def remember(self, asked_as: str, kept: Kept) -> None:
        """For rows with the same question (`asked_as`), before the cache can be asked for it."""
        self._recent[asked_as] = kept
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    def recent(self, key: str) -> Kept | None:
        return self._recent.get(key)

    async def close(self) -> None:
        """Waits until everything is durable."""
        self._is_closing = True
        self._is_enough.set()
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._spool is not None:
            held, self._spool = self._spool, None
            await asyncio.to_thread(held.close)

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < self.enough and not self._is_closing:
                    await self._linger()
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                await self._write(batch)
        finally:
            self._writing = None

    async def _linger(self) -> None:
        self._is_enough.clear()
        timer = asyncio.get_running_loop().call_later(min(self.linger_sec, LINGER_MAX_SEC), self._is_enough.set)
        try:
            await self._is_enough.wait()
        finally:
            timer.cancel()

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        """A store that is away is waited for: what was answered is paid for. An entry that can't be written hurts no
        other."""
        failures = 0
        while True:
            try:
                await self._record([entry for entry, _ in batch])
                break
            except Retry as error:
                log.warning("results wait for the database", cause=error.message)
                await asyncio.sleep(retry_delay_sec(failures))
                failures += 1
            except Exception as error:
                if len(batch) == 1:
                    self.on_failure(error)
                    self._forget(batch)
                    return
                for one in batch:
                    await self._write([one])
                return
        self.spent = _sum([self.spent, *(entry.spent for entry, _ in batch)])
        self._forget(batch)
        for _, then in batch:
            then()
        self.recorded.set()

    def _forget(self, batch: Sequence[_Waiting]) -> None:
        self.unsettled -= len(batch)
        self.unsettled_paid -= sum(entry.spent.calls > 0 for entry, _ in batch)
        if self._spool is not None:
            self._spool.settled(self._waiting_paid())
        self._progress.set()

    def _waiting_paid(self) -> Iterator[Entry]:
        return (entry for entry, _ in self._waiting if entry.spent.calls > 0)

    async def _record(self, entries: Sequence[Entry]) -> None:
        results = tuple(one for entry in entries for one in entry.results)
        kept = {one.question_key: one for entry in entries for one in entry.kept}
        await self._store.write(
            scoring_journal.record,
            self._run.run_id,
            self._run.tenant_id,
            results,
            tuple(kept.values()),
            _sum([entry.spent for entry in entries]),
            self._clock.now_ms(),
        )


def _sum(spent: Sequence[Spent]) -> Spent:
    if len(spent) == 1:
        return spent[0]
    return Spent(*map(sum, zip(*spent, strict=True)))
