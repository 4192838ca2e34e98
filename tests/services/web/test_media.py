"""Pictures: for somebody signed in, and for whoever has a signed link."""

import asyncio
import io
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from PIL import Image

from camserver.base.errors import BadInput, TooManyTries
from camserver.domain.people import Role
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.drawings import Drawings
from camserver.services.web.kept_bytes import KeptBytes
from camserver.services.web.throttle import FREE_WRONG_LINKS, LINKS, Rate
from camserver.services.web.thumbnails import Thumbnails
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.services.web.rig import LOGIN, PASSWORD, Browser, LoggedLines, Reply, RunningWeb, running_web
from tests.store.people_rows import FrameRow, add_event, add_frame, audit_rows, execute

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
TIMEOUT_SEC = 60
SMALL, LARGE = b"\xff\xd8 small", b"\xff\xd8 large"


async def owner_with_frame(web: RunningWeb, **changes: object) -> Browser:
    """Somebody signed in, and the frame f1 with both its pictures."""
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    values: dict[str, object] = {"epoch_id": 7, "full_bytes": 100, **changes}
    row = FrameRow(tenant_id, "cam_1", now_ms, "f1", **values)  # type: ignore[arg-type]  # the names are its own
    await web.store.write(add_frame, row)
    for kind, content in ((Kind.INFER, SMALL), (Kind.FULL, LARGE)):
        await web.objects.put(frame_key(7, tenant_id, 1, now_ms, "f1", kind), content)
    return owner


async def link(owner: Browser, **asked: object) -> str:
    reply = await owner.post("/api/media/link", {"frame_uuid": "f1", **asked})
    assert reply.status == 200, reply.content
    url: str = reply.body["url"]
    return url


def place_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


async def opened(web: RunningWeb, url: str) -> Reply:
    """Opened by somebody who never signed in."""
    return await web.browser().get(place_of(url))


def altered(url: str, **changes: str) -> str:
    parts = urlsplit(url)
    return parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **changes})).geturl()


