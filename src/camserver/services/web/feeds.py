"""Who follows the change feed: one poller a tenant, shared by all open sockets of this process.

A `Tail` reads the tenant's new changes every 200 ms and offers them to its `Reader`s, each of which keeps what its
person may see by their grants of that moment, up to a bound. Nothing is kept for readers who are away: a reader that
fell behind is ended and comes back with its cursor. Sockets themselves are the route's business.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum

from camserver.base.clock import Clock
from camserver.base.errors import Retry, Unavailable
from camserver.base.log import get_logger
from camserver.domain.people import Permission, Principal, Role
from camserver.store import Store, feed, sessions, tokens
from camserver.store.changes import PAGE_MAX
from camserver.store.core import Operation
from camserver.store.feed import Item

log = get_logger(__name__)

# Whom sign-ins or tokens stand for now, by their ids.
Renewal = Operation[[tuple[int, ...], int], dict[int, Principal]]

POLL_SEC = 0.2
# How often it is looked who is to be pinged.
PING_LOOK_SEC = 1.0
# A reader that was sent nothing for so long is sent a ping, by which its browser knows that the connection lives.
PING_MS = 15_000
# Sign-ins and grants are read again at least this often, also when nothing changes.
GRANTS_MS = 1_000
# What a slow reader may have waiting, and what goes into one message.
WAITING_MAX = 2_000
MESSAGE_CHANGES_MAX = 200
READERS_MAX = 2_000
READERS_PER_SESSION_MAX = 20
# Of all sign-ins and tokens of a person together: whoever makes tokens or signs in again gets no more places by it,
# so that nobody can take those of everybody else.
READERS_PER_PERSON_MAX = 60


class End(IntEnum):
    """Why the server closes a feed: the WebSocket's close code."""

    FAILED = 1011
    TOO_SLOW = 4008  # come back at once with the last cursor
    SESSION_OVER = 4401  # sign in first
    FORBIDDEN = 4403  # the person may no longer read


@dataclass(frozen=True, slots=True)
class Changes:
    items: tuple[Item, ...]
    last_seq: int


@dataclass(frozen=True, slots=True)
class Resync:
    last_seq: int


@dataclass(frozen=True, slots=True)
class System:
    """The status of the installation is another one."""

    last_seq: int


@dataclass(frozen=True, slots=True)
class Ping:
    last_seq: int


News = Changes | Resync | System | Ping


class Reader:
    """One open feed. What is offered is taken by `next`; `ended` is set when there is nothing more to come."""

    def __init__(self, principal: Principal, boot_ms: int) -> None:
        self.principal = principal
        self.end_code: End | None = None
        self.ended = asyncio.Event()
        self._last_seq = 0
        self._waiting: deque[Item] = deque()
        self._resync = False
        self._system = False
        self._signs: object = None
        self._ping = False
        self._told_boot_ms = boot_ms
        self._something = asyncio.Event()

    def start_at(self, seq: int) -> None:
        """Everything up to `seq` is known to the reader already."""
        self._last_seq = max(self._last_seq, seq)
        while self._waiting and self._waiting[0].seq <= seq:
            self._waiting.popleft()

    def offer(self, items: Iterable[Item], last_seq: int, boot_ms: int) -> None:
        if self.end_code is not None:
            return
        fresh = [item for item in items if item.seq > self._last_seq and item.is_for(self.principal)]
        self._last_seq = max(self._last_seq, last_seq)
        if not fresh:
            return
        if len(self._waiting) + len(fresh) > WAITING_MAX:
            log.warning("a reader of the change feed is too slow and was ended", waiting=len(self._waiting))
            self.end(End.TOO_SLOW)
            return
        self._waiting.extend(fresh)
        self._told(boot_ms)

    def resync(self, last_seq: int, boot_ms: int) -> None:
        self._waiting.clear()
        self._last_seq = last_seq
        self._resync = True
        self._told(boot_ms)

    def tell_system(self, signs: object, boot_ms: int) -> None:
        """Tells that the status changed when its signs did. The first ones are told of, too: nobody knows what the
        reader saw before it came."""
        if signs != self._signs:
            self._signs = signs
            self._system = True
            self._told(boot_ms)

    def ping_if_quiet(self, boot_ms: int) -> None:
        if boot_ms - self._told_boot_ms >= PING_MS:
            self._ping = True
            self._told(boot_ms)

    def end(self, code: End) -> None:
        if self.end_code is None:
            self.end_code = code
            self.ended.set()

    async def next(self) -> News:
        while True:
            if self._resync:
                self._resync = False
                return Resync(self._last_seq)
            if self._waiting:
                self._ping = False
                return self._batch()
            if self._system:
                self._system = self._ping = False
                return System(self._last_seq)
            if self._ping:
                self._ping = False
                return Ping(self._last_seq)
            self._something.clear()
            await self._something.wait()

    async def ping(self) -> None:
        """The next time that the reader is to be told that its connection lives; everything else waits."""
        while not self._ping:
            self._something.clear()
            await self._something.wait()
        self._ping = False

    def _batch(self) -> Changes:
        items = tuple(self._waiting.popleft() for _ in range(min(len(self._waiting), MESSAGE_CHANGES_MAX)))
        # Only what was taken counts as told while more is waiting: a cursor must never be ahead of its changes.
        return Changes(items, items[-1].seq if self._waiting else self._last_seq)

    def _told(self, boot_ms: int) -> None:
        self._told_boot_ms = boot_ms
        self._something.set()


