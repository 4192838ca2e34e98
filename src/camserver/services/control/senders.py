"""Who sends what: a short memory in front of the store, so that an ordinary upload asks it nothing.

It is a memory, not the truth: `frames.record` judges every look again under the lease's own lock. Only what was found
good is remembered, and whatever is refused on its strength is asked once more.
"""

from collections import OrderedDict
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.errors import Unauthenticated
from camserver.store import Store
from camserver.store.workers import Uploader, uploader

REMEMBERED_MAX = 20_000
# A worker's new boot and a camera's new priority count within this time.
REMEMBERED_MS = 10_000

Key = tuple[int, str, str, int]  # tenant, worker, camera, generation


@dataclass(slots=True)
class _Memory:
    sender: Uploader
    until_boot_ms: int
    highest_seq: int = 0  # recorded through this process


class Senders:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._memories: OrderedDict[Key, _Memory] = OrderedDict()

    async def find(self, tenant_id: int, worker_id: str, camera_id: str, generation: int) -> Uploader:
        """The sender of a look. Unauthenticated when there is no such worker."""
        key = (tenant_id, worker_id, camera_id, generation)
        memory = self._memories.get(key)
        if memory is not None and self._clock.boot_ms() < memory.until_boot_ms:
            return memory.sender
        sender = await self._store.read(uploader, tenant_id, worker_id, camera_id, generation)
        if sender is None:
            raise Unauthenticated(f"worker {worker_id} is not registered; it registers on its control socket")
        if sender.is_holder:
            self._remember(key, sender)
        return sender

    def _remember(self, key: Key, sender: Uploader) -> None:
        memory = self._memories.pop(key, None)
        seq = memory.highest_seq if memory is not None and memory.sender.camera_key == sender.camera_key else 0
        self._memories[key] = _Memory(sender, self._clock.boot_ms() + REMEMBERED_MS, seq)
        if len(self._memories) > REMEMBERED_MAX:
            self._memories.popitem(last=False)

    def forget(self, tenant_id: int, worker_id: str, camera_id: str, generation: int) -> bool:
        """Whether there was something to forget."""
        return self._memories.pop((tenant_id, worker_id, camera_id, generation), None) is not None

    def may_be_known(self, tenant_id: int, worker_id: str, camera_id: str, generation: int, seq: int) -> bool:
        """False when this look is newer than any that was recorded here, and so no repeat of one."""
        memory = self._memories.get((tenant_id, worker_id, camera_id, generation))
        return memory is None or not memory.highest_seq or seq <= memory.highest_seq

    def recorded(self, tenant_id: int, worker_id: str, camera_id: str, generation: int, seq: int) -> None:
        memory = self._memories.get((tenant_id, worker_id, camera_id, generation))
        if memory is not None:
            memory.highest_seq = max(memory.highest_seq, seq)
