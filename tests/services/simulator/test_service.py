import asyncio
import base64
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from av.video.frame import VideoFrame

from camserver.base.clock import StoreClock
from camserver.base.errors import BadInput
from camserver.media.clips import read_clip
from camserver.services.simulator.cameras import CameraAsked, Shows
from camserver.services.simulator.messages import Request, answer
from camserver.services.simulator.service import Simulator
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.ports import listening_socket
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file

TIMEOUT_SEC = 60


class RtspClient:
    """A client that sends exactly what it is told."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cseq = 0
        self.session = ""

    async def open(self) -> None:
        host, _, port = self.url.removeprefix("rtsp://").partition("/")[0].partition(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))

    async def ask(self, method: str, url: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
        self.cseq += 1
        lines = [f"{method} {url or self.url} RTSP/1.0", f"CSeq: {self.cseq}"]
        if self.session:
            lines.append(f"Session: {self.session}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        return await asyncio.wait_for(self._answer(), TIMEOUT_SEC)

    async def _answer(self) -> tuple[int, dict[str, str], bytes]:
        while (first := await self.reader.readexactly(1)) == b"$":
            await self._frame()
        text = first + await self.reader.readuntil(b"\r\n\r\n")
        head, *rest = text.decode().strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in rest)
        assert headers["CSeq"] == str(self.cseq)
        body = await self.reader.readexactly(int(headers.get("Content-Length", 0)))
        return int(head.split()[1]), headers, body

    async def _frame(self) -> tuple[int, bytes]:
        head = await self.reader.readexactly(3)
        return head[0], await self.reader.readexactly(int.from_bytes(head[1:], "big"))

    async def packet(self) -> tuple[int, bytes]:
        """Channel and RTP packet."""
        assert await asyncio.wait_for(self.reader.readexactly(1), TIMEOUT_SEC) == b"$"
        return await asyncio.wait_for(self._frame(), TIMEOUT_SEC)

    async def play(self, channel: int = 0) -> None:
        await self.open()
        assert (await self.ask("DESCRIBE"))[0] == 200
        asked = f"RTP/AVP/TCP;unicast;interleaved={channel}-{channel + 1}"
        status, headers, _ = await self.ask("SETUP", self.url + "/trackID=0", Transport=asked)
        assert status == 200
        self.session = headers["Session"].partition(";")[0]
        assert (await self.ask("PLAY"))[0] == 200

    async def is_cut(self) -> bool:
        try:
            while await asyncio.wait_for(self.reader.read(65_536), TIMEOUT_SEC):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.writer.close()


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Half a second with two keyframes: a test sees it turn."""
    return video_file(tmp_path / "short.mp4", fps=20, seconds=1, keyframes_apart=10, bf="0")


@pytest.fixture
async def simulator(tmp_path: Path, short: Path) -> AsyncIterator[Simulator]:
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(short)), with_login=False) as running:
        yield running


@pytest.fixture
async def client(simulator: Simulator) -> AsyncIterator[RtspClient]:
    one = RtspClient(simulator.url("cam"))
    await one.open()
    yield one
    one.close()


async def test_options_names_the_methods(client: RtspClient) -> None:
    status, headers, _ = await client.ask("OPTIONS")
    assert status == 200
    assert set(headers["Public"].split(", ")) == {
        *("OPTIONS", "DESCRIBE", "SETUP", "PLAY", "TEARDOWN", "GET_PARAMETER")
    }


async def test_the_description_holds_the_parameter_sets(client: RtspClient, short: Path) -> None:
    status, headers, body = await client.ask("DESCRIBE", Accept="application/sdp")
    clip = read_clip(short)
    assert status == 200
    assert headers["Content-Type"] == "application/sdp"
    assert headers["Content-Base"] == client.url + "/"
    text = body.decode()
    assert "a=rtpmap:96 H264/90000\r\n" in text
    assert "packetization-mode=1" in text
    assert f"profile-level-id={clip.sps[1:4].hex().upper()}" in text
    sets = text.split("sprop-parameter-sets=")[1].split("\r\n")[0].split(",")
    assert [base64.b64decode(one) for one in sets] == [clip.sps, clip.pps]


@pytest.mark.parametrize("path", ["/none", "/cam/other", "/", "/cam/main/more", "/cam%2Fsub/x"])
async def test_unknown_paths(client: RtspClient, simulator: Simulator, path: str) -> None:
    assert (await client.ask("DESCRIBE", simulator.url("cam").removesuffix("/cam") + path))[0] == 404


