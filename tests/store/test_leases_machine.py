"""Leases as a state machine on the real store: whatever workers and control do, a camera has at most one holder.

The model is what workers believe: each knows until when, by its own clock, it may act as the owner. Two of them must
never believe so of one camera at the same time, whoever was silent, restarted, paused or raced.
"""

import asyncio
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from camserver.domain.leases import FrameStanding, LeasePolicy
from camserver.store import Store, open_store
from camserver.store.assignment import free_cameras
from camserver.store.camera_sessions import follow_cameras
from camserver.store.frames import record
from camserver.store.intents import pending, returned_without, starts_sent, want_stop
from camserver.store.leases import Want, reclaim, release
from camserver.store.renewals import renew
from camserver.store.starts import not_done, start_timeouts
from tests.rig.effort import times
from tests.rig.templates import Template
from tests.store.scenery import Scene, look
from tests.store.singles import acked, set_active, take
from tests.store.stage import NOW_MS, TTL_MS, Stage, build, check_history

WORKERS = 3
CAMERAS = 2
POLICY = LeasePolicy()
MARGIN_MS = POLICY.margin_sec * 1000
worker_index = st.integers(0, WORKERS - 1)
camera_index = st.integers(0, CAMERAS - 1)


class LeaseMachine(RuleBasedStateMachine):
    template: Template

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.url = self.template.fresh()
        self.store: Store = self.runner.run(open_store(self.url))
        self.now_ms = NOW_MS
        # What a worker believes: (worker, camera) → (generation, until when it acts as the owner).
        self.beliefs: dict[tuple[int, int], tuple[int, int]] = {}
        self.highest = dict.fromkeys(range(CAMERAS), 0)
        self.seq = 0

    @initialize()
    def open(self) -> None:
        self.stage: Stage = self.runner.run(build(self.store, WORKERS, CAMERAS))

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.template.discard(self.url)

    def write(self, operation: Callable[..., object], *args: object) -> object:
        return self.runner.run(self.store.write(operation, *args))  # type: ignore[arg-type]  # any operation

    def worker_key(self, worker: int) -> int:
        return self.stage.workers[worker].worker_key

    def index_of(self, worker_key: int) -> int:
        return next(i for i, worker in enumerate(self.stage.workers) if worker.worker_key == worker_key)

    def believes(self, worker: int, camera: int) -> bool:
        belief = self.beliefs.get((worker, camera))
        return belief is not None and self.now_ms < belief[1]

    # What happens ----------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 1_000, 10_000, 16_000, 84_999, 90_001, 700_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(worker=worker_index, camera=camera_index, stale=st.integers(0, 1))
    def take(self, worker: int, camera: int, stale: int) -> None:
        """Control assigns a camera, with what it read or with something older."""
        free = self.runner.run(self.store.read(free_cameras, (self.stage.site_id,), 60.0, self.now_ms))
        key = self.stage.cameras[camera].key
        found = next((one for one in free if one.camera_key == key), None)
        expected = self.highest[camera] if found is None else max(found.generation - stale, 0)
        lease = self.runner.run(
            self.store.write(take, Want(key, self.worker_key(worker), expected), TTL_MS, self.now_ms)
        )
        if lease is None:
            assert found is None or expected != found.generation
            return
        assert found is not None
        assert lease.generation == self.highest[camera] + 1
        self.highest[camera] = lease.generation

    @rule()
    def start_is_delivered(self) -> None:
        """Every worker gets its STARTs; the worker acts as owner from then, for as long as the lease holds."""
        keys = tuple(worker.worker_key for worker in self.stage.workers)
        for intent in self.runner.run(self.store.read(pending, keys)):
            worker = self.index_of(intent.worker_key)
            camera = next(i for i, one in enumerate(self.stage.cameras) if one.key == intent.camera_key)
            self.write(starts_sent, (intent.intent_id,), self.now_ms)
            self.write(acked, intent.worker_key, intent.intent_id, self.now_ms)
            if hasattr(intent, "url"):
                # It is not told when the lease was granted; its first renewal says so.
                self.beliefs[worker, camera] = (intent.generation, self.now_ms)

    @rule(worker=worker_index)
    def heartbeat(self, worker: int) -> None:
        mine = {camera: belief for (holder, camera), belief in self.beliefs.items() if holder == worker}
        held = tuple((self.stage.cameras[camera].id, belief[0]) for camera, belief in mine.items())
        answer = self.runner.run(
            self.store.write(renew, self.stage.tenant_id, self.worker_key(worker), held, TTL_MS, self.now_ms)
        )
        renewed = set(answer.renewed)
        for camera, (generation, _) in mine.items():
            if (self.stage.cameras[camera].id, generation) in renewed:
                self.beliefs[worker, camera] = (generation, self.now_ms + TTL_MS - MARGIN_MS)
            else:
                del self.beliefs[worker, camera]

    @rule(worker=worker_index, camera=camera_index)
    def ready(self, worker: int, camera: int) -> None:
        generation = self.beliefs.get((worker, camera), (1, 0))[0]
        self.write(set_active, self.stage.claim(worker, camera, generation), self.now_ms)

    @rule(worker=worker_index, camera=camera_index, lag=st.integers(0, 1))
    def stops(self, worker: int, camera: int, lag: int) -> None:
        """A worker gives a camera back, perhaps one that it lost long ago."""
        generation = max(self.beliefs.pop((worker, camera), (1, 0))[0] - lag, 1)
        self.write(release, self.stage.claim(worker, camera, generation), "stopped", self.now_ms)

    @rule(camera=camera_index)
    def is_to_stop(self, camera: int) -> None:
        self.write(want_stop, self.stage.cameras[camera].key, "asked", self.now_ms)

    @rule(worker=worker_index)
    def restarts(self, worker: int) -> None:
        """A worker dies, forgets everything and comes back."""
        self.beliefs = {key: belief for key, belief in self.beliefs.items() if key[0] != worker}
        self.write(returned_without, self.worker_key(worker), frozenset(), TTL_MS, self.now_ms)

    @rule()
    def upkeep(self) -> None:
        self.write(reclaim, self.now_ms)
        self.write(follow_cameras, self.now_ms)

    @rule(worker=worker_index, status=st.sampled_from(["refused", "failed"]))
    def can_not_start(self, worker: int, status: str) -> None:
        for intent in self.runner.run(self.store.read(pending, (self.worker_key(worker),))):
            self.write(not_done, intent.worker_key, intent.intent_id, status, "no", POLICY, self.now_ms)

    @rule()
    def starts_time_out(self) -> None:
        self.write(start_timeouts, POLICY, self.now_ms)

    @precondition(lambda self: self.beliefs)
    @rule(data=st.data())
    def sends_a_look(self, data: st.DataObject) -> None:
        """Whoever believes to be the owner is believed; nobody else's look is live."""
        worker, camera = data.draw(st.sampled_from(sorted(self.beliefs)))
        generation, _ = self.beliefs[worker, camera]
        self.seq += 1
        scene = Scene(
            self.stage.tenant_id,
            self.stage.site_id,
            self.worker_key(worker),
            self.stage.epoch_id,
            tuple(one.key for one in self.stage.cameras),
        )
        sent = look(scene, camera=camera, seq=self.seq, at_ms=self.now_ms, generation=generation)
        (answer,) = self.runner.run(self.store.write(record, (sent,), POLICY))
        if self.believes(worker, camera):
            assert answer.standing is FrameStanding.LIVE
        if answer.standing is FrameStanding.LIVE:
            assert generation == self.highest[camera]

    # What must hold --------------------------------------------------------------------------------------------

    @invariant()
    def one_owner(self) -> None:
        for camera in range(CAMERAS):
            owners = [worker for worker in range(WORKERS) if self.believes(worker, camera)]
            assert len(owners) <= 1, f"workers {owners} both act as owner of camera {camera}"

    @invariant()
    def history_is_whole(self) -> None:
        if hasattr(self, "stage"):
            for camera in self.stage.cameras:
                self.runner.run(check_history(self.store, camera.key))


def test_leases_on_sqlite(sqlite_template: Template) -> None:
    _run(sqlite_template, times(15, 100))


def test_leases_on_postgres(postgres_template: Template) -> None:
    _run(postgres_template, times(4, 25))


def test_leases_on_mariadb(mariadb_template: Template) -> None:
    _run(mariadb_template, times(4, 25))


def _run(template: Template, examples: int) -> None:
    machine = type("Machine", (LeaseMachine,), {"template": template})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )
