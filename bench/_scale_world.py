"""A fleet in virtual time on the real control plane: its rounds, its rules and its store, with workers that are data.

A *process* of control is the real Rounds and Assigner over real rows; what is not there is its sockets. A worker says
and hears the same messages, whose contents go to the same store operations, in the batches that control would make.
Time is a number that the world moves a second at a time, so minutes of a fleet take as long as their work does.

The world watches like somebody who sees into every worker at once: a camera that two workers believe to hold, each
by its own deadline, is noted, as is a generation that does not grow.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from camserver.base.credentials import Keys
from camserver.domain.assignment_types import AssignmentPolicy
from camserver.domain.gate import GatePolicy
from camserver.domain.leases import LeasePolicy, deadline_boot_ms
from camserver.domain.looks import LookPolicy
from camserver.domain.workers import WorkerState
from camserver.services.control.assigning import Assigner
from camserver.services.control.connections import Connection, Connections
from camserver.services.control.entries import CAMERAS_MAX, SIZE_MAX
from camserver.services.control.orders import Orders
from camserver.services.control.rounds import Rounds
from camserver.store import Store
from camserver.store.epochs import open_epoch
from camserver.store.intents import acked_all
from camserver.store.leases import Claim, release
from camserver.store.starts import set_all_active
from camserver.store.workers import Heard, Registered, Registration, disconnected, heartbeats, sign_in
from camserver.wire.worker import FromServer, Start, Stop

UPKEEP_EVERY_SEC = 5


class VirtualClock:
    """Moves only when the world does."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def boot_ms(self) -> int:
        return self._now_ms

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def move(self, ms: int) -> None:
        self._now_ms += ms


@dataclass(slots=True, eq=False)
class Worker:
    """What a worker knows: the cameras it believes to hold, and until when by its own clock."""

    name: str
    site: str
    slots: int
    turn: int  # of the seconds between two heartbeats the one in which it speaks
    is_up: bool = True
    is_cut: bool = False  # it lives, but nothing gets through
    is_draining: bool = False
    known: Registered | None = None
    line: "Line | None" = None
    process: "Process | None" = None
    held: dict[str, int] = field(default_factory=dict)  # camera_id → generation
    deadline_ms: dict[str, int] = field(default_factory=dict)


class Line(Connection):
    """A connection without a socket: what is sent lies ready for the worker."""

    def __init__(self, worker: Worker, known: Registered, boot_ms: int) -> None:
        super().__init__(None, known, worker.name, worker.slots, boot_ms)  # type: ignore[arg-type]  # it has none
        self.inbox: list[FromServer] = []
        self.state = WorkerState.RUNNING

    def send(self, message: FromServer) -> None:
        self.inbox.append(message)

    def end(self, code: int, error_code: str, message: str) -> None:
        self.is_over = True


class Process:
    """One process of control."""

    def __init__(self, number: int, store: Store, clock: VirtualClock, policy: LeasePolicy, keys: Keys) -> None:
        self.number = number
        self.store = store
        self.connections = Connections()
        orders = Orders(LookPolicy(), GatePolicy(), keys)
        assigner = Assigner(store, clock, self.connections, policy, AssignmentPolicy(), 60)
        self.rounds = Rounds(store, clock, self.connections, policy, orders, assigner)
        self.assigner = assigner
        self.epoch = 0

    async def open(self, now_ms: int) -> None:
        self.epoch = await self.store.write(open_epoch, f"simulated {self.number}", now_ms)

    async def second(self, is_upkeep: bool) -> None:
        """What its loops do within a second."""
        self.connections.wake.clear()
        await self.rounds._adopt_new()
        await self.assigner.assign()
        await self.rounds.deliver()
        if is_upkeep:
            for step in (
                self.rounds.adopt_cameras,
                self.rounds._follow_cameras,
                self.rounds._fail_late_starts,
                self.rounds._reclaim,
                self.rounds._watch_workers,
                self.assigner.rebalance,
            ):
                await step()


@dataclass(slots=True)
class Tally:
    """What happened in a scene."""

    seconds: int = 0
    starts: int = 0
    stops: int = 0
    beats: int = 0
    lost: int = 0  # leases that a heartbeat was told are gone
    twice: int = 0  # cameras that two workers believed to hold
    backwards: int = 0  # generations that did not grow


