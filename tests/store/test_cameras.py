import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.credentials import Sealed, open_sealed, seal
from camserver.base.errors import Bug, Conflict, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.retention import Retention
from camserver.store import (
    Dialect,
    Scoped,
    Store,
    Tx,
    camera_changes,
    camera_tiles,
    cameras,
    counts,
    event_pages,
    feed,
    sites,
    tenants,
)
from camserver.store.camera_changes import CameraChange
from camserver.store.camera_narrowing import CameraFilter
from camserver.store.cameras import LatestPicture, NewCamera, OpenEvent, Stream
from camserver.store.event_pages import EventFilter
from camserver.store.overrides import Overrides
from tests.store.people_rows import (
    NOW_MS,
    EventRow,
    FrameRow,
    add_event,
    add_frame,
    add_tenant,
    admin_of,
    audit_rows,
    count_rows,
    prepare,
)

KEY = b"k" * 32
CAMERA = NewCamera(
    "cam_1", "Gate", "main", Stream("rtsp", "rtsp://10.0.0.9/1"), None, None, Overrides(polling_interval_sec=30.0)
)


async def add(store: Store, who: Principal, camera: NewCamera = CAMERA) -> cameras.CameraSummary:
    return await store.as_(who).write(cameras.add, camera, "1.2.3.4", NOW_MS)


_gates: list[asyncio.Event] = []


async def _remove_and_wait(tx: Scoped, site: str) -> None:
    await sites.remove(tx, site, "", NOW_MS)
    _gates[0].set()
    await _gates[2].wait()