class Tail:
    """The end of one tenant's feed. It starts at the newest change: what was before is the readers' to ask for."""

    def __init__(self, store: Store, clock: Clock, tenant_id: int) -> None:
        # In nobody's name: it reads all that anybody may be told, and each reader gets of it what its own role and
        # grants allow.
        self._mine = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
        self._store = store
        self._clock = clock
        self._seq: int | None = None
        self._grants_boot_ms = clock.boot_ms()
        self._away = False
        self._started = asyncio.Event()
        self.readers: set[Reader] = set()

    async def position(self) -> int:
        """The last change this tail has passed; readers that joined before get all that come behind it."""
        await self._started.wait()
        assert self._seq is not None
        return self._seq

    async def run(self) -> None:
        """Polls until cancelled. On an error that is no outage its readers are ended; they come back to a new one."""
        # Beside it: a store that hangs is waited for, for longer than a listener waits for a word.
        pinging = asyncio.create_task(self._ping())
        try:
            while True:
                if not await self._poll():
                    await self._clock.sleep(POLL_SEC)
        except Exception:
            log.exception("the change feed failed; its readers are ended")
            for reader in self.readers:
                reader.end(End.FAILED)
        finally:
            pinging.cancel()

    async def _ping(self) -> None:
        while True:
            await self._clock.sleep(PING_LOOK_SEC)
            for reader in self.readers:
                reader.ping_if_quiet(self._clock.boot_ms())

    async def _poll(self) -> bool:
        """One step; True when there is more to read at once."""
        more = False
        try:
            more = await self._read()
            self._away = False
        except Retry as error:
            if not self._away:
                log.warning("the change feed waits for the store", cause=error.message)
            self._away = True
        return more

    async def _read(self) -> bool:
        if self._seq is None:
            self._seq = await self._mine.read(feed.newest)
            self._started.set()
            return False
        page = await self._mine.read(feed.after, self._seq, PAGE_MAX)
        boot_ms = self._clock.boot_ms()
        if page.items or page.resync or boot_ms - self._grants_boot_ms >= GRANTS_MS:
            await self._renew_grants()
            self._grants_boot_ms = boot_ms
        for reader in self.readers:
            if page.resync:
                reader.resync(page.last_seq, boot_ms)
            else:
                reader.offer(page.items, page.last_seq, boot_ms)
        self._seq = page.last_seq
        return len(page.items) == PAGE_MAX

    async def _renew_grants(self) -> None:
        """Ends the readers whose sign-in is over; the others get their present grants."""
        await self._renew(sessions.principals, lambda principal: principal.session_id)
        await self._renew(tokens.principals, lambda principal: principal.token_id)

    async def _renew(self, now: Renewal, id_of: Callable[[Principal], int | None]) -> None:
        readers = [(found, reader) for reader in self.readers if (found := id_of(reader.principal)) is not None]
        if not readers:
            return
        ids = tuple(sorted({found for found, _ in readers}))
        principals = await self._store.read(now, ids, self._clock.now_ms())
        for found, reader in readers:
            principal = principals.get(found)
            if principal is None:
                reader.end(End.SESSION_OVER)
            elif not principal.may(Permission.READ):
                reader.end(End.FORBIDDEN)
            elif principal != reader.principal:
                reader.principal = principal
                # What it was shown by its former grants may be more or less than what it reaches now.
                reader.resync(await self.position(), self._clock.boot_ms())


