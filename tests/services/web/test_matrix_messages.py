"""What leaves otherwise than by asking for a thing by its name: every kind of change that the feed tells of, each way
it does, and every object that a signed link opens, for every role, one's own and other sites and tenants, in a case
and not.

Kinds and objects come from the product, so a new one fails until it is listed here.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from PIL import Image

from camserver.domain.change_kinds import CHANGE_KINDS
from camserver.domain.people import PERMISSIONS, Permission
from camserver.domain.retention import Retention
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.routes import media
from camserver.store import Store, Tx, archive
from camserver.store.archive import NewCopy
from tests.rig.clock import ManualClock
from tests.services.web.rig import Browser, RunningWeb, running_web
from tests.services.web.test_matrix import PEOPLE, Person, Town, make_town
from tests.store.people_rows import execute

TIMEOUT_SEC = 60
# Told of to whoever may do this and reaches the place; without a place to everybody of the tenant who may.
KINDS: Mapping[str, Permission] = {
    **{kind: Permission.READ for kind in ("camera", "session", "look", "frame", "event", "incident", "site")},
    **{kind: Permission.READ for kind in ("receiver", "delivery", "retention", "summary", "suggestion")},
    "case": Permission.INVESTIGATE,
}
PLACES = ("near", "beyond", "foreign", "tenant")
OBJECTS = {"infer", "full", "thumb", "clip"}


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    environ = {"CAMSERVER_ARCHIVE_FOLDERS": str(tmp_path / "mnt")}
    async with running_web(sqlite_store, clock, tmp_path / "data", environ) as running:
        yield running


# ---------------------------------------------------------------------------------------------------------------
# The feed
# ---------------------------------------------------------------------------------------------------------------


def test_every_kind_of_change_is_listed() -> None:
    assert set(KINDS) == CHANGE_KINDS


async def _happens(tx: Tx, at_ms: int) -> None:
    """One change of each kind at each place, and of the tenant as a whole. `at_ms` tells them from others."""
    places: list[tuple[int, int | None, int | None]] = []
    for where in ("near", "beyond", "foreign"):
        row = await tx.one(
            "SELECT tenant_id, site_id, camera_key FROM cameras WHERE camera_id = :camera_id",
            camera_id=f"cam-{where}",
        )
        assert row is not None
        places.append((row["tenant_id"], row["site_id"], row["camera_key"]))
    places.append((places[0][0], None, None))
    for kind in sorted(CHANGE_KINDS):
        for tenant_id, site_id, camera_key in places:
            tx.changed(
                tenant_id=tenant_id,
                kind=kind,  # type: ignore[arg-type]  # from the list of kinds
                at_ms=at_ms,
                site_id=site_id,
                camera_key=camera_key,
            )


def _expected(who: Person) -> list[tuple[str, str | None]]:
    places = ["cam-near"] + (["cam-beyond"] if who.grants is None else []) + [None]
    return sorted(
        ((kind, place) for kind in KINDS for place in places if KINDS[kind] in PERMISSIONS[who.role]), key=str
    )


def _told(changes: list[dict[str, Any]], at_ms: int) -> list[tuple[str, str | None]]:
    return sorted(((one["kind"], one["camera_id"]) for one in changes if one["at"] == at_ms), key=str)


async def _over_socket(browser: Browser, web: RunningWeb, after: int) -> list[dict[str, Any]]:
    """What the socket tells of first: what was missed."""
    address = f"{web.url}/api/feed?after={after}"
    async with (
        asyncio.timeout(TIMEOUT_SEC),
        browser.http.ws_connect(address, headers={"Origin": web.url}) as socket,
    ):
        message = json.loads((await socket.receive()).data)
    assert (message["type"], message["live"]) == ("changes", False)
    found: list[dict[str, Any]] = message["changes"]
    return found


async def _over_events(browser: Browser, web: RunningWeb, after: int) -> list[dict[str, Any]]:
    address = f"{web.url}/api/feed/events?after={after}"
    async with asyncio.timeout(TIMEOUT_SEC), browser.http.get(address) as response:
        while not (line := (await response.content.readline()).decode()).startswith("data: "):
            assert line != ""
    found: list[dict[str, Any]] = json.loads(line.removeprefix("data: "))["changes"]
    return found


async def _live(web: RunningWeb, socket: aiohttp.ClientWebSocketResponse, at_ms: int) -> list[dict[str, Any]]:
    """What is told while the socket is open, up to the change that everybody is told of last."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(TIMEOUT_SEC):
        while not any(one["at"] == at_ms + 1 for one in found):
            reading = asyncio.create_task(socket.receive())
            while not reading.done():
                await web.clock.advance(200)
                await asyncio.wait([reading], timeout=0.01)
            message = json.loads(reading.result().data)
            found += message.get("changes", ()) if message.get("live") else ()
    return found


