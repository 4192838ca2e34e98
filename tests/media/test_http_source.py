"""Pictures over HTTP, against a server that can be told to misbehave."""

import asyncio
import base64
import hashlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media import http_source
from camserver.media.addresses import AddressPolicy
from camserver.media.digest import Login
from camserver.media.http_source import HttpSource
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot
from camserver.media.sources import SourceWanted, open_source
from tests.rig.certificates import Certificate, self_signed
from tests.rig.pictures import jpeg
from tests.rig.ports import free_port, listening_socket, port_of

HERE = AddressPolicy(allow_loopback=True)
TIMEOUT_SEC = 60.0
PICTURE = jpeg(scene=7)
USER, PASSWORD = "us:er", 'p@ss "w\\rd:/?#&ö'
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def camera(
    answer: Answer, certificate: Certificate | None = None, ciphers: str | None = None
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.path)
        if ciphers is not None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers)
    with listening_socket() as sock:
        await web.SockSite(runner, sock, ssl_context=context).start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{port_of(sock)}/snap.jpg?channel=1"
        finally:
            await runner.cleanup()


def source_of(url: str, login: Login | None = None, pin: str | None = None) -> HttpSource:
    return HttpSource(url, login, TIMEOUT_SEC, HERE, pin)


async def grab(url: str, login: Login | None = None, pin: str | None = None) -> JpegShot | Miss:
    source = source_of(url, login, pin)
    try:
        return await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    finally:
        await source.close()


async def miss(url: str, login: Login | None = None, pin: str | None = None) -> Miss:
    answer = await grab(url, login, pin)
    assert isinstance(answer, Miss)
    assert not any(word in answer.message for word in (PASSWORD, "channel", "secret body"))
    return answer


async def snapshot(request: web.Request) -> web.StreamResponse:
    return web.Response(body=PICTURE, content_type="image/jpeg")


async def test_snapshot() -> None:
    async with camera(snapshot) as url:
        source = open_source(SourceWanted("http", url, connect_timeout_sec=TIMEOUT_SEC, addresses=HERE))
        assert [await source.grab(), await source.grab()] == [JpegShot(PICTURE)] * 2
        await source.close()
        assert await source.grab() == JpegShot(PICTURE)  # and it may be opened again
        await source.close()


@pytest.mark.parametrize("with_length", [True, False])
@pytest.mark.parametrize("boundary", ["frame", "--frame", '"a frame"'])
async def test_mjpeg_gives_its_first_picture_and_is_let_go(with_length: bool, boundary: str) -> None:
    left = asyncio.Event()

    async def pictures(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": f"multipart/x-mixed-replace; boundary={boundary}"})
        await response.prepare(request)
        line = boundary.strip('"').removeprefix("--").encode()
        try:
            for number in range(10_000_000):
                body = jpeg(scene=number % 200)
                length = b"Content-Length: %d\r\n" % len(body) if with_length else b""
                await response.write(b"--%s\r\nContent-Type: image/jpeg\r\n%s\r\n" % (line, length) + body + b"\r\n")
        except ConnectionError:
            left.set()
        return response

    async with camera(pictures) as url:
        source = source_of(url)
        assert await source.grab() == JpegShot(jpeg(scene=0))
        await asyncio.wait_for(left.wait(), TIMEOUT_SEC)
        assert await source.grab() == JpegShot(jpeg(scene=0))
        await source.close()


def digest_camera(algorithm: str, asked: list[dict[str, str]]) -> Answer:
    """As RFC 7616 has it, computed here and not by the code under test."""

    async def answer(request: web.Request) -> web.StreamResponse:
        header = request.headers.get("Authorization", "")
        fields = {one[1]: one[2] or one[3] for one in re.finditer(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]+))', header)}
        asked.append(fields)

        def digest(text: str) -> str:
            return hashlib.new("sha256" if algorithm == "SHA-256" else "md5", text.encode()).hexdigest()

        first = digest(f"{USER}:a realm:{PASSWORD}")
        second = digest(f"GET:{request.path_qs}")
        expected = digest(f"{first}:n1:{fields.get('nc')}:{fields.get('cnonce')}:auth:{second}")
        if fields.get("response") == expected and fields.get("uri") == request.path_qs:
            return await snapshot(request)
        weak = 'Digest realm="a realm", nonce="n1", qop="auth", algorithm=MD5'
        strong = f'Digest realm="a realm", nonce="n1", qop="auth,auth-int", algorithm={algorithm}, opaque="x"'
        basic = 'Basic realm="a realm"'
        response = web.Response(status=401, text="secret body")
        for one in (basic, weak, strong):
            response.headers.add("WWW-Authenticate", one)
        return response

    return answer


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
async def test_digest(algorithm: str) -> None:
    asked: list[dict[str, str]] = []
    async with camera(digest_camera(algorithm, asked)) as url:
        source = source_of(url, Login(USER, Secret(PASSWORD)))
        assert await source.grab() == JpegShot(PICTURE)
        assert await source.grab() == JpegShot(PICTURE)
        await source.close()
        # The second look needs no challenge: it counts on.
        assert [one.get("nc") for one in asked] == [None, "00000001", "00000002"]
        asked.clear()
        assert (await miss(url, Login(USER, Secret("wrong")))).fault is Fault.UNAUTHORIZED
        assert len(asked) == 2  # a wrong password is tried once: cameras lock accounts
        assert (await miss(url)).fault is Fault.UNAUTHORIZED