class Feeds:
    """All tails and readers of this process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._tails: dict[int, tuple[Tail, asyncio.Task[None]]] = {}
        self._by_session: Counter[int | None] = Counter()
        self._by_person: Counter[tuple[int, int | None]] = Counter()

    def tenant_ids(self) -> tuple[int, ...]:
        """Tenants somebody of whom follows the feed here."""
        return tuple(sorted(self._tails))

    def audiences(self) -> tuple[tuple[Principal, tuple[Reader, ...]], ...]:
        """All readers here, those who reach the same together; in the name of any of them."""
        found: dict[object, list[Reader]] = {}
        for tail, _ in self._tails.values():
            for reader in tail.readers:
                found.setdefault(reader.principal.reach, []).append(reader)
        return tuple((readers[0].principal, tuple(readers)) for readers in found.values())

    def require_room(self, principal: Principal) -> None:
        if self._by_person.total() >= READERS_MAX:
            log.warning("no room for one more reader of the change feed", readers=self._by_person.total())
            raise Unavailable(
                "too many pages and programs follow this server's change feed; try again later", reason="feed_full"
            )
        of_session = self._by_session[principal.session_id] if principal.session_id is not None else 0
        of_person = self._by_person[_person_of(principal)]
        if of_session >= READERS_PER_SESSION_MAX or of_person >= READERS_PER_PERSON_MAX:
            log.warning(
                "somebody follows the change feed as often as one may", user_id=principal.user_id, readers=of_person
            )
            raise Unavailable(
                "too many of your pages and programs follow the change feed; close some and try again",
                reason="feed_full_of_yours",
            )

    @asynccontextmanager
    async def join(self, principal: Principal) -> AsyncIterator[tuple[Tail, Reader]]:
        """A reader that gets everything from now on."""
        self.require_room(principal)
        tail = self._tail(principal.tenant_id)
        reader = Reader(principal, self._clock.boot_ms())
        person = _person_of(principal)
        self._by_session[principal.session_id] += 1
        self._by_person[person] += 1
        tail.readers.add(reader)
        try:
            yield tail, reader
        finally:
            tail.readers.discard(reader)
            self._by_session[principal.session_id] -= 1
            self._by_person[person] -= 1
            # Forgets the names of those that are at zero.
            self._by_session += Counter()
            self._by_person += Counter()
            await self._leave(principal.tenant_id, tail)

    def _tail(self, tenant_id: int) -> Tail:
        found = self._tails.get(tenant_id)
        if found is None or found[1].done():
            tail = Tail(self._store, self._clock, tenant_id)
            found = self._tails[tenant_id] = (tail, asyncio.create_task(tail.run()))
        return found[0]

    async def _leave(self, tenant_id: int, tail: Tail) -> None:
        """The last one out stops the polling."""
        current = self._tails.get(tenant_id)
        if current is None or current[0] is not tail or tail.readers:
            return
        del self._tails[tenant_id]
        current[1].cancel()
        await asyncio.wait([current[1]])

    async def close(self) -> None:
        for _, task in self._tails.values():
            task.cancel()
        if self._tails:
            await asyncio.wait([task for _, task in self._tails.values()])
        self._tails.clear()


def _person_of(principal: Principal) -> tuple[int, int | None]:
    """Whose places are counted together. None stands for the local admin token, which is nobody's."""
    return principal.tenant_id, principal.user_id