async def _last(tx: Tx, tenant_id: int, at_ms: int) -> None:
    tx.changed(tenant_id=tenant_id, kind="retention", at_ms=at_ms)


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_each_kind_is_told_to_whom_it_concerns_whichever_way(web: RunningWeb, who: Person) -> None:
    town = await make_town(web)
    browser = town.browsers[who.login]
    before = (await browser.get("/api/changes?after=0")).body["last_seq"]
    at_ms = web.clock.now_ms() + 7
    async with browser.http.ws_connect(f"{web.url}/api/feed", headers={"Origin": web.url}) as socket:
        async with asyncio.timeout(TIMEOUT_SEC):
            await socket.receive()  # it is open, and knows where it begins
        await web.store.write(_happens, at_ms)
        row = (await web.store.read(_home),)
        await web.store.write(_last, row[0], at_ms + 1)
        live = await _live(web, socket, at_ms)
    asked = (await browser.get(f"/api/changes?after={before}&limit=1000")).body["changes"]
    ways = (live, asked, await _over_socket(browser, web, before), await _over_events(browser, web, before))
    for way in ways:
        assert _told(way, at_ms) == _expected(who)


async def _home(tx: Tx) -> int:
    row = await tx.one("SELECT tenant_id FROM cameras WHERE camera_id = 'cam-near'")
    assert row is not None
    return int(row["tenant_id"])


# ---------------------------------------------------------------------------------------------------------------
# Signed links
# ---------------------------------------------------------------------------------------------------------------

COPIES = {"picture copy": "camera-archive/{}.jpg", "clip copy": "camera-archive/{}.mp4"}
# Which of them a case has, by what was put into it: a frame, an event as a whole, its clip alone.
HELD = {
    "nothing": "",
    "frame": "UPDATE frames SET retention_class = 'case'",
    "event's clip": "UPDATE events SET retention_class = 'case'",
}


def test_every_object_that_a_link_opens_is_listed() -> None:
    assert set(media._OBJECTS) == OBJECTS


def _asked(what: str, where: str) -> dict[str, str]:
    named = {"frame_uuid": f"frame-{where}"}
    if what in COPIES:
        return {**named, "archive_file_id": COPIES[what].format(where)}
    return {**named, "kind": what}


_CLIP = """
INSERT INTO clips (clip_uuid, tenant_id, camera_key, event_id, state, object_key, object_bytes, epoch_id, begin_at,
  end_at, codec, created_at)
SELECT 'clip-' || event_id, tenant_id, camera_key, event_id, 'ready', :key, 6, 1, :now_ms, :now_ms, 'avc1.42E01E',
  :now_ms
FROM events WHERE event_id = :event_id"""


def archive_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mnt" / "a"
    folder.mkdir(parents=True)
    return folder


async def _furnish(town: Town, folder: Path) -> None:
    """Each frame has both pictures, a clip of its event, and copies of picture and clip."""
    web, now_ms = town.web, town.web.clock.now_ms()
    receiver = {"name": "a folder", "kind": "folder", "config": {"path": str(folder)}, "secrets": {}}
    made = await town.browsers["installation"].post("/api/receivers", receiver)
    assert made.status == 201, made.content
    receiver_id = await web.store.read(_receiver)
    await web.store.write(execute, "UPDATE frames SET full_bytes = 10, infer_bytes = 10, epoch_id = 1", {})
    for frame in await web.store.read(_frames):
        where, tenant_id = frame["frame_uuid"].removeprefix("frame-"), frame["tenant_id"]
        place = (1, tenant_id, frame["camera_key"], frame["captured_at"], frame["frame_uuid"])
        for kind in Kind:
            await web.objects.put(frame_key(*place, kind), PICTURE)
        clip_key = f"e1/t{tenant_id}/clips/{where}.mp4"
        await web.objects.put(clip_key, b"a clip")
        for path in _copied(folder, where):
            of = (tenant_id, receiver_id, frame["frame_id"], frame["camera_key"], None)
            copy = NewCopy(*of, path, path, 6, "0" * 64, Retention.NORMAL, "2026-01-01", None)
            await web.store.write(archive.note_stored, copy, now_ms)
        clip = {"event_id": frame["event_id"], "key": clip_key, "now_ms": now_ms}
        await web.store.write(execute, _CLIP, clip)