async def test_requests_out_of_turn(client: RtspClient) -> None:
    assert (await client.ask("PLAY"))[0] == 454
    assert (await client.ask("SETUP", Transport="RTP/AVP;unicast;client_port=5000-5001"))[0] == 461
    assert (await client.ask("SETUP", Transport="RTP/AVP/TCP;unicast;interleaved=0-1"))[0] == 200
    assert (await client.ask("SETUP", Transport="RTP/AVP/TCP;unicast;interleaved=0-1"))[0] == 455
    client.session = "another"
    assert (await client.ask("PLAY"))[0] == 454
    assert (await client.ask("RECORD"))[0] == 501


async def test_keepalive_and_teardown(simulator: Simulator) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.play()
    assert (await client.ask("GET_PARAMETER"))[0] == 200
    assert (await client.ask("TEARDOWN"))[0] == 200
    assert await client.is_cut()
    await until(lambda: not simulator.camera("cam").clients, "the client is forgotten")
    client.close()


async def test_time_only_grows_and_numbers_never_skip_over_turns(simulator: Simulator) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.play(channel=4)
    stamps: list[int] = []
    seq: int | None = None
    first_kinds: list[int] = []
    while len(stamps) < 45:  # more than two turns of 20 pictures
        channel, data = await client.packet()
        assert channel == 4
        number, stamp = int.from_bytes(data[2:4], "big"), int.from_bytes(data[4:8], "big")
        assert seq is None or number == (seq + 1) % 65_536
        seq = number
        if not stamps or stamps[-1] != stamp:
            stamps.append(stamp)
            first_kinds.append(data[12] & 31)
    steps = [(later - earlier) % 2**32 for earlier, later in itertools.pairwise(stamps)]
    # 20 pictures a second in 90 kHz, and a rest of a fortieth between two turns.
    assert set(steps) == {4500, 4500 + 2250}
    assert steps.count(4500 + 2250) == 2
    # It begins with parameter sets, and they come again with every keyframe.
    assert first_kinds[0] == 24
    assert [number for number, kind in enumerate(first_kinds) if kind == 24] == list(range(0, 45, 10))
    client.close()


async def test_all_clients_get_the_same_at_once(simulator: Simulator) -> None:
    clients = [RtspClient(simulator.url("cam")) for _ in range(5)]
    for client in clients:
        await client.play()
    seen = [{(await client.packet())[1] for _ in range(40)} for client in clients]
    assert set.intersection(*seen)
    assert len(simulator.camera("cam").clients) == 5
    for client in clients:
        client.close()
    await until(lambda: not simulator.camera("cam").clients, "all clients are forgotten")


async def test_the_sub_stream_is_smaller(tmp_path: Path) -> None:
    video = video_file(tmp_path / "wide.mp4", seconds=1, size=(960, 540))
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video)), with_login=False) as simulator:
        main = await simulator.camera("cam").playback("main")
        sub = await simulator.camera("cam").playback("sub")
        assert (main.clip.size, sub.clip.size) == ((960, 540), (480, 270))
        assert simulator.url("cam", "sub") == simulator.url("cam") + "/sub"


async def test_a_video_that_is_not_h264_is_encoded_once(tmp_path: Path) -> None:
    video = video_file(tmp_path / "old.avi", "mpeg4", seconds=1)
    for _ in range(2):
        async with simulated(tmp_path / "cache", CameraAsked("cam", str(video)), with_login=False) as simulator:
            assert len((await simulator.camera("cam").playback("main")).clip.units) == 10
            (made,) = (tmp_path / "cache").iterdir()
            stamp = made.stat().st_mtime_ns
    (made,) = (tmp_path / "cache").iterdir()
    assert made.stat().st_mtime_ns == stamp


async def test_a_file_that_is_no_video_is_a_camera_that_fails(tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(broken)), with_login=False) as simulator:
        client = RtspClient(simulator.url("cam"))
        await client.open()
        assert (await client.ask("DESCRIBE"))[0] == 503
        client.close()


async def test_without_the_password_nothing_is_told(tmp_path: Path, short: Path) -> None:
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(short))) as simulator:
        client = RtspClient(simulator.url("cam"))
        await client.open()
        for method in ("DESCRIBE", "SETUP", "PLAY", "TEARDOWN"):
            status, headers, body = await client.ask(method, Transport="RTP/AVP/TCP;interleaved=0-1")
            assert (status, body) == (401, b"")
            assert headers["WWW-Authenticate"].startswith('Digest realm="')
            if method == "TEARDOWN":
                break
        client.close()


