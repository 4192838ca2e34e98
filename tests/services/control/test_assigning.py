"""What people want of workers and cameras, carried out by a running control."""

import logging

import pytest

from camserver.domain.people import Principal, Role
from camserver.store import Tx, delegation
from camserver.store.assignment import ALL_SITES, SHADOW_FLAG, STYLE_FLAG
from camserver.store.workers import register
from camserver.wire.worker import Capacity
from tests.services.control.rig import RunningControl, ScriptedWorker
from tests.store.stage import registration


def admin(control: RunningControl) -> Principal:
    return Principal(control.tenant_id, None, Role.SYSTEM_ADMIN)


async def hand_over(giver: ScriptedWorker, taker: ScriptedWorker) -> tuple[str, int]:
    """The giver is told to stop, and does; the taker is started. What it got."""
    order = await giver.stop()
    await giver.report("pipeline_stopped", order.camera_id, order.generation)
    await giver.settled()
    start = await taker.start()
    assert start.camera_id == order.camera_id
    assert start.generation == order.generation + 1
    return start.camera_id, start.generation


async def test_a_drained_worker_gives_its_camera_to_another(control: RunningControl) -> None:
    await control.hang_camera()
    leaver = await control.connect("leaver")
    await leaver.start()
    heir = await control.connect("heir")
    await control.store.as_(admin(control)).write(delegation.drain, "leaver", True, "", control.clock.now_ms())
    await control.pass_time(1)
    assert await hand_over(leaver, heir) == ("cam_1", 2)


async def test_a_camera_moves_where_it_is_sent_and_stays_where_it_is_pinned(control: RunningControl) -> None:
    await control.hang_camera()
    first = await control.connect("first")
    await first.start()
    second = await control.connect("second")
    people = control.store.as_(admin(control))
    await people.write(delegation.move, "cam_1", "second", "", control.clock.now_ms())
    await control.pass_time(1)
    assert await hand_over(first, second) == ("cam_1", 2)
    assert (await people.read(delegation.placement, "cam_1")).wanted_worker_id is None
    await people.write(delegation.pin, "cam_1", "first", "", control.clock.now_ms())
    await control.pass_time(1)
    assert await hand_over(second, first) == ("cam_1", 3)


async def test_a_pinned_camera_waits_for_its_worker(control: RunningControl) -> None:
    other = await control.connect("other")
    absent = await control.connect("absent")
    await absent.drop()
    await control.pass_time(1)
    await control.hang_camera()
    people = control.store.as_(admin(control))
    await people.write(delegation.pin, "cam_1", "absent", "", control.clock.now_ms())
    await control.pass_time(7)
    assert (await people.read(delegation.placement, "cam_1")).worker_id is None
    back = await control.connect("absent")
    assert (await back.start()).camera_id == "cam_1"
    await other.settled()


async def test_a_worker_that_joins_relieves_the_fullest_a_few_at_a_time(control: RunningControl) -> None:
    for number in range(1, 9):
        await control.hang_camera(f"cam_{number}")
    full = await control.connect("full", capacity=Capacity(slots=8))
    for _ in range(8):
        await full.start()
    held = [(f"cam_{number}", 1) for number in range(1, 9)]
    for _ in range(13):
        await full.beat(*held)
        await control.pass_time(10, 5)
    fresh = await control.connect("fresh", capacity=Capacity(slots=8))
    await full.beat(*held)
    await fresh.beat()
    await control.pass_time(5, 5)
    moved = [await hand_over(full, fresh) for _ in range(3)]
    assert len({camera_id for camera_id, _ in moved}) == 3
    await control.pass_time(1)
    # 5 of 8 and 3 of 8 differ by the margin and not by more.
    assert sorted(await control.store.read(holders)) == [("fresh", 3), ("full", 5)]


async def holders(tx: Tx) -> list[tuple[str, int]]:
    rows = await tx.all(
        "SELECT w.worker_id, count(*) AS held FROM camera_sessions s JOIN workers w ON w.worker_key = s.worker_key "
        "WHERE s.stop_wanted = 0 GROUP BY w.worker_id"
    )
    return [(row["worker_id"], row["held"]) for row in rows]


async def test_a_quota_holds_over_takes(control: RunningControl) -> None:
    await control.store.write(set_quota, 2)
    for number in range(1, 5):
        await control.hang_camera(f"cam_{number}")
    worker = await control.connect()
    for _ in range(2):
        await worker.start()
    await control.pass_time(3)
    assert await control.store.read(holders) == [("worker-1", 2)]


async def set_quota(tx: Tx, most: int) -> None:
    await tx.run("UPDATE tenants SET cameras_running_max = :most", most=most)


async def set_flags(tx: Tx, tenant_id: int, site_id: int, style: str, shadow: str) -> None:
    for name, value, where in ((STYLE_FLAG, style, site_id), (SHADOW_FLAG, shadow, ALL_SITES)):
        await tx.run(
            "INSERT INTO feature_flags (tenant_id, site_id, name, value, updated_at) "
            "VALUES (:tenant_id, :site_id, :name, :value, 0)",
            tenant_id=tenant_id,
            site_id=where,
            name=name,
            value=value,
        )


async def test_a_flag_chooses_the_style_and_a_shadow_changes_nothing(
    control: RunningControl, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await control.store.write(set_flags, control.tenant_id, control.site_id, "pack", "spread")
    first = await control.connect("first")
    await control.hang_camera("cam_1")
    await control.pass_time(5)
    await first.start()
    second = await control.connect("second")
    await control.hang_camera("cam_2")
    await control.pass_time(5)
    assert (await first.start()).camera_id == "cam_2", "packed, although the other one is empty"
    await second.settled()
    assert "assignment_shadow" in caplog.text
    assert "'spread different': 1" in caplog.text


async def test_what_a_dead_process_does_not_take_is_taken_here(control: RunningControl) -> None:
    """A worker that seems connected elsewhere comes before ours, but nobody takes cameras for it."""
    ghost = registration("ghost", epoch_id=999, slots=100)
    await control.store.write(register, control.tenant_id, ghost, control.clock.now_ms())
    ours = await control.connect("ours", capacity=Capacity(slots=1))
    await control.hang_camera()
    await control.pass_time(3)
    assert await control.store.read(holders) == []
    await control.pass_time(4)
    assert (await ours.start()).camera_id == "cam_1"


async def test_what_has_long_waited_for_its_turn_is_left_to_whom_it_is_meant_for(control: RunningControl) -> None:
    """Otherwise the first of several processes fills its own workers in a storm, and the others' stay empty."""
    await control.hang_camera()
    await control.pass_time(60)
    other = registration("other", epoch_id=999, slots=100)
    await control.store.write(register, control.tenant_id, other, control.clock.now_ms())
    ours = await control.connect("ours", capacity=Capacity(slots=1))
    await control.pass_time(3)
    assert await control.store.read(holders) == []
    await control.pass_time(4)
    assert (await ours.start()).camera_id == "cam_1"
