"""Places for questions in flight, as the controller gives them; and sharing one key between processes, whether they
work at the same time or one after the other."""

import asyncio
import contextlib
import hashlib
import random

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.domain.scoring_found import KEPT_MS, Found
from camserver.domain.scoring_limits import ConcurrencyController, Ticket, Wait, share_of
from camserver.store import Dialect, Store, scoring_limits

log = get_logger(__name__)

TELL_EVERY_SEC = 1.0
# The loop counts time in milliseconds, and would go round and round for less. Who is late by that may make up for it.
NAP_SEC = 0.002
SILENT_AFTER_MS = 15_000
# What stays as it is is told again before it is too old to be gone on with.
REMIND_MS = KEPT_MS // 4


class Slots:
    """The controller for tasks that wait. One dispatcher takes places; a question that is sent again has one."""

    def __init__(self, controller: ConcurrencyController) -> None:
        self.controller = controller
        self._waiting: list[asyncio.Future[None]] = []  # for a place

    @staticmethod
    def now_sec() -> float:
        return asyncio.get_running_loop().time()

    def taken(self) -> Ticket | None:
        """A place, if there is one and it is the moment to send. The question counts as sent: it is to be sent right
        away."""
        controller = self.controller
        if not controller.has_place:
            return None
        now_sec = self.now_sec()
        if controller.wait_sec(now_sec) > 0:
            return None
        controller.take()
        return controller.sent(now_sec)

    async def acquire(self) -> Ticket:
        """Waits for a place and for the moment to send."""
        while (ticket := self.taken()) is None:
            if not self.controller.has_place:
                # An event does the same at three times the cost, once for each question.
                freed = asyncio.get_running_loop().create_future()
                self._waiting.append(freed)
                await freed
            elif (wait_sec := self.controller.wait_sec(self.now_sec())) > 0:
                await asyncio.sleep(max(wait_sec, NAP_SEC))
        return ticket

    async def again(self) -> Ticket:
        """Waits for the moment to send again, with the place that is held."""
        while (wait_sec := self.controller.wait_sec(self.now_sec())) > 0:  # noqa: ASYNC110 - it is time that passes
            await asyncio.sleep(wait_sec)
        return self.controller.sent(self.now_sec())

    async def wait_out(self, wait: Wait) -> None:
        """What a question that came back waits, keeping its place; not all for the same time."""
        while (left_sec := self.controller.left_sec(wait, self.now_sec())) > 0:  # noqa: ASYNC110 - it is time that passes
            await asyncio.sleep(left_sec * random.uniform(1.0, 1.1))

    def release(self) -> None:
        self.controller.release()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():  # whoever waited was cancelled
                one.set_result(None)


def key_digest(provider: str, base_url: str | None, key: Secret | None) -> str:
    """Names a key without telling it."""
    held = f"{provider}\n{base_url or ''}\n{key.reveal() if key is not None else ''}"
    return hashlib.sha256(held.encode()).hexdigest()


class Sharing:
    """Tells the others that use the same key what this process has; takes its share when somebody comes or goes. What
    was found out is told to those that come later, too."""

    def __init__(self, store: Store, clock: Clock, digest: str, worker: str, slots: Slots) -> None:
        self._store = store
        self._clock = clock
        self._digest = digest
        self._worker = worker
        self._slots = slots
        self._remembered: Found | None = None
        self._remembered_ms = 0
        self.workers = 1

    async def begin(self) -> None:
        """Before the first question: goes on with what others found out a while ago."""
        self._remembered = await self._store.read(scoring_limits.found, self._digest, self._clock.now_ms())
        if self._remembered is not None:
            self._slots.controller.go_on(self._remembered)

    async def run(self) -> None:
        is_alone = self._store.dialect is Dialect.SQLITE  # one process has the database
        known = 0
        try:
            while True:
                try:
                    if not is_alone:
                        known = await self._told(known)
                    await self._remember()
                except Retry as error:
                    log.warning("the shared limit could not be told", cause=error.message)
                await asyncio.sleep(TELL_EVERY_SEC)
        finally:
            with contextlib.suppress(Retry):  # others find it out as this one did
                await self._remember()
                if not is_alone:
                    await self._store.write(scoring_limits.leave, self._digest, self._worker)

    async def _remember(self) -> None:
        mine = self._slots.controller.found
        found = None if mine is None else mine.scaled(self.workers)
        now_ms = self._clock.now_ms()
        is_due = now_ms - self._remembered_ms >= REMIND_MS
        if found is not None and (is_due or found.is_news(self._remembered)):
            await self._store.write(scoring_limits.remember, self._digest, found, now_ms)
            self._remembered, self._remembered_ms = found, now_ms

    async def _told(self, known: int) -> int:
        now_ms = self._clock.now_ms()
        controller = self._slots.controller
        together = await self._store.write(
            scoring_limits.tell, self._digest, self._worker, controller.limit, now_ms + SILENT_AFTER_MS, now_ms
        )
        self.workers = together.workers
        share = share_of(controller.limit, known, together.workers, together.places)
        if share is not None:
            # What was found out before is of all together.
            controller.share(share, max(known, 1) / together.workers)
        return together.workers
