"""Changing a camera: what is stored, what its worker is told, and where its credentials never go."""

import json

import pytest
import pytest_asyncio

from camserver.base.credentials import Sealed, seal
from camserver.base.errors import BadInput, NotFound
from camserver.domain.leases import Fault, LeasePolicy
from camserver.domain.people import Principal, Role
from camserver.domain.polygons import CAMERA_POINTS_MAX, POINTS_MAX
from camserver.store import Store, Tx, camera_changes, cameras
from camserver.store.assignment import free_cameras
from camserver.store.camera_changes import CameraChange
from camserver.store.camera_sessions import follow_cameras
from camserver.store.cameras import CameraSummary, Stream
from camserver.store.intents import StartIntent, StopIntent, pending, starts_sent
from camserver.store.leases import Lease, Want, release
from camserver.store.starts import FaultCounts, camera_fault
from tests.store.analyzing import rows
from tests.store.people_rows import audit_rows, told
from tests.store.singles import acked, set_active, take
from tests.store.stage import NOW_MS, TTL_MS, Stage, add_site, build, session, statement

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = b"k" * 32
AT_ONE = Stream("rtsp", "rtsp://192.0.2.1/main")
AT_TWO = Stream("rtsp", "rtsp://192.0.2.2/main")


@pytest_asyncio.fixture(loop_scope="module")
async def stage(fresh_store: Store) -> Stage:
    return await build(fresh_store)


def admin(stage: Stage) -> Principal:
    return Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN)


def login(stage: Stage, text: bytes = b"secret") -> Sealed:
    return seal(KEY, stage.tenant_id, "cam_0", text)


async def change(store: Store, stage: Stage, wanted: CameraChange, camera_id: str = "cam_0") -> CameraSummary:
    return await store.as_(admin(stage)).write(camera_changes.change, camera_id, wanted, "1.2.3.4", NOW_MS + 10)


