"""The workers whose sockets this process has. Nothing here is truth: leases and intents are rows.

A connection writes through a bounded outbox, so that a worker which does not read holds up nobody but itself.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.websockets import WebSocket

from camserver.base.log import get_logger
from camserver.domain.workers import WorkerState
from camserver.store.workers import Registered
from camserver.wire.live import WantedFeed
from camserver.wire.worker import FromServer, Refused, encode

log = get_logger(__name__)

OUTBOX_MAX = 1024
# An intent that is not acknowledged is sent again after this long.
RESEND_MS = 5_000

CLOSE_REPLACED = 4001
CLOSE_REFUSED = 4003
CLOSE_SILENT = 4008
CLOSE_OVERFLOW = 1013

# A worker in one of these takes no further camera.
_LEAVING = frozenset({WorkerState.DRAINING, WorkerState.STOPPED})


@dataclass(frozen=True, slots=True)
class _Close:
    code: int


@dataclass(slots=True)
class Sent:
    """An intent that went out on this socket."""

    kind: str
    camera_id: str
    generation: int
    at_boot_ms: int


@dataclass(frozen=True, slots=True)
class AskedLive:
    """A LIVE_START that was sent."""

    wanted: WantedFeed
    at_boot_ms: int


class Connection:
    def __init__(
        self,
        socket: WebSocket,
        worker: Registered,
        worker_id: str,
        slots: int,
        boot_ms: int,
        serial: str | None = None,
    ) -> None:
        self._socket = socket
        self.serial = serial  # of the certificate it came with
        self.is_over = False  # nothing is heard or said any more; it only has to be closed
        self._outbox: asyncio.Queue[str | _Close] = asyncio.Queue(OUTBOX_MAX)
        self._pump: asyncio.Task[None] | None = None
        self._overflowed = False
        self.worker = worker
        self.worker_id = worker_id
        self.slots = slots
        self.state = WorkerState.REGISTERED
        self.heard_boot_ms = boot_ms
        self.sent: dict[str, Sent] = {}
        self.under_way: set[asyncio.Task[None]] = set()  # what it said and is being written
        self.errands: dict[str, int] = {}  # not answered yet: errand_uuid → boot-time ms of sending
        self.lives: dict[str, AskedLive] = {}  # LIVE_STARTs by intent, until they are done
        self.metrics_boot_ms: int | None = None  # when they were last written down
        self.verdicts_since = 0
        self.verdicts_told: dict[str, int] = {}  # camera_id → captured_at

    def send(self, message: FromServer) -> None:
        if not self.is_over:
            self._put(encode(message))

    def end(self, code: int, error_code: str, message: str) -> None:
        """Says why and closes, after what is already on its way."""
        log.info("connection ends", worker_id=self.worker_id, error_code=error_code, cause=message)
        self.send(Refused(error_code=error_code, message=message))
        self._put(_Close(code))

    def cut(self, code: int, error_code: str, message: str) -> None:
        """Like `end`, for one that must not be spoken with any longer: what it still says is not heard."""
        self.end(code, error_code, message)
        self.is_over = True

    def _put(self, item: str | _Close) -> None:
        try:
            self._outbox.put_nowait(item)
        except asyncio.QueueFull:
            log.warning("a worker does not read its messages", worker_id=self.worker_id, waiting=OUTBOX_MAX)
            self._overflowed = True
            if self._pump is not None:
                self._pump.cancel()

    def pumping(self) -> asyncio.Task[None]:
        """Sends what is in the outbox until the connection is to be closed, or the worker reads nothing any more."""
        self._pump = asyncio.create_task(self._send_on())
        return self._pump

    async def _send_on(self) -> None:
        while not self._overflowed:
            item = await self._outbox.get()
            if isinstance(item, _Close):
                await self._socket.close(item.code)
                return
            await self._socket.send_text(item)

    def note_under_way(self, task: asyncio.Task[None]) -> None:
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)

    async def less_under_way(self, most: int) -> None:
        """Until fewer than so many of its messages are being written."""
        while len(self.under_way) >= most:
            await asyncio.wait(self.under_way, return_when=asyncio.FIRST_COMPLETED)

    def is_due(self, intent_id: str, boot_ms: int) -> bool:
        """Whether an intent goes out on this socket; again, unless its acknowledgement may be among what waits."""
        sent = self.sent.get(intent_id)
        return sent is None or (boot_ms - sent.at_boot_ms >= RESEND_MS and not self.under_way)

    def forget_sent(self, still_pending: set[str]) -> None:
        """Drops the marks of intents that are done, so that they do not pile up."""
        for intent_id in self.sent.keys() - still_pending:
            del self.sent[intent_id]

    def forget_lives(self, wanted: Sequence[WantedFeed], since_boot_ms: int) -> None:
        """Those that are not wanted any more, or were asked for so long ago that they are asked for again."""
        self.lives = {
            intent_id: asked
            for intent_id, asked in self.lives.items()
            if asked.at_boot_ms > since_boot_ms and asked.wanted in wanted
        }

    def forget_errands(self, unanswered: set[str]) -> None:
        for errand_uuid in self.errands.keys() - unanswered:
            del self.errands[errand_uuid]


class Connections:
    """One connection per worker: a newer one replaces the older."""

    def __init__(self) -> None:
        self._by_key: dict[int, Connection] = {}
        # Set when an assignment round should not wait for its time.
        self.wake = asyncio.Event()

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, connection: Connection) -> None:
        older = self._by_key.get(connection.worker.worker_key)
        self._by_key[connection.worker.worker_key] = connection
        if older is not None:
            older.end(CLOSE_REPLACED, "replaced", "a newer connection of this worker replaced this one")
        self.wake.set()

    def remove(self, connection: Connection) -> bool:
        """False when a newer one has taken its place."""
        if self._by_key.get(connection.worker.worker_key) is not connection:
            return False
        del self._by_key[connection.worker.worker_key]
        return True

    def get(self, worker_key: int) -> Connection | None:
        return self._by_key.get(worker_key)

    async def settled(self) -> None:
        """Until everything is written that workers have said by now."""
        under_way = [task for connection in self for task in connection.under_way]
        if under_way:
            await asyncio.wait(under_way)

    def name_of(self, worker_key: int) -> str | None:
        """What people call a worker that is connected here."""
        connection = self._by_key.get(worker_key)
        return None if connection is None else connection.worker_id

    def keys(self) -> tuple[int, ...]:
        return tuple(self._by_key)

    def site_ids(self) -> tuple[int, ...]:
        return tuple(sorted({connection.worker.site_id for connection in self._by_key.values()}))

    def present(self, heard_since_boot_ms: int) -> dict[int, bool]:
        """Which of the workers here may get another camera: heard of lately, and not on their way out."""
        return {
            worker_key: not connection.is_over
            and connection.state not in _LEAVING
            and connection.heard_boot_ms >= heard_since_boot_ms
            for worker_key, connection in self._by_key.items()
        }
