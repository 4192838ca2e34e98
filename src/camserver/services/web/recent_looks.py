"""Looks at evidence that this process noted a moment ago, so that a repeat costs nothing."""

from collections import OrderedDict

from camserver.domain.audit import LOOK_FOLDED_MS

REMEMBERED_MAX = 10_000


class RecentLooks:
    """What was noted in the last minutes, by who, from where and what."""

    def __init__(self, size_max: int = REMEMBERED_MAX) -> None:
        self._size_max = size_max
        self._noted: OrderedDict[tuple[object, ...], int] = OrderedDict()

    def has(self, key: tuple[object, ...], now_ms: int) -> bool:
        noted_at = self._noted.get(key)
        return noted_at is not None and noted_at <= now_ms < noted_at + LOOK_FOLDED_MS

    def add(self, key: tuple[object, ...], now_ms: int) -> None:
        self._noted[key] = now_ms
        self._noted.move_to_end(key)
        while len(self._noted) > self._size_max:
            self._noted.popitem(last=False)
