"""Makes results durable, many in one transaction, and remembers what was answered a moment ago.

A transaction costs as much as a question, so results wait for others: for a small part of the time that an answer
takes, and no longer than until there are enough of them. What was paid for and is not durable is bounded by that.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.domain.scoring import retry_delay_sec
from camserver.store import Store, scoring_journal
from camserver.store.scoring_journal import Kept, Result, Spent

log = get_logger(__name__)

BATCH_MAX = 100
# Results on their way into the journal (decision 48); further ones wait for them.
WAITING_MAX = 100
LINGER_MAX_SEC = 0.1
# Between the look into the cache and the answer lie the tasks that wait; this is far more.
RECENT_MAX = 5_000


NOTHING = Spent()


class Entry(NamedTuple):
    """What is written together: results, answers that are kept, and what they cost."""

    results: tuple[Result, ...] = ()
    kept: tuple[Kept, ...] = ()
    spent: Spent = NOTHING


_Waiting = tuple[Entry, Callable[[], None]]


class Journal:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        run_id: int,
        tenant_id: int,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`on_failure` is told what keeps an entry from being written, now and for good."""
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._tenant_id = tenant_id
        self._recent: OrderedDict[str, Kept] = OrderedDict()
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._is_enough = asyncio.Event()
        self._progress = asyncio.Event()
        self._is_closing = False
        self._is_hurried = False  # what waits now waits for no others
        self.on_failure = on_failure
        self.linger_sec = 0.0  # how long a result waits for others
        self.enough = 1  # so many are not waited for
        self.unsettled = 0  # entries that are not durable
        self.unsettled_paid = 0  # those of them that cost a call
        self.recorded = asyncio.Event()  # set whenever there is something new for the sheet
        self.spent = NOTHING  # of this process, since its start

    def put(self, entry: Entry, then: Callable[[], None]) -> None:
        """`then` is called once it is durable. Ask for room first."""
        self.unsettled += 1
        self.unsettled_paid += entry.spent.calls > 0
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

    def hurry(self) -> None:
        """What waits is written now: those who put it waited for each other before."""
        self._is_hurried = True
        self._is_enough.set()

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

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < self.enough and not self._is_closing and not self._is_hurried:
                    await self._linger()
                self._is_hurried = False
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
        self._progress.set()

    async def _record(self, entries: Sequence[Entry]) -> None:
        results = tuple(one for entry in entries for one in entry.results)
        kept = {one.question_key: one for entry in entries for one in entry.kept}
        await self._store.write(
            scoring_journal.record,
            self._run_id,
            self._tenant_id,
            results,
            tuple(kept.values()),
            _sum([entry.spent for entry in entries]),
            self._clock.now_ms(),
        )


def _sum(spent: Sequence[Spent]) -> Spent:
    if len(spent) == 1:
        return spent[0]
    return Spent(*map(sum, zip(*spent, strict=True)))