async def test_a_link_opens_its_picture_and_no_other(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    made = await owner.post("/api/media/link", {"frame_uuid": "f1", "kind": "full", "ttl_sec": 60})

    assert set(made.body) == {"url", "expires_at"}
    assert made.body["expires_at"] == web.clock.now_ms() + 60_000
    # public_url, so that it can be handed on.
    assert made.body["url"].startswith(f"{web.url}/media/frame/f1?exp=")
    assert [name for name, _ in parse_qsl(urlsplit(made.body["url"]).query)] == ["exp", "sig", "kid"]
    picture = await opened(web, made.body["url"])
    assert (picture.status, picture.content, picture.headers["Content-Type"]) == (200, LARGE, "image/jpeg")
    assert picture.headers["Cache-Control"] == "private, max-age=60"
    assert (await opened(web, await link(owner))).content == SMALL


async def test_a_link_ends(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    short, usual = await link(owner, ttl_sec=60), await link(owner)
    web.clock.jump_wall(59_999)
    assert (await opened(web, short)).status == 200
    web.clock.jump_wall(1)
    over = await opened(web, short)
    assert (over.status, over.body["details"]["reason"]) == (403, "link_expired")
    web.clock.jump_wall(840_000 - 1)
    assert (await opened(web, usual)).status == 200
    web.clock.jump_wall(1)
    assert (await opened(web, usual)).status == 403


async def test_a_link_that_was_touched_is_refused(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    await web.store.write(add_frame, FrameRow(1, "cam_1", web.clock.now_ms() + 1, "f2", epoch_id=7))
    url = await link(owner)
    whole = dict(parse_qsl(urlsplit(url).query))
    later = str(int(whole["exp"]) + 1)
    for wrong in (
        altered(url, exp=later),
        altered(url, exp=""),
        altered(url, exp="soon"),
        altered(url, sig=whole["sig"][:-1]),
        altered(url, sig=whole["sig"] + "="),
        altered(url, sig=""),
        altered(url, sig="é"),
        altered(url, kid="00000000"),
        altered(url, kid=""),
        url.replace("/f1?", "/f2?"),
        url.replace("/f1?", "/f1%7Cinfer?"),
        url.replace("/f1?", "/..%2Ff1?"),
        url.replace("/f1?", "/no-such-frame?"),
        url.partition("?")[0],
    ):
        reply = await opened(web, wrong)
        # Whether there is such a frame is told to nobody without a signature.
        assert reply.status == 403 or (reply.status == 404 and "%2F" in wrong), wrong
        assert SMALL not in reply.content
    assert (await opened(web, url)).status == 200


async def test_a_link_to_what_is_gone_is_not_found(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner)
    await web.store.write(execute, "DELETE FROM frames", {})
    assert (await opened(web, url)).status == 404
    assert (await owner.post("/api/media/link", {"frame_uuid": "f1"})).status == 404


async def test_a_case_has_no_links_also_not_those_made_before(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner)
    await web.store.write(execute, "UPDATE frames SET retention_class = 'case'", {})
    for reply in (await opened(web, url), await owner.post("/api/media/link", {"frame_uuid": "f1"})):
        assert (reply.status, reply.body["details"]["reason"]) == (403, "case_link")
    # Signed in, those who may investigate see it, and others do not.
    assert (await owner.get("/api/frames/f1/picture")).content == SMALL
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.VIEWER.value})
    refused = await owner.get("/api/frames/f1/picture")
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_media")
    assert (await owner.get("/api/frames/f1")).body["pictures"] == []


async def test_asking_for_a_link(web: RunningWeb) -> None:
    owner = await owner_with_frame(web, full_bytes=None)
    for asked, status in (
        ({"frame_uuid": "f1", "kind": "full"}, 404),
        ({"frame_uuid": "f1", "kind": "clip"}, 404),
        ({"frame_uuid": "f1", "kind": "huge"}, 400),
        ({"frame_uuid": "f1", "ttl_sec": 0}, 400),
        ({"frame_uuid": "f1", "ttl_sec": 604_801}, 400),
        ({"frame_uuid": "../f1"}, 400),
        ({"frame_uuid": "f1|infer"}, 400),
        ({}, 400),
    ):
        assert (await owner.post("/api/media/link", asked)).status == status, asked
    assert (await web.browser().post("/api/media/link", {"frame_uuid": "f1"})).status == 401
    assert (await owner.post("/api/media/link", {"frame_uuid": "f1"}, {"X-CSRF-Token": ""})).status == 403


@pytest.mark.parametrize("shares", ["managers", "everybody", "off"])
async def test_a_link_of_somebody_who_may_not_share_lasts_an_hour_at_most(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, shares: str
) -> None:
    environ = {"CAMSERVER_MEDIA_SHARES": shares, "CAMSERVER_MEDIA_LINK_TTL_SEC": "7200"}
    async with running_web(sqlite_store, clock, tmp_path, environ) as web:
        owner = await owner_with_frame(web)
        await owner.post("/api/users", {"login": "viewer", "role": "viewer", "password": PASSWORD})
        viewer = web.browser()
        await viewer.sign_in("viewer")
        scoped = await owner.post("/api/tokens", {"name": "t", "user": LOGIN, "scopes": ["read"]})
        program = {"Authorization": f"Bearer {scoped.body['secret']}"}
        for who, headers, may_share in (
            (owner, None, shares != "off"),
            (viewer, None, shares == "everybody"),
            (web.browser(), program, shares == "everybody"),
        ):
            for asked, lasts_sec in ((604_800, 604_800), (3601, 3601), (3600, 3600), (None, 7200)):
                made = await who.post("/api/media/link", {"frame_uuid": "f1", "ttl_sec": asked}, headers)
                if may_share or (asked or 0) <= 3600:
                    lasts_ms = min(lasts_sec, 604_800 if may_share else 3600) * 1000
                    assert (made.status, made.body["expires_at"]) == (200, web.clock.now_ms() + lasts_ms)
                else:
                    assert (made.status, made.body["details"]["reason"]) == (403, "link_too_long")
                    assert made.body["details"]["seconds_max"] == 3600
                    assert "3600" in made.body["message"]


async def test_links_outlive_the_change_of_their_key(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    old, new = "the-key-before-0123456789", "the-key-after-0123456789"
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_MEDIA_HMAC_SECRET": old}) as web:
        url = await link(await owner_with_frame(web))
    rotating = {"CAMSERVER_MEDIA_HMAC_SECRET": new, "CAMSERVER_MEDIA_HMAC_SECRET_PREVIOUS": old}
    async with running_web(sqlite_store, clock, tmp_path, rotating) as web:
        assert (await opened(web, url)).content == SMALL
        newer = await link(await web.owner())
        assert (await opened(web, newer)).content == SMALL
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_MEDIA_HMAC_SECRET": new}) as web:
        assert (await opened(web, url)).status == 403
        assert (await opened(web, newer)).content == SMALL


async def test_signatures_are_not_logged(web: RunningWeb, logged: LoggedLines) -> None:
    url = await link(await owner_with_frame(web))
    await opened(web, url)
    assert [line for line in logged.lines if "/media/frame/f1" in line]
    sig = dict(parse_qsl(urlsplit(url).query))["sig"]
    ours = [line for line in logged.lines if "camserver" in line or "request" in line]
    assert not [line for line in ours if sig in line]


async def test_a_picture_for_somebody_signed_in(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    small = await owner.get("/api/frames/f1/picture")
    assert (small.status, small.content, small.headers["Content-Type"]) == (200, SMALL, "image/jpeg")
    large = await owner.get("/api/frames/f1/picture?kind=full")
    assert large.content == LARGE
    assert small.headers["ETag"] != large.headers["ETag"]
    assert small.headers["Cache-Control"].startswith("private")
    assert small.headers["Vary"] == "Cookie, Authorization"
    for known in (small.headers["ETag"], f"W/{small.headers['ETag']}", f'"x", {small.headers["ETag"]}'):
        unchanged = await owner.get("/api/frames/f1/picture", {"If-None-Match": known})
        assert (unchanged.status, unchanged.content) == (304, b"")
    assert (await owner.get("/api/frames/f1/picture", {"If-None-Match": large.headers["ETag"]})).status == 200
    assert (await owner.get("/api/frames/f1/picture?kind=huge")).status == 400
    assert (await owner.get("/api/frames/f2/picture")).status == 404
    assert (await web.browser().get("/api/frames/f1/picture")).status == 401


async def test_no_path_leads_out(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    for frame in ("..", "..%2F..%2Fsecrets%2Fmedia_hmac", "%2Fetc%2Fpasswd", "f1%00", "f1%2Ffull", "."):
        for path in (f"/api/frames/{frame}/picture", f"/api/frames/{frame}", f"/api/events/{frame}/frames"):
            async with owner.http.get(f"{web.url}{path}".replace("..", "%2e%2e")) as response:
                assert response.status in (400, 404), path


async def test_a_frame_with_boxes_and_labelled_tags(web: RunningWeb) -> None:
    result = '{"bboxes": [{"x1": 0.1, "y1": 0.2, "x2": 0.3, "y2": 0.4, "label": "person", "conf": 0.9}]}'
    tags = (
        ("appearance.face_visible", "investigation_only"),
        ("count.single", "notify_safe"),
        ("old.word", "notify_safe"),
    )
    owner = await owner_with_frame(web, result_json=result, tags=tags, severity=1)
    frame = (await owner.get("/api/frames/f1")).body

    assert frame["boxes"] == [{"x1": 0.1, "y1": 0.2, "x2": 0.3, "y2": 0.4, "label": "person", "conf": 0.9}]
    assert (frame["pictures"], frame["severity"], frame["camera_id"]) == (["infer", "full"], 1, "cam_1")
    single = {tag["id"]: tag for tag in frame["tags"]}["count.single"]
    assert (single["label_ja"], single["label_en"]) == ("1名", "One person")
    assert [tag["id"] for tag in frame["tags"]] == ["appearance.face_visible", "count.single", "old.word"]
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.VIEWER.value})
    seen = (await owner.get("/api/frames/f1")).body
    assert [(tag["id"], tag["label_en"]) for tag in seen["tags"]] == [
        ("count.single", "One person"),
        ("old.word", "old.word"),
    ]


async def test_an_events_frames_are_paged_oldest_first(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", 1000)
    await web.store.write(execute, "UPDATE events SET last_seen_at = 1004", {})
    for number in range(5):
        row = FrameRow(tenant_id, "cam_1", 1000 + number, f"g{number}", event_id=event_id)
        await web.store.write(add_frame, row)

    first = (await owner.get("/api/events/e1/frames?limit=3")).body
    second = (await owner.get(f"/api/events/e1/frames?limit=3&after={first['next_after']}")).body
    seen = [frame["frame_uuid"] for frame in (*first["frames"], *second["frames"])]
    assert seen == ["g0", "g1", "g2", "g3", "g4"]
    assert second["next_after"] is None
    assert first["frames"][0]["event_uuid"] == "e1"


def real_jpeg(width: int = 640, height: int = 360) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (10, 20, 30)).save(out, "JPEG")
    return out.getvalue()


async def test_a_small_picture_is_made_once_and_checked_each_time(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await owner_with_frame(web)
    now_ms = web.clock.now_ms()
    await web.objects.put(frame_key(7, 1, 1, now_ms, "f1", Kind.INFER), real_jpeg())
    small = await owner.get("/api/frames/f1/picture?kind=thumb")
    assert Image.open(io.BytesIO(small.content)).size == (320, 180)
    assert small.headers["Cache-Control"] == "private, max-age=300"
    known = await owner.get("/api/frames/f1/picture?kind=thumb", {"If-None-Match": small.headers["ETag"]})
    assert (known.status, known.content) == (304, b"")
    url = await link(owner, kind="thumb")
    monkeypatch.setattr(Thumbnails, "make", None)
    assert (await opened(web, url)).content == small.content
    assert (await owner.get("/api/frames/f1/picture?kind=thumb&boxes=1")).status == 400
    # That it is in memory opens it to nobody.
    assert (await web.browser().get("/api/frames/f1/picture?kind=thumb")).status == 401
    await web.store.write(execute, "UPDATE frames SET retention_class = 'case'", {})
    assert (await opened(web, url)).status == 403


async def test_small_pictures_have_a_bound() -> None:
    drawings = Drawings()
    made = len(await drawings.shrink(real_jpeg()))
    kept = Thumbnails(drawings, kept_max_bytes=2 * made)
    for uuid in ("a", "b"):
        await kept.make(uuid, read_jpeg)
    assert kept.find("a") is not None
    await kept.make("c", read_jpeg)
    # The one that was used longest ago went.
    assert [uuid for uuid in "abc" if kept.find(uuid) is not None] == ["a", "c"]
    assert kept.kept_bytes == 2 * made
    drawings.close()


async def read_jpeg() -> bytes:
    return real_jpeg()


async def test_a_small_picture_that_many_ask_for_at_once_is_made_once() -> None:
    drawings, reads, may_go_on = Drawings(waiting_max=2), 0, asyncio.Event()
    kept = Thumbnails(drawings)

    async def read() -> bytes:
        nonlocal reads
        reads += 1
        await may_go_on.wait()
        return real_jpeg()

    asking = [asyncio.ensure_future(kept.make(uuid, read)) for uuid in "abababab"]
    await until(lambda: reads == 2, "both to be read")
    asking[0].cancel()
    may_go_on.set()
    gone, *made = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), TIMEOUT_SEC)
    assert isinstance(gone, asyncio.CancelledError)
    assert (set(made), reads) == ({kept.find("a")}, 2)

    async def no_picture() -> bytes:
        return b"no picture"

    for _ in range(2):
        with pytest.raises(BadInput):
            await kept.make("c", no_picture)
    drawings.close()


async def test_a_picture_that_others_just_saw_is_not_read_again_and_opens_to_nobody_else(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner)
    assert (await opened(web, url)).content == SMALL
    for path in web.objects.root.rglob("*.jpg"):
        path.unlink()
    assert (await opened(web, url)).content == SMALL
    assert (await owner.get("/api/frames/f1/picture")).content == SMALL
    assert (await web.browser().get("/api/frames/f1/picture")).status == 401
    await web.store.write(execute, "UPDATE frames SET infer_bytes = NULL", {})
    assert (await opened(web, url)).status == 404
    assert (await owner.get("/api/frames/f1/picture")).status == 404


def test_pictures_in_memory_have_a_bound() -> None:
    kept = KeptBytes[str](total_max=10, each_max=6)
    kept.keep("big", b"1234567")
    kept.keep("a", b"12345")
    kept.keep("a", b"12345")
    kept.keep("b", b"12345")
    assert (kept.find("big"), kept.find("a"), kept.total) == (None, b"12345", 10)
    kept.keep("c", b"1")
    assert (kept.find("b"), kept.find("a"), kept.total) == (None, b"12345", 6)


async def test_a_part_of_a_picture_and_its_head(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = place_of(await link(owner))
    for path in ("/api/frames/f1/picture", "/api/cameras/cam_1/latest.jpg", url):
        whole = await owner.get(path)
        assert whole.headers["Accept-Ranges"] == "bytes"
        part = await owner.get(path, {"Range": "bytes=2-4"})
        assert (part.status, part.content) == (206, SMALL[2:5])
        assert part.headers["Content-Range"] == f"bytes 2-4/{len(SMALL)}"
        assert (await owner.get(path, {"Range": "bytes=2-4", "If-Range": '"other"'})).content == SMALL
        assert (await owner.get(path, {"Range": "bytes=99-"})).status == 416
        head = await owner.ask("HEAD", path)
        assert (head.status, head.content, head.headers["Content-Length"]) == (200, b"", str(len(SMALL)))
        assert (await owner.get(path, {"If-None-Match": head.headers["ETag"]})).status == 304
        assert (await owner.get(path, {"If-None-Match": "*"})).status == 304
        # No cache on the way keeps what a cookie, a token or a signature opened.
        assert whole.headers["Cache-Control"].startswith("private, ")
        assert path == url or whole.headers["Vary"] == "Cookie, Authorization"
        # Nor does a page of another site show what this one's cookie opens; what a link opens it may.
        for answer in (whole, part, head):
            assert answer.headers["Cross-Origin-Resource-Policy"] == (
                "cross-origin" if path == url else "same-origin"
            )


async def test_wrong_links_are_counted_and_right_ones_are_not_held_up(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner)
    wrong = [(await opened_by(owner, altered(url, sig="x"))).status for _ in range(FREE_WRONG_LINKS + 1)]
    assert wrong == [403] * FREE_WRONG_LINKS + [429]
    assert (await opened_by(owner, url)).status == 200


async def test_a_link_that_is_over_is_no_guess(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner, ttl_sec=60)
    await web.clock.advance(60_000)
    for _ in range(FREE_WRONG_LINKS + 1):
        over = await opened_by(owner, url)
        assert (over.status, over.body["details"]["reason"]) == (403, "link_expired")
    assert (await opened_by(owner, altered(url, sig="x"))).status == 403
    # Whoever may not guess any more is not told that a guess was right, but when they come back.
    wrong = [(await opened_by(owner, altered(url, exp="1"))).status for _ in range(FREE_WRONG_LINKS)]
    assert wrong[-1] == 429


async def opened_by(browser: Browser, url: str) -> Reply:
    return await browser.get(place_of(url))


def test_a_rate_is_so_many_in_a_span() -> None:
    rate = Rate(2, 1_000)
    rate.count("a", 0, LINKS)
    rate.count("a", 999, LINKS)
    rate.count("b", 999, LINKS)
    with pytest.raises(TooManyTries) as refused:
        rate.count("a", 999, LINKS)
    assert refused.value.details["retry_after_sec"] == 1
    rate.count("a", 1_000, LINKS)
