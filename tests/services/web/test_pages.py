"""The built UI as it is served: its pages at every address that is theirs, its files, and nothing elsewhere."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from camserver.services.web import service
from camserver.services.web.routing import GuardedRoute, GuardedSocket
from camserver.services.web.ui_files import load_ui
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.services.web.rig import RunningWeb, api_routes, running_web

INDEX = b"<!doctype html><title>the pages</title>"
SCRIPT = b"console.log('a script')"


@pytest.fixture(autouse=True)
def ui_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small UI, in place before the service starts."""
    folder = tmp_path / "ui"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "favicon.svg").write_bytes(b"<svg/>")
    script = folder / "assets" / "index-Ab12.js"
    script.write_bytes(SCRIPT)
    # The real copy is Brotli; what is in it does not matter to the server.
    script.with_name(script.name + ".br").write_bytes(b"brotli of the script")
    script.with_name(script.name + ".gz").write_bytes(gzip.compress(SCRIPT))
    (folder / "assets" / "notes.txt").write_text("of no kind that is served")
    monkeypatch.setattr(service, "FOLDER", folder)
    return folder


@pytest.fixture
async def raw(web: RunningWeb) -> AsyncIterator[aiohttp.ClientSession]:
    """Gets what is sent, not what it unpacks to."""
    async with aiohttp.ClientSession(
        web.url, auto_decompress=False, skip_auto_headers=["Accept-Encoding"]
    ) as session:
        yield session


@pytest.mark.parametrize("path", ["/", "/sign-in", "/setup", "/events", "/events/01a1e112-0303", "/not/made/yet"])
async def test_every_page_is_the_index(web: RunningWeb, path: str) -> None:
    browser = web.browser()
    page = await browser.get(path)
    assert (page.status, page.content) == (200, INDEX)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-cache"
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    unchanged = await browser.get(path, {"If-None-Match": page.headers["ETag"]})
    assert (unchanged.status, unchanged.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/events/x/nothing",
        "/hls/cam/list",
        "/media",
        "/media/x",
        "/stream/cam",
        "/v1",
        "/v1/nope",
    ],
)
async def test_no_page_where_programs_ask(web: RunningWeb, path: str) -> None:
    answer = await web.browser().get(path)
    assert answer.status == 404
    assert answer.body["error_code"] == "not_found"


async def test_no_page_in_a_folder_that_has_routes(web: RunningWeb) -> None:
    """Whatever folder a route is in, a program that asks for another address there is told so as JSON."""
    folders = {route.path.split("/")[1] for route in api_routes() if isinstance(route, GuardedRoute | GuardedSocket)}
    nested = {folder for folder in folders if "{" not in folder} - {"healthz", "readyz", "metrics"}
    assert nested == {"api", "media", "share", "v1"}
    for folder in nested:
        answer = await web.browser().get(f"/{folder}/no-such/thing/here")
        assert (answer.status, answer.body["details"]["reason"]) == (404, "no_route"), folder


async def test_a_name_that_only_begins_like_one_is_a_page(web: RunningWeb) -> None:
    assert (await web.browser().get("/apiary")).content == INDEX


@pytest.mark.parametrize(
    "path",
    [
        "/assets/index-Old9.js",
        "/missing.png",
        "/assets/notes.txt",
        "/index.html.br",
        "/../service.py",
        "/%2e%2e/service.py",
        "/assets/..%2f..%2fservice.py",
        "//etc/hosts.conf",
    ],
)
async def test_a_file_that_is_not_there_is_no_page(web: RunningWeb, path: str) -> None:
    address = URL(web.url + path, encoded=True)
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        assert answer.status == 404
        assert INDEX not in await answer.read()


@pytest.mark.parametrize(
    ("accepted", "encoding", "content"),
    [
        ("gzip, deflate, br", "br", b"brotli of the script"),
        ("gzip", "gzip", None),
        ("br;q=0, gzip;q=0.5", "gzip", None),
        ("identity", None, SCRIPT),
        ("gzip;q=0.0", None, SCRIPT),
        ("", None, SCRIPT),
    ],
)
async def test_the_copy_that_the_browser_reads(
    raw: aiohttp.ClientSession, accepted: str, encoding: str | None, content: bytes | None
) -> None:
    async with raw.get("/assets/index-Ab12.js", headers={"Accept-Encoding": accepted}) as answer:
        body = await answer.read()
        assert answer.status == 200
        assert answer.headers.get("Content-Encoding") == encoding
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert (gzip.decompress(body) if encoding == "gzip" else body) == (content or SCRIPT)


async def test_copies_have_tags_of_their_own(raw: aiohttp.ClientSession) -> None:
    tags = set()
    for accepted in ("br", "gzip", "identity"):
        async with raw.get("/assets/index-Ab12.js", headers={"Accept-Encoding": accepted}) as answer:
            tags.add(answer.headers["ETag"])
    assert len(tags) == 3


async def test_files_without_a_hash_are_asked_for_again(web: RunningWeb) -> None:
    icon = await web.browser().get("/favicon.svg")
    assert (icon.status, icon.headers["Cache-Control"]) == (200, "no-cache")


async def test_pages_take_no_other_method(web: RunningWeb) -> None:
    assert (await web.browser().post("/events", {})).status == 405
    assert (await web.browser().post("/api/nothing", {})).status == 404


async def test_without_a_built_ui_the_page_says_what_to_do(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FOLDER", tmp_path / "nowhere")
    async with running_web(sqlite_store, clock, tmp_path) as web:
        page = await web.browser().get("/")
        assert page.status == 503
        assert "make ui" in page.content.decode()
        assert (await web.browser().get("/healthz")).status == 200


def test_a_changed_file_changes_its_tag(ui_folder: Path) -> None:
    before = load_ui(ui_folder).index
    (ui_folder / "index.html").write_bytes(INDEX + b" ")
    after = load_ui(ui_folder).index
    assert before is not None
    assert after is not None
    assert before.copy_for("").headers["ETag"] != after.copy_for("").headers["ETag"]