async def test_basic() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        header = request.headers.get("Authorization", "")
        if header == "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            return await snapshot(request)
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    async with camera(answer) as url:
        assert await grab(url, Login(USER, Secret(PASSWORD))) == JpegShot(PICTURE)
        assert (await miss(url, Login(USER, Secret("wrong")))).fault is Fault.UNAUTHORIZED


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (403, Fault.UNAUTHORIZED),
        (404, Fault.NOT_FOUND),
        (301, Fault.NO_VIDEO),
        (302, Fault.NO_VIDEO),
        (500, Fault.NO_VIDEO),
        (204, Fault.NO_VIDEO),
    ],
)
async def test_refusals(status: int, fault: Fault) -> None:
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.Response(status=status, headers={"Location": "/elsewhere"}, text="secret body")

    async with camera(answer) as url:
        assert (await miss(url)).fault is fault
        assert asked == 1  # nothing is followed


def answering(body: bytes, content_type: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Type": content_type})

    return answer


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>secret body", "text/html"),
        (b"", "image/jpeg"),
        (b"secret body", "multipart/x-mixed-replace"),
        (b"secret body", "multipart/x-mixed-replace; boundary=x"),
        (b"--x\r\nContent-Length: 99999999999\r\n\r\n", "multipart/x-mixed-replace; boundary=x"),
        (b"--x\r\nContent-Length: 100\r\n\r\nsecret body", "multipart/x-mixed-replace; boundary=x"),
        (b"--x\r\n\r\nsecret body", "multipart/x-mixed-replace; boundary=x"),
        (b"--x\r\n" + b"a: b\r\n" * 200, "multipart/x-mixed-replace; boundary=x"),
        (b"a" * 1_000_000, "multipart/x-mixed-replace; boundary=x"),
    ],
)
async def test_what_is_no_picture(body: bytes, content_type: str) -> None:
    async with camera(answering(body, content_type)) as url:
        assert (await miss(url)).fault is Fault.NO_VIDEO


@pytest.mark.parametrize("content_type", ["image/jpeg", "multipart/x-mixed-replace; boundary=x"])
async def test_a_picture_without_end_is_left(content_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_source, "PICTURE_MAX_BYTES", 100_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        await response.write(b"--x\r\n\r\n")
        while True:
            await response.write(bytes(10_000))

    async with camera(endless) as url:
        assert "too large" in (await miss(url)).message


async def test_nobody_listens() -> None:
    assert (await miss(f"http://127.0.0.1:{free_port()}/")).fault is Fault.REFUSED


async def test_a_camera_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_source, "READ_TIMEOUT_SEC", 0.2)
    given_up = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.wait_for(given_up.wait(), TIMEOUT_SEC)
        return web.Response()

    async with camera(hang) as url:
        answer = await miss(url)
        given_up.set()  # or the server would wait for its answer to be sent
        assert (answer.fault, answer.timed_out) == (Fault.NO_VIDEO, True)


async def test_loopback_is_refused_unless_allowed() -> None:
    async with camera(snapshot) as url:
        source = HttpSource(url, None, TIMEOUT_SEC, AddressPolicy())
        answer = await source.grab()
        await source.close()
        assert isinstance(answer, Miss)
        assert answer.fault is Fault.REFUSED


async def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path / "camera.pem")
    async with camera(snapshot, certificate) as url:
        assert await grab(url, pin=certificate.sha256) == JpegShot(PICTURE)
        for pin in (None, "0" * 64):
            answer = await miss(url, pin=pin)
            assert (answer.fault, answer.certificate_sha256) == (Fault.REFUSED, certificate.sha256)


async def test_a_pinned_camera_may_be_as_old_as_its_ciphers(tmp_path: Path) -> None:
    """As with RTSP; and what is not the pinned one gets nothing, however old."""
    certificate = self_signed(tmp_path / "camera.pem", is_rsa=True)
    asked: list[web.Request] = []

    async def noted(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return await snapshot(request)

    async with camera(noted, certificate, "AES128-SHA:@SECLEVEL=0") as url:
        assert await grab(url, pin=certificate.sha256) == JpegShot(PICTURE)
        assert len(asked) == 1
        assert (await miss(url, pin="0" * 64)).fault is Fault.REFUSED
        assert len(asked) == 1


@pytest.mark.parametrize("url", ["ftp://host/", "http://", "http://a:b@host/", "http://host:99999/", "rtsp://host/"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(BadInput):
        source_of(url)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        source_of("http://" + text)
    except BadInput:
        return
