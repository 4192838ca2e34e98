"""Probes of simulated cameras, and of all the things that are none."""

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from camserver.base.secrets import Secret
from camserver.domain.diagnosis import Cause
from camserver.media.addresses import AddressPolicy
from camserver.media.probe import Probed, ProbeWanted, probe
from camserver.media.probe_talk import Steps, Stopped, describe
from camserver.media.rtsp_address import Login
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from tests.rig.pictures import jpeg
from tests.rig.ports import free_port, listening_socket, port_of
from tests.rig.simulated import LOGIN, PASSWORD, simulated
from tests.rig.video_files import video_file

ANYWHERE = AddressPolicy(allow_loopback=True)
PATIENCE_SEC = 60.0
SDP = "v=0\r\no=- 0 0 IN IP4 0\r\ns=-\r\nt=0 0\r\n{media}"
AUDIO = "m=audio 0 RTP/AVP 0\r\na=control:1\r\n"


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    video = video_file(tmp_path / "cam.mp4", fps=20, seconds=1, keyframes_apart=10, bf="0", size=(1280, 720))
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as running:
        yield running


def wanted(url: str, **changes: object) -> ProbeWanted:
    made = ProbeWanted(
        "rtsp", url, LOGIN, connect_timeout_sec=PATIENCE_SEC, keyframe_sec=PATIENCE_SEC, measure_sec=1.5,
        addresses=ANYWHERE,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]  # of the same names


def steps_of(probed: Probed) -> list[str]:
    assert all(step.took_ms >= 0 for step in probed.steps)
    return [step.name for step in probed.steps]


async def test_a_camera_says_what_it_sends_and_shows_a_picture(simulator: Simulator) -> None:
    probed = await probe(wanted(simulator.url("cam", "main")))
    assert probed.ok
    assert probed.cause is Cause.NONE
    assert probed.caps is not None
    assert (probed.caps.codec, probed.caps.width, probed.caps.height) == ("h264", 1280, 720)
    assert probed.caps.fps is not None
    assert probed.caps.gop_sec is not None
    assert probed.caps.has_audio is False
    assert Image.open(io.BytesIO(probed.jpeg)).size == (1280, 720)
    assert steps_of(probed) == ["resolve", "connect", "describe", "open", "keyframe", "decode"]


async def test_one_picture_is_enough_where_nothing_is_measured(simulator: Simulator) -> None:
    probed = await probe(wanted(simulator.url("cam", "main"), measure_sec=0.0))
    assert probed.caps is not None
    assert (probed.caps.fps, probed.caps.gop_sec, probed.caps.kbit_per_sec) == (None, None, None)
    assert probed.jpeg


@pytest.mark.parametrize(
    ("login", "cause"),
    [(None, Cause.NEEDS_LOGIN), (Login("viewer", Secret("falsch-geraten")), Cause.WRONG_PASSWORD)],
)
async def test_logins_that_are_not_right(simulator: Simulator, login: Login | None, cause: Cause) -> None:
    probed = await probe(wanted(simulator.url("cam", "main"), login=login))
    assert (probed.cause, probed.caps, probed.jpeg) == (cause, None, b"")
    for text in (probed.said.ja, probed.said.en, repr(probed)):
        assert "falsch" not in text
        assert PASSWORD not in text


async def test_a_path_that_is_not_there_is_told_with_usual_ones(simulator: Simulator) -> None:
    probed = await probe(wanted(simulator.url("cam", "main").replace("/cam", "/none")))
    assert probed.cause is Cause.NO_SUCH_PATH
    assert "/stream1" in probed.said.ja


async def test_a_camera_that_opens_and_sends_nothing(simulator: Simulator) -> None:
    simulator.camera("cam").faults.is_stalled = True
    probed = await probe(wanted(simulator.url("cam", "main"), connect_timeout_sec=2.0, keyframe_sec=3.0))
    assert probed.cause in (Cause.NO_VIDEO, Cause.NO_ANSWER)
    assert probed.said.ja


async def test_nothing_is_there() -> None:
    closed = await probe(wanted(f"rtsp://127.0.0.1:{free_port()}/x"))
    assert closed.cause is Cause.PORT_CLOSED
    assert "127.0.0.1" in closed.said.en
    assert steps_of(closed) == ["resolve", "connect"]
    unknown = await probe(wanted("rtsp://camera.invalid/x"))
    assert unknown.cause is Cause.UNKNOWN_HOST
    assert "camera.invalid" in unknown.said.ja


@pytest.mark.parametrize("url", ["rtsp://169.254.169.254/x", "rtsp://127.0.0.1/x", "http://[::1]:80/latest"])
async def test_addresses_that_are_not_opened(url: str) -> None:
    probed = await probe(wanted(url, kind=url.partition(":")[0], addresses=AddressPolicy()))
    assert probed.cause is Cause.NOT_ALLOWED


async def test_an_address_that_is_none() -> None:
    assert (await probe(wanted("rtsp://user:pw@host/x"))).cause is Cause.BAD_ADDRESS
    assert (await probe(wanted("rtsp://[host/x"))).cause is Cause.BAD_ADDRESS


