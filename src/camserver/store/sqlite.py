"""SQLite: one process owns the file by a lock held for life, one child process writes.

Short reads are made in the event loop, others by a few threads.
"""

import asyncio
import contextlib
import fcntl
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from camserver.base.errors import DataOwned, StoreBusy, StoreUnavailable
from camserver.base.lean_threads import LeanThreads
from camserver.store import pickling
from camserver.store.core import Operation, Store, in_name
from camserver.store.sql import Dialect
from camserver.store.sqlite_short_reads import ShortReads, TooLong
from camserver.store.sqlite_tx import CACHE_KIB, SqliteTx, connect
from camserver.store.sqlite_writer import RULES_CHANGED, frames, request, translated
from camserver.store.tx import drive

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

# Not `-m`: the package has imported that module already when it would be run.
_WRITER = "from camserver.store.sqlite_writer import main; main()"
# Operations under way at once; a further one waits for a place and is refused after the acquire time-out.
WRITES_MAX = 1024
LOCK_WAIT_SEC = 10.0
# How long a busy thread may keep the interpreter from the event loop, which waits for it after each batch of writes.
# Python's own 5 ms held writes beside a busy thread to a third of what 0.5 ms gives (docs/performance.md).
SWITCH_INTERVAL_SEC = 0.0005
WRITER_START_SEC = 60.0


