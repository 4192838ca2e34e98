"""The change feed's socket: who gets in, what is told, and when it ends."""

import asyncio
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from camserver.base.errors import StoreUnavailable
from camserver.domain.people import SESSION_IDLE_MS, Principal, Role
from camserver.services.web import feeds
from camserver.store import Store, Tx, cameras, feed, sessions, tenants
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, Browser, RunningWeb, running_web
from tests.store.people_rows import add_event, add_tenant, admin_of, audit_rows, execute
from tests.store.test_cameras import CAMERA as ROW

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
TIMEOUT_SEC = 60
Socket = aiohttp.ClientWebSocketResponse


async def connect(
    web: RunningWeb, browser: Browser, query: str = "", headers: Mapping[str, str] | None = None
) -> Socket:
    given = {"Origin": web.url} if headers is None else headers
    return await browser.http.ws_connect(f"{web.url}/api/feed{query}", headers=given)


async def refused(
    web: RunningWeb, browser: Browser, query: str = "", headers: Mapping[str, str] | None = None
) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await connect(web, browser, query, headers)
    return caught.value.status


async def received(web: RunningWeb, socket: Socket) -> aiohttp.WSMessage:
    """What comes next; the clock is moved until it does."""
    receiving = asyncio.create_task(socket.receive())
    async with asyncio.timeout(TIMEOUT_SEC):
        while not receiving.done():
            await web.clock.advance(200)
            await asyncio.wait([receiving], timeout=0.01)
    return receiving.result()


async def told(web: RunningWeb, socket: Socket) -> Any:
    """The next message that is no ping and does not speak of the status."""
    while True:
        message = await received(web, socket)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        body = message.json()
        if body["type"] not in ("ping", "system"):
            return body


async def close_code(web: RunningWeb, socket: Socket) -> int | None:
    while (await received(web, socket)).type is aiohttp.WSMsgType.TEXT:
        pass
    return socket.close_code


async def home_of(web: RunningWeb) -> int:
    return (await web.store.read(audit_rows))[0][0]


