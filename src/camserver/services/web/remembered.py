"""What every request asks for, remembered for as long as it holds: sign-ins, tokens, the active vocabulary.

A value is used only while the store's `rules_version` is the one it was read at, so ending a sign-in, switching
somebody off or taking a grant away counts from the next request on. Where other processes may change it (PostgreSQL
and MariaDB) the store has no such number, and nothing is remembered.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from camserver.store import Store

V = TypeVar("V")

REMEMBERED_MAX = 2_000


class Remembered:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._version: int | None = None

    async def get(self, key: tuple[object, ...], read: Callable[[], Awaitable[V | None]]) -> V | None:
        """What `read` says, or said while nothing of it has changed since. That there is none is not remembered."""
        version = self._store.rules_version
        if version != self._version:
            self._kept.clear()
            self._version = version
        found: V | None = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        found = await read()
        # Whoever changed something while this was read has begun a new version.
        if found is not None and version is not None and version == self._store.rules_version == self._version:
            self._kept[key] = found
            if len(self._kept) > REMEMBERED_MAX:
                self._kept.popitem(last=False)
        return found
