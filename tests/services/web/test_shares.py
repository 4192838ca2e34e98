"""Shares: who makes them, what they open to whoever has the address, and when they are over."""

import io
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image

from camserver.base.errors import Forbidden, StoreUnavailable
from camserver.domain.people import Permission, Principal, Role
from camserver.domain.shares import HOUR_MS, Sharing, may_share, require_sharing
from camserver.media.mp4_clip import film
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.edge import logged_path
from camserver.services.web.throttle import FREE_WRONG_LINKS
from camserver.store import Store, shares
from tests.media.test_mp4_clip import played, recorded
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, Browser, LoggedLines, Reply, RunningWeb, running_web
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, audit_rows, execute

CAMERA = {"camera_id": "cam_1", "name": "Gate <b>", "source": {"url": "test://moving"}}
CLIP = b"film" * 10


def jpeg(width: int, height: int, shade: int = 90) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (shade, 90, 90)).save(out, "JPEG")
    return out.getvalue()


PICTURES = {"f1": jpeg(800, 600, 10), "f2": jpeg(800, 600, 200)}


async def owner_with_event(web: RunningWeb) -> Browser:
    """Somebody signed in; the event e1 with f1 and its best frame f2, and a clip."""
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERA)).status == 201
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    event_id = await web.store.write(
        add_event, tenant_id, "cam_1", "e1", now_ms, (), EventRow(last_seen_at=now_ms + 1000)
    )
    for at, (uuid, content) in enumerate(PICTURES.items()):
        row = FrameRow(tenant_id, "cam_1", now_ms + at, uuid, epoch_id=7, event_id=event_id)
        frame_id = await web.store.write(add_frame, row)
        await web.objects.put(frame_key(7, tenant_id, 1, now_ms + at, uuid, Kind.INFER), content)
    await web.store.write(execute, "UPDATE events SET best_frame_id = :frame_id", {"frame_id": frame_id})
    await web.store.write(
        execute,
        "INSERT INTO clips (clip_uuid, tenant_id, camera_key, event_id, state, reason, object_key, object_bytes, "
        "epoch_id, begin_at, end_at, codec, width, height, created_at) VALUES ('clip-1', :tenant_id, 1, :event_id, "
        "'ready', '', 'e7/clip.mp4', :size, 7, 0, 1, 'h264', 1, 1, 0)",
        {"tenant_id": tenant_id, "event_id": event_id, "size": len(CLIP)},
    )
    await web.objects.put("e7/clip.mp4", CLIP)
    return owner


async def shared(who: Browser, **asked: object) -> str:
    """The path of a new share."""
    reply = await who.post("/api/shares", {"kind": "event", "uuid": "e1", **asked})
    assert reply.status == 201, reply.content
    return urlsplit(reply.body["url"]).path


async def opened(web: RunningWeb, path: str, **headers: str) -> Reply:
    """By somebody who never signed in."""
    return await web.browser().get(path, headers)


async def openings(web: RunningWeb) -> int:
    return sum(row[1] == "share_opened" for row in await web.store.read(audit_rows))


