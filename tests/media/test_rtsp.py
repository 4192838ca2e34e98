"""The RTSP source against the simulator: pictures, faults, and what never leaves it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import av
import av.error
import pytest

from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media import rtsp
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Hub, Miss, Packet
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets, explain
from camserver.media.shots import VideoShot
from camserver.media.sources import Source
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from tests.media.test_packets import Taker
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.rig.simulated import LOGIN, PASSWORD, camera_source, simulated
from tests.rig.video_files import video_file

TIMEOUT_SEC = 60
FPS = 20


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    """A camera with a keyframe every half second, each picture of its own shade."""
    video = video_file(
        tmp_path / "short.mp4", fps=FPS, seconds=1, keyframes_apart=10, bf="0", shade=lambda number: 40 + 8 * number
    )
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as running:
        yield running


async def grab(source: Source) -> VideoShot:
    shot = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    assert isinstance(shot, VideoShot), shot
    return shot


async def miss(source: Source) -> Miss:
    answer = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    await source.close()
    assert isinstance(answer, Miss), answer
    assert not any(part in answer.message for part in (PASSWORD, "p%40ss", "viewer", "wrong"))
    return answer


def shade(shot: VideoShot) -> float:
    return float(shot.decode(320).gray(320).mean())


@pytest.mark.parametrize("interval_ms", [1000, 60_000], ids=["held", "opened for each look"])
async def test_looks_show_the_camera_s_keyframes(simulator: Simulator, interval_ms: int) -> None:
    source = camera_source(simulator.url("cam"), interval_ms=interval_ms)
    shots = [await grab(source) for _ in range(3)]
    await source.close()
    assert all(shot.packets[0].is_keyframe and shot.packets[0].stream.codec == "h264" for shot in shots)
    # Keyframes are of limited range 40 and 120, which is 28 and 121 of full range; each later picture is brighter.
    for shot in shots:
        brighter = 8 * 255 / 219 * (len(shot.packets) - 1)
        assert min(abs(shade(shot) - brighter - 28), abs(shade(shot) - brighter - 121)) < 3
    moments = [shot.boot_ms for shot in shots]
    assert moments == sorted(set(moments))  # each picture has its own time, and none came twice
    await until(lambda: not simulator.camera("cam").clients, "the camera is let go")


async def test_a_held_camera_is_connected_once(simulator: Simulator) -> None:
    source = camera_source(simulator.url("cam"), interval_ms=1000)
    await grab(source)
    (client,) = simulator.camera("cam").clients
    await grab(source)
    assert simulator.camera("cam").clients == {client}
    await until(lambda: source.learned_gop_ms is not None, "a second keyframe")
    await source.close()


async def test_a_rarely_looked_at_camera_is_let_go_between(simulator: Simulator) -> None:
    source = camera_source(simulator.url("cam"), interval_ms=60_000)
    await grab(source)
    await until(lambda: not simulator.camera("cam").clients, "the camera is let go without being closed")
    await source.close()


async def test_rare_keyframes_are_decoded_forward_from(tmp_path: Path) -> None:
    video = video_file(
        tmp_path / "rare.mp4", fps=10, seconds=3, keyframes_apart=100, bf="0", shade=lambda number: 40 + 5 * number
    )
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as simulator:
        source = camera_source(simulator.url("cam"), interval_ms=1000)
        first = await grab(source)
        second = await grab(source)
        assert (len(first.packets), len(second.packets) > 1) == (1, True)
        assert second.boot_ms > first.boot_ms
        assert shade(second) > shade(first)
        await source.close()


@pytest.mark.parametrize("login", [None, Login("viewer", Secret("wrong word")), Login("", Secret(""))])
async def test_wrong_login(simulator: Simulator, login: Login | None) -> None:
    answer = await miss(camera_source(simulator.url("cam"), login))
    assert answer.fault is Fault.UNAUTHORIZED
    assert not answer.timed_out


async def test_a_camera_that_refuses_the_right_login(simulator: Simulator) -> None:
    simulator.camera("cam").faults.refuses_login = True
    assert (await miss(camera_source(simulator.url("cam")))).fault is Fault.UNAUTHORIZED


async def test_unknown_path(simulator: Simulator) -> None:
    assert (await miss(camera_source(simulator.url("cam") + "nera"))).fault is Fault.NOT_FOUND


async def test_nobody_listens() -> None:
    assert (await miss(camera_source(f"rtsp://127.0.0.1:{free_port()}/cam"))).fault is Fault.REFUSED


async def test_a_camera_that_answers_too_late(simulator: Simulator) -> None:
    simulator.camera("cam").faults.slow_sec = TIMEOUT_SEC
    answer = await miss(camera_source(simulator.url("cam"), connect_sec=0.5))
    assert (answer.fault, answer.timed_out) == (Fault.NO_VIDEO, True)


async def test_a_camera_that_stalls(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtsp, "STALL_SEC", 1.0)
    source = camera_source(simulator.url("cam"))
    await grab(source)
    simulator.camera("cam").faults.is_stalled = True
    while not isinstance(answer := await asyncio.wait_for(source.grab(), TIMEOUT_SEC), Miss):
        pass  # pictures that were on their way
    assert (answer.fault, answer.timed_out) == (Fault.NO_VIDEO, True)
    simulator.camera("cam").faults.is_stalled = False
    await grab(source)  # and it comes back
    await source.close()


async def test_a_camera_that_goes_offline_and_comes_back(simulator: Simulator) -> None:
    camera = simulator.camera("cam")
    source = camera_source(simulator.url("cam"))
    await grab(source)
    camera.faults.is_offline = True
    camera.cut_all()
    while not isinstance(answer := await asyncio.wait_for(source.grab(), TIMEOUT_SEC), Miss):
        pass
    assert answer.fault is Fault.NO_VIDEO
    again = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    assert isinstance(again, Miss)
    camera.faults.is_offline = False
    await grab(source)
    await source.close()


async def test_a_look_that_is_given_up_leaves_nothing_behind(simulator: Simulator) -> None:
    simulator.camera("cam").faults.slow_sec = 1
    source = camera_source(simulator.url("cam"))
    looking = asyncio.ensure_future(source.grab())
    await until(lambda: bool(simulator.camera("cam").clients), "the connection")
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    simulator.camera("cam").faults.slow_sec = 0
    await until(lambda: not simulator.camera("cam").clients, "the connection is let go")
    await grab(source)
    await source.close()


async def test_all_consumers_share_one_connection(simulator: Simulator) -> None:
    address = RtspAddress(simulator.url("cam"), LOGIN, AddressPolicy(allow_loopback=True))
    hub = Hub(RtspPackets(address, TIMEOUT_SEC, lambda: time.monotonic_ns() // 1_000_000))
    takers = [Taker() for _ in range(3)]
    for taker in takers:
        hub.add(taker)
    await until(lambda: all(len(taker.packets) > 25 for taker in takers), "more than a turn of packets")
    assert len(simulator.camera("cam").clients) == 1
    for taker in takers:
        hub.remove(taker)
    assert await hub.until_closed(TIMEOUT_SEC)
    stamps = [one.dts for one in takers[0].packets]
    assert stamps == sorted(stamps, key=lambda stamp: stamp or 0)
    assert [bytes_of(taker.packets[:10]) for taker in takers[1:]] == [bytes_of(takers[1].packets[:10])] * 2


def bytes_of(packets: list[Packet]) -> list[bytes]:
    return [one.data for one in packets]


async def test_only_rtsp_is_ever_opened(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an address pretends to be, FFmpeg is told what to take it for."""
    opened: list[dict[str, object]] = []

    def noted(url: str, **options: object) -> None:
        opened.append({"url": url, **options})
        raise av.error.InvalidDataError(1, "no")

    monkeypatch.setattr(av, "open", noted)
    url = simulator.url("cam") + "/file:///etc/passwd"
    address = RtspAddress(url, None, AddressPolicy(allow_loopback=True))
    source = FfmpegPackets(address, TIMEOUT_SEC, TIMEOUT_SEC, lambda: 0)
    assert await asyncio.to_thread(source.read, lambda packet: None, lambda: True) is not None
    (call,) = opened
    assert call["format"] == "rtsp"
    assert str(call["url"]).startswith("rtsp://127.0.0.1:")
    options = call["options"]
    assert isinstance(options, dict)
    assert set(str(options["protocol_whitelist"]).split(",")) == {"rtsp", "tcp"}
    assert "nobuffer" not in str(options)


@pytest.mark.parametrize(
    ("error", "fault", "timed_out"),
    [
        (av.error.HTTPUnauthorizedError, Fault.UNAUTHORIZED, False),
        (av.error.HTTPForbiddenError, Fault.UNAUTHORIZED, False),
        (av.error.HTTPNotFoundError, Fault.NOT_FOUND, False),
        (av.error.ConnectionRefusedError, Fault.REFUSED, False),
        (av.error.ExitError, Fault.NO_VIDEO, True),
        (av.error.TimeoutError, Fault.NO_VIDEO, True),
        (av.error.EOFError, Fault.NO_VIDEO, False),
        (av.error.HTTPServerError, Fault.NO_VIDEO, False),
    ],
)
def test_errors_are_faults_without_their_words(error: type[av.FFmpegError], fault: Fault, timed_out: bool) -> None:
    answer = explain(error(1, "rtsp://viewer:word@host failed"), "it failed")
    assert (answer.fault, answer.timed_out) == (fault, timed_out)
    assert "viewer" not in answer.message


@pytest.mark.parametrize("number", [113, 101])
def test_no_route(number: int) -> None:
    assert explain(av.FFmpegError(number, "no route"), "it failed").fault is Fault.NO_ROUTE
