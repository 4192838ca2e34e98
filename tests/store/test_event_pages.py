from dataclasses import replace

import pytest

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, cameras, counts, event_pages, feed, sites
from camserver.store.event_pages import EventFilter
from tests.store.people_rows import (
    NOW_MS,
    EventRow,
    FrameRow,
    add_event,
    add_frame,
    add_incident,
    admin_of,
    execute,
    prepare,
)
from tests.store.scenery import NOW_MS as SCENE_MS
from tests.store.scenery import furnish, look, recorded
from tests.store.test_cameras import CAMERA

ANY = EventFilter()


async def with_events(store: Store, count: int) -> Principal:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    await store.as_(admin).write(cameras.add, CAMERA, "", NOW_MS)
    for number in range(count):
        # Pairs begin at the same moment, so that the id must break the tie.
        await store.write(add_event, home.tenant_id, "cam_1", f"e{number}", NOW_MS + number // 2)
    return admin


async def test_pages_are_newest_first_without_hole_or_repeat(store: Store) -> None:
    mine = store.as_(await with_events(store, 7))
    seen: list[str] = []
    before = None
    while page := await mine.read(event_pages.page, ANY, before, 2):
        seen += [event.event_uuid for event in page]
        before = page[-1].cursor

    assert seen == [f"e{number}" for number in reversed(range(7))]


async def test_events_of_one_camera(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    await mine.write(cameras.add, replace(CAMERA, camera_id="cam_2"), "", NOW_MS)
    assert len(await mine.read(event_pages.page, EventFilter(camera_ids=("cam_1",)), None, 10)) == 1
    assert await mine.read(event_pages.page, EventFilter(camera_ids=("cam_2",)), None, 10) == ()


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (EventFilter(camera_ids=("cam_1", "cam_9")), "cam_9"),
        (EventFilter(sites=("main", "nowhere")), "nowhere"),
        (EventFilter(incident_uuid="i9"), "i9"),
    ],
)
async def test_what_is_not_there_is_named(store: Store, wanted: EventFilter, named: str) -> None:
    mine = store.as_(await with_events(store, 1))
    with pytest.raises(NotFound, match=named):
        await mine.read(event_pages.page, wanted, None, 10)


