"""What delegation promises (docs/delegation_debug.md), each promise one test, with real processes throughout.

Times that were measured are printed (`-s`); none decides. Leases last 10 s here, as short as the settings allow.
"""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.company import TTL_SEC
from tests.e2e.grounds import CAMERAS, Grounds, Stopwatch, in_time, logged_at_ms
from tests.rig.effort import THOROUGH
from tests.rig.templates import SqliteTemplate

CAM = CAMERAS[0]
on_sqlite = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
pytestmark = pytest.mark.timeout(600)


# A camera's life ---------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(
    sqlite_template: SqliteTemplate, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Grounds]:
    """With a camera and a worker that has just connected, for tests that leave them as they are."""
    async with Grounds("sqlite", sqlite_template.fresh(), tmp_path_factory.mktemp("started")) as made:
        await made.hang(CAM)
        await made.worker("worker-a")
        yield made


@pytest.mark.asyncio(loop_scope="module")
async def test_a_worker_that_connects_is_sent_start(started: Grounds) -> None:
    worker = started.running["worker-a"]
    registered = await worker.until_logged("registered")
    start = await worker.until_logged("on_assign", camera_id=CAM, generation=1)
    print(f"START after connecting: {logged_at_ms(start) - logged_at_ms(registered):.0f} ms")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_camera_that_is_ready_is_active(started: Grounds) -> None:
    worker = started.running["worker-a"]
    start = await worker.until_logged("on_assign", camera_id=CAM)
    ready = await worker.until_logged("pipeline_ready", camera_id=CAM, generation=1)
    print(f"pipeline_ready after START: {logged_at_ms(ready) - logged_at_ms(start):.0f} ms")
    (lease,) = (await started.until_active(CAM)).values()
    assert (lease["worker_id"], lease["generation"], lease["reason"]) == ("worker-a", 1, "")
    assert 0 < lease["left_ms"] <= TTL_SEC * 1000


async def test_stop_releases_the_lease(grounds: Grounds) -> None:
    await grounds.hang(CAM)
    worker = await grounds.worker("worker-a")
    await grounds.until_active(CAM)
    await grounds.more_looks(CAM)
    watch = Stopwatch()
    await grounds.call("PATCH", f"/api/cameras/{CAM}", {"enabled": False})
    await grounds.until_lease(lambda lease: lease["worker_id"] is None, "the lease is given back")
    watch.say("released after it was switched off")
    await worker.until_logged("pipeline_stopped", camera_id=CAM, generation=1)
    records = await grounds.judged()
    assert [(row["generation"], row["ended_at"] is not None) for row in records.leases] == [(1, True)]
    assert not records.gaps


# Where each line is written, in the order in which a camera starts.
SERVER_LINES = ("assignment_decision", "send_start", "ack_start", "pipeline_ready")
WORKER_LINES = ("on_assign", "pipeline_boot", "pipeline_ready")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_start_can_be_followed_through_the_logs_of_both_sides(started: Grounds) -> None:
    """Every line about it has the same tenant, site, worker, camera, generation, intent and trace."""
    worker, server = started.running["worker-a"], started.running["server"]
    await started.until_active(CAM)
    await started.hang("locked", password="not the camera's", at=CAM)
    connected = await server.until_logged("on_connect", worker_id="worker-a")
    ids = {name: connected[name] for name in ("tenant_id", "site_id", "worker_id")}
    decided = await server.until_logged("assignment_decision", camera_id=CAM, generation=1)
    ids |= {name: decided[name] for name in ("camera_id", "generation", "intent_id", "trace_id")}
    assert ids["trace_id"] == str(ids["intent_id"]).replace("-", "")
    at_server = [await server.until_logged(event, **ids) for event in SERVER_LINES]
    at_worker = [await worker.until_logged(event, **ids) for event in WORKER_LINES]
    for lines in (at_server, at_worker):
        moments = [logged_at_ms(line) for line in lines]
        assert moments == sorted(moments)
    whose = {name: ids[name] for name in ("tenant_id", "site_id", "worker_id")}
    await worker.until_logged("heartbeat_renew", **whose, renewed=1)
    decided = await server.until_logged("assignment_decision", camera_id="locked", generation=1)
    failed = whose | {name: decided[name] for name in ("camera_id", "generation", "intent_id", "trace_id")}
    for running in (worker, server):
        await running.until_logged("pipeline_error", 180, **failed)


# Workers that go away ----------------------------------------------------------------------------------------------


