"""A retention round that is killed in the middle: `python -m tests.chaos.retention_child URL FOLDER NOW_MS STEP`.

Step 2n is right before the n-th write or unlink, 2n + 1 right after it. Ends with 0 when the round was over before.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from camserver.domain.audit import SealKey
from camserver.domain.retention import RetentionPolicy
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher.retaining import Retainer
from camserver.store import open_store
from tests.rig.clock import ManualClock
from tests.services.dispatcher.stage import StoreProxy

R = TypeVar("R")
POLICY = RetentionPolicy(free_min_bytes=0)


@dataclass(slots=True)
class Fate:
    """Counts what is done, and kills this process at its step."""

    step: int
    done: int = 0

    async def around(self, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        self._pass()
        result = await call()
        self._pass()
        return result

    def _pass(self) -> None:
        if self.done == self.step:
            os.kill(os.getpid(), signal.SIGKILL)
        self.done += 1


class MortalStore(StoreProxy):
    fate: Fate

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        is_write = name.startswith(("sweep_", "forget", "settle", "note_", "report", "prune", "take", "_logged"))
        return await self.fate.around(call) if is_write else await call()


class MortalObjects(LocalObjects):
    fate: Fate

    async def delete(self, key: str) -> None:
        await self.fate.around(lambda: LocalObjects.delete(self, key))


async def main(url: str, folder: str, now_ms: str, step: str) -> None:
    fate = Fate(int(step))
    store = await open_store(url)
    mortal, objects = MortalStore(store), MortalObjects(Path(folder))
    mortal.fate = objects.fate = fate
    retainer = Retainer(mortal, objects, ManualClock(int(now_ms)), POLICY, "child", SealKey(b"k" * 32), pause_sec=0)
    await retainer.settle_cases()
    await retainer.round()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
