"""Reads of SQLite in the event loop's own thread, for as long as they are short.

Most reads are of a few rows by their keys, and take less than the way to another thread and back. Which ones is not
known beforehand: a disk may be slow, a filter may lead far. So a read is begun here and given up when it has taken
too long; then it is made again by a thread, and so are others of its kind for a while. What keeps the loop waiting
is bounded: `SHORT_SEC` and one access to the disk.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from camserver.store.sqlite_tx import CACHE_KIB, SqliteTx, connect
from camserver.store.tx import drive

R = TypeVar("R")

# A read is given up after this, and in a turn of the loop none is begun after so much reading.
SHORT_SEC = 0.005
# How long reads of a kind are left to the threads after one was given up: first so long, since the machine may have
# been busy with something else, then twice as long each time, up to a bound.
AWAY_SEC = 0.1
AWAY_MAX_SEC = 10.0
# The virtual machine's instructions, each some hundredth of a microsecond, after which SQLite asks whether to go on.
ASK_EVERY = 2_000
_GIVEN_UP = frozenset({sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY})
_HERE = (0.0, 0.0)


class TooLong(Exception):
    """A read that was given up, or not begun: it is a thread's."""


class ShortReads:
    """Of one event loop, the first that asks; another one's reads are threads'."""

    def __init__(self, path: str, cache_kib: int = CACHE_KIB, clock: Callable[[], float] = time.perf_counter) -> None:
        self._path = path
        self._cache_kib = cache_kib
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._until = 0.0  # the read under way is given up
        self._turn_sec: float | None = None  # what reading took in this turn of the loop; None: nothing was read
        self._away: dict[object, tuple[float, float]] = {}  # until when, and how long, by kind: operations are few

    def run(self, kind: object, operation: Callable[..., Coroutine[Any, Any, R]], args: Any, kwargs: Any) -> R:
        """What the operation says; TooLong when it did not say it soon enough."""
        now = self._clock()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        away_until, away_sec = self._away.get(kind, _HERE)
        if self._loop is not loop or away_until > now:
            raise TooLong
        if self._turn_sec is None:
            self._turn_sec = 0.0
            loop.call_soon(self._end_turn)
        elif self._turn_sec >= SHORT_SEC:
            # Whoever reads again and again without a pause would never let the turn end.
            raise TooLong
        self._until = now + SHORT_SEC
        try:
            found = drive(operation(SqliteTx(self._opened()), *args, **kwargs))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in _GIVEN_UP:
                raise
            away_sec = min(max(away_sec * 2, AWAY_SEC), AWAY_MAX_SEC)
            self._away[kind] = self._clock() + away_sec, away_sec
            raise TooLong from None
        finally:
            self._turn_sec += self._clock() - now
        if away_sec:
            del self._away[kind]
        return found

    def _end_turn(self) -> None:
        self._turn_sec = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._path, read_only=True, cache_kib=self._cache_kib)
            # Where another program holds the file, a thread waits for it.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.set_progress_handler(self._is_over, ASK_EVERY)
        return self._connection

    def _is_over(self) -> bool:
        return self._clock() > self._until

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