class World:
    def __init__(
        self,
        store: Store,
        clock: VirtualClock,
        policy: LeasePolicy,
        processes: Sequence[Process],
        tenant_id: int,
        tidy: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`tidy` is what the database does by itself every now and then."""
        self.store = store
        self.clock = clock
        self.policy = policy
        self.processes = list(processes)
        self.workers: list[Worker] = []
        self.tally = Tally()
        self.problems: list[str] = []
        self._tenant_id = tenant_id
        self._holder: dict[str, Worker] = {}
        self._last: dict[str, Worker] = {}
        self._generation: dict[str, int] = {}
        self._second = 0
        self._tidy = tidy

    # Coming and going

    async def connect(self, worker: Worker, process: Process) -> None:
        """REGISTER: it keeps what it holds."""
        who = Registration(
            worker.name, worker.site, "1", (), worker.slots, 4, 0, 8e9, f"boot of {worker.name}", process.epoch
        )
        now_ms = self.clock.now_ms()
        signed = await self.store.write(
            sign_in, self._tenant_id, who, tuple(worker.held.items()), self.policy.ttl_sec * 1000, now_ms
        )
        worker.known, worker.process = signed.worker, process
        worker.line = Line(worker, signed.worker, self.clock.boot_ms())
        process.connections.add(worker.line)
        self._heard_back(worker, signed.renewal.renewed, (camera_id for camera_id, *_ in signed.renewal.lost))

    async def disconnect(self, worker: Worker) -> None:
        """The socket is gone."""
        if worker.line is not None and worker.process is not None and worker.known is not None:
            worker.process.connections.remove(worker.line)
            await self.store.write(disconnected, worker.known.worker_key, worker.process.epoch)
        worker.line = worker.process = None

    async def kill(self, worker: Worker) -> None:
        """kill -9: it forgets everything at once, and its socket breaks."""
        worker.is_up = False
        for camera_id in list(worker.held):
            self._drop(worker, camera_id)
        await self.disconnect(worker)

    async def stop(self, worker: Worker) -> None:
        """As a worker stops in order: takes nothing more, gives everything back, goes."""
        assert worker.line is not None
        worker.line.state = WorkerState.DRAINING
        await self._give_back(worker, tuple(worker.held.items()))
        worker.is_up = False
        await self.disconnect(worker)

    async def _give_back(self, worker: Worker, leases: Iterable[tuple[str, int]]) -> None:
        assert worker.known is not None
        for camera_id, generation in tuple(leases):
            claim = Claim(self._tenant_id, worker.known.worker_key, camera_id, generation)
            await self.store.write(release, claim, "stopped", self.clock.now_ms(), None)
            self._drop(worker, camera_id)

    # Time

    async def seconds(self, count: int) -> None:
        for _ in range(count):
            self._second += 1
            self.tally.seconds += 1
            self.clock.move(1000)
            self._let_go_of_old()
            await self._beat()
            for process in self.processes:
                await process.second(self._second % UPKEEP_EVERY_SEC == 0)
            await self._hear()
            if self._tidy is not None and self._second % UPKEEP_EVERY_SEC == 1:
                await self._tidy()

    def _let_go_of_old(self) -> None:
        """By its own clock a worker that hears nothing stops before its leases can be somebody else's."""
        now_ms = self.clock.boot_ms()
        for worker in self.workers:
            if worker.is_cut and worker.held:
                for camera_id in [one for one, until in worker.deadline_ms.items() if until <= now_ms]:
                    self._drop(worker, camera_id)

    async def _beat(self) -> None:
        by_process: dict[int, list[Worker]] = defaultdict(list)
        for worker in self.workers:
            is_due = self._second % self.policy.heartbeat_sec == worker.turn and not worker.is_cut
            if is_due and worker.line is not None and worker.process is not None:
                by_process[worker.process.number].append(worker)
        for workers in by_process.values():
            for batch in _parts(workers, SIZE_MAX):
                await self._beat_together(batch)

    async def _beat_together(self, batch: Sequence[Worker]) -> None:
        process = batch[0].process
        assert process is not None
        heard = tuple(
            Heard(one.known, "RUNNING", tuple(one.held.items()), 0) for one in batch if one.known is not None
        )
        now_ms = self.clock.now_ms()
        beats = await self.store.write(heartbeats, heard, process.epoch, self.policy.ttl_sec * 1000, now_ms)
        self.tally.beats += len(beats)
        for worker, beat in zip(batch, beats, strict=True):
            assert worker.line is not None
            worker.line.heard_boot_ms = self.clock.boot_ms()
            self._heard_back(worker, beat.renewal.renewed, (camera_id for camera_id, *_ in beat.renewal.lost))

    def _heard_back(self, worker: Worker, renewed: Iterable[tuple[str, int]], lost: Iterable[str]) -> None:
        until = deadline_boot_ms(self.clock.boot_ms(), self.policy.ttl_sec * 1000, self.policy.margin_sec * 1000)
        for camera_id, _ in renewed:
            worker.deadline_ms[camera_id] = until
        for camera_id in lost:
            self.tally.lost += 1
            self._drop(worker, camera_id)

    async def _hear(self) -> None:
        """Workers read what they were sent, and answer at once."""
        acks: list[tuple[int, str]] = []
        ready: list[Claim] = []
        for worker in self.workers:
            line = worker.line
            if line is None or worker.is_cut or not line.inbox or worker.known is None:
                continue
            inbox, line.inbox = line.inbox, []
            for message in inbox:
                if isinstance(message, Start):
                    acks.append((worker.known.worker_key, message.intent_id))
                    if self._hold(worker, message):
                        key = worker.known.worker_key
                        ready.append(Claim(self._tenant_id, key, message.camera_id, message.generation))
                elif isinstance(message, Stop):
                    self.tally.stops += 1
                    acks.append((worker.known.worker_key, message.intent_id))
                    await self._give_back(worker, [(message.camera_id, message.generation)])
        for batch in _parts(acks, CAMERAS_MAX):
            await self.store.write(acked_all, tuple(batch), self.clock.now_ms())
        for claims in _parts(ready, CAMERAS_MAX):
            await self.store.write(set_all_active, tuple(claims), self.clock.now_ms())

    # What everybody believes

    def _hold(self, worker: Worker, start: Start) -> bool:
        camera_id = start.camera_id
        if worker.held.get(camera_id) == start.generation:
            return True
        self.tally.starts += 1
        other = self._holder.get(camera_id)
        if other is not None and other is not worker:
            self.tally.twice += 1
            self._problem(f"{camera_id} is held by {other.name} and started at {worker.name}")
        # A worker that forgot what it holds, and that nobody else was given, is told again.
        before, last = self._generation.get(camera_id, 0), self._last.get(camera_id)
        if start.generation < before or (start.generation == before and last is not worker):
            self.tally.backwards += 1
            self._problem(f"{camera_id} was started again at generation {start.generation}")
        worker.held[camera_id] = self._generation[camera_id] = start.generation
        self._holder[camera_id] = self._last[camera_id] = worker
        worker.deadline_ms[camera_id] = deadline_boot_ms(
            self.clock.boot_ms(), self.policy.ttl_sec * 1000, self.policy.margin_sec * 1000
        )
        return True

    def _drop(self, worker: Worker, camera_id: str) -> None:
        worker.held.pop(camera_id, None)
        worker.deadline_ms.pop(camera_id, None)
        if self._holder.get(camera_id) is worker:
            del self._holder[camera_id]

    def _problem(self, text: str) -> None:
        if len(self.problems) < 20:
            self.problems.append(text)

    @property
    def held(self) -> int:
        return len(self._holder)

    def holder(self, camera_id: str) -> Worker | None:
        return self._holder.get(camera_id)

    def loads(self) -> Counter[int]:
        """How many workers hold so many cameras."""
        return Counter(len(worker.held) for worker in self.workers if worker.is_up)

    async def agrees(self) -> int:
        """Cameras of which the rows say something else than the workers believe; 0 when all is well."""
        rows = await self.store.read(_sessions)
        keys = {worker.known.worker_key: worker for worker in self.workers if worker.known is not None}
        wrong = 0
        for camera_id, worker_key, generation, state in rows:
            worker = self._holder.get(camera_id)
            said = keys.get(worker_key) if worker_key is not None and state == "ACTIVE" else None
            if said is not worker or (worker is not None and worker.held[camera_id] != generation):
                wrong += 1
                self._problem(f"{camera_id}: rows say {worker_key}/{generation}/{state}, workers say otherwise")
        return wrong

    def take_tally(self) -> Tally:
        tally, self.tally = self.tally, Tally()
        return tally


async def _sessions(tx: Any) -> tuple[tuple[str, int | None, int, str], ...]:
    rows = await tx.all(
        "SELECT c.camera_id, s.worker_key, s.generation, s.state FROM camera_sessions s "
        "JOIN cameras c ON c.camera_key = s.camera_key"
    )
    return tuple((row["camera_id"], row["worker_key"], row["generation"], row["state"]) for row in rows)


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