async def going(store: Store, stage: Stage) -> Lease:
    """A camera whose worker acknowledged its START and looks at it."""
    lease = await store.write(take, Want(stage.cameras[0].key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS)
    assert lease is not None
    await store.write(starts_sent, (lease.intent_id,), NOW_MS)
    await store.write(acked, lease.worker_key, lease.intent_id, NOW_MS)
    await store.write(set_active, stage.claim(0, 0, 1), NOW_MS)
    assert await intents(store, stage) == ()
    return lease


async def intents(store: Store, stage: Stage) -> tuple[StartIntent | StopIntent, ...]:
    return await store.read(pending, tuple(worker.worker_key for worker in stage.workers))


async def started(store: Store, stage: Stage) -> StartIntent:
    [intent] = await intents(store, stage)
    assert isinstance(intent, StartIntent)
    return intent


async def test_only_what_is_named_changes(fresh_store: Store, stage: Stage) -> None:
    before = await fresh_store.as_(admin(stage)).read(cameras.get, "cam_0")
    after = await change(fresh_store, stage, CameraChange(name="Gate", values=(("rotation", 90), ("clip_sec", 0.0))))
    assert (after.name, after.own.rotation, after.own.clip_sec) == ("Gate", 90, 0.0)
    assert (after.main, after.enabled, after.own.transport) == (before.main, before.enabled, None)
    again = await change(fresh_store, stage, CameraChange(values=(("rotation", None),)))
    assert (again.name, again.own.rotation, again.own.clip_sec) == ("Gate", None, 0.0)
    assert [row[1] for row in await fresh_store.read(audit_rows)] == ["camera_changed", "camera_changed"]


async def test_the_log_says_what_became_of_it_and_holds_no_address_or_login(fresh_store: Store, stage: Stage) -> None:
    before = await fresh_store.as_(admin(stage)).read(cameras.get, "cam_0")
    await fresh_store.write(add_site, stage.tenant_id, "north", NOW_MS)
    zones = json.dumps([{"name": "gate", "points": []}, {"name": "yard", "points": []}])
    own = (("zones", zones), ("privacy_masks", json.dumps([[[0, 0], [1, 0], [1, 1]]])), ("clip_sec", 2.5))
    await change(fresh_store, stage, CameraChange(name="Gate", enabled=False, site="north"))
    await change(fresh_store, stage, CameraChange(do_not_process=True, enabled=True, values=own))
    await change(fresh_store, stage, CameraChange(values=(("privacy_masks", None), ("clip_sec", None))))
    await change(fresh_store, stage, CameraChange(main=AT_TWO, credentials=login(stage), network_zone="lan"))
    assert await told(fresh_store, "camera_changed") == [
        {
            "what": "name, enabled, site",
            "name": "Gate",
            "name_before": before.name,
            "enabled": 0,
            "site": "north",
            "site_before": before.site,
        },
        {
            "what": "enabled, do_not_process, zones, privacy_masks, clip_sec",
            "enabled": 1,
            "do_not_process": 1,
            "zones": "gate, yard",
            "privacy_masks": 1,
            "clip_sec": "2.5",
        },
        {"what": "privacy_masks, clip_sec", "privacy_masks": 0, "clip_sec": ""},
        {"what": "network_zone, source, credentials", "network_zone": "lan"},
    ]


async def test_a_new_name_does_not_trouble_the_worker(fresh_store: Store, stage: Stage) -> None:
    await going(fresh_store, stage)
    await change(fresh_store, stage, CameraChange(name="Gate"))
    assert await intents(fresh_store, stage) == ()


async def test_new_values_are_sent_to_the_holder_at_the_same_generation(fresh_store: Store, stage: Stage) -> None:
    lease = await going(fresh_store, stage)
    masks = "[[[0.0, 0.0], [0.5, 0.0], [0.5, 0.5]]]"
    await change(fresh_store, stage, CameraChange(values=(("privacy_masks", masks), ("polling_interval_sec", 5.0))))
    intent = await started(fresh_store, stage)
    assert (intent.generation, intent.worker_key) == (1, lease.worker_key)
    assert intent.intent_id != lease.intent_id
    assert intent.overrides.polling_interval_sec == 5.0
    row = await session(fresh_store, lease.camera_key)
    # It goes on looking meanwhile, and it is acknowledged like any other.
    assert (row["state"], row["lease_expires_at"]) == ("ACTIVE", lease.expires_at)
    await fresh_store.write(acked, lease.worker_key, intent.intent_id, NOW_MS + 11)
    assert await intents(fresh_store, stage) == ()


async def test_points_are_counted_with_those_that_were_there(fresh_store: Store, stage: Stage) -> None:
    most = json.dumps([[[0.5, 0.5]] * POINTS_MAX] * (CAMERA_POINTS_MAX // POINTS_MAX // 2))
    zones = json.dumps([{"name": "a", "points": [[0.5, 0.5]] * 3}])
    await change(fresh_store, stage, CameraChange(values=(("ignore_masks", most),)))
    await change(fresh_store, stage, CameraChange(values=(("privacy_masks", most),)))
    with pytest.raises(BadInput, match="at most 2048 points, not 2051"):
        await change(fresh_store, stage, CameraChange(name="too much", values=(("zones", zones),)))
    camera = await change(fresh_store, stage, CameraChange(values=(("zones", zones), ("ignore_masks", None))))
    assert (camera.name, camera.own.ignore_masks) == ("cam_0", None)


async def test_a_new_address_ends_the_back_off_of_the_old_one(fresh_store: Store, stage: Stage) -> None:
    lease = await going(fresh_store, stage)
    counts = FaultCounts(Fault.NOT_FOUND, 7, 0, NOW_MS + 60_000)
    await fresh_store.write(camera_fault, stage.claim(0, 0, 1), counts, "404", LeasePolicy(), NOW_MS + 1)
    assert (await session(fresh_store, lease.camera_key))["state"] == "PAUSED"
    await change(fresh_store, stage, CameraChange(main=AT_ONE, sub=Stream("rtsp", "rtsp://192.0.2.1/sub")))
    intent = await started(fresh_store, stage)
    assert (intent.url, intent.sub_url) == (AT_ONE.url, "rtsp://192.0.2.1/sub")
    assert (intent.failures, intent.next_attempt_at, intent.generation) == (0, None, 1)
    assert (await session(fresh_store, lease.camera_key))["state"] == "PENDING"
    await change(fresh_store, stage, CameraChange(without_sub=True))
    assert (await started(fresh_store, stage)).sub_url is None


async def test_a_new_password_is_sent_without_giving_the_camera_back(fresh_store: Store, stage: Stage) -> None:
    lease = await going(fresh_store, stage)
    await change(fresh_store, stage, CameraChange(main=AT_ONE, credentials=login(stage)))
    first = await started(fresh_store, stage)
    assert first.credentials == login_of(first)
    await change(fresh_store, stage, CameraChange(credentials=login(stage, b"other")))
    second = await started(fresh_store, stage)
    assert second.credential_version == first.credential_version + 1
    # Nothing is left for the upkeep to mend, so the camera is not stopped for it.
    assert await fresh_store.write(follow_cameras, NOW_MS + 20) == 0
    assert (await session(fresh_store, lease.camera_key))["stop_wanted"] == 0
    await change(fresh_store, stage, CameraChange(without_credentials=True))
    third = await started(fresh_store, stage)
    assert (third.credentials, third.credential_version) == (None, 0)
    assert await fresh_store.write(follow_cameras, NOW_MS + 20) == 0


def login_of(intent: StartIntent) -> Sealed | None:
    return intent.credentials


async def test_credentials_stay_at_the_host_they_were_given_for(fresh_store: Store, stage: Stage) -> None:
    await change(fresh_store, stage, CameraChange(main=AT_ONE, credentials=login(stage)))
    same_host = await change(fresh_store, stage, CameraChange(main=Stream("rtsp", "rtsp://192.0.2.1:8554/other")))
    assert same_host.has_credentials
    elsewhere = await change(fresh_store, stage, CameraChange(main=AT_TWO))
    assert not elsewhere.has_credentials
    both = await change(fresh_store, stage, CameraChange(main=AT_ONE, credentials=login(stage)))
    assert both.has_credentials
    # Neither may the second stream carry them away.
    with_sub = await change(fresh_store, stage, CameraChange(sub=AT_TWO))
    assert not with_sub.has_credentials
    with pytest.raises(BadInput, match="same host"):
        await change(fresh_store, stage, CameraChange(credentials=login(stage)))
    assert not (await fresh_store.as_(admin(stage)).read(cameras.get, "cam_0")).has_credentials


async def test_switching_off_and_moving_are_left_to_stopping_first(fresh_store: Store, stage: Stage) -> None:
    await going(fresh_store, stage)
    annex = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    moved = await change(fresh_store, stage, CameraChange(site="annex", enabled=False))
    assert (moved.site, moved.enabled) == ("annex", False)
    changes = await fresh_store.read(rows, "changes", "seq")
    told_at = [one["site_id"] for one in changes if one["kind"] == "camera"][-2:]
    assert sorted(told_at) == sorted([stage.site_id, annex]), "it is gone from where it was"
    await fresh_store.write(follow_cameras, NOW_MS + 20)
    [intent] = await intents(fresh_store, stage)
    assert isinstance(intent, StopIntent)
    # What changes now comes with the next START; the STOP stands.
    await change(fresh_store, stage, CameraChange(values=(("rotation", 180),)))
    assert await intents(fresh_store, stage) == (intent,)
    assert (await fresh_store.read(site_of, "cam_0")) == annex


async def site_of(tx: Tx, camera_id: str) -> int:
    row = await tx.one("SELECT site_id FROM cameras WHERE camera_id = :camera_id", camera_id=camera_id)
    assert row is not None
    return int(row["site_id"])


async def test_a_camera_out_of_reach_is_none(fresh_store: Store, stage: Stage) -> None:
    other = await build(fresh_store, name="other", cameras=0)
    for who in (admin(other), Principal(stage.tenant_id, 1, Role.SITE_MANAGER, site_ids=frozenset({-1}))):
        with pytest.raises(NotFound, match="no camera"):
            await fresh_store.as_(who).write(camera_changes.change, "cam_0", CameraChange(name="mine"), "", NOW_MS)


async def test_cameras_of_a_tenant_that_is_off_stop_and_are_not_given_out(fresh_store: Store, stage: Stage) -> None:
    store, (running, free) = fresh_store, stage.cameras
    await going(store, stage)
    switch = "UPDATE tenants SET disabled = :off"
    await store.write(statement, switch, {"off": 1})
    await store.write(follow_cameras, NOW_MS + 20)
    [intent] = await intents(store, stage)
    assert isinstance(intent, StopIntent)
    await store.write(release, stage.claim(0, 0, 1), "stopped", NOW_MS + 30)
    await store.write(follow_cameras, NOW_MS + 40)
    assert {(await session(store, one.key))["state"] for one in stage.cameras} == {"TERMINATED"}
    assert await store.write(follow_cameras, NOW_MS + 50) == 0
    assert await store.write(take, Want(free.key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS + 60) is None
    site_ids = (stage.site_id,)
    assert await store.read(free_cameras, site_ids, 60.0, NOW_MS + 60) == ()
    await store.write(statement, switch, {"off": 0})
    await store.write(follow_cameras, NOW_MS + 70)
    found = await store.read(free_cameras, site_ids, 60.0, NOW_MS + 80)
    assert {need.camera_key for need in found} == {running.key, free.key}
