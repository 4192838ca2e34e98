"""Fetching a bundle: bounded, only if it changed, and every failure of one kind. Lies about its content are tested
with what looks into it (tests/services/analyzer/models/test_updating.py)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from camserver.base.errors import Unavailable
from camserver.clients import bundles
from camserver.clients.bundles import BundleClient, Fetched
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
CONTENT = bytes(range(256)) * 4000


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/model.zip", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    sock = listening_socket()
    await web.SockSite(runner, sock).start()
    try:
        yield f"http://{LOOPBACK}:{port_of(sock)}/model.zip"
    finally:
        await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[BundleClient]:
    made = BundleClient(allow_loopback=True)
    yield made
    await made.close()


async def whole(request: web.Request) -> web.StreamResponse:
    if request.headers.get("If-None-Match") == '"7"':
        return web.Response(status=304)
    return web.Response(body=CONTENT, headers={"ETag": '"7"'})


async def test_a_file_is_written_whole_and_known_again(client: BundleClient, tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    async with serving(whole) as url:
        assert await client.fetch(url, None, path, len(CONTENT)) == Fetched(len(CONTENT), '"7"')
        assert path.read_bytes() == CONTENT
        assert await client.fetch(url, '"7"', path, len(CONTENT)) is None
        with pytest.raises(Unavailable, match=r"analyzer\.bundle_max_bytes"):
            await client.fetch(url, None, path, len(CONTENT) - 1)


async def test_a_name_of_the_content_that_is_too_long_is_forgotten(client: BundleClient, tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x", headers={"ETag": '"' + "x" * 2000 + '"'})

    async with serving(answer) as url:
        assert await client.fetch(url, None, tmp_path / "bundle", 10) == Fetched(1, None)


async def test_nothing_is_unpacked_on_the_way(client: BundleClient, tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=b"\x1f\x8b no gzip", headers={"Content-Encoding": "gzip"})

    async with serving(answer) as url:
        await client.fetch(url, None, tmp_path / "bundle", 100)
    assert (tmp_path / "bundle").read_bytes() == b"\x1f\x8b no gzip"


async def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "READ_TIMEOUT_SEC", 0.5)
    gone = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"x")
        await gone.wait()
        return response

    client = BundleClient(allow_loopback=True)
    try:
        async with serving(answer) as url:
            with pytest.raises(Unavailable, match="in time"):
                await client.fetch(url, None, tmp_path / "bundle", 10_000)
            gone.set()
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        (f"http://{LOOPBACK}:FREE/model.zip", "could not be fetched"),
        ("http://169.254.1.1/model.zip", "may not be connected to"),
        ("http://no-such-host.invalid/model.zip", "unknown"),
        ("ftp://192.0.2.1/model.zip", "must begin with"),
    ],
)
async def test_what_can_not_be_asked_is_said(client: BundleClient, tmp_path: Path, url: str, cause: str) -> None:
    with pytest.raises(Unavailable) as failed:
        await client.fetch(url.replace("FREE", str(free_port())), None, tmp_path / "bundle", 10)
    assert cause in failed.value.message
