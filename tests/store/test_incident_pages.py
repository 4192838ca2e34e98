from dataclasses import replace

import pytest

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Principal
from camserver.store import Store, cameras, incident_pages, sites
from camserver.store.incident_pages import IncidentFilter
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
from tests.store.test_cameras import CAMERA

ANY = IncidentFilter()


async def with_incidents(store: Store, count: int) -> Principal:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    for camera_id in ("cam_1", "cam_2"):
        await store.as_(admin).write(cameras.add, replace(CAMERA, camera_id=camera_id), "", NOW_MS)
    for number in range(count):
        # Pairs begin at the same moment, so that the id must break the tie.
        await store.write(
            add_incident, home.tenant_id, f"cam_{1 + number % 2}", f"i{number}", NOW_MS + number // 2, number % 4
        )
    return admin


async def test_pages_are_newest_first_without_hole_or_repeat(store: Store) -> None:
    mine = store.as_(await with_incidents(store, 7))
    seen: list[str] = []
    before = None
    while page := await mine.read(incident_pages.page, ANY, before, 2):
        seen += [incident.incident_uuid for incident in page]
        before = page[-1].cursor
    assert seen == [f"i{number}" for number in reversed(range(7))]
    with pytest.raises(BadInput, match="cursor"):
        await mine.read(incident_pages.page, ANY, "i1.x", 2)


async def test_filters_narrow(store: Store) -> None:
    mine = store.as_(await with_incidents(store, 4))
    await mine.write(sites.add, "dock", "UTC", "", NOW_MS)
    for wanted, expected in (
        (IncidentFilter(camera_ids=("cam_2",)), ["i3", "i1"]),
        (IncidentFilter(severity_min=2), ["i3", "i2"]),
        (IncidentFilter(from_ms=NOW_MS + 1), ["i3", "i2"]),
        (IncidentFilter(to_ms=NOW_MS + 1), ["i1", "i0"]),
        (IncidentFilter(("cam_1",), 1, NOW_MS, NOW_MS + 9), ["i2"]),
        (IncidentFilter(sites=("main",), severity_min=2), ["i3", "i2"]),
        (IncidentFilter(sites=("main", "dock"), severity_min=2), ["i3", "i2"]),
        (IncidentFilter(sites=("dock",)), []),
    ):
        found = await mine.read(incident_pages.page, wanted, None, 10)
        assert [incident.incident_uuid for incident in found] == expected, wanted
    for unknown in (IncidentFilter(("cam_1", "cam_9")), IncidentFilter(sites=("main", "nowhere"))):
        with pytest.raises(NotFound, match=r"cam_9|nowhere"):
            await mine.read(incident_pages.page, unknown, None, 10)
        with pytest.raises(NotFound, match=r"cam_9|nowhere"):
            await mine.read(incident_pages.count, unknown)


async def test_they_are_counted_by_severity(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = store.as_(await with_incidents(store, 7))
    everything = await mine.read(incident_pages.count, ANY)
    assert (everything.by_severity, everything.is_complete) == ((2, 2, 2, 1), True)
    assert (await mine.read(incident_pages.count, IncidentFilter(("cam_1",)))).by_severity == (2, 0, 2, 0)
    assert (await mine.read(incident_pages.count, IncidentFilter(reviewed=True))).by_severity == (0, 0, 0, 0)
    monkeypatch.setattr(incident_pages, "COUNTED_MAX", 3)
    newest = await mine.read(incident_pages.count, ANY)
    assert (newest.by_severity, newest.is_complete) == ((1, 1, 1, 0), False)


async def test_an_incident_shows_its_last_event(store: Store) -> None:
    admin = await with_incidents(store, 1)
    frame_id = await store.write(add_frame, FrameRow(admin.tenant_id, "cam_1", NOW_MS, "best"))
    row = EventRow(primary_event="animal", best_frame_id=frame_id)
    event_id = await store.write(add_event, admin.tenant_id, "cam_1", "last", NOW_MS, (), row)
    await store.write(execute, "UPDATE incidents SET last_event_id = :event_id", {"event_id": event_id})

    found = await store.as_(admin).read(incident_pages.get, "i0")
    assert (found.last_event_uuid, found.best_frame_uuid, found.primary_event) == ("last", "best", "animal")
    assert (found.camera_id, found.site, found.event_count) == ("cam_1", "main", 1)
    with pytest.raises(NotFound):
        await store.as_(admin).read(incident_pages.get, "i9")
    with pytest.raises(NotFound):
        await store.as_(replace(admin, site_ids=frozenset({999}))).read(incident_pages.get, "i0")