async def test_a_share_shows_an_event_without_signing_in(web_on_each: RunningWeb, logged: LoggedLines) -> None:
    web = web_on_each
    owner = await owner_with_event(web)
    path = await shared(owner, note="for the neighbour", ttl_sec=7200)
    assert re.fullmatch(r"/share/[\w-]{43}", path)

    page = await opened(web, path)
    assert page.status == 200
    text = page.content.decode()
    assert "Gate &lt;b&gt;" in text
    assert "neighbour" not in text
    assert "<script" not in text
    assert "script-src" not in page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Robots-Tag"].startswith("noindex")
    assert page.headers["Cache-Control"] == "private, no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    for address in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert (await opened(web, address)).status == 200, address
    assert 'lang="ja"' in (await opened(web, path, **{"Accept-Language": "ja"})).content.decode()

    # The best one first, and the small one really is.
    assert (await opened(web, f"{path}/picture/0")).content == PICTURES["f2"]
    assert (await opened(web, f"{path}/picture/1")).content == PICTURES["f1"]
    small = await opened(web, f"{path}/picture/1?kind=thumb")
    assert Image.open(io.BytesIO(small.content)).size == (320, 240)
    missing = await opened(web, f"{path}/picture/2", **{"Accept-Language": "en"})
    assert (missing.status, missing.body["details"]["reason"]) == (404, "share_no_picture")
    assert "no picture 2" in missing.body["message"]
    assert (await opened(web, f"{path}/clip")).content == CLIP

    [listed] = (await owner.get("/api/shares")).body["shares"]
    assert (listed["opened_count"], listed["note"], listed["by"]) == (2, "for the neighbour", "owner")
    assert not any(path.rpartition("/")[2] in line for line in logged.lines)
    # From one address in one hour: one line.
    assert await openings(web) == 1
    [entry] = (await owner.get("/api/audit?who=link")).body["entries"]
    assert (entry["action"], entry["who"], entry["actor_kind"]) == ("share_opened", "link", "link")
    assert (await owner.get("/api/audit?who=system&action=share_opened")).body["entries"] == []
    to_next_hour = HOUR_MS - web.clock.now_ms() % HOUR_MS
    web.clock.jump_wall(to_next_hour - 1)
    await opened(web, f"{path}/picture/0")
    assert await openings(web) == 1
    web.clock.jump_wall(1)
    await opened(web, f"{path}/picture/0")
    assert await openings(web) == 2
    web.clock.jump_wall(2 * HOUR_MS - to_next_hour - 1)
    assert (await opened(web, path)).status == 200
    web.clock.jump_wall(1)
    assert (await opened(web, path)).status == 404


async def test_a_film_that_not_every_browser_plays_is_offered_converted_too(web: RunningWeb) -> None:
    path = await shared(await owner_with_event(web))
    assert "playable" not in (await opened(web, path)).content.decode()
    sent = film(recorded("libx265", **{"x265-params": "log-level=none:pools=none"})).mp4
    await web.objects.put("e7/clip.mp4", sent)
    await web.store.write(execute, "UPDATE clips SET codec = 'hevc', object_bytes = :n", {"n": len(sent)})
    text = (await opened(web, path)).content.decode()
    sources = re.findall(r"<source src=\"([^\"]+)\" type=(['\"])(.*?)\2>", text)
    assert [(address, kind) for address, _, kind in sources] == [
        (f"{path}/clip", 'video/mp4; codecs="hvc1.1.6.L120.B0"'),
        (f"{path}/clip?playable=true", "video/mp4"),
    ]
    assert (await opened(web, sources[0][0])).content == sent
    assert played((await opened(web, sources[1][0])).content)[0][0] == "h264"


async def test_a_revoked_share_is_closed_at_once_and_swept_later(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_event(web)
    path = await shared(owner, kind="frame", uuid="f1")
    page = await opened(web, path)
    assert "/picture/0" in page.content.decode()
    assert "/clip" not in page.content.decode()
    missing = await opened(web, f"{path}/clip", **{"Accept-Language": "ja"})
    assert (missing.status, missing.body["details"]["reason"]) == (404, "share_no_clip")
    assert "動画はありません" in missing.body["message"]
    [listed] = (await owner.get("/api/shares")).body["shares"]
    assert (await owner.ask("DELETE", f"/api/shares/{listed['share_uuid']}")).status == 204
    assert (await owner.ask("DELETE", f"/api/shares/{listed['share_uuid']}")).status == 404
    assert (await opened(web, path)).status == 404
    assert (await opened(web, f"{path}/picture/0")).status == 404
    assert (await owner.get("/api/shares")).body["shares"] == []
    assert await web.store.write(shares.sweep, web.clock.now_ms()) == 0
    assert await web.store.write(shares.sweep, web.clock.now_ms() + shares.KEPT_MS) == 1


@pytest.mark.parametrize(
    ("change", "both"),
    [
        ("UPDATE events SET retention_class = 'case'", True),
        ("UPDATE frames SET retention_class = 'case' WHERE frame_uuid = 'f1'", False),
    ],
)
async def test_nothing_of_a_case_is_shared(web: RunningWeb, change: str, both: bool) -> None:
    owner = await owner_with_event(web)
    event, frame = await shared(owner), await shared(owner, kind="frame", uuid="f1")
    await web.store.write(execute, change, {})
    assert (await opened(web, frame)).status == 404
    assert (await opened(web, event)).status == (404 if both else 200)
    # The frame of a case is not among the event's, either.
    assert (await opened(web, f"{event}/picture/1")).status == 404
    refused = await owner.post("/api/shares", {"kind": "frame", "uuid": "f1"})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_share")


async def test_a_share_reaches_no_further_than_its_maker_does_now(web: RunningWeb) -> None:
    owner = await owner_with_event(web)
    body = {"login": "manager", "role": "site_manager", "password": PASSWORD, "grants": {"camera_ids": ["cam_1"]}}
    made = await owner.post("/api/users", body)
    user = f"/api/users/{made.body['user']['user_uuid']}"
    manager = web.browser()
    await manager.sign_in("manager")
    path = await shared(manager)
    for change, back in (
        ({"disabled": True}, {"disabled": False}),
        ({"grants": {"camera_ids": []}}, {"grants": {"camera_ids": ["cam_1"]}}),
        ({"role": "viewer"}, {"role": "site_manager"}),
    ):
        assert (await owner.ask("PATCH", user, change)).status == 200, change
        assert (await opened(web, path)).status == 404, change
        assert (await owner.ask("PATCH", user, back)).status == 200
        assert (await opened(web, path)).status == 200
    # Home can't be switched off by anybody; a tenant that is shows nothing.
    await web.store.write(execute, "UPDATE tenants SET disabled = 1", {})
    assert (await opened(web, path)).status == 404


async def test_only_those_share_who_may(web: RunningWeb) -> None:
    owner = await owner_with_event(web)
    await owner.post("/api/users", {"login": "viewer", "role": "viewer", "password": PASSWORD})
    viewer = web.browser()
    await viewer.sign_in("viewer")
    refused = await viewer.post("/api/shares", {"kind": "event", "uuid": "e1"})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "shares_of_managers")
    await shared(owner)
    [listed] = (await owner.get("/api/shares")).body["shares"]
    # Another's share is nothing to somebody who manages no cameras.
    assert (await viewer.get("/api/shares")).body["shares"] == []
    assert (await viewer.ask("DELETE", f"/api/shares/{listed['share_uuid']}")).status == 404


