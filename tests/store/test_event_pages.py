import pytest

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, cameras, counts, event_pages, feed
from tests.store.people_rows import NOW_MS, add_event, admin_of, prepare
from tests.store.test_cameras import CAMERA


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
    while page := await mine.read(event_pages.page, None, before, 2):
        seen += [event.event_uuid for event in page]
        before = page[-1].cursor

    assert seen == [f"e{number}" for number in reversed(range(7))]


async def test_events_of_one_camera(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    assert len(await mine.read(event_pages.page, "cam_1", None, 10)) == 1
    assert await mine.read(event_pages.page, "cam_2", None, 10) == ()


@pytest.mark.parametrize("cursor", ["", "5", "a.b", "-1.5", "1.", ".1", "9" * 40 + ".1", "²."])
async def test_a_made_up_cursor_is_refused(store: Store, cursor: str) -> None:
    mine = store.as_(await with_events(store, 0))
    with pytest.raises(BadInput, match="cursor"):
        await mine.read(event_pages.page, None, cursor, 10)


async def test_tags_for_investigation_are_for_investigators(store: Store) -> None:
    admin = await with_events(store, 0)
    tags = (("count.single", "notify_safe"), ("behavior.x", "investigation_only"))
    await store.write(add_event, admin.tenant_id, "cam_1", "tagged", NOW_MS, tags)

    assert (await store.as_(admin).read(event_pages.get, "tagged")).tags == ("behavior.x", "count.single")
    viewer = store.as_(Principal(admin.tenant_id, None, Role.VIEWER))
    assert (await viewer.read(event_pages.get, "tagged")).tags == ("count.single",)
    [listed] = await viewer.read(event_pages.page, None, None, 10)
    assert listed.tags == ("count.single",)


async def test_an_unknown_event_is_not_found(store: Store) -> None:
    mine = store.as_(await with_events(store, 0))
    with pytest.raises(NotFound):
        await mine.read(event_pages.get, "no-such-event")


async def test_the_feed_names_cameras_and_events_by_public_ids(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    page = await mine.read(feed.after, 0, 10)

    assert [(item.seq, item.kind, item.camera_id, item.event_uuid) for item in page.items] == [
        (1, "camera", "cam_1", None),
        (2, "event", "cam_1", "e0"),
    ]
    assert (page.last_seq, page.resync) == (2, False)
    assert (await mine.read(feed.after, 2, 10)).items == ()
    assert (await mine.read(feed.after, 99, 10)).resync


async def test_counts_of_a_fresh_tenant(store: Store) -> None:
    mine = store.as_(await with_events(store, 1))
    assert await mine.read(counts.count) == counts.Counts(
        cameras=1, sessions={"ORPHANED": 1}, unfinished_jobs={}, recent_jobs={}, open_events=0
    )
