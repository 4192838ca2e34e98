"""Pictures with their boxes drawn on: for somebody signed in, and for whoever has a signed link."""

import asyncio
import io
import json

import numpy as np
import pytest
from PIL import Image

from camserver.base.errors import Unavailable
from camserver.domain.people import Role
from camserver.media.box_picture import LINE
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.drawings import Drawings
from tests.rig.pictures import jpeg
from tests.services.web.rig import Browser, RunningWeb
from tests.services.web.test_media import altered, link, opened, owner_with_frame
from tests.store.people_rows import audit_rows, execute

SMALL, LARGE = jpeg(size=(640, 360)), jpeg(size=(1280, 720), shade=90)
BOX = {"x1": 0.25, "y1": 0.25, "x2": 0.75, "y2": 0.75, "label": "person", "conf": 0.9}
RESULT = json.dumps({"bboxes": [BOX]})
PATH = "/api/frames/f1/picture"


async def owner_with_pictures(web: RunningWeb, **changes: object) -> Browser:
    owner = await owner_with_frame(web, **{"result_json": RESULT, **changes})
    await put_pictures(web, SMALL, LARGE)
    return owner


async def put_pictures(web: RunningWeb, small: bytes, large: bytes) -> None:
    tenant_id = (await web.store.read(audit_rows))[0][0]
    for kind, content in ((Kind.INFER, small), (Kind.FULL, large)):
        await web.objects.put(frame_key(7, tenant_id, 1, web.clock.now_ms(), "f1", kind), content)


def lines(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.abs(np.asarray(picture.convert("RGB")).astype(int) - LINE).max(axis=2) < 60


def edges(content: bytes) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what is drawn, in shares."""
    drawn = lines(content)
    height, width = drawn.shape
    rows, columns = np.nonzero(drawn)
    return columns.min() / width, rows.min() / height, columns.max() / width, rows.max() / height


@pytest.mark.parametrize(("kind", "size"), [("infer", (640, 360)), ("full", (1280, 720))])
async def test_boxes_are_drawn_on_request_and_the_kept_picture_is_clean(
    web: RunningWeb, kind: str, size: tuple[int, int]
) -> None:
    owner = await owner_with_pictures(web)
    clean = await owner.get(f"{PATH}?kind={kind}")
    drawn = await owner.get(f"{PATH}?kind={kind}&boxes=1")
    assert (drawn.status, drawn.headers["Content-Type"]) == (200, "image/jpeg")
    assert drawn.headers["X-Captured-At"] == clean.headers["X-Captured-At"]
    with Image.open(io.BytesIO(drawn.content)) as picture:
        assert picture.size == size
    left, _, right, bottom = edges(drawn.content)
    assert (left, right, bottom) == pytest.approx((0.25, 0.75, 0.75), abs=0.01)
    assert (await owner.get(f"{PATH}?kind={kind}")).content == clean.content
    assert not lines(clean.content).any()


async def test_a_browser_asks_again_and_gets_it_only_when_it_is_another(web: RunningWeb) -> None:
    owner = await owner_with_pictures(web, result_json=None)
    before = await owner.get(f"{PATH}?boxes=1")
    assert before.headers["Cache-Control"] == "private, no-cache"
    assert before.headers["ETag"] != (await owner.get(PATH)).headers["ETag"]
    known = {"If-None-Match": before.headers["ETag"]}
    assert (await owner.get(f"{PATH}?boxes=1", known)).status == 304
    await web.store.write(execute, "UPDATE frames SET result_json = :result", {"result": RESULT})
    assert (await owner.get(f"{PATH}?boxes=1", known)).status == 200


async def test_bars_that_were_added_to_the_infer_picture_do_not_move_the_boxes(web: RunningWeb) -> None:
    owner = await owner_with_pictures(web, letterbox=(140, 0, 140, 0))
    sizes = "UPDATE frames SET full_w = 1280, full_h = 720, infer_w = 640, infer_h = 640"
    await web.store.write(execute, sizes, {})
    drawn = await owner.get(f"{PATH}?kind=full&boxes=1")
    # A quarter of 640 is 20 pixels below the upper bar, of 360 between the bars.
    assert edges(drawn.content)[3] == pytest.approx(340 / 360, abs=0.01)
    await web.store.write(execute, "UPDATE frames SET infer_h = 360", {})
    drawn = await owner.get(f"{PATH}?kind=full&boxes=1")
    assert edges(drawn.content)[3] == pytest.approx(0.75, abs=0.01)


async def test_a_link_opens_it_too_and_says_no_words(web: RunningWeb) -> None:
    owner = await owner_with_pictures(web)
    url = await link(owner)
    named = await owner.get(f"{PATH}?boxes=1")
    drawn = await opened(web, altered(url, boxes="1"))
    assert (drawn.status, drawn.headers["X-Robots-Tag"]) == (200, "noindex")
    # Above the box there is its name for those who signed in, and nothing for others.
    assert edges(drawn.content)[1] == pytest.approx(0.25, abs=0.01)
    assert edges(named.content)[1] < 0.24
    assert named.headers["ETag"] != drawn.headers["ETag"]
    assert (await opened(web, url)).content == SMALL
    assert (await opened(web, altered(url, boxes="1", sig="x"))).status == 403


async def test_who_may_not_see_the_picture_sees_no_boxes(web: RunningWeb) -> None:
    owner = await owner_with_pictures(web)
    url = await link(owner)
    assert (await web.browser().get(f"{PATH}?boxes=1")).status == 401
    assert (await owner.get("/api/frames/f2/picture?boxes=1")).status == 404
    assert (await owner.get(f"{PATH}?boxes=perhaps")).status == 400
    await web.store.write(execute, "UPDATE frames SET retention_class = 'case'", {})
    assert (await opened(web, altered(url, boxes="1"))).body["details"]["reason"] == "case_link"
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.VIEWER.value})
    assert (await owner.get(f"{PATH}?boxes=1")).body["details"]["reason"] == "case_media"


async def test_a_kept_picture_that_can_not_be_read_is_said_so(web: RunningWeb) -> None:
    owner = await owner_with_pictures(web)
    await put_pictures(web, b"\xff\xd8 no more", LARGE)
    for asked in ("boxes=1", "kind=thumb"):
        for language, words in (("en", "the infer picture of frame f1 can't be read: "), ("ja", "読み取れません")):
            reply = await owner.get(f"{PATH}?{asked}", {"Accept-Language": language})
            assert (reply.status, reply.body["details"]["reason"]) == (404, "picture_unreadable")
            assert words in reply.body["message"]
            assert not any(box in reply.body["message"] for box in ("枠", "drawn", "boxes"))
    assert (await owner.get(f"{PATH}?kind=full&boxes=1")).status == 200


async def test_so_many_are_drawn_at_once_and_the_rest_is_refused() -> None:
    desk = Drawings(waiting_max=2)
    try:
        asked = [desk.draw(SMALL, (), with_words=True) for _ in range(3)]
        *drawn, refused = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, bytes) for one in drawn)
        assert isinstance(refused, Unavailable)
        assert await desk.draw(SMALL, (), with_words=True)
    finally:
        desk.close()
