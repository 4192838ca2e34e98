"""Makes results durable, many in one transaction, and remembers what was answered a moment ago."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

from camserver.base.batches import Batcher
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.domain.scoring import retry_delay_sec
from camserver.store import Store, scoring_journal
from camserver.store.scoring_journal import Kept, Result, Spent

log = get_logger(__name__)

BATCH_MAX = 100
# Results on their way into the journal (decision 48); further questions wait for them.
WAITING_MAX = 100
# Between the look into the cache and the answer lie the tasks that wait; this is far more.
RECENT_MAX = 20_000


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written together: results, answers that are kept, and what they cost."""

    results: tuple[Result, ...] = ()
    kept: tuple[Kept, ...] = ()
    spent: Spent = NOTHING


class Journal:
    def __init__(self, store: Store, clock: Clock, run_id: int, tenant_id: int) -> None:
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._tenant_id = tenant_id
        self._batcher: Batcher[Entry, None] = Batcher(self._record, size_max=BATCH_MAX, waiting_max=1_000_000)
        self._recent: OrderedDict[str, Kept] = OrderedDict()
        self._room = asyncio.Event()
        self._room.set()
        self._adding: set[asyncio.Task[None]] = set()
        self.waiting = 0
        self.recorded = asyncio.Event()  # set whenever there is something new for the sheet
        self.spent = NOTHING  # of this process, since its start

    async def add(self, entry: Entry) -> None:
        """Durable on return. A store that is away is waited for: what was answered is paid for."""
        self.waiting += 1
        if self.waiting >= WAITING_MAX:
            self._room.clear()
        try:
            failures = 0
            while True:
                try:
                    await self._batcher.submit(entry)
                    break
                except Retry as error:
                    log.warning("results wait for the database", cause=error.message)
                    await asyncio.sleep(retry_delay_sec(failures))
                    failures += 1
        finally:
            self.waiting -= 1
            if self.waiting < WAITING_MAX:
                self._room.set()
        self.spent = _sum((self.spent, entry.spent))
        self.recorded.set()

    def add_soon(self, entry: Entry, then: Callable[[], None]) -> None:
        """The same without waiting; `then` is called once it is durable. Ask for room first."""

        async def add() -> None:
            await self.add(entry)
            then()

        adding = asyncio.create_task(add())
        self._adding.add(adding)
        adding.add_done_callback(self._adding.discard)

    async def room(self) -> None:
        """Waits while too much is on its way into the journal."""
        await self._room.wait()

    def remember(self, asked_as: str, kept: Kept) -> None:
        """For rows with the same question (`asked_as`), before the cache can be asked for it."""
        self._recent[asked_as] = kept
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    def recent(self, key: str) -> Kept | None:
        return self._recent.get(key)

    async def close(self) -> None:
        """Waits until everything is durable."""
        while self._adding:
            await asyncio.wait(self._adding)
        await self._batcher.close()

    async def _record(self, entries: tuple[Entry, ...]) -> Sequence[None]:
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
        return [None] * len(entries)


def _sum(spent: Sequence[Spent]) -> Spent:
    if len(spent) == 1:
        return spent[0]
    return Spent(*map(sum, zip(*map(_VALUES, spent), strict=True)))


_VALUES = attrgetter(*(one.name for one in fields(Spent)))