async def test_every_share_is_listed_page_by_page(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_event(web)
    for n in range(7):
        await shared(owner, note=f"n{n}", ttl_sec=60 if n == 3 else None)
    listed = (await owner.get("/api/shares")).body
    assert ([one["note"] for one in listed["shares"]], listed["next_before"]) == (
        ["n6", "n5", "n4", "n3", "n2", "n1", "n0"],
        None,
    )
    first = (await owner.get("/api/shares?limit=3")).body
    # What comes, ends or is revoked meanwhile moves nothing that is not read yet.
    await shared(owner, note="later")
    assert (await owner.ask("DELETE", f"/api/shares/{first['shares'][-1]['share_uuid']}")).status == 204
    web.clock.jump_wall(60_000)
    second = (await owner.get(f"/api/shares?limit=3&before={first['next_before']}")).body
    assert [one["note"] for one in first["shares"] + second["shares"]] == ["n6", "n5", "n4", "n2", "n1", "n0"]
    # Only asking tells that nothing follows a page that is full.
    last = (await owner.get(f"/api/shares?limit=3&before={second['next_before']}")).body
    assert last == {"shares": [], "next_before": None}
    for wrong in ("before=e1.1", "before=7", "limit=0", "limit=201"):
        assert (await owner.get(f"/api/shares?{wrong}")).status == 400, wrong


async def test_shares_of_others_leave_no_page_short(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_MEDIA_SHARES": "everybody"}) as web:
        owner = await owner_with_event(web)
        await owner.post("/api/users", {"login": "viewer", "role": "viewer", "password": PASSWORD})
        viewer = web.browser()
        await viewer.sign_in("viewer")
        for n in range(3):
            await shared(viewer, note=f"mine {n}")
            await shared(owner)
        first = (await viewer.get("/api/shares?limit=2")).body
        second = (await viewer.get(f"/api/shares?limit=2&before={first['next_before']}")).body
        pages = [[one["note"] for one in page["shares"]] for page in (first, second)]
        assert (pages, second["next_before"]) == ([["mine 2", "mine 1"], ["mine 0"]], None)


@pytest.mark.parametrize("sharing", list(Sharing))
async def test_a_session_says_whether_its_person_may_share(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, sharing: Sharing
) -> None:
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_MEDIA_SHARES": sharing}) as web:
        owner = await owner_with_event(web)
        body = {"login": "viewer", "role": "viewer", "password": PASSWORD, "grants": {"camera_ids": ["cam_1"]}}
        assert (await owner.post("/api/users", body)).status == 201
        viewer = web.browser()
        signed_in = await viewer.sign_in("viewer")
        token = {"name": "reading", "days": 1, "scopes": ["read"]}
        secret = (await owner.post("/api/tokens", token)).body["secret"]
        program = {"Authorization": f"Bearer {secret}"}
        said = [
            (await who.get("/api/session", headers)).body["may_share"]
            for who, headers in ((owner, None), (viewer, None), (web.browser(), program))
        ]
        assert said == [sharing is not Sharing.OFF, *[sharing is Sharing.EVERYBODY] * 2]
        assert signed_in.body["may_share"] == said[1]
        # As it says, so it is.
        for who, may in ((owner, said[0]), (viewer, said[1])):
            reply = await who.post("/api/shares", {"kind": "event", "uuid": "e1"})
            assert reply.status == (201 if may else 403)


async def test_switched_off_nothing_is_open(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_web(sqlite_store, clock, tmp_path) as web:
        path = await shared(await owner_with_event(web))
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_MEDIA_SHARES": "off"}) as web:
        assert (await opened(web, path)).status == 404
        refused = await (await web.owner()).post("/api/shares", {"kind": "event", "uuid": "e1"})
        assert (refused.status, refused.body["details"]["reason"]) == (403, "shares_off")


async def test_guessing_is_slowed_down(web: RunningWeb) -> None:
    owner = await owner_with_event(web)
    path = await shared(owner)
    guesser = web.browser()
    for n in range(FREE_WRONG_LINKS):
        assert (await guesser.get(f"/share/guess-{n}/clip")).status == 404
        if n == FREE_WRONG_LINKS // 2:
            assert (await guesser.get(path)).status == 200
    refused = await guesser.get("/share/guess/clip")
    assert (refused.status, refused.body["details"]["reason"]) == (429, "too_many_links")
    # A right one opens while wrong ones wait.
    assert [(await guesser.get(f"{path}{part}")).status for part in ("", "/picture/0", "/picture/1")] == [200] * 3
    assert int(refused.headers["Retry-After"]) > 0
    # Where a person looks it is said on a page: who has a link need not know what JSON is.
    for language, words in (("en", "too many links"), ("ja", "リンクの操作が多すぎます")):
        page = await opened(web, "/share/guess", **{"Accept-Language": language})
        assert (page.status, page.headers["Content-Type"]) == (429, "text/html; charset=utf-8")
        assert int(page.headers["Retry-After"]) > 0
        assert words in page.content.decode()


async def test_what_can_not_be_logged_is_not_shown_and_said_on_a_page(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await shared(await owner_with_event(web))

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk of db.internal is full")

    monkeypatch.setattr(web.store, "write", full)
    for language, words in (("en", "the database is away"), ("ja", "データベースに接続できません")):
        page = await opened(web, path, **{"Accept-Language": language})
        assert (page.status, page.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
        assert int(page.headers["Retry-After"]) > 0
        assert page.headers["Cache-Control"] == "private, no-store"
        text = page.content.decode()
        assert words in text
        assert f'lang="{language}"' in text
        assert "db.internal" not in text


@pytest.mark.parametrize(
    ("role", "scopes", "allowed"),
    [
        (Role.VIEWER, None, {Sharing.EVERYBODY}),
        (Role.SITE_MANAGER, None, {Sharing.EVERYBODY, Sharing.MANAGERS}),
        (Role.SYSTEM_ADMIN, frozenset({Permission.READ}), {Sharing.EVERYBODY}),
        (Role.WORKER, None, set()),
    ],
)
def test_who_may_share(role: Role, scopes: frozenset[Permission] | None, allowed: set[Sharing]) -> None:
    principal = Principal(1, 1, role, scopes=scopes)
    assert {one for one in Sharing if may_share(principal, one)} == allowed
    for one in set(Sharing) - allowed:
        with pytest.raises(Forbidden):
            require_sharing(principal, one)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/share/abc", "/share/…"),
        ("/share/abc/picture/1", "/share/…/picture/1"),
        ("/api/share/abc", "/api/share/abc"),
        ("/media/frame/f1", "/media/frame/f1"),
    ],
)
def test_the_log_does_not_open_shares(path: str, shown: str) -> None:
    assert logged_path(path) == shown