async def test_a_camera_that_was_removed_is_none_to_ask_for(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    await mine.write(cameras.remove, "cam_1", "", NOW_MS)
    [event] = await mine.read(event_pages.page, ANY, None, 10)
    assert event.camera_id == "cam_1"
    with pytest.raises(NotFound, match="cam_1"):
        await mine.read(event_pages.page, EventFilter(camera_ids=("cam_1",)), None, 10)


@pytest.mark.parametrize("cursor", ["", "5", "a.b", "-1.5", "1.", ".1", "9" * 40 + ".1", "²."])
@pytest.mark.parametrize("mark", ["", "e"])
async def test_a_made_up_cursor_is_refused(store: Store, mark: str, cursor: str) -> None:
    mine = store.as_(await with_events(store, 0))
    with pytest.raises(BadInput, match="cursor"):
        await mine.read(event_pages.page, ANY, mark + cursor, 10)


async def test_tags_for_investigation_are_for_investigators(store: Store) -> None:
    admin = await with_events(store, 0)
    tags = (("count.single", "notify_safe"), ("behavior.x", "investigation_only"))
    await store.write(add_event, admin.tenant_id, "cam_1", "tagged", NOW_MS, tags)

    assert (await store.as_(admin).read(event_pages.get, "tagged")).summary.tags == ("behavior.x", "count.single")
    viewer = store.as_(Principal(admin.tenant_id, None, Role.VIEWER))
    assert (await viewer.read(event_pages.get, "tagged")).summary.tags == ("count.single",)
    [listed] = await viewer.read(event_pages.page, ANY, None, 10)
    assert listed.tags == ("count.single",)


async def test_events_are_searched_by_tags_but_not_by_those_that_are_hidden(store: Store) -> None:
    admin = await with_events(store, 1)
    tags = (("camera.offline", "notify_safe"), ("behavior.x", "investigation_only"))
    await store.write(add_event, admin.tenant_id, "cam_1", "tagged", NOW_MS, tags)
    offline, hidden = EventFilter(tags=("camera.offline", "camera.moved")), EventFilter(tags=("behavior.x",))

    mine = store.as_(admin)
    assert [event.event_uuid for event in await mine.read(event_pages.page, offline, None, 10)] == ["tagged"]
    assert [event.event_uuid for event in await mine.read(event_pages.page, hidden, None, 10)] == ["tagged"]
    assert await mine.read(event_pages.page, EventFilter(tags=("camera.frozen",)), None, 10) == ()
    viewer = store.as_(Principal(admin.tenant_id, None, Role.VIEWER))
    assert len(await viewer.read(event_pages.page, offline, None, 10)) == 1
    assert await viewer.read(event_pages.page, hidden, None, 10) == ()


async def test_an_unknown_event_is_not_found(store: Store) -> None:
    mine = store.as_(await with_events(store, 0))
    with pytest.raises(NotFound):
        await mine.read(event_pages.get, "no-such-event")


async def test_the_feed_names_cameras_and_events_by_public_ids(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    page = await mine.read(feed.after, 0, 10)

    assert [(item.seq, item.kind, item.site, item.camera_id, item.object) for item in page.items] == [
        (1, "camera", "main", "cam_1", None),
        (2, "event", "main", "cam_1", "e0"),
    ]
    assert (page.last_seq, page.resync) == (2, False)
    assert (await mine.read(feed.after, 2, 10)).items == ()
    assert (await mine.read(feed.after, 99, 10)).resync


async def test_counts_of_a_fresh_tenant(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    assert await mine.read(counts.count) == counts.Counts(
        cameras=1,
        health={"unknown": 1},
        sessions={"ORPHANED": 1},
        unfinished_jobs={},
        recent_jobs={},
        open_events=0,
        last_done_at=None,
        oldest_waiting_at=None,
        last_error_kind=None,
    )


FILTERS = [
    (EventFilter(), {"old", "bad", "open", "elsewhere"}),
    (EventFilter(camera_ids=("cam_2",)), {"elsewhere"}),
    (EventFilter(camera_ids=("cam_1", "cam_2")), {"old", "bad", "open", "elsewhere"}),
    (EventFilter(primary_events=("animal",)), {"bad"}),
    (EventFilter(primary_events=("animal", "vehicle")), {"bad", "elsewhere"}),
    (EventFilter(severity_min=2), {"bad", "open"}),
    (EventFilter(severity_min=3), {"open"}),
    (EventFilter(sites=("main",), severity_min=3), {"open"}),
    (EventFilter(sites=("main", "dock")), {"old", "bad", "open", "elsewhere"}),
    (EventFilter(sites=("dock",)), set()),
    (EventFilter(state="open"), {"open"}),
    (EventFilter(state="closed"), {"old", "bad", "elsewhere"}),
    (EventFilter(incident_uuid="i1"), {"bad"}),
    (EventFilter(from_ms=NOW_MS + 1), {"bad", "open", "elsewhere"}),
    (EventFilter(to_ms=NOW_MS + 2), {"old", "bad"}),
    (EventFilter(from_ms=NOW_MS + 1, to_ms=NOW_MS + 2), {"bad"}),
    (EventFilter(camera_ids=("cam_1",), severity_min=1, state="closed"), {"bad"}),
]


async def test_filters_narrow(store: Store) -> None:
    admin = await with_events(store, 0)
    mine = store.as_(admin)
    await mine.write(cameras.add, replace(CAMERA, camera_id="cam_2"), "", NOW_MS)
    await mine.write(sites.add, "dock", "UTC", "", NOW_MS)
    incident_id = await store.write(add_incident, admin.tenant_id, "cam_1", "i1", NOW_MS)
    for camera_id, event_uuid, start_at, row in (
        ("cam_1", "old", NOW_MS, EventRow()),
        ("cam_1", "bad", NOW_MS + 1, EventRow(primary_event="animal", severity_max=2, incident_id=incident_id)),
        ("cam_1", "open", NOW_MS + 2, EventRow(state="open", severity_max=3)),
        ("cam_2", "elsewhere", NOW_MS + 3, EventRow(primary_event="vehicle")),
    ):
        await store.write(add_event, admin.tenant_id, camera_id, event_uuid, start_at, (), row)

    for wanted, expected in FILTERS:
        found = await mine.read(event_pages.page, wanted, None, 10)
        assert {event.event_uuid for event in found} == expected, wanted


async def test_an_event_has_its_incident_and_its_frames(store: Store) -> None:
    admin = await with_events(store, 0)
    mine = store.as_(admin)
    incident_id = await store.write(add_incident, admin.tenant_id, "cam_1", "i1", NOW_MS, 2)
    row = EventRow(last_seen_at=NOW_MS + 4, incident_id=incident_id)
    event_id = await store.write(add_event, admin.tenant_id, "cam_1", "e", NOW_MS, (), row)
    for number in range(5):
        frame = FrameRow(admin.tenant_id, "cam_1", NOW_MS + number, f"f{number}", event_id=event_id)
        frame_id = await store.write(add_frame, frame)
    # One of the same moments that shows nothing, and so is of no event.
    quiet = FrameRow(admin.tenant_id, "cam_1", NOW_MS + 10, "quiet")
    await store.write(add_frame, quiet)
    await store.write(execute, "UPDATE events SET best_frame_id = :best", {"best": frame_id})

    detail = await mine.read(event_pages.get, "e")
    assert detail.incident is not None
    assert (detail.incident.incident_uuid, detail.incident.severity_max) == ("i1", 2)
    assert detail.best_frame is not None
    assert (detail.best_frame.frame_uuid, detail.best_frame.event_uuid) == ("f4", "e")

    seen: list[str] = []
    after = None
    while page := await mine.read(event_pages.frames, "e", after, 2):
        seen += [frame.frame_uuid for frame in page]
        after = page[-1].cursor
    assert seen == ["f0", "f1", "f2", "f3", "f4"]
    with pytest.raises(NotFound):
        await mine.read(event_pages.frames, "no-such", None, 10)
    with pytest.raises(BadInput, match="cursor"):
        await mine.read(event_pages.frames, "e", "made-up", 10)


async def test_an_event_out_of_reach_is_not_found(store: Store) -> None:
    admin = await with_events(store, 1)
    elsewhere = store.as_(replace(admin, site_ids=frozenset({999})))
    with pytest.raises(NotFound):
        await elsewhere.read(event_pages.get, "e0")
    with pytest.raises(NotFound):
        await elsewhere.read(event_pages.frames, "e0", None, 10)
    assert await elsewhere.read(event_pages.page, ANY, None, 10) == ()


async def test_the_feed_names_frames_and_incidents_too(store: Store) -> None:
    admin = await with_events(store, 0)
    frame_id = await store.write(add_frame, FrameRow(admin.tenant_id, "cam_1", NOW_MS, "f1"))
    incident_id = await store.write(add_incident, admin.tenant_id, "cam_1", "i1", NOW_MS)
    for kind, object_id in (("frame", frame_id), ("incident", incident_id), ("frame", 999), ("look", None)):
        await store.write(note_change, admin.tenant_id, kind, object_id)

    page = await store.as_(admin).read(feed.after, 1, 10)
    assert [(item.kind, item.object) for item in page.items] == [
        ("frame", "f1"),
        ("incident", "i1"),
        ("frame", None),
        ("look", None),
    ]
    assert await store.as_(admin).read(feed.newest) == page.last_seq == 5
    assert await store.as_(admin_of(admin.tenant_id + 99)).read(feed.newest) == 0


async def note_change(tx: Tx, tenant_id: int, kind: str, object_id: int | None) -> None:
    tx.changed(tenant_id=tenant_id, kind=kind, at_ms=NOW_MS, object_id=object_id)


async def test_changes_of_a_site_out_of_reach_are_left_out_but_counted(store: Store) -> None:
    admin = await with_events(store, 2)
    page = await store.as_(replace(admin, site_ids=frozenset({999}))).read(feed.after, 0, 10)
    assert (page.items, page.last_seq, page.resync) == ((), 3, False)


async def test_how_analysis_gets_on(store: Store) -> None:
    scene = await furnish(store, cameras=3)
    mine = store.as_(admin_of(scene.tenant_id))
    for camera in range(3):
        await recorded(store, look(scene, camera, at_ms=SCENE_MS + camera))
    first = await mine.read(counts.count)
    assert (first.last_done_at, first.last_error_kind) == (None, None)
    assert first.oldest_waiting_at is not None

    states = (("done", 0, SCENE_MS + 50, None), ("delayed", 1, None, "unavailable: connect to 10.0.0.5 failed"))
    for status, camera, finished_at, error in states:
        await store.write(
            execute,
            "UPDATE inference_jobs SET status = :status, finished_at = :finished_at, last_error = :error "
            "WHERE camera_key = :camera_key",
            {
                "status": status,
                "finished_at": finished_at,
                "error": error,
                "camera_key": scene.camera_keys[camera],
            },
        )
    then = await mine.read(counts.count)
    assert (then.last_done_at, then.last_error_kind) == (SCENE_MS + 50, "unavailable")
    assert then.unfinished_jobs == {"delayed": 1, "queued": 1}
