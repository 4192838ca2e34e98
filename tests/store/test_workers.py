"""Workers' rows on all three databases."""

import asyncio

import pytest

from camserver.base.errors import BadInput, Conflict, NotFound, Unavailable
from camserver.domain.people import Principal, Role
from camserver.store import Dialect, Store, Tx, delegation, sites, tenants, worker_identities
from camserver.store.intents import starts_sent
from camserver.store.leases import Want
from camserver.store.workers import (
    Beat,
    Heard,
    disconnected,
    first_tenant,
    heartbeats,
    mark_unhealthy,
    register,
    sign_in,
    uploader,
)
from tests.store.singles import heartbeat, set_active, take
from tests.store.stage import NOW_MS, TTL_MS, Stage, add_site, build, registration, session, statement


async def worker_row(store: Store, worker_key: int) -> dict[str, object]:
    return await store.read(_worker_row, worker_key)


async def _worker_row(tx: Tx, worker_key: int) -> dict[str, object]:
    row = await tx.one("SELECT * FROM workers WHERE worker_key = :worker_key", worker_key=worker_key)
    assert row is not None
    columns = [
        "worker_id",
        "site_id",
        "version",
        "boot_id",
        "status",
        "connected_epoch",
        "last_seen_at",
        "created_at",
    ]
    return {column: row[column] for column in columns}


async def beat(store: Store, stage: Stage, now_ms: int, *held: tuple[str, int], epoch_id: int | None = None) -> Beat:
    return await store.write(
        heartbeat,
        stage.workers[0],
        epoch_id if epoch_id is not None else stage.epoch_id,
        "RUNNING",
        held,
        0,
        TTL_MS,
        now_ms,
    )


async def test_a_worker_that_registers_again_keeps_its_key(store: Store) -> None:
    stage = await build(store, workers=1)
    changed = registration("worker-0", epoch_id=9, version="2", boot_id="boot-2")
    again = await store.write(register, stage.tenant_id, changed, NOW_MS + 5)
    assert again == stage.workers[0]
    row = await worker_row(store, again.worker_key)
    assert (row["version"], row["boot_id"], row["connected_epoch"]) == ("2", "boot-2", 9)
    assert (row["created_at"], row["last_seen_at"]) == (NOW_MS, NOW_MS + 5)


async def test_racing_registrations_make_one_row(two_stores: tuple[Store, Store]) -> None:
    stage = await build(two_stores[0], workers=0)
    made = await asyncio.gather(
        *(two_stores[index % 2].write(register, stage.tenant_id, registration("new"), NOW_MS) for index in range(8))
    )
    assert len(set(made)) == 1


async def test_the_site_is_found_by_name_or_id_and_nothing_else(store: Store) -> None:
    stage = await build(store, workers=0)
    await build(store, workers=0, cameras=0, name="other")
    await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    site_uuid = await store.read(_site_uuid, stage.site_id)
    for site in ("main", site_uuid):
        found = await store.write(register, stage.tenant_id, registration("w", site=site), NOW_MS)
        assert found.site_id == stage.site_id
    with pytest.raises(NotFound, match="no site 'nowhere'"):
        await store.write(register, stage.tenant_id, registration("w", site="nowhere"), NOW_MS)
    with pytest.raises(BadInput, match="names no site"):
        await store.write(register, stage.tenant_id, registration("new", site=""), NOW_MS)


async def test_a_worker_that_names_no_site_stays_where_it_was_when_another_one_is_added(store: Store) -> None:
    stage = await build(store, workers=0)
    await store.write(register, stage.tenant_id, registration("w", site=""), NOW_MS)
    await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    again = await store.write(register, stage.tenant_id, registration("w", site=""), NOW_MS)
    assert again.site_id == stage.site_id


async def test_a_removed_site_is_none(store: Store) -> None:
    stage = await build(store, workers=0)
    annex_id = await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    admin = store.as_(Principal(stage.tenant_id, None, Role.TENANT_ADMIN))
    await admin.write(sites.remove, "annex", "", NOW_MS)
    with pytest.raises(NotFound, match="no site 'annex'"):
        await store.write(register, stage.tenant_id, registration("w", site="annex"), NOW_MS)
    with pytest.raises(NotFound, match="was removed"):
        await store.write(register, stage.tenant_id, registration("w", "", proven_site_id=annex_id), NOW_MS)
    # So there is only one that a worker can mean which names none.
    found = await store.write(register, stage.tenant_id, registration("w", site=""), NOW_MS)
    assert found.site_id == stage.site_id


