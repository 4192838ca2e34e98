"""Control on each database, and two control processes on one where that is possible."""

from pathlib import Path

from camserver.domain.workers import WorkerState
from camserver.store import Store
from camserver.wire.looks import LookRefused, Recorded
from tests.rig.clock import ManualClock
from tests.services.control.rig import SLEEPERS, held, look_header, running_control
from tests.store.stage import check_history

EVERY_DATABASE = True  # tests/rig/dealt.py


async def test_from_registering_to_an_acknowledged_look(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_control(store, clock, tmp_path) as control:
        camera = await control.hang_camera()
        worker = await control.connect()
        order = await worker.start()
        answer = await worker.beat(("cam_1", order.generation))
        assert answer.renewed == held(("cam_1", 1))
        recorded = await control.upload(look_header(clock, "cam_1", 1, 1, verdict="analyze"))
        assert isinstance(recorded, Recorded)
        assert (recorded.standing, recorded.repeat) == ("live", False)
        await check_history(store, camera.key)


async def test_a_camera_moves_between_workers_of_two_control_processes(
    two_stores: tuple[Store, Store], clock: ManualClock, tmp_path: Path
) -> None:
    """Each process delivers to the workers it has the sockets of; rows are all they share."""
    first, second = two_stores
    async with (
        running_control(first, clock, tmp_path) as one,
        running_control(second, clock, tmp_path) as other,
    ):
        camera = await one.hang_camera()
        leaver = await one.connect("leaver")
        assert (await leaver.start()).generation == 1
        await one.upload(look_header(clock, "cam_1", 1, 1), worker_id="leaver")
        await leaver.beat(("cam_1", 1), state=WorkerState.DRAINING)
        heir = await other.connect("heir")
        await leaver.report("pipeline_stopped", "cam_1", 1)
        await leaver.settled()
        await clock.until_sleeping(2 * SLEEPERS)
        await clock.advance(1000)
        order = await heir.start()
        assert (order.camera_id, order.generation) == ("cam_1", 2)
        # Uploads may go to any process.
        live = await one.upload(look_header(clock, "cam_1", 2, 1), worker_id="heir")
        assert isinstance(live, Recorded)
        assert live.standing == "live"
        await clock.advance(5000)
        stale = await other.upload(look_header(clock, "cam_1", 1, 2), worker_id="leaver")
        assert isinstance(stale, LookRefused)
        await check_history(first, camera.key)


async def test_a_worker_that_moved_to_another_process_is_replaced_at_the_first(
    two_stores: tuple[Store, Store], clock: ManualClock, tmp_path: Path
) -> None:
    first, second = two_stores
    async with (
        running_control(first, clock, tmp_path) as one,
        running_control(second, clock, tmp_path) as other,
    ):
        older = await one.connect("worker-1")
        newer = await other.connect("worker-1")
        await older.beat(state=WorkerState.IDLE)
        assert await older.closed() == 4001
        assert (await newer.beat(state=WorkerState.IDLE)).lost == ()
