"""Figures of control: each moves when, and only when, what it counts happens."""

from camserver.base import traces
from camserver.base.traces import Step
from camserver.domain.people import Principal, Role
from camserver.store import delegation
from camserver.wire.looks import Recorded
from tests.rig.figures import Moved, value_of
from tests.rig.spans import tracing
from tests.services.control.rig import RunningControl, look_header


async def test_assignments_looks_heartbeats_and_ends_of_leases_are_counted(control: RunningControl) -> None:
    moved = Moved()
    await control.hang_camera()
    first = await control.connect("first")
    await first.start()
    assert (moved.by("assign_attempts_total"), moved.by("assign_success_total")) == (1, 1)

    before = moved.by("heartbeats_total")
    await first.beat(("cam_1", 1))
    assert moved.by("heartbeats_total") == before + 1
    answer = await control.upload(look_header(control.clock, "cam_1", 1, 1), "first")
    assert isinstance(answer, Recorded)
    await control.upload(look_header(control.clock, "cam_1", 1, 1), "first")
    assert moved.by("frames_recorded_total", kind="live") == 1, "a repeat is no other look"

    second = await control.connect("second")
    people = control.store.as_(Principal(control.tenant_id, None, Role.SYSTEM_ADMIN))
    await people.write(delegation.move, "cam_1", "second", "", control.clock.now_ms())
    await control.pass_time(1)
    assert (moved.by("assign_moves_total"), moved.by("reclaims_total", kind="soft")) == (1, 1)
    order = await first.stop()
    await first.report("pipeline_stopped", order.camera_id, order.generation)
    await first.settled()
    await second.start()
    assert moved.by("assign_success_total") == 2
    await control.pass_time(5, 5)
    assert value_of("workers_connected") == 2

    assert moved.by("reclaims_total", kind="hard") == moved.by("heartbeats_missing_total") == 0
    await second.drop()
    for _ in range(20):
        await first.beat()
        await control.pass_time(5, 5)
    assert moved.by("reclaims_total", kind="hard") == 1
    assert moved.by("heartbeats_missing_total") == 1


async def test_recording_a_look_is_a_step_of_its_trace(control: RunningControl) -> None:
    await control.hang_camera()
    worker = await control.connect("first")
    await worker.start()
    with tracing() as kept:
        header = look_header(control.clock, "cam_1", 1, 1)
        answer = await control.upload(header, "first")
        await control.upload(header, "first")
    assert isinstance(answer, Recorded)
    (span,) = kept.spans
    assert span.step is Step.RECORD
    assert f"{span.trace_id:032x}" == traces.trace_id_of(answer.frame_uuid)
    assert (span.ids["worker_id"], span.ids["camera_id"], span.ids["generation"]) == ("first", "cam_1", 1)


async def test_a_camera_that_does_not_start_is_counted(control: RunningControl) -> None:
    moved = Moved()
    await control.hang_camera()
    worker = await control.connect()
    order = await worker.start(ready=False)
    for _ in range(4):
        await worker.beat((order.camera_id, order.generation))
        await control.pass_time(5, 5)
    assert moved.by("start_timeouts_total") == 1