@asynccontextmanager
async def server(answer: Callable[[bytes], bytes | None], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answers each request as told; None: never."""
    over = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                said = answer(await reader.readuntil(b"\r\n\r\n"))
                if said is None:
                    await over.wait()
                    return
                writer.write(said)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    with listening_socket() as sock:
        running = await asyncio.start_server(talk, sock=sock, ssl=tls)
        try:
            yield port_of(sock)
        finally:
            over.set()
            running.close()


def rtsp(status: str, body: str = "", **headers: str) -> bytes:
    lines = [f"RTSP/1.0 {status}", "CSeq: 1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


def video(rtpmap: str) -> bytes:
    media = f"m=video 0 RTP/AVP 96\r\na=rtpmap:96 {rtpmap}/90000\r\na=control:0\r\n"
    return rtsp("200 OK", SDP.format(media=media))


@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", Cause.NOT_RTSP, "554"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Cause.NOT_RTSP, ""),
        (b"", Cause.NOT_RTSP, ""),
        (rtsp("404 Not Found", Server="Hikvision"), Cause.NO_SUCH_PATH, "/Streaming/Channels/101"),
        (rtsp("453 Not Enough Bandwidth"), Cause.TOO_MANY_STREAMS, "streams_max"),
        (rtsp("302 Moved", Location="rtsp://169.254.169.254/"), Cause.OTHER, "RTSP 302"),
        (rtsp("200 OK", SDP.format(media=AUDIO)), Cause.NO_VIDEO, ""),
        (video("VP9"), Cause.CODEC_NOT_SUPPORTED, "VP9"),
        (video("MPEG4-GENERIC"), Cause.CODEC_NOT_SUPPORTED, "H.264"),
    ],
    ids=["http", "ssh", "hangs up", "path", "busy", "elsewhere", "sound", "vp9", "mpeg4"],
)
async def test_what_answers_is_told_in_words(answer: bytes, cause: Cause, words: str) -> None:
    def once(_: bytes) -> bytes:
        if not answer:
            raise ConnectionResetError
        return answer

    async with server(once) as port:
        probed = await probe(wanted(f"rtsp://127.0.0.1:{port}/live", login=None))
    assert probed.cause is cause
    assert words in probed.said.en
    assert words in probed.said.ja
    assert "169.254" not in probed.said.en


async def test_a_server_that_never_answers() -> None:
    async with server(lambda _: None) as port:
        probed = await probe(wanted(f"rtsp://127.0.0.1:{port}/live", connect_timeout_sec=0.3))
    assert probed.cause is Cause.NO_ANSWER
    assert steps_of(probed) == ["resolve", "connect", "describe"]


async def test_tls_where_there_is_none() -> None:
    async with server(lambda _: rtsp("200 OK")) as port:
        probed = await probe(wanted(f"rtsps://127.0.0.1:{port}/live", connect_timeout_sec=1.0))
    assert probed.cause in (Cause.NO_TLS, Cause.NO_ANSWER)
    assert "tls" in steps_of(probed)


async def test_the_test_source_and_files(tmp_path: Path) -> None:
    shown = await probe(wanted("test://moving?width=320&height=240", kind="test", login=None))
    assert shown.caps is not None
    assert (shown.caps.codec, shown.caps.width, shown.caps.height) == ("jpeg", 320, 240)
    assert steps_of(shown) == ["picture", "decode"]
    assert (await probe(wanted("test://broken?fault=no_video", kind="test"))).cause is Cause.NO_VIDEO
    missing = await probe(wanted(f"file://{tmp_path}/none.jpg", kind="file"))
    assert missing.cause is Cause.NO_FILE
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    assert (await probe(wanted(f"file://{tmp_path}/bad.jpg", kind="file"))).cause is Cause.BAD_PICTURE


@asynccontextmanager
async def snapshots(answer: Callable[[web.Request], web.Response]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    with listening_socket() as sock:
        await web.SockSite(runner, sock).start()
        try:
            yield f"http://127.0.0.1:{port_of(sock)}/snap.jpg"
        finally:
            await runner.cleanup()


async def test_a_snapshot_over_http() -> None:
    picture = jpeg(scene=0, size=(320, 240))
    async with snapshots(lambda _: web.Response(body=picture, content_type="image/jpeg")) as url:
        probed = await probe(wanted(url, kind="http", login=None))
    assert probed.caps is not None, probed.said.en
    assert (probed.caps.codec, probed.caps.width, probed.caps.height) == ("jpeg", 320, 240)
    assert steps_of(probed) == ["resolve", "connect", "picture", "decode"]


@pytest.mark.parametrize(
    ("status", "login", "cause"),
    [
        (401, None, Cause.NEEDS_LOGIN),
        (401, LOGIN, Cause.WRONG_PASSWORD),
        (404, None, Cause.NO_SUCH_PATH),
        (500, None, Cause.NO_VIDEO),
        (200, None, Cause.NO_VIDEO),
    ],
)
async def test_snapshots_that_are_none(status: int, login: Login | None, cause: Cause) -> None:
    challenge = {"WWW-Authenticate": 'Digest realm="cam", nonce="abc", qop="auth"'} if status == 401 else {}
    async with snapshots(lambda _: web.Response(status=status, text="<html>", headers=challenge)) as url:
        probed = await probe(wanted(url, kind="http", login=login))
    assert probed.cause is cause, probed.said.en


async def test_nothing_over_http() -> None:
    closed = await probe(wanted(f"http://127.0.0.1:{free_port()}/x", kind="http"))
    assert closed.cause is Cause.PORT_CLOSED


@given(st.binary(max_size=200), st.booleans())
def test_whatever_a_device_says_is_judged(said: bytes, is_rtsp: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"RTSP/1.0 " * is_rtsp + said)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(Stopped):
            describe(Steps(), ours, "rtsp://h/live", LOGIN, PATIENCE_SEC)


async def test_a_film_says_its_own_rate(tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", fps=20, seconds=1, keyframes_apart=10, bf="0", size=(320, 180))
    probed = await probe(replace(wanted(film.as_uri()), kind="file"))
    assert probed.caps is not None
    assert (probed.caps.codec, probed.caps.fps) == ("h264", 20.0)
