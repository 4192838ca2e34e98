"""What many workers say within the same moment is written together: heartbeats, acknowledgements, ready cameras.

One transaction for many costs the database little more than one for a single worker, and its log is synced once. Each
kind is gathered for itself, and one is written at a time: two transactions of this process that lock the same cameras
in different orders would wait for each other in vain.
"""

import asyncio

from camserver.base.batches import Batcher
from camserver.base.clock import Clock
from camserver.services.control.connections import Connections
from camserver.services.control.epoch import Epoch
from camserver.store import Store
from camserver.store.intents import acked_all
from camserver.store.leases import Claim
from camserver.store.starts import set_all_active
from camserver.store.workers import Beat, Heard, heartbeats

SIZE_MAX = 128  # heartbeats, each of some ten cameras
CAMERAS_MAX = 512  # acknowledgements and ready cameras, each of one
WAITING_MAX = 20_000
# With this many workers something is said often enough to be worth waiting for others. A worker whose renewals take
# two seconds sheds live views, and one whose lease runs out has missed eight of them: this is far from both.
LINGER_WORKERS = 100
LINGER_SEC = 0.05


class Entries:
    def __init__(self, store: Store, clock: Clock, connections: Connections, epoch: Epoch, ttl_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._epoch = epoch
        self._ttl_ms = ttl_ms
        self._turn = asyncio.Lock()
        self._beats: Batcher[Heard, Beat] = Batcher(
            self._write_beats, size_max=SIZE_MAX, waiting_max=WAITING_MAX, linger_sec=self._linger_sec
        )
        self._acks: Batcher[tuple[int, str], bool] = Batcher(
            self._write_acks, size_max=CAMERAS_MAX, waiting_max=WAITING_MAX
        )
        self._ready: Batcher[Claim, bool] = Batcher(self._write_ready, size_max=CAMERAS_MAX, waiting_max=WAITING_MAX)

    async def beat(self, heard: Heard) -> Beat:
        """Renews what a worker holds."""
        return await self._beats.submit(heard)

    async def ack(self, worker_key: int, intent_id: str) -> bool:
        """Notes that an intent was done; False when it is not this worker's."""
        return await self._acks.submit((worker_key, intent_id))

    async def ready(self, claim: Claim) -> bool:
        """The camera is going; False when the claim does not hold."""
        return await self._ready.submit(claim)

    async def close(self) -> None:
        """Waits until everything that was said is written."""
        for batcher in (self._beats, self._acks, self._ready):
            await batcher.close()

    def _linger_sec(self) -> float:
        return LINGER_SEC if len(self._connections) >= LINGER_WORKERS else 0.0

    async def _write_beats(self, heard: tuple[Heard, ...]) -> tuple[Beat, ...]:
        async with self._turn:
            return await self._store.write(
                heartbeats, heard, self._epoch.process_id, self._ttl_ms, self._clock.now_ms()
            )

    async def _write_acks(self, acks: tuple[tuple[int, str], ...]) -> tuple[bool, ...]:
        async with self._turn:
            return await self._store.write(acked_all, acks, self._clock.now_ms())

    async def _write_ready(self, claims: tuple[Claim, ...]) -> tuple[bool, ...]:
        async with self._turn:
            return await self._store.write(set_all_active, claims, self._clock.now_ms())