@on_sqlite
async def test_a_socket_dropped_for_two_thirds_of_the_lease_moves_nothing(
    db_kind: str, db_url: str, tmp_path: Path
) -> None:
    """A minute of ninety seconds with TEST_THOROUGH=1, twenty seconds of thirty otherwise."""
    ttl_ms = (90 if THOROUGH else 30) * 1000
    async with Grounds(db_kind, db_url, tmp_path, ttl_sec=ttl_ms // 1000) as grounds:
        await grounds.hang(CAM)
        await grounds.worker("worker-a")
        await grounds.until_active(CAM)
        await grounds.worker("worker-b")
        await grounds.more_looks(CAM)
        watch = Stopwatch()
        grounds.nets["worker-a"].refuse()
        grounds.nets["worker-a"].cut()
        away = await grounds.until_lease(lambda lease: lease["is_orphaned_soon"], "the worker is missed")
        assert away[CAM]["worker_id"] == "worker-a"
        before = grounds.looks(CAM)
        await grounds.until_lease(lambda lease: lease["left_ms"] < ttl_ms / 3, "two thirds have passed")
        watch.say("socket dropped for")
        assert grounds.looks(CAM) == before
        await grounds.nets["worker-a"].accept()
        back = await grounds.until_lease(
            lambda lease: lease["is_holder_connected"] and lease["left_ms"] > ttl_ms * 2 / 3, "it is renewed"
        )
        assert (back[CAM]["worker_id"], back[CAM]["generation"], back[CAM]["state"]) == ("worker-a", 1, "ACTIVE")
        await grounds.more_looks(CAM)
        assert await grounds.generations() == {CAM: 1}
        records = await grounds.judged()
    assert not records.gaps, "what was seen meanwhile waited on the worker's disk"
    times = sorted(row["captured_at"] for row in records.frames)
    print(f"longest gap between looks: {max(b - a for a, b in itertools.pairwise(times))} ms")


@on_sqlite
@pytest.mark.parametrize("fate", ["killed", "cut off"])
async def test_another_worker_takes_over_when_the_lease_ran_out(grounds: Grounds, fate: str) -> None:
    await grounds.hang(CAM)
    await grounds.worker("worker-a")
    await grounds.until_active(CAM)
    heir = await grounds.worker("worker-b")
    await grounds.more_looks(CAM)
    if fate == "killed":
        grounds.kill("worker-a")
    else:
        grounds.nets["worker-a"].swallow()
    watch = Stopwatch()
    expired = await grounds.running["server"].until_logged("lease_expired", 180)
    watch.say(f"lease ran out after the worker was {fate}")
    (lease,) = (await grounds.until_active(CAM, worker="worker-b")).values()
    assert lease["generation"] == 2
    ready = await heir.until_logged("pipeline_ready", camera_id=CAM, generation=2)
    print(f"running elsewhere after the lease ran out: {logged_at_ms(ready) - logged_at_ms(expired):.0f} ms")
    await grounds.more_looks(CAM)
    if fate == "cut off":
        grounds.nets["worker-a"].heal()
        grounds.nets["worker-a"].cut()
        await grounds.running["worker-a"].until_logged("lease lost", 180, camera_id=CAM, generation=1)
    assert await grounds.generations() == {CAM: 2}
    await grounds.judged()


@on_sqlite
async def test_a_worker_frozen_past_its_lease_writes_nothing_as_owner(grounds: Grounds) -> None:
    """What it captured while it held the lease arrives as late; what it would capture afterwards does not exist."""
    await grounds.hang(CAM)
    frozen = await grounds.worker("worker-a")
    await grounds.until_active(CAM)
    await grounds.worker("worker-b")
    await grounds.more_looks(CAM)
    # Looks that it has on its disk when it freezes.
    grounds.nets["worker-a"].hold()
    await in_time(lambda: grounds.spooled("worker-a") >= 2, "looks wait on the worker's disk")
    grounds.freeze("worker-a")
    spooled = grounds.spooled("worker-a")
    await grounds.until_active(CAM, worker="worker-b")
    await grounds.more_looks(CAM)
    grounds.nets["worker-a"].heal()
    grounds.thaw("worker-a")
    await frozen.until_logged("lease lost", 180, camera_id=CAM, generation=1)
    await in_time(lambda: grounds.spooled("worker-a") == 0, "its looks are sent")
    late = grounds.looks(CAM, generation=1, standing="late")
    print(f"late looks of the frozen worker: {late} of {spooled} on its disk")
    assert late
    await grounds.more_looks(CAM)
    assert await grounds.generations() == {CAM: 2}
    records = await grounds.judged()
    (first,) = [row for row in records.leases if row["generation"] == 1]
    mine = [row for row in records.frames if row["generation"] == 1]
    assert max(row["captured_at"] for row in mine) <= first["ended_at"]
    handed_over = min(row["frame_id"] for row in records.frames if row["generation"] == 2)
    assert all(row["late"] for row in mine if row["frame_id"] > handed_over)


@on_sqlite
async def test_a_wrong_password_never_wanders_from_worker_to_worker(grounds: Grounds) -> None:
    await grounds.hang(CAM, password="not the camera's")
    await grounds.worker("worker-a")
    await grounds.until_lease(lambda lease: lease["worker_id"] == "worker-a", "the camera is taken")
    await grounds.worker("worker-b")
    paused = await grounds.until_lease(
        lambda lease: lease["state"] == "PAUSED" and lease["auth_failures"] >= 5, "the camera is paused"
    )
    assert (paused[CAM]["worker_id"], paused[CAM]["generation"]) == ("worker-a", 1)
    assert "refused user or password" in paused[CAM]["reason"]
    tries = paused[CAM]["auth_failures"]
    # Only a worker that dies gives it on, and what is known of the password goes along.
    grounds.kill("worker-a")
    moved = await grounds.until_lease(lambda lease: lease["worker_id"] == "worker-b", "another worker has it")
    assert moved[CAM]["auth_failures"] >= tries
    await grounds.until_lease(lambda lease: lease["auth_failures"] > tries, "it was tried there")
    assert await grounds.generations() == {CAM: 2}
    await grounds.judged()