async def test_a_site_is_removed_when_its_workers_have_stopped(store: Store) -> None:
    stage = await build(store, workers=0)
    await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    admin = store.as_(Principal(stage.tenant_id, None, Role.TENANT_ADMIN))
    for name in ("stopped", "lost"):
        await store.write(register, stage.tenant_id, registration(name, site="annex"), NOW_MS)
    await store.write(statement, "UPDATE workers SET status = 'STOPPED' WHERE worker_id = 'stopped'", {})
    with pytest.raises(Conflict, match="1 workers that run"):
        await admin.write(sites.remove, "annex", "", NOW_MS)
    assert await store.write(mark_unhealthy, NOW_MS + 1) == ("lost",)
    assert {one.worker_id for one in await admin.read(delegation.workers)} == {"stopped", "lost"}
    await admin.write(sites.remove, "annex", "", NOW_MS)
    assert await admin.read(delegation.workers) == ()
    # Each may stand elsewhere under its name, and is there again with its site.
    assert (await store.write(register, stage.tenant_id, registration("lost"), NOW_MS)).site_id == stage.site_id
    await admin.write(worker_identities.invite, "hash", "main", "stopped", 60_000, "", NOW_MS)
    await admin.write(sites.add, "annex", "UTC", "", NOW_MS)
    assert {one.worker_id: one.site for one in await admin.read(delegation.workers)} == {
        "lost": "main",
        "stopped": "annex",
    }


async def test_a_worker_that_was_silent_while_its_site_was_removed_connects_anew(store: Store) -> None:
    stage = await build(store, workers=0)
    await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    admin = store.as_(Principal(stage.tenant_id, None, Role.TENANT_ADMIN))
    here = registration("w", site="annex")
    worker = await store.write(register, stage.tenant_id, here, NOW_MS)
    await store.write(mark_unhealthy, NOW_MS + 1)
    await admin.write(sites.remove, "annex", "", NOW_MS)
    heard = Heard(worker, "IDLE", (), 0)
    [beat] = await store.write(heartbeats, (heard,), here.connected_epoch, 90_000, NOW_MS + 2)
    assert beat.is_replaced
    assert (await worker_row(store, worker.worker_key))["status"] == "UNHEALTHY"


async def test_a_site_is_not_removed_while_a_worker_signs_in_there(two_stores: tuple[Store, Store]) -> None:
    store, second = two_stores
    if store.dialect is Dialect.SQLITE:
        pytest.skip("transactions of one writer come one after the other")
    stage = await build(store, workers=0)
    await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    admin = second.as_(Principal(stage.tenant_id, None, Role.TENANT_ADMIN))
    is_there, may_end = asyncio.Event(), asyncio.Event()

    async def sign_in_and_wait(tx: Tx) -> None:
        await register(tx, stage.tenant_id, registration("w", site="annex"), NOW_MS)
        is_there.set()
        await may_end.wait()

    signing_in = asyncio.create_task(store.write(sign_in_and_wait))
    await is_there.wait()
    removing = asyncio.create_task(admin.write(sites.remove, "annex", "", NOW_MS))
    # It waits for the worker; one that does not is done by then.
    await asyncio.wait([removing], timeout=0.5)
    may_end.set()
    await signing_in
    with pytest.raises(Conflict, match="1 workers that run"):
        await removing


async def _site_uuid(tx: Tx, site_id: int) -> str:
    row = await tx.one("SELECT site_uuid FROM sites WHERE site_id = :site_id", site_id=site_id)
    assert row is not None
    return str(row["site_uuid"])


async def test_where_there_is_one_site_it_need_not_be_named(store: Store) -> None:
    stage = await build(store, workers=0)
    found = await store.write(register, stage.tenant_id, registration("w", site=""), NOW_MS)
    assert found.site_id == stage.site_id


