"""Copies at archives: listed, and opened by signed links; a case's by none."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.domain.people import Role
from camserver.domain.retention import Retention
from camserver.services.web.throttle import FREE_WRONG_LINKS
from camserver.store import Store, archive
from camserver.store.archive import NewCopy
from tests.rig.clock import ManualClock
from tests.services.web.rig import Browser, RunningWeb, running_web
from tests.services.web.test_access import set_role
from tests.services.web.test_archive_receivers import add
from tests.services.web.test_media import altered, link, opened, owner_with_frame, place_of
from tests.store.people_rows import add_event, audit_rows, execute

FILE = "camera-archive/2027/01/15/cam_1/20270115T170000.000+0900_f1.jpg"
FILM = "camera-archive/2027/01/15/cam_1/20270115T170000.000+0900_e1.mp4"


@pytest.fixture
async def web_on_each(store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    environ = {"CAMSERVER_ARCHIVE_FOLDERS": str(tmp_path / "mnt")}
    async with running_web(store, clock, tmp_path / "data", environ) as running:
        yield running


async def furnished(web: RunningWeb, folder: Path, *names: str, case_id: int | None = None) -> Browser:
    """The frame f1 with copies of these names in a folder."""
    owner = await owner_with_frame(web)
    made = await add(owner, "folder", {"path": str(folder)})
    assert made.status == 201, made.content
    tenant_id = (await web.store.read(audit_rows))[0][0]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"copy " + name[-4:].encode())
        row = NewCopy(tenant_id, 1, 1, 1, case_id, name, name, 9, "0" * 64, Retention.NORMAL, "2027-01-15", None)
        await web.store.write(archive.note_stored, row, web.clock.now_ms())
    (folder / ".camserver-archive").write_text("")
    return owner


async def test_a_copy_is_listed_and_a_link_opens_it(web_on_each: RunningWeb, tmp_path: Path) -> None:
    web = web_on_each
    owner = await furnished(web, tmp_path / "mnt" / "a", FILE, FILM)
    listed = (await owner.get("/api/frames/f1/copies")).body["copies"]
    assert [(one["archive_file_id"], one["receiver_name"], one["in_case"]) for one in listed] == [
        (FILE, "a folder", False),
        (FILM, "a folder", False),
    ]
    for name, media_type in ((FILE, "image/jpeg"), (FILM, "video/mp4")):
        url = await link(owner, archive_file_id=name)
        assert name not in url
        reply = await opened(web, url)
        assert (reply.status, reply.content) == (200, b"copy " + name[-4:].encode()), reply.content
        assert (reply.headers["Content-Type"], reply.headers["Cache-Control"]) == (media_type, "private, max-age=60")
        assert (await opened(web, altered(url, exp="9999999999"))).status == 403
        assert (await opened(web, url.replace("/f1?", "/f2?"))).status == 403
    await web.clock.advance(900_000)
    over = await opened(web, url)
    assert (over.status, over.body["details"]["reason"]) == (403, "link_expired")
    # Nor is it taken for a guess, however often it is opened.
    assert {(await opened(web, url)).status for _ in range(FREE_WRONG_LINKS + 1)} == {403}


async def test_a_part_of_a_copy_is_answered_so_that_every_browser_plays_a_film(
    web_on_each: RunningWeb, tmp_path: Path
) -> None:
    web = web_on_each
    owner = await furnished(web, tmp_path / "mnt" / "a", FILE, FILM)
    for name in (FILE, FILM):
        url, content = await link(owner, archive_file_id=name), b"copy " + name[-4:].encode()
        browser = web.browser()
        whole = await browser.get(place_of(url))
        etag = whole.headers["ETag"]
        assert (whole.headers["Accept-Ranges"], etag) == ("bytes", f'"{"0" * 64}"')
        part = await browser.get(place_of(url), {"Range": "bytes=0-1", "If-Range": etag})
        assert (part.status, part.content, part.headers["Content-Range"]) == (206, content[:2], "bytes 0-1/9")
        beyond = await browser.get(place_of(url), {"Range": "bytes=9-"})
        assert (beyond.status, beyond.headers["Content-Range"]) == (416, "bytes */9")
        known = await browser.get(place_of(url), {"If-None-Match": etag})
        assert (known.status, known.content, known.headers["Cache-Control"]) == (304, b"", "private, max-age=60")


async def test_what_is_gone_or_away_is_said_without_its_place(web_on_each: RunningWeb, tmp_path: Path) -> None:
    web, folder = web_on_each, tmp_path / "mnt" / "a"
    owner = await furnished(web, folder, FILE)
    url = await link(owner, archive_file_id=FILE)
    unknown = await owner.post("/api/media/link", {"frame_uuid": "f1", "archive_file_id": FILM})
    assert (unknown.status, unknown.body["details"]["reason"]) == (404, "no_archive_file")
    (folder / FILE).unlink()
    gone = await opened(web, url)
    assert (gone.status, gone.body["details"]["reason"]) == (404, "picture_gone")
    (folder / ".camserver-archive").unlink()
    away = await opened(web, url)
    assert (away.status, away.body["details"]["reason"]) == (503, "archive_away")
    assert str(tmp_path) not in away.content.decode()
    await owner.ask(
        "DELETE", f"/api/receivers/{(await owner.get('/api/receivers')).body['receivers'][0]['receiver_uuid']}"
    )
    assert (await opened(web, url)).status == 403
    assert (await owner.get("/api/frames/f1/copies")).body["copies"][0]["receiver_name"] is None


async def test_no_link_opens_a_copy_of_a_case(web_on_each: RunningWeb, tmp_path: Path) -> None:
    web = web_on_each
    owner = await furnished(web, tmp_path / "mnt" / "a", FILE)
    url = await link(owner, archive_file_id=FILE)
    await web.store.write(execute, "UPDATE frames SET retention_class = 'case'", {})
    assert (await opened(web, url)).status == 403
    refused = await owner.post("/api/media/link", {"frame_uuid": "f1", "archive_file_id": FILE})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_link")
    await web.store.write(execute, "UPDATE frames SET retention_class = 'normal'", {})
    await web.store.write(execute, "UPDATE drive_objects SET case_id = 1", {})
    assert (await opened(web, url)).status == 403
    refused = await owner.post("/api/media/link", {"frame_uuid": "f1", "archive_file_id": FILE})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_link")
    assert len((await owner.get("/api/frames/f1/copies")).body["copies"]) == 1
    await web.store.write(set_role, Role.VIEWER.value)
    assert (await owner.get("/api/frames/f1/copies")).body["copies"] == [], "for those who may investigate"
    assert (await owner.get("/api/frames/none/copies")).status == 404


async def test_no_link_opens_the_copy_of_a_clip_that_a_case_took_later(
    web_on_each: RunningWeb, tmp_path: Path
) -> None:
    web = web_on_each
    owner = await furnished(web, tmp_path / "mnt" / "a", FILE, FILM)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    await web.store.write(add_event, tenant_id, "cam_1", "e1", web.clock.now_ms())
    await web.store.write(execute, "UPDATE frames SET event_id = (SELECT MAX(event_id) FROM events)", {})
    url = await link(owner, archive_file_id=FILM)
    assert (await opened(web, url)).status == 200
    # What putting a clip into a case does: its event is held, the pictures are not.
    await web.store.write(execute, "UPDATE events SET retention_class = 'case'", {})
    assert (await opened(web, url)).status == 403
    refused = await owner.post("/api/media/link", {"frame_uuid": "f1", "archive_file_id": FILM})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_link")
    listed = (await owner.get("/api/frames/f1/copies")).body["copies"]
    assert [(one["archive_file_id"], one["in_case"]) for one in listed] == [(FILE, False), (FILM, True)]
    assert (await opened(web, await link(owner, archive_file_id=FILE))).status == 200
    await web.store.write(set_role, Role.VIEWER.value)
    listed = (await owner.get("/api/frames/f1/copies")).body["copies"]
    assert [one["archive_file_id"] for one in listed] == [FILE]
    refused = await owner.post("/api/media/link", {"frame_uuid": "f1", "archive_file_id": FILM})
    assert refused.status in (403, 404)
