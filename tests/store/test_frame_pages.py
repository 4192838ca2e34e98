import json
from dataclasses import replace

import pytest

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.analysis import Box
from camserver.domain.people import Principal, Role
from camserver.store import Store, cameras, frame_pages
from camserver.store.cameras import PicturePlace
from camserver.store.frame_pages import Margins
from tests.store.people_rows import NOW_MS, FrameRow, add_frame, add_tenant, admin_of, prepare
from tests.store.test_cameras import CAMERA

RESULT = json.dumps(
    {
        "schema_version": "2025-12-28.1",
        "bboxes": [{"x1": 0.1, "y1": 0.2, "x2": 0.3, "y2": 0.4, "label": "person", "conf": 0.9}],
        "warnings": ["hints: nothing is called 'humann'"],
    }
)
TAGS = (("count.single", "notify_safe"), ("appearance.face_visible", "investigation_only"))


async def with_frame(store: Store, **changes: object) -> Principal:
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    await store.as_(admin).write(cameras.add, CAMERA, "", NOW_MS)
    row = FrameRow(home.tenant_id, "cam_1", NOW_MS, "f1", epoch_id=7)
    await store.write(add_frame, replace(row, **changes))  # type: ignore[arg-type]  # the names are its own
    return admin


async def test_a_frame_has_boxes_tags_and_sizes(store: Store) -> None:
    admin = await with_frame(
        store, result_json=RESULT, tags=TAGS, severity=2, full_bytes=500, letterbox=(10, 0, 12, 0)
    )
    frame = await store.as_(admin).read(frame_pages.get, "f1")

    assert frame.boxes == (Box(0.1, 0.2, 0.3, 0.4, "person", 0.9),)
    assert frame.warnings == ("hints: nothing is called 'humann'",)
    assert frame.tags == ("appearance.face_visible", "count.single")
    assert (frame.camera_id, frame.site, frame.severity) == ("cam_1", "main", 2)
    assert (frame.pictures, frame.letterbox) == (("infer", "full"), Margins(10, 0, 12, 0))
    assert (frame.event_uuid, frame.captured_at, frame.status) == (None, NOW_MS, "ok")


async def test_tags_for_investigation_are_for_investigators(store: Store) -> None:
    admin = await with_frame(store, tags=TAGS)
    viewer = store.as_(Principal(admin.tenant_id, None, Role.VIEWER))
    assert (await viewer.read(frame_pages.get, "f1")).tags == ("count.single",)


async def test_a_look_that_failed_has_no_picture(store: Store) -> None:
    admin = await with_frame(store, status="timeout", epoch_id=None, infer_bytes=None)
    frame = await store.as_(admin).read(frame_pages.get, "f1")
    assert (frame.pictures, frame.boxes, frame.warnings, frame.letterbox) == ((), (), (), None)
    with pytest.raises(NotFound, match="infer"):
        await store.as_(admin).read(frame_pages.picture, "f1", "infer")


async def test_where_a_picture_lies(store: Store) -> None:
    admin = await with_frame(store)
    mine = store.as_(admin)
    place = await mine.read(frame_pages.picture, "f1", "infer")
    assert (place.epoch_id, place.tenant_id, place.captured_at, place.frame_uuid) == (
        7,
        admin.tenant_id,
        NOW_MS,
        "f1",
    )
    assert isinstance(place, PicturePlace)
    assert await mine.read(frame_pages.linkable_picture, "f1", "infer") == place
    assert await store.read(frame_pages.linked_picture, "f1", "infer") == place
    with pytest.raises(NotFound, match="full"):
        await mine.read(frame_pages.picture, "f1", "full")
    with pytest.raises(NotFound, match="no frame"):
        await store.read(frame_pages.linked_picture, "f2", "infer")


async def test_out_of_reach_is_not_found(store: Store) -> None:
    admin = await with_frame(store)
    other = await store.write(add_tenant, "other", NOW_MS)
    for stranger in (admin_of(other.tenant_id), replace(admin, site_ids=frozenset({999}))):
        theirs = store.as_(stranger)
        with pytest.raises(NotFound):
            await theirs.read(frame_pages.get, "f1")
        for operation in (frame_pages.picture, frame_pages.linkable_picture):
            with pytest.raises(NotFound):
                await theirs.read(operation, "f1", "infer")


async def test_a_cases_picture_is_for_investigators_and_never_linked(store: Store) -> None:
    admin = await with_frame(store, retention_class="case")
    viewer = store.as_(Principal(admin.tenant_id, None, Role.VIEWER))

    assert (await viewer.read(frame_pages.get, "f1")).pictures == ()
    assert (await store.as_(admin).read(frame_pages.get, "f1")).pictures == ("infer",)
    with pytest.raises(Forbidden, match="case"):
        await viewer.read(frame_pages.picture, "f1", "infer")
    assert (await store.as_(admin).read(frame_pages.picture, "f1", "infer")).frame_uuid == "f1"
    with pytest.raises(Forbidden, match="no link"):
        await store.as_(admin).read(frame_pages.linkable_picture, "f1", "infer")
    with pytest.raises(Forbidden, match="no link"):
        await store.read(frame_pages.linked_picture, "f1", "infer")


async def test_boxes_of_a_picture_that_was_given_out(store: Store) -> None:
    admin = await with_frame(store, result_json=RESULT, full_bytes=500, letterbox=(10, 0, 12, 0))
    place = await store.as_(admin).read(frame_pages.picture, "f1", "full")
    for kind in ("infer", "full"):
        # Without sizes nobody can say that the bars are not the camera's own.
        assert await store.read(frame_pages.boxes_in, place, kind) == (Box(0.1, 0.2, 0.3, 0.4, "person", 0.9),)
    for wrong in (replace(place, tenant_id=place.tenant_id + 1), replace(place, frame_uuid="f2")):
        with pytest.raises(NotFound, match="there is no frame"):
            await store.read(frame_pages.boxes_in, wrong, "infer")


async def test_a_picture_that_was_not_analyzed_has_no_boxes(store: Store) -> None:
    admin = await with_frame(store)
    place = await store.as_(admin).read(frame_pages.picture, "f1", "infer")
    assert await store.read(frame_pages.boxes_in, place, "infer") == ()