class OwnerLock:
    """An advisory lock beside the database file, held by the server and inherited by its writer.

    So a server that was killed leaves the lock held until its writer has finished too.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    async def acquire(self, wait_sec: float | None = None) -> None:
        """Waits for a server that is just ending; `wait_sec` None: as long as that may take."""
        wait_sec = LOCK_WAIT_SEC if wait_sec is None else wait_sec
        deadline = asyncio.get_running_loop().time() + wait_sec
        while not self._try():
            if asyncio.get_running_loop().time() >= deadline:
                holder = os.pread(self.fd, 32, 0).decode().strip() or "unknown"
                os.close(self.fd)
                raise DataOwned(
                    f"{self.path.parent} is in use by another camserver (process {holder}); stop that one, or choose "
                    "another folder with --data-dir"
                )
            await asyncio.sleep(0.05)
        os.truncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self.fd)


class _Channel(asyncio.Protocol):
    """The server's end of the writer's socket. Requests made in one turn of the loop leave in one write."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._outgoing: list[bytes] = []
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._transport: asyncio.Transport | None = None
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.lost = False
        self.on_rules: Callable[[], None] = lambda: None  # what sql.RULING names changed, or may have

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def call(self, operation: object, args: object, kwargs: object) -> asyncio.Future[Any]:
        if self.lost:
            raise StoreUnavailable("the SQLite writer ended before it got this write; try again")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._next_id += 1
        message = request(self._next_id, operation, args, kwargs)
        self._pending[self._next_id] = future
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(message)
        return future

    def _flush(self) -> None:
        if self._transport is not None and not self.lost:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for message in frames(self._buffer):
            replies = pickling.loads(message)
            if replies == "ready":
                if not self.started.done():
                    self.started.set_result(None)
                continue
            for request_id, succeeded, value in replies:
                if request_id == RULES_CHANGED[0]:
                    # Before whoever changed it hears of it.
                    self.on_rules()
                    continue
                future = self._pending.pop(request_id)
                if future.done():
                    continue
                if succeeded:
                    future.set_result(value)
                else:
                    future.set_exception(value if isinstance(value, Exception) else RuntimeError(value))

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.on_rules()
        lost = StoreUnavailable("the SQLite writer ended; it is started again, and the write may or may not stand")
        pending, self._pending = self._pending, {}
        for future in [self.started, *pending.values()]:
            if not future.done():
                future.set_exception(lost)
                # Whoever was cancelled meanwhile does not collect it; that is no error of its own.
                future.exception()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class SqliteStore(Store):
    dialect = Dialect.SQLITE

    def __init__(
        self, path: Path, lock: OwnerLock, *, readers: int, acquire_timeout_sec: float, cache_kib: int = CACHE_KIB
    ) -> None:
        """`cache_kib`: pages of the file that each connection keeps in memory."""
        super().__init__()
        self.path = path
        self._lock = lock
        self._acquire_timeout_sec = acquire_timeout_sec
        self._cache_kib = cache_kib
        self._places = asyncio.Semaphore(WRITES_MAX)
        self._channel: _Channel | None = None
        self._writer: subprocess.Popen[bytes] | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._rules_version = 0
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._readers = LeanThreads(readers, "sqlite-reader")
        self._short_reads = ShortReads(str(path), cache_kib)

    async def start(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_SEC)
        await self._running_channel()

    async def _running_channel(self) -> _Channel:
        """The channel to a living writer; starts one when there is none."""
        async with self._starting:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            if self._channel is not None and not self._channel.lost:
                return self._channel
            if self._writer is not None:
                self._note_away()
                await asyncio.to_thread(self._writer.wait)
            self._channel = await self._start_writer()
            self._note_back()
            return self._channel

    async def _start_writer(self) -> _Channel:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        _, channel = await asyncio.get_running_loop().create_connection(_Channel, sock=ours)
        channel.on_rules = self._note_rules
        try:
            self._writer = self._spawn(theirs)
            async with asyncio.timeout(WRITER_START_SEC):
                await channel.started
        except BaseException as error:
            # Whoever asked may have been cancelled. The writer ends with its channel; the next call starts another.
            channel.close()
            if isinstance(error, TimeoutError) and self._writer is not None:
                self._writer.kill()
                raise StoreUnavailable(
                    f"the SQLite writer was not ready within {WRITER_START_SEC:g} s; check the disk of {self.path}"
                ) from error
            raise
        return channel

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Not in a thread: a caller cancelled meanwhile would leave a writer that nobody knows of or waits for."""
        argv = [sys.executable, "-c", _WRITER, str(self.path), str(theirs.fileno()), str(self._cache_kib)]
        with theirs:
            return subprocess.Popen(argv, pass_fds=(theirs.fileno(), self._lock.fd), stdin=subprocess.DEVNULL)

    @property
    def rules_version(self) -> int | None:
        return self._rules_version

    def _note_rules(self) -> None:
        self._rules_version += 1

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        channel = self._channel
        if channel is None or channel.lost:
            channel = await self._running_channel()
        if self._places.locked():
            await self._wait_for_place()
        else:
            await self._places.acquire()
        try:
            result: R = await channel.call(operation, args, kwargs)
            return result
        finally:
            self._places.release()

    async def _wait_for_place(self) -> None:
        try:
            async with asyncio.timeout(self._acquire_timeout_sec):
                await self._places.acquire()
        except TimeoutError:
            raise StoreBusy(
                f"{WRITES_MAX} writes are waiting for the SQLite writer and none finished within "
                f"{self._acquire_timeout_sec:g} s; try again"
            ) from None

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        call = cast(Callable[..., Coroutine[Any, Any, R]], operation)
        try:
            # In somebody's name it is the operation in it that takes long or does not.
            kind = args[1] if call is in_name else call
            with contextlib.suppress(TooLong):
                return self._short_reads.run(kind, call, args, kwargs)
            return await self._readers.run(lambda: self._read_here(call, args, kwargs))
        except sqlite3.DatabaseError as error:
            raise translated(error) from error

    def _read_here(self, operation: Callable[..., Coroutine[Any, Any, R]], args: Any, kwargs: Any) -> R:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(str(self.path), read_only=True, cache_kib=self._cache_kib)
            self._connections.append(connection)
        return drive(operation(SqliteTx(connection), *args, **kwargs))

    async def database_time_ms(self) -> int | None:
        return None

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._readers.close)
        self._short_reads.close()
        for connection in self._connections:
            connection.close()
        if self._channel is not None:
            self._channel.close()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.wait)
        with contextlib.suppress(OSError):
            self._lock.release()
