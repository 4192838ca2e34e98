"""Pictures in memory, as long as there is room: what was asked for last stays.

Whoever asks was found to be allowed to see the frame before: the memory knows frames, not people.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")


class KeptBytes(Generic[K]):
    def __init__(self, total_max: int, each_max: int | None = None) -> None:
        """`each_max`: what is bigger is not kept, so that it can't push out everything else."""
        self._total_max = total_max
        self._each_max = total_max if each_max is None else each_max
        self._kept: OrderedDict[K, bytes] = OrderedDict()
        self.total = 0

    def find(self, key: K) -> bytes | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: K, content: bytes) -> None:
        if key in self._kept or len(content) > self._each_max:
            return
        self._kept[key] = content
        self.total += len(content)
        while self.total > self._total_max:
            _, dropped = self._kept.popitem(last=False)
            self.total -= len(dropped)
