"""Requests that wait for something to happen: so many at once, so that waiting can't use up the server."""

from collections.abc import Iterator
from contextlib import contextmanager

from camserver.base.log import get_logger

log = get_logger(__name__)

WAITS_MAX = 64


class Waits:
    def __init__(self, waits_max: int = WAITS_MAX) -> None:
        self._waits_max = waits_max
        self._waiting = 0

    @property
    def is_full(self) -> bool:
        return self._waiting >= self._waits_max

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Whether there is room to wait; who finds none is answered as things stand."""
        if self.is_full:
            log.warning("too many requests wait at once", waiting=self._waiting)
            yield False
            return
        self._waiting += 1
        try:
            yield True
        finally:
            self._waiting -= 1