async def test_it_goes_offline_and_comes_back_as_asked(tmp_path: Path, short: Path, clock: ManualClock) -> None:
    asked = CameraAsked("cam", str(short), offline_every_sec=60, offline_for_sec=10)
    async with simulated(tmp_path / "cache", asked, clock=clock, with_login=False) as simulator:
        client = RtspClient(simulator.url("cam"))
        await client.play()
        await clock.until_sleeping(1)
        await clock.advance(59_000)
        assert not simulator.camera("cam").faults.is_offline
        await clock.advance(1_000)
        assert await client.is_cut()
        client.close()
        again = RtspClient(simulator.url("cam"))
        await again.open()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await again.ask("DESCRIBE")
        again.close()
        await clock.advance(10_000)
        back = RtspClient(simulator.url("cam"))
        await back.play()
        back.close()


async def test_a_stalled_camera_goes_on_with_a_keyframe(simulator: Simulator) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.play()
    await client.packet()
    camera = simulator.camera("cam")
    camera.faults.is_stalled = True
    # What was sent before is read; then only answers come.
    status, _, _ = await client.ask("GET_PARAMETER")
    assert status == 200
    camera.faults.is_stalled = False
    while True:
        _, data = await client.packet()
        if data[12] & 31 == 24:
            break
    client.close()


async def test_a_client_that_does_not_read_costs_no_memory(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camserver.services.simulator.connection.BACKLOG_MAX_BYTES", -1)
    monkeypatch.setattr("camserver.services.simulator.connection.BEHIND_MAX_SEC", 0.0)
    client = RtspClient(simulator.url("cam"))
    await client.play()
    assert await client.is_cut()
    client.close()


async def test_nonsense_ends_the_connection(simulator: Simulator) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.open()
    client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert await client.is_cut()
    client.close()


async def test_the_end_waits_for_no_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = VideoFrame(320, 180, "yuv420p")
    monkeypatch.setattr("camserver.media.scenes.draw_scene", lambda _: itertools.repeat(picture))
    cache = tmp_path / "cache"
    async with simulated(cache, CameraAsked("yard", "scene:quiet"), with_login=False) as running:
        client = RtspClient(running.url("yard"))
        await client.open()
        asking = asyncio.create_task(client.ask("DESCRIBE"))
        await until(lambda: cache.exists() and any(cache.iterdir()), "the encoding to begin")
    await until(lambda: not any(cache.iterdir()), "the encoding to end")
    asking.cancel()
    client.close()


@pytest.mark.parametrize("names", [[], ["cam", "cam"]])
def test_cameras_need_names_of_their_own(tmp_path: Path, names: list[str]) -> None:
    with listening_socket() as sock, pytest.raises(BadInput):
        Simulator([CameraAsked(name, "scene:quiet") for name in names], sock, None, tmp_path, StoreClock())


def test_statuses_have_their_reasons() -> None:
    for status in (200, 401, 404, 454, 455, 461, 501, 503):
        line = answer(Request("X", "*", {}), status).split(b"\r\n")[0]
        assert line.decode().split(" ", 2)[2]


async def _until(client: RtspClient, sps: bytes) -> list[int]:
    """The timestamps of packets up to one that holds these parameters."""
    stamps = []
    while True:
        _, data = await client.packet()
        stamps.append(int.from_bytes(data[4:8], "big"))
        if sps in data:
            return stamps


async def test_a_camera_shows_something_else_in_the_stream_that_is_open(simulator: Simulator, short: Path) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.play()
    usual = read_clip(short)
    stamps = await _until(client, usual.sps)
    for shows in (Shows.SMALL, Shows.BLACK, Shows.FROZEN, Shows.TURNED, Shows.USUAL):
        await simulator.camera("cam").show(shows)
        playback = await simulator.camera("cam").playback("main")
        assert (playback.clip.size == usual.size) == (shows is not Shows.SMALL)
        stamps += await _until(client, playback.clip.sps)
    assert all((after - before) % 2**32 < 2**31 for before, after in itertools.pairwise(stamps))
    client.close()


async def test_lost_packets_leave_holes_in_the_numbers(simulator: Simulator) -> None:
    client = RtspClient(simulator.url("cam"))
    await client.play()
    simulator.camera("cam").faults.loss = 0.5
    numbers = [int.from_bytes((await client.packet())[1][2:4], "big") for _ in range(60)]
    assert any((later - earlier) % 2**16 > 1 for earlier, later in itertools.pairwise(numbers))
    client.close()