async def test_signing_in_keeps_what_is_held_and_restarts_what_was_forgotten(store: Store) -> None:
    stage = await build(store, workers=1, cameras=2)
    worker_key = stage.workers[0].worker_key
    for camera in range(2):
        lease = await store.write(take, Want(stage.cameras[camera].key, worker_key, 0), TTL_MS, NOW_MS)
        assert lease is not None
        await store.write(starts_sent, (lease.intent_id,), NOW_MS)
        await store.write(set_active, stage.claim(0, camera, 1), NOW_MS)
    signed = await store.write(
        sign_in, stage.tenant_id, registration("worker-0"), (("cam_0", 1), ("cam_1", 9)), TTL_MS, NOW_MS + 7
    )
    assert signed.worker == stage.workers[0]
    assert signed.renewal.renewed == (("cam_0", 1),)
    assert signed.renewal.lost == (("cam_1", 9, "superseded"),)
    assert signed.restarted == ("cam_1",)
    states = [(await session(store, camera.key))["state"] for camera in stage.cameras]
    assert states == ["ACTIVE", "PENDING"]


async def test_a_heartbeat_is_a_sign_of_life_and_renews(store: Store) -> None:
    stage = await build(store)
    await store.write(take, Want(stage.cameras[0].key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS)
    answer = await beat(store, stage, NOW_MS + 10, ("cam_0", 1))
    assert answer.renewal.renewed == (("cam_0", 1),)
    assert answer.is_replaced is False
    row = await worker_row(store, stage.workers[0].worker_key)
    assert (row["last_seen_at"], row["status"]) == (NOW_MS + 10, "RUNNING")


async def test_a_heartbeat_on_an_old_socket_learns_that_it_was_replaced(store: Store) -> None:
    stage = await build(store)
    answer = await beat(store, stage, NOW_MS + 10, epoch_id=stage.epoch_id + 1)
    assert answer.is_replaced is True
    assert (await worker_row(store, stage.workers[0].worker_key))["last_seen_at"] == NOW_MS


async def test_heartbeats_of_several_workers_are_answered_each_for_itself(store: Store) -> None:
    stage = await build(store, workers=3, cameras=3)
    for index in range(3):
        await store.write(take, Want(stage.cameras[index].key, stage.workers[index].worker_key, 0), TTL_MS, NOW_MS)
    await store.write(disconnected, stage.workers[2].worker_key, stage.epoch_id)
    heard = (
        Heard(stage.workers[0], "RUNNING", (("cam_0", 1),), 0),
        Heard(stage.workers[1], "DRAINING", (("cam_1", 1), ("cam_0", 1), ("cam_1", 2)), 0),
        Heard(stage.workers[2], "RUNNING", (("cam_2", 1),), 0),
    )
    later = NOW_MS + 10
    beats = await store.write(heartbeats, heard, stage.epoch_id, TTL_MS, later)
    assert [beat.renewal.renewed for beat in beats] == [(("cam_0", 1),), (("cam_1", 1),), (("cam_2", 1),)]
    assert beats[1].renewal.lost == (("cam_0", 1, "not_holder"), ("cam_1", 2, "superseded"))
    assert [beat.is_replaced for beat in beats] == [False, False, True]
    rows = [await worker_row(store, worker.worker_key) for worker in stage.workers]
    assert [(row["last_seen_at"], row["status"]) for row in rows] == [
        (later, "RUNNING"),
        (later, "DRAINING"),
        (NOW_MS, "REGISTERED"),
    ]
    expiries = [(await session(store, camera.key))["lease_expires_at"] for camera in stage.cameras]
    assert expiries == [later + TTL_MS] * 3


async def test_leases_are_renewed_within_their_tenant(store: Store) -> None:
    ours, theirs = await build(store, name="ours"), await build(store, name="theirs")
    await store.write(take, Want(ours.cameras[0].key, ours.workers[0].worker_key, 0), TTL_MS, NOW_MS)
    heard = (
        Heard(ours.workers[0], "RUNNING", (("cam_0", 1),), 0),
        Heard(theirs.workers[0], "RUNNING", (("cam_0", 1),), 0),
    )
    ok, refused = await store.write(heartbeats, heard, ours.epoch_id, TTL_MS, NOW_MS + 10)
    assert (ok.renewal.renewed, ok.renewal.lost) == ((("cam_0", 1),), ())
    assert (refused.renewal.renewed, refused.renewal.lost) == ((), (("cam_0", 1, "superseded"),))
    assert (await session(store, theirs.cameras[0].key))["lease_expires_at"] is None


async def test_each_of_several_workers_gets_verdicts_since_its_own_time(store: Store) -> None:
    stage = await build(store)
    for index in range(2):
        await store.write(take, Want(stage.cameras[index].key, stage.workers[index].worker_key, 0), TTL_MS, NOW_MS)
    await store.write(
        statement,
        "UPDATE camera_state SET last_detected = 1, last_analyzed_at = :at, updated_at = :now",
        {"at": NOW_MS - 5, "now": NOW_MS + 2},
    )
    heard = (Heard(stage.workers[0], "RUNNING", (), NOW_MS + 3), Heard(stage.workers[1], "RUNNING", (), NOW_MS))
    early, late = await store.write(heartbeats, heard, stage.epoch_id, TTL_MS, NOW_MS + 5)
    assert early.verdicts == ()
    assert late.verdicts == (("cam_1", NOW_MS - 5, True, NOW_MS + 2),)


async def test_verdicts_come_back_for_the_workers_own_cameras(store: Store) -> None:
    stage = await build(store)
    await store.write(take, Want(stage.cameras[0].key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS)
    await store.write(take, Want(stage.cameras[1].key, stage.workers[1].worker_key, 0), TTL_MS, NOW_MS)
    assert (await beat(store, stage, NOW_MS + 1)).verdicts == ()
    await store.write(
        statement,
        "UPDATE camera_state SET last_detected = 1, last_analyzed_at = :at, updated_at = :now",
        {"at": NOW_MS - 5, "now": NOW_MS + 2},
    )
    assert (await beat(store, stage, NOW_MS + 3)).verdicts == (("cam_0", NOW_MS - 5, True, NOW_MS + 2),)


async def test_a_worker_that_missed_its_heartbeats_is_unhealthy_once(store: Store) -> None:
    stage = await build(store)
    await beat(store, stage, NOW_MS + 30_000)
    assert await store.write(mark_unhealthy, NOW_MS) == ()
    assert await store.write(mark_unhealthy, NOW_MS + 1) == ("worker-1",)
    assert await store.write(mark_unhealthy, NOW_MS + 1) == ()
    assert (await worker_row(store, stage.workers[1].worker_key))["status"] == "UNHEALTHY"
    assert (await worker_row(store, stage.workers[0].worker_key))["status"] == "RUNNING"


async def test_the_end_of_a_socket_is_noted_only_by_the_process_that_had_it(store: Store) -> None:
    stage = await build(store)
    worker_key = stage.workers[0].worker_key
    await store.write(disconnected, worker_key, stage.epoch_id + 1)
    assert (await worker_row(store, worker_key))["connected_epoch"] == stage.epoch_id
    await store.write(disconnected, worker_key, stage.epoch_id)
    assert (await worker_row(store, worker_key))["connected_epoch"] is None


async def test_an_upload_is_held_against_the_history(store: Store) -> None:
    stage = await build(store)
    await store.write(take, Want(stage.cameras[0].key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS)

    async def asked(worker_id: str, camera_id: str, generation: int) -> object:
        return await store.read(uploader, stage.tenant_id, worker_id, camera_id, generation)

    assert await asked("stranger", "cam_0", 1) is None
    mine = await store.read(uploader, stage.tenant_id, "worker-0", "cam_0", 1)
    assert mine is not None
    assert (mine.camera_key, mine.site_id, mine.is_holder) == (stage.cameras[0].key, stage.site_id, True)
    assert (mine.boot_id, mine.job_priority) == ("boot-1", None)
    for worker_id, generation in (("worker-1", 1), ("worker-0", 2)):
        other = await store.read(uploader, stage.tenant_id, worker_id, "cam_0", generation)
        assert other is not None
        assert other.is_holder is False
    nowhere = await store.read(uploader, stage.tenant_id, "worker-0", "cam_9", 1)
    assert nowhere is not None
    assert (nowhere.camera_key, nowhere.is_holder) == (None, False)


async def test_the_first_tenant_is_the_installations(store: Store) -> None:
    with pytest.raises(Unavailable, match="not set up"):
        await store.read(first_tenant)
    await build(store, workers=0, cameras=0, name="other")
    home = await store.write(tenants.ensure_home, 1)
    assert await store.read(first_tenant) == home