@pytest.mark.parametrize("moved", [False, True], ids=["added", "moved"])
async def test_no_camera_comes_to_a_site_that_is_being_removed(
    two_stores: tuple[Store, Store], moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, second = two_stores
    if store.dialect is Dialect.SQLITE:
        pytest.skip("transactions of one writer come one after the other")
    admin = admin_of((await prepare(store)).tenant_id)
    await store.as_(admin).write(sites.add, "annex", "UTC", "", NOW_MS)
    await add(store, admin)
    _gates[:] = [asyncio.Event() for _ in range(3)]
    removing = asyncio.create_task(second.as_(admin).write(_remove_and_wait, "annex"))
    await _gates[0].wait()
    lock, find_site = tenants.lock, tenants.find_site

    async def ask_to_lock(tx: Scoped) -> None:
        _gates[1].set()
        await lock(tx)

    async def find_and_tell(tx: Scoped, site: str | None) -> tenants.Site:
        found = await find_site(tx, site)
        _gates[1].set()
        return found

    monkeypatch.setattr(tenants, "lock", ask_to_lock)
    monkeypatch.setattr(tenants, "find_site", find_and_tell)
    if moved:
        change = store.as_(admin).write(camera_changes.change, "cam_1", CameraChange(site="annex"), "", NOW_MS)
        coming = asyncio.create_task(change)
    else:
        coming = asyncio.create_task(add(store, admin, replace(CAMERA, camera_id="cam_2", site="annex")))
    await _gates[1].wait()
    _gates[2].set()
    with pytest.raises(NotFound, match="no site 'annex'"):
        await coming
    await removing


async def test_an_added_camera_has_everything_a_worker_is_given(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    sealed = seal(KEY, home.tenant_id, "cam_1", b"secret")
    camera = await add(store, admin, replace(CAMERA, credentials=sealed))

    assert camera == await store.as_(admin).read(cameras.get, "cam_1")
    assert (camera.name, camera.site, camera.main.url, camera.has_credentials) == (
        "Gate",
        "main",
        "rtsp://10.0.0.9/1",
        True,
    )
    assert (camera.state, camera.own.polling_interval_sec, camera.latest) == ("ORPHANED", 30.0, None)
    for table in ("camera_streams", "camera_auth", "camera_overrides", "camera_state", "camera_sessions"):
        assert await store.read(count_rows, table) == 1, table
    stored = await store.read(stored_credentials)
    assert open_sealed(KEY, home.tenant_id, "cam_1", stored) == b"secret"
    assert [row[1:4] for row in await store.read(audit_rows)] == [("camera_added", "local_admin_token", "cam_1")]


async def stored_credentials(tx: Tx) -> Sealed:
    row = await tx.one("SELECT key_id, nonce, ciphertext FROM camera_auth")
    assert row is not None
    return Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"]))


async def test_an_id_is_given_once_also_to_racing_requests(two_stores: tuple[Store, Store]) -> None:
    home = await prepare(two_stores[0])
    admin = admin_of(home.tenant_id)
    racing = [add(store, admin) for store in two_stores * 3]
    results = await asyncio.gather(*racing, return_exceptions=True)

    assert sum(isinstance(result, cameras.CameraSummary) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 5
    assert await two_stores[0].read(count_rows, "cameras") == 1
    assert await two_stores[0].read(count_rows, "camera_sessions") == 1


async def test_another_tenants_camera_does_not_exist(store: Store) -> None:
    home = await prepare(store)
    foreign = await store.write(add_tenant, "other", NOW_MS)
    mine, theirs = store.as_(admin_of(home.tenant_id)), store.as_(admin_of(foreign.tenant_id))
    await add(store, admin_of(foreign.tenant_id))
    frame = FrameRow(foreign.tenant_id, "cam_1", NOW_MS, "f1")
    await store.write(add_frame, frame)
    await store.write(add_event, foreign.tenant_id, "cam_1", "e1", NOW_MS)

    readers: list[tuple[Callable[[Scoped, str], Coroutine[Any, Any, object]], str]] = [
        (cameras.get, "cam_1"),
        (cameras.latest_picture, "cam_1"),
        (event_pages.get, "e1"),
    ]
    for operation, wanted in readers:
        await theirs.read(operation, wanted)
        with pytest.raises(NotFound):
            await mine.read(operation, wanted)
    with pytest.raises(NotFound):
        await mine.write(cameras.remove, "cam_1", "", NOW_MS)
    assert await mine.read(cameras.page, "", 10) == ()
    assert await mine.read(event_pages.page, EventFilter(), None, 10) == ()
    assert (await mine.read(feed.after, 0, 10)).items == ()
    assert (await mine.read(counts.count)).cameras == 0
    # The same id is free in each tenant.
    await add(store, admin_of(home.tenant_id))
    assert len(await theirs.read(cameras.page, "", 10)) == 1


async def test_who_has_one_site_sees_and_changes_that_one_only(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    other_site = await store.write(tenants.ensure_site, home.tenant_id, "annex", NOW_MS)
    await add(store, admin)
    await add(store, admin, replace(CAMERA, camera_id="cam_2", site="annex"))
    for camera_id, uuid in (("cam_1", "e1"), ("cam_2", "e2")):
        await store.write(add_event, home.tenant_id, camera_id, uuid, NOW_MS)
    manager = Principal(home.tenant_id, None, Role.SITE_MANAGER, frozenset({other_site}))
    theirs = store.as_(manager)

    assert [camera.camera_id for camera in await theirs.read(cameras.page, "", 10)] == ["cam_2"]
    assert [event.event_uuid for event in await theirs.read(event_pages.page, EventFilter(), None, 10)] == ["e2"]
    page = await theirs.read(feed.after, 0, 10)
    assert {item.camera_id for item in page.items} == {"cam_2"}
    assert page.last_seq == 4
    for forbidden in ("cam_1", "no_such"):
        with pytest.raises(NotFound):
            await theirs.write(cameras.remove, forbidden, "", NOW_MS)
    with pytest.raises(NotFound, match="main"):
        await add(store, manager, replace(CAMERA, camera_id="cam_3"))
    with pytest.raises(NotFound):
        await store.as_(Principal(home.tenant_id, None, Role.VIEWER, frozenset())).read(cameras.get, "cam_2")


async def test_a_removed_camera_is_gone_but_its_evidence_stays(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    mine = store.as_(admin)
    await add(store, admin, replace(CAMERA, credentials=seal(KEY, home.tenant_id, "cam_1", b"secret")))
    await store.write(add_event, home.tenant_id, "cam_1", "e1", NOW_MS)
    await store.write(give_lease, "cam_1")
    await mine.write(cameras.remove, "cam_1", "1.2.3.4", NOW_MS + 5)

    with pytest.raises(NotFound):
        await mine.read(cameras.get, "cam_1")
    for table in ("camera_streams", "camera_auth", "camera_overrides", "camera_sessions"):
        assert await store.read(count_rows, table) == 0, table
    assert await store.read(open_leases) == 0
    assert (await mine.read(event_pages.get, "e1")).summary.camera_id == "cam_1"
    with pytest.raises(NotFound):
        await mine.write(cameras.remove, "cam_1", "1.2.3.4", NOW_MS + 5)

    again = await add(store, admin)
    assert not again.has_credentials
    assert len(await mine.read(cameras.page, "", 10)) == 1
    actions = [row[1] for row in await store.read(audit_rows)]
    assert actions == ["camera_added", "camera_removed", "camera_added"]


async def test_the_longest_id_can_be_removed_twice(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    longest = replace(CAMERA, camera_id="c" * 64)
    for _ in range(2):
        await add(store, admin, longest)
        await store.as_(admin).write(cameras.remove, longest.camera_id, "", NOW_MS)
    assert await store.read(count_rows, "cameras") == 2


async def give_lease(tx: Tx, camera_id: str) -> None:
    await tx.run(
        "INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at) "
        "SELECT camera_key, 1, tenant_id, 1, 1 FROM cameras WHERE camera_id = :camera_id",
        camera_id=camera_id,
    )


async def open_leases(tx: Tx) -> int:
    row = await tx.one("SELECT COUNT(*) AS n FROM camera_leases WHERE ended_at IS NULL")
    assert row is not None
    return int(row["n"])


async def test_the_newest_look_and_the_newest_picture_may_differ(store: Store) -> None:
    home = await prepare(store)
    mine = store.as_(admin_of(home.tenant_id))
    await add(store, admin_of(home.tenant_id))
    with pytest.raises(NotFound, match="no picture yet"):
        await mine.read(cameras.latest_picture, "cam_1")
    for frame in (
        FrameRow(home.tenant_id, "cam_1", NOW_MS + 1000, "good"),
        FrameRow(home.tenant_id, "cam_1", NOW_MS, "older"),
        FrameRow(home.tenant_id, "cam_1", NOW_MS + 2000, "failed", "timeout", None, None),
    ):
        await store.write(add_frame, frame)

    latest = (await mine.read(cameras.get, "cam_1")).latest
    assert latest is not None
    assert (latest.frame_uuid, latest.status, latest.has_picture) == ("failed", "timeout", False)
    assert (await mine.read(cameras.latest_picture, "cam_1")).frame_uuid == "good"


async def test_pages_follow_the_ids(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    for number in range(5):
        await add(store, admin, replace(CAMERA, camera_id=f"cam_{number}"))

    first = await store.as_(admin).read(cameras.page, "", 3)
    second = await store.as_(admin).read(cameras.page, first[-1].camera_id, 3)
    assert [camera.camera_id for camera in (*first, *second)] == [f"cam_{number}" for number in range(5)]


async def test_a_part_of_a_name_is_found_whatever_its_case_and_width(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    for number, name in enumerate(("カメラＡ", "ÉCOLE", "ｶﾒﾗB", "STRASSE")):
        await add(store, admin, replace(CAMERA, camera_id=f"cam_{number}", name=name))

    async def found(text: str) -> list[str]:
        page = await store.as_(admin).read(cameras.page, "", 10, CameraFilter(text=text))
        tiles, _ = await store.as_(admin).read(camera_tiles.page, "", 10, CameraFilter(text=text))
        assert [tile.camera_id for tile in tiles] == [camera.camera_id for camera in page]
        return [camera.camera_id for camera in page]

    for text, cameras_found in (
        ("カメラＡ", ["cam_0"]),
        ("カメラa", ["cam_0"]),
        ("ÉCOLE", ["cam_1"]),
        ("école", ["cam_1"]),
        ("カメラ", ["cam_0", "cam_2"]),
        ("straße", ["cam_3"]),
        ("nowhere", []),
    ):
        assert await found(text) == cameras_found, text


async def test_a_list_is_narrowed_and_has_tiles(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    for number, name in enumerate(("Gate", "50% Yard", "Back_Door")):
        await add(store, admin, replace(CAMERA, camera_id=f"cam_{number}", name=name))
    await store.as_(admin).write(camera_changes.change, "cam_2", CameraChange(enabled=False), "", NOW_MS)

    async def found(**wanted: Any) -> list[str]:
        page = await store.as_(admin).read(cameras.page, "", 10, CameraFilter(**wanted))
        return [camera.camera_id for camera in page]

    assert await found(text="GATE") == ["cam_0"]
    assert await found(text="0%") == ["cam_1"]
    assert await found(text="k_d") == ["cam_2"]
    assert await found(text="m_") == ["cam_0", "cam_1", "cam_2"]
    assert (await found(enabled=False), await found(enabled=True)) == (["cam_2"], ["cam_0", "cam_1"])
    assert (await found(health="unknown", enabled=True), await found(health="up")) == (["cam_0", "cam_1"], [])
    assert (await found(sites=("nowhere",)), len(await found(sites=("main", "nowhere")))) == ([], 3)

    [kept] = await store.as_(admin).read(cameras.page, "", 1)
    [tile], older = await store.as_(admin).read(camera_tiles.page, "", 1)
    assert (tile.camera_id, tile.name, tile.site, tile.state) == (kept.camera_id, kept.name, kept.site, kept.state)
    assert (tile.polling_interval_sec, tile.frame_uuid, older) == (30.0, None, {})
    tiles, _ = await store.as_(admin).read(camera_tiles.page, "cam_0", 10, CameraFilter(enabled=True))
    assert [one.camera_id for one in tiles] == ["cam_1"]


async def test_a_statement_without_the_tenant_is_refused(store: Store) -> None:
    home = await prepare(store)
    with pytest.raises(Bug, match="lacks :tenant_id"):
        await store.as_(admin_of(home.tenant_id)).read(read_everything)


async def read_everything(tx: Scoped) -> int:
    return len(await tx.all("SELECT camera_key FROM cameras"))


async def test_a_camera_shows_its_newest_picture_and_what_goes_on(store: Store) -> None:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    for camera_id in ("cam_1", "cam_2", "cam_3"):
        await add(store, admin, replace(CAMERA, camera_id=camera_id))
    await store.write(add_frame, FrameRow(home.tenant_id, "cam_1", NOW_MS, "with-picture"))
    await store.write(add_frame, FrameRow(home.tenant_id, "cam_2", NOW_MS, "older"))
    await store.write(add_frame, FrameRow(home.tenant_id, "cam_2", NOW_MS + 1, "failed", "error", None, None))
    happening = EventRow(state="open", primary_event="animal", severity_max=2)
    await store.write(add_event, home.tenant_id, "cam_2", "open", NOW_MS, (), happening)
    await store.write(add_event, home.tenant_id, "cam_1", "closed", NOW_MS)

    first, second, third = await store.as_(admin).read(cameras.page, "", 10)
    assert (first.latest_picture, first.open_event) == (LatestPicture("with-picture", NOW_MS), None)
    assert second.latest is not None
    assert second.latest.frame_uuid == "failed"
    assert second.latest_picture == LatestPicture("older", NOW_MS)
    assert second.open_event == OpenEvent("open", "animal", 2, NOW_MS)
    assert (third.latest, third.latest_picture, third.open_event) == (None, None, None)
    assert await store.as_(admin).read(cameras.get, "cam_2") == second
    tiles, older = await store.as_(admin).read(camera_tiles.page, "", 10)
    assert [tile.frame_uuid for tile in tiles] == ["with-picture", "failed", None]
    assert list(older.values()) == [LatestPicture("older", NOW_MS)]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SITE_MANAGER, Role.TENANT_ADMIN])
async def test_a_picture_of_a_case_is_the_newest_only_for_those_who_may_open_it(store: Store, role: Role) -> None:
    home = await prepare(store)
    await add(store, admin_of(home.tenant_id))
    await store.write(add_frame, FrameRow(home.tenant_id, "cam_1", NOW_MS, "before"))
    await store.write(
        add_frame, FrameRow(home.tenant_id, "cam_1", NOW_MS + 1, "of-a-case", retention_class=Retention.CASE)
    )
    mine = store.as_(Principal(home.tenant_id, None, role))
    opened = (await mine.read(cameras.latest_picture, "cam_1")).frame_uuid
    assert opened == ("of-a-case" if role is Role.TENANT_ADMIN else "before")
    [camera] = await mine.read(cameras.page, "", 10)
    assert camera.latest_picture is not None
    assert camera.latest is not None
    assert (camera.latest_picture.frame_uuid, camera.latest.frame_uuid) == (opened, "of-a-case")
    assert camera.latest.has_picture is (role is Role.TENANT_ADMIN)
    assert await mine.read(cameras.get, "cam_1") == camera
    [tile], older = await mine.read(camera_tiles.page, "", 10)
    assert (tile.infer_bytes is not None) is (role is Role.TENANT_ADMIN)
    assert [one.frame_uuid for one in older.values()] == ([] if role is Role.TENANT_ADMIN else ["before"])