async def test_changes_come_by_themselves_with_public_ids(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    socket = await connect(web, owner)
    assert await told(web, socket) == {"type": "changes", "changes": [], "last_seq": 1, "live": False}

    await web.store.write(add_event, await home_of(web), "cam_1", "e1", web.clock.now_ms())
    message = await told(web, socket)
    assert (message["type"], message["last_seq"], message["live"]) == ("changes", 2, True)
    [change] = message["changes"]
    assert set(change) == {"seq", "kind", "at", "site", "camera_id", "object"}
    assert (change["seq"], change["kind"], change["site"]) == (2, "event", "main")
    assert (change["camera_id"], change["object"]) == ("cam_1", "e1")
    await socket.close()


@pytest.mark.parametrize("db_kind", ["postgres", "mariadb"], indirect=True)
async def test_two_web_services_tell_the_same_and_each_goes_on_where_the_other_was(
    two_stores: tuple[Store, Store], clock: ManualClock, tmp_path: Path
) -> None:
    """Each has connections of its own to the database; what they have in common is rows and the secrets' folder."""
    async with (
        running_web(two_stores[0], clock, tmp_path) as here,
        running_web(two_stores[1], clock, tmp_path) as there,
    ):
        owner = await here.owner()
        sockets = [await connect(web, owner) for web in (here, there)]
        firsts = [await told(web, socket) for web, socket in zip((here, there), sockets, strict=True)]
        assert firsts[0] == firsts[1] == {"type": "changes", "changes": [], "last_seq": 0, "live": False}
        await owner.post("/api/cameras", CAMERA)  # written by this one
        await there.store.write(add_event, await home_of(there), "cam_1", "e1", clock.now_ms())  # and by the other
        seen = [await changes_up_to(web, socket, 2) for web, socket in zip((here, there), sockets, strict=True)]
        assert seen[0] == seen[1]
        assert [(one["seq"], one["kind"]) for one in seen[0]] == [(1, "camera"), (2, "event")]
        for socket in sockets:
            await socket.close()

        # The browser is away while more happens, and comes to the other one with its cursor.
        for number in (2, 3):
            await here.store.write(add_event, await home_of(here), "cam_1", f"e{number}", clock.now_ms())
        socket = await connect(there, owner, "?after=2")
        missed = await told(there, socket)
        assert ([one["object"] for one in missed["changes"]], missed["last_seq"]) == (["e2", "e3"], 4)
        assert missed["live"] is False
        await here.store.write(add_event, await home_of(here), "cam_1", "e4", clock.now_ms())
        assert [(one["seq"], one["object"]) for one in await changes_up_to(there, socket, 5)] == [(5, "e4")]
        await socket.close()
        # The one that was left tells whoever comes back to it the same.
        asked = [(await browser.get("/api/changes?after=2")).body for browser in (owner, at(there, owner))]
        assert asked[0] == asked[1]
        assert [one["object"] for one in asked[0]["changes"]] == ["e2", "e3", "e4"]


async def changes_up_to(web: RunningWeb, socket: Socket, seq: int) -> list[dict[str, Any]]:
    """However many messages they come in."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["seq"] < seq:
        message = await told(web, socket)
        assert (message["type"], message["live"]) == ("changes", True)
        found += message["changes"]
    return found


def at(web: RunningWeb, browser: Browser) -> Browser:
    """The same browser, with its cookies, at another web service."""
    there = web.browser()
    there.http.cookie_jar.update_cookies({one.key: one.value for one in browser.http.cookie_jar}, URL(web.url))
    there.csrf_token = browser.csrf_token
    return there


async def test_what_was_missed_comes_first_and_is_not_called_live(web: RunningWeb) -> None:
    owner = await web.owner()
    for number in range(3):
        await owner.post("/api/cameras", {**CAMERA, "camera_id": f"cam_{number}"})
    socket = await connect(web, owner, "?after=1")
    missed = await told(web, socket)
    assert ([change["seq"] for change in missed["changes"]], missed["last_seq"], missed["live"]) == ([2, 3], 3, False)
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "cam_9"})
    now = await told(web, socket)
    assert ([change["seq"] for change in now["changes"]], now["live"]) == ([4], True)
    await socket.close()


async def test_a_kind_that_a_newer_version_tells_of_is_passed_over(web: RunningWeb) -> None:
    owner = await web.owner()
    for number in range(3):
        await owner.post("/api/cameras", {**CAMERA, "camera_id": f"cam_{number}"})
    await web.store.write(execute, "UPDATE changes SET kind = 'hologram' WHERE seq > 1", {})
    page = (await owner.get("/api/changes?after=0")).body
    assert ([one["seq"] for one in page["changes"]], page["last_seq"], page["resync"]) == ([1], 3, False)


async def test_a_cursor_that_is_too_old_or_made_up_asks_for_a_resync(web: RunningWeb) -> None:
    owner = await web.owner()
    for number in range(3):
        await owner.post("/api/cameras", {**CAMERA, "camera_id": f"cam_{number}"})
    await web.store.write(execute, "DELETE FROM changes WHERE seq = 1", {})
    for cursor in ("0", "99"):
        socket = await connect(web, owner, f"?after={cursor}")
        assert await told(web, socket) == {"type": "resync", "last_seq": 3}
        await socket.close()
    socket = await connect(web, owner, "?after=1")
    assert (await told(web, socket))["type"] == "changes"
    await socket.close()


async def test_who_is_let_in(web: RunningWeb) -> None:
    owner = await web.owner()
    stranger = web.browser()
    own = {"Origin": web.url}
    assert await refused(web, stranger) == 401
    assert await refused(web, stranger, headers={**own, "Cookie": "camserver_session=made-up"}) == 401
    assert await refused(web, owner, headers={}) == 403
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", ""):
        assert await refused(web, owner, headers={"Origin": origin}) == 403, origin
    assert await refused(web, owner, headers={**own, "Sec-Fetch-Site": "cross-site"}) == 403
    assert await refused(web, owner, headers={"Host": "evil.example", "Origin": "http://evil.example"}) == 421
    assert await refused(web, owner, "?after=-1") == 400
    assert await refused(web, owner, "?after=x") == 400
    assert await refused(web, owner, "?after=1&after=2") == 400
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.WORKER.value})
    assert await refused(web, owner) == 403
    # A tool on this machine has no page, and so no origin.
    socket = await connect(web, stranger, headers=web.local_admin)
    assert (await told(web, socket))["type"] == "changes"
    await socket.close()
    assert await refused(web, stranger, headers={**web.local_admin, "Origin": "https://evil.example"}) == 403
    async with stranger.http.get(f"{web.url}/api/feed", headers=web.local_admin) as plain:
        assert plain.status == 426
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await stranger.http.ws_connect(f"{web.url}/api/elsewhere")


@pytest.mark.parametrize("path", ["/api/feeds", "/api/cameras", "/"])
async def test_where_there_is_no_socket_that_is_said(web: RunningWeb, path: str) -> None:
    owner = await web.owner()
    shake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    reply = await owner.get(path, {**shake, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": web.url})
    assert (reply.status, reply.body["details"]) == (404, {"reason": "no_route"})


async def test_another_tenants_changes_are_not_told(web: RunningWeb) -> None:
    owner = await web.owner()
    foreign = await web.store.write(add_tenant, "other", web.clock.now_ms())
    socket = await connect(web, owner)
    await told(web, socket)
    theirs = web.store.as_(admin_of(foreign.tenant_id))
    await theirs.write(cameras.add, ROW, "", web.clock.now_ms())
    await owner.post("/api/cameras", CAMERA)
    message = await told(web, socket)
    assert [(change["seq"], change["camera_id"]) for change in message["changes"]] == [(1, "cam_1")]
    await socket.close()


async def test_each_message_is_judged_by_the_grants_of_its_moment(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await web.owner()
    tenant_id = await home_of(web)
    annex = await web.store.write(tenants.ensure_site, tenant_id, "annex", web.clock.now_ms())
    socket = await connect(web, owner)
    await told(web, socket)
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "before"})
    assert [change["camera_id"] for change in (await told(web, socket))["changes"]] == ["before"]

    async def annex_only(tx: Tx, session_ids: tuple[int, ...], now_ms: int) -> dict[int, Principal]:
        return {
            number: Principal(tenant_id, 1, Role.VIEWER, frozenset({annex}), session_id=number)
            for number in session_ids
        }

    monkeypatch.setattr(sessions, "principals", annex_only)
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "hidden"})
    assert (await told(web, socket))["type"] == "resync", "it reaches other cameras than it was shown"
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "seen", "site": "annex"})
    message = await told(web, socket)
    assert [(change["camera_id"], change["site"]) for change in message["changes"]] == [("seen", "annex")]
    assert message["last_seq"] == 3
    await socket.close()


async def test_who_may_not_investigate_is_not_told_of_cases(web: RunningWeb) -> None:
    owner = await web.owner()
    body = {"login": "viewer", "role": "viewer", "password": PASSWORD}
    assert (await owner.post("/api/users", body)).status == 201
    viewer = web.browser()
    await viewer.sign_in("viewer")
    sockets = [await connect(web, one) for one in (owner, viewer)]
    for socket in sockets:
        await told(web, socket)
    assert (await owner.post("/api/cases", {"title": "theft"})).status == 201
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "cam_1"})
    of_owner, of_viewer = [await changes_up_to(web, socket, 2) for socket in sockets]
    assert [one["kind"] for one in of_owner] == ["case", "camera"]
    assert [one["kind"] for one in of_viewer] == ["camera"]
    listed = (await viewer.get("/api/changes?after=0")).body
    assert ([one["kind"] for one in listed["changes"]], listed["last_seq"]) == (["camera"], 2)
    for socket in sockets:
        await socket.close()


async def test_it_ends_with_the_session(web: RunningWeb) -> None:
    owner = await web.owner()
    socket = await connect(web, owner)
    await told(web, socket)
    assert (await owner.ask("DELETE", "/api/session")).status == 200
    assert await close_code(web, socket) == 4401

    owner = await web.owner()
    socket = await connect(web, owner)
    await told(web, socket)
    web.clock.jump_wall(SESSION_IDLE_MS)
    assert await close_code(web, socket) == 4401


async def test_it_ends_when_reading_is_not_permitted_any_more(web: RunningWeb) -> None:
    owner = await web.owner()
    socket = await connect(web, owner)
    await told(web, socket)
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.WORKER.value})
    assert await close_code(web, socket) == 4403


async def test_a_quiet_feed_is_pinged(web: RunningWeb) -> None:
    owner = await web.owner()
    socket = await connect(web, owner)
    await told(web, socket)
    # That the status is known comes once, then there is nothing to tell.
    assert (await received(web, socket)).json() == {"type": "system", "last_seq": 0}
    assert (await received(web, socket)).json() == {"type": "ping", "last_seq": 0}
    await socket.close()


async def test_a_client_that_speaks_is_closed(web: RunningWeb) -> None:
    owner = await web.owner()
    socket = await connect(web, owner)
    await told(web, socket)
    await socket.send_str("hello")
    assert await close_code(web, socket) == 1003


async def test_a_store_that_is_away_closes_with_try_again(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await web.owner()

    async def away(*_: object) -> None:
        raise StoreUnavailable("connect to db.internal failed")

    monkeypatch.setattr(feed, "after", away)
    socket = await connect(web, owner, "?after=0")
    assert await close_code(web, socket) == 1013


async def test_too_many_open_pages_are_refused(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "READERS_PER_SESSION_MAX", 1)
    owner, other = await web.owner(), await web.owner()
    socket = await connect(web, owner)
    assert await refused(web, owner) == 503
    second = await connect(web, other)
    await socket.close()
    await second.close()


async def test_a_stop_closes_open_feeds(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_web(sqlite_store, clock, tmp_path) as web:
        owner = await web.owner()
        socket = await connect(web, owner)
        await told(web, socket)
        web.browsers.clear()  # closed here, after the server's end was heard
    farewell = await asyncio.wait_for(socket.receive(), TIMEOUT_SEC)
    assert (farewell.type, farewell.data) == (aiohttp.WSMsgType.CLOSE, 1012)
    await owner.http.close()


# ---------------------------------------------------------------------------------------------------------------
# As server-sent events
# ---------------------------------------------------------------------------------------------------------------


async def event(
    web: RunningWeb, response: aiohttp.ClientResponse, passed_over: Collection[str] = ("ping", "system")
) -> dict[str, str]:
    """The next event of another type, by its fields; the clock is moved until it comes."""
    fields: dict[str, str] = {}
    async with asyncio.timeout(TIMEOUT_SEC):
        while True:
            reading = asyncio.create_task(response.content.readline())
            while not reading.done():
                await web.clock.advance(200)
                await asyncio.wait([reading], timeout=0.01)
            line = reading.result().decode()
            if line == "":
                return fields
            if line != "\n":
                name, _, value = line.strip().partition(": ")
                fields[name] = value
            elif json.loads(fields.get("data", "{}")).get("type") in passed_over:
                fields = {}
            else:
                return fields


async def test_events_are_what_the_socket_tells_and_go_on_behind_the_last_one(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    address = f"{web.url}/api/feed/events"
    async with owner.http.get(address) as response:
        assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert "no-store" in response.headers["Cache-Control"]
        first = await event(web, response)
        assert json.loads(first["data"]) == {"type": "changes", "changes": [], "last_seq": 1, "live": False}
        await web.store.write(add_event, await home_of(web), "cam_1", "e1", web.clock.now_ms())
        second = await event(web, response)
        [change] = json.loads(second["data"])["changes"]
        assert (second["id"], change["object"]) == ("2", "e1")
    await web.store.write(add_event, await home_of(web), "cam_1", "e2", web.clock.now_ms())
    # What a browser sends when it comes back is more recent than the address.
    async with owner.http.get(f"{address}?after=0", headers={"Last-Event-ID": "2"}) as response:
        missed = json.loads((await event(web, response))["data"])
        assert ([change["object"] for change in missed["changes"]], missed["live"]) == (["e2"], False)
    assert (await owner.get("/api/feed/events?after=soon")).status == 400
    assert (await owner.get("/api/feed/events?after=1&after=2")).status == 400
    assert (await web.browser().get("/api/feed/events")).status == 401
    assert (await owner.ask("HEAD", "/api/feed/events")).status == 200


async def test_events_end_with_the_sign_in(web: RunningWeb) -> None:
    owner = await web.owner()
    async with owner.http.get(f"{web.url}/api/feed/events") as response:
        await event(web, response)
        await web.store.write(execute, "DELETE FROM sessions", {})
        ended = await event(web, response)
        assert (ended["event"], json.loads(ended["data"])) == ("end", {"code": feeds.End.SESSION_OVER})
        assert await event(web, response) == {}
