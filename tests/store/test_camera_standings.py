import pytest

from camserver.domain.mqtt_topics import LastEvent, Picture
from camserver.domain.people import Principal, Role
from camserver.store import Store, camera_standings, feed
from camserver.store.core import ScopedStore
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, execute
from tests.store.scenery import NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")


def reader(store: Store, scene: Scene) -> ScopedStore:
    return store.as_(Principal(scene.tenant_id, None, Role.SYSTEM_ADMIN))


async def test_how_cameras_stand(fresh_store: Store) -> None:
    store = fresh_store
    scene = await furnish(store, 3)
    await furnish(store, 2, name="another tenant")
    frame = FrameRow(scene.tenant_id, "cam_0", NOW_MS, "best")
    best = await store.write(add_frame, frame)
    await store.write(add_frame, FrameRow(scene.tenant_id, "cam_0", NOW_MS + 60_000, "newest"))
    seen = EventRow(state="open", severity_max=2, best_frame_id=best, last_seen_at=NOW_MS + 5)
    await store.write(add_event, scene.tenant_id, "cam_0", "event", NOW_MS, (), seen)
    await store.write(
        execute,
        "UPDATE camera_state SET health = 'down', health_cause = 'timeout', issues = :issues "
        "WHERE camera_key = :camera_key",
        {"camera_key": scene.camera_keys[1], "issues": '[{"kind": "offline", "since": 1, "event": "e"}]'},
    )
    await store.write(
        execute,
        "UPDATE camera_state SET health = 'unknown', health_cause = 'unattended' WHERE camera_key = :camera_key",
        {"camera_key": scene.camera_keys[2]},
    )
    found = await reader(store, scene).read(camera_standings.page, 0)
    assert [one.camera_id for one in found] == ["cam_0", "cam_1", "cam_2"]
    assert [one.health for one in found] == ["unknown", "down", "unattended"]
    assert [one.issues for one in found] == [(), ("offline",), ()]
    assert found[0].last_look_at == NOW_MS + 60_000
    assert (found[0].open_event, found[0].open_severity) == ("human", 2)
    assert found[0].last_event == LastEvent("event", "human", 2, NOW_MS, NOW_MS + 5, open=True)
    assert found[0].picture == Picture(1, NOW_MS, "best")
    assert found[1].last_event is None
    assert await reader(store, scene).read(camera_standings.page, scene.camera_keys[0]) == found[1:]


async def test_an_issue_is_the_last_event_but_shows_no_picture(fresh_store: Store) -> None:
    store = fresh_store
    scene = await furnish(store, 1)
    best = await store.write(add_frame, FrameRow(scene.tenant_id, "cam_0", NOW_MS, "best"))
    await store.write(add_event, scene.tenant_id, "cam_0", "seen", NOW_MS, (), EventRow(best_frame_id=best))
    issue = EventRow(primary_event="camera_issue", severity_max=3)
    event_id = await store.write(add_event, scene.tenant_id, "cam_0", "issue", NOW_MS + 1, (), issue)
    await store.write(execute, "UPDATE events SET subject = 'offline' WHERE event_id = :id", {"id": event_id})
    [found] = await reader(store, scene).read(camera_standings.page, 0)
    assert found.last_event is not None
    assert found.last_event.event_uuid == "issue"
    assert found.open_event is None
    assert found.picture is not None
    assert found.picture.frame_uuid == "best"


@pytest.mark.parametrize("changes", [{"retention_class": "case"}, {"infer_bytes": None}, {"epoch_id": None}])
async def test_a_picture_that_may_not_or_can_not_be_shown(fresh_store: Store, changes: dict[str, object]) -> None:
    store = fresh_store
    scene = await furnish(store, 1)
    frame = FrameRow(scene.tenant_id, "cam_0", NOW_MS, "best", **changes)  # type: ignore[arg-type]  # its own names
    best = await store.write(add_frame, frame)
    await store.write(add_event, scene.tenant_id, "cam_0", "seen", NOW_MS, (), EventRow(best_frame_id=best))
    [found] = await reader(store, scene).read(camera_standings.page, 0)
    assert found.picture is None


async def test_what_changed_is_named_and_what_is_removed_is_not_there(fresh_store: Store) -> None:
    store = fresh_store
    scene = await furnish(store, 2)
    own = reader(store, scene)
    seq = await own.read(feed.newest)
    await store.write(add_event, scene.tenant_id, "cam_1", "seen", NOW_MS)
    changed = await own.read(camera_standings.changed, seq)
    assert changed.camera_keys == frozenset({scene.camera_keys[1]})
    assert (await own.read(camera_standings.changed, changed.last_seq)).camera_keys == frozenset()
    assert (await own.read(camera_standings.changed, changed.last_seq + 5)).camera_keys is None

    await store.write(
        execute,
        "UPDATE cameras SET deleted_at = 1 WHERE camera_key = :camera_key",
        {"camera_key": scene.camera_keys[1]},
    )
    assert [one.camera_id for one in await own.read(camera_standings.some, scene.camera_keys)] == ["cam_0"]
    assert await own.read(camera_standings.some, ()) == ()


async def test_a_tenant_is_named(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 0)
    assert len(await reader(fresh_store, scene).read(camera_standings.tenant_uuid)) == 36