def _copied(folder: Path, where: str) -> list[str]:
    (folder / ".camserver-archive").write_text("")
    paths = [pattern.format(where) for pattern in COPIES.values()]
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"a copy")
    return paths


def _picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (32, 18), "red").save(out, "JPEG")
    return out.getvalue()


PICTURE = _picture()


async def _frames(tx: Tx) -> list[dict[str, Any]]:
    rows = await tx.all("SELECT frame_id, frame_uuid, tenant_id, camera_key, captured_at, event_id FROM frames")
    return [dict(row) for row in rows]


async def _receiver(tx: Tx) -> int:
    row = await tx.one("SELECT receiver_id FROM receivers WHERE name = 'a folder'")
    assert row is not None
    return int(row["receiver_id"])


async def _opens(web: RunningWeb, url: str) -> int:
    parts = urlsplit(url)
    return (await web.browser().get(f"{parts.path}?{parts.query}")).status


def _is_held(held: str, what: str) -> bool:
    return held == "frame" or (held == "event's clip" and what in ("clip", "clip copy"))


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_a_link_is_made_to_what_one_sees_and_to_nothing_of_a_case(
    web: RunningWeb, tmp_path: Path, who: Person
) -> None:
    town = await make_town(web)
    await _furnish(town, archive_folder(tmp_path))
    browser, system = town.browsers[who.login], town.browsers["installation"]
    before = {
        what: (await system.post("/api/media/link", _asked(what, "near"))).body["url"] for what in (*OBJECTS, *COPIES)
    }
    for held, statement in HELD.items():
        if statement:
            await web.store.write(execute, statement, {})
        for what in (*OBJECTS, *COPIES):
            case = (held, what)
            near = await browser.post("/api/media/link", _asked(what, "near"))
            if _is_held(held, what):
                # Copies of what a case has are not even there for those who may not investigate.
                assert near.status in ((403,) if Permission.INVESTIGATE in PERMISSIONS[who.role] else (403, 404)), (
                    case
                )
                assert await _opens(web, before[what]) == 403, case
            else:
                assert near.status == 200, (case, near.content)
                assert await _opens(web, near.body["url"]) == 200, case
                assert await _opens(web, before[what]) == 200, case
            foreign = await browser.post("/api/media/link", _asked(what, "foreign"))
            assert foreign.status == 404, case
            beyond = await browser.post("/api/media/link", _asked(what, "beyond"))
            # In a case all the same, for those who reach it.
            reaches = (403, 404) if _is_held(held, what) else (200,)
            assert beyond.status in ((404,) if who.grants is not None else reaches), case
        if statement:
            await web.store.write(execute, statement.replace("'case'", "'normal'"), {})


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_what_a_case_has_is_shown_to_those_who_may_investigate(
    web: RunningWeb, tmp_path: Path, who: Person
) -> None:
    """Signed in, by each address that sends a picture or a clip."""
    town = await make_town(web)
    await _furnish(town, archive_folder(tmp_path))
    browser = town.browsers[who.login]
    pictures = [f"/api/frames/frame-near/picture?kind={kind}" for kind in ("infer", "full", "thumb")]
    pictures += ["/api/frames/frame-near/picture?boxes=true", "/api/cameras/cam-near/latest.jpg"]
    ways = {"frame": pictures, "event's clip": ["/api/events/event-near/clip"]}
    for held, addresses in ways.items():
        for address in addresses:
            assert (await browser.get(address)).status == 200, address
        await web.store.write(execute, HELD[held], {})
        for address in addresses:
            may = Permission.INVESTIGATE in PERMISSIONS[who.role]
            # A camera whose newest picture a case has shows an older one to the others, if there is one.
            refused = (404,) if address.endswith("latest.jpg") else (403,)
            for method in ("GET", "HEAD"):
                assert (await browser.ask(method, address)).status in ((200,) if may else refused), (method, address)
            part = await browser.get(address, {"Range": "bytes=0-1"})
            assert part.status in ((206,) if may else refused), address
        await web.store.write(execute, HELD[held].replace("'case'", "'normal'"), {})
