"""Reads all cameras of the lean reader in one thread: whichever has something gets its turn.

With a thread a camera the same took 1.6 times the CPU (30 cameras): threads that wake up together wait for the
interpreter's lock. So nothing that is carried may wait: not the network, not a consumer.
"""

import concurrent.futures
import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from camserver.media.packets import Miss

# How often each one is asked whether it goes on.
TICK_SEC = 0.5
# With many cameras something arrives at every moment. What comes within this time is read together: within 20 ms that
# took up to a third less CPU than waking up for each (50 cameras), within 100 ms another fifth less, within 200 ms a
# little less still. Looks may be that much older; with few cameras it is read at once.
GATHER_SEC = 0.2
GATHER_FROM = 8
# The same while somebody watches; what they see is older by half of it.
GATHER_WATCHED_SEC = 0.04
# The same for datagrams, of which only so many are kept.
GATHER_HASTY_SEC = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """A camera that is not read any more: nobody wants it, or why there is nothing to read."""

    miss: Miss | None


class Carried(Protocol):
    @property
    def can_wait(self) -> bool:
        """Whether what arrives is kept for it until it is read, as a connection does but datagrams do not."""

    def filenos(self) -> tuple[int, ...]:
        """What it reads from."""

    def ready(self) -> Ended | None:
        """Something has arrived. What it raises ends it and is raised by `carry`."""

    def tick(self) -> Ended | None:
        """Now and then."""


class _Entry:
    def __init__(self, one: Carried) -> None:
        self.one = one
        self.filenos = one.filenos()
        self.ended: concurrent.futures.Future[Ended] = concurrent.futures.Future()


class Pump:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._coming: list[_Entry] = []
        self._carried: set[_Entry] = set()
        self._gather_sec = GATHER_SEC
        self._in_haste = 0
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="camera-packets", daemon=True).start()

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """While somebody watches, nothing waits for long."""
        with self._lock:
            self._in_haste += 1
            self._settle_gathering()
        try:
            yield
        finally:
            with self._lock:
                self._in_haste -= 1
                self._settle_gathering()

    def carry(self, one: Carried) -> Miss | None:
        """Has `one` read until it ends; waits for that. Afterwards the pump knows nothing of it any more."""
        entry = _Entry(one)
        with self._lock:
            self._coming.append(entry)
        with contextlib.suppress(BlockingIOError):  # it is woken already, many times
            self._wake.send(b"\0")
        return entry.ended.result().miss

    def _run(self) -> None:
        next_tick_sec = time.monotonic() + TICK_SEC
        while True:
            if len(self._carried) >= GATHER_FROM:
                time.sleep(self._gather_sec)
            for key, _ in self._selector.select(max(next_tick_sec - time.monotonic(), 0)):
                if key.data is None:
                    self._woken.recv(4096)
                elif key.data in self._carried:
                    self._turn(key.data, is_tick=False)
            self._take_in()
            if time.monotonic() >= next_tick_sec:
                next_tick_sec = time.monotonic() + TICK_SEC
                for entry in tuple(self._carried):
                    self._turn(entry, is_tick=True)

    def _take_in(self) -> None:
        if not self._coming:
            return
        with self._lock:
            coming, self._coming = self._coming, []
        for entry in coming:
            self._carried.add(entry)
            for fd in entry.filenos:
                self._selector.register(fd, selectors.EVENT_READ, entry)
            # A secured connection may hold something already that no selector sees.
            self._turn(entry, is_tick=False)
        self._settle_gathering()

    def _turn(self, entry: _Entry, is_tick: bool) -> None:
        try:
            ended = entry.one.tick() if is_tick else entry.one.ready()
            if ended is None:
                return
        except BaseException as error:
            self._drop(entry)
            entry.ended.set_exception(error)
            return
        self._drop(entry)
        entry.ended.set_result(ended)

    def _drop(self, entry: _Entry) -> None:
        for fd in entry.filenos:
            self._selector.unregister(fd)
        self._carried.discard(entry)
        self._settle_gathering()

    def _settle_gathering(self) -> None:
        if not all(entry.one.can_wait for entry in tuple(self._carried)):
            self._gather_sec = GATHER_HASTY_SEC
        else:
            self._gather_sec = GATHER_WATCHED_SEC if self._in_haste else GATHER_SEC


_making = threading.Lock()
_pumps: list[Pump] = []


def shared_pump() -> Pump:
    """The one of this process."""
    with _making:
        if not _pumps:
            _pumps.append(Pump())
        return _pumps[0]
