"""RTSP cameras of somebody else (GStreamer): codecs, B-frames, sound, UDP and TLS, with either reader."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Hub, Miss, Packet
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets
from camserver.media.rtsp_lean.reader import LeanPackets
from camserver.media.video_picture import decode
from tests.fakes.gstreamer import clock
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_packets import Taker
from tests.rig.certificates import Certificate, self_signed
from tests.rig.polling import until
from tests.rig.video_files import video_file

TIMEOUT_SEC = 60
HERE = AddressPolicy(allow_loopback=True)
USER, PASSWORD = "viewer", 'p@ss:w/rd"?#%&'
LOGIN = Login(USER, Secret(PASSWORD))
FPS = 10
SIZE = (320, 180)


def boot_ms() -> int:
    return 0


def mounts(folder: Path) -> dict[str, str]:
    """Each plays 30 s of pictures whose shade says which they are."""

    def file(name: str, codec: str, **options: str) -> str:
        video_file(folder / name, codec, 30, FPS, 10, SIZE, lambda number: 40 + number % 150, **options)
        return f"filesrc location={folder / name} ! qtdemux ! "

    avc = file("avc.mp4", "libx264", bf="0")
    return {
        "/seldom": clock.PIPELINE.replace("key-int-max=30", "key-int-max=100000"),
        "/h264": f"( {avc} h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 )",
        "/described": f"( {avc} h264parse ! rtph264pay name=pay0 pt=96 config-interval=0 )",
        "/h265": f"( {file('hevc.mp4', 'libx265', **{'x265-params': 'bframes=0:log-level=none'})}"
        " h265parse ! rtph265pay name=pay0 pt=97 )",
        "/bframes": f"( {file('b.mp4', 'libx264', bf='2')} h264parse ! rtph264pay name=pay0 pt=96 )",
        "/sound": "( audiotestsrc is-live=true ! audio/x-raw,rate=8000 ! alawenc ! rtppcmapay name=pay0 pt=8 "
        f"{avc} h264parse ! rtph264pay name=pay1 pt=96 )",
        "/only-sound": "( audiotestsrc is-live=true ! audio/x-raw,rate=8000 ! alawenc ! rtppcmapay name=pay0 pt=8 )",
        "/jpeg": "( videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=192,framerate=5/1 ! jpegenc "
        "! rtpjpegpay name=pay0 pt=26 )",
        "/intra": "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=192,framerate=20/1 "
        "! x264enc intra-refresh=true key-int-max=20 tune=zerolatency speed-preset=ultrafast "
        "! rtph264pay name=pay0 pt=96 config-interval=1 )",
    }


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("tls") / "camera.pem")


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return mounts(tmp_path_factory.mktemp("foreign"))


@pytest.fixture(scope="module")
def cameras(pipelines: dict[str, str]) -> Iterator[str]:
    yield from served(pipelines, None)


@pytest.fixture(scope="module")
def secured(pipelines: dict[str, str], certificate: Certificate) -> Iterator[str]:
    yield from served(pipelines, certificate)


def served(pipelines: dict[str, str], certificate: Certificate | None) -> Iterator[str]:
    with gstreamer_pipelines(pipelines, USER, PASSWORD, certificate.path if certificate else None) as url:
        yield url


async def read(
    source: RtspPackets | LeanPackets | FfmpegPackets,
    enough: Callable[[list[Packet]], bool] = lambda packets: len(packets) > 25,
) -> list[Packet]:
    """What it gives until that is enough; closed again."""
    taker, hub = Taker(), Hub(source)
    hub.add(taker)
    await until(lambda: bool(taker.misses) or enough(taker.packets), "enough packets, or none any more")
    hub.remove(taker)
    assert await hub.until_closed(TIMEOUT_SEC)
    assert not taker.misses, taker.misses
    return taker.packets


async def miss(source: RtspPackets) -> Miss:
    answer = await asyncio.to_thread(source.read, lambda packet: None, lambda: True)
    assert answer is not None
    assert PASSWORD not in answer.message
    return answer


def lean(url: str, pin: str | None = None) -> LeanPackets:
    return LeanPackets(RtspAddress(url, LOGIN, HERE), TIMEOUT_SEC, TIMEOUT_SEC, boot_ms, pin)


def ffmpeg(url: str, pin: str | None = None) -> FfmpegPackets:
    return FfmpegPackets(RtspAddress(url, LOGIN, HERE), TIMEOUT_SEC, TIMEOUT_SEC, boot_ms, pin)


def either(url: str, pin: str | None = None, transport: str = "tcp") -> RtspPackets:
    return RtspPackets(RtspAddress(url, LOGIN, HERE), TIMEOUT_SEC, boot_ms, transport, pin)


def check_pictures(packets: list[Packet], size: tuple[int, int] = SIZE) -> None:
    """Keyframes stand alone, and whole groups can be decoded to their ends."""
    begins = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    assert len(begins) >= 2
    for begin in begins:
        assert decode(packets[begin : begin + 1]).size == size
    shades = [float(decode(packets[begins[0] : end]).gray(320).mean()) for end in range(begins[0] + 1, begins[1])]
    assert shades == sorted(shades)  # each picture is brighter than the one before
    assert shades[-1] > shades[0] + 5


@pytest.mark.parametrize("path", ["/h264", "/described", "/h265", "/sound"])
@pytest.mark.parametrize("reader", [lean, ffmpeg])
async def test_video(cameras: str, path: str, reader: Callable[[str], LeanPackets | FfmpegPackets]) -> None:
    packets = await read(reader(cameras + path))
    assert {packet.stream.codec for packet in packets} == {"hevc" if path == "/h265" else "h264"}
    check_pictures(packets)
    # FFmpeg knows no time of the first picture.
    times = [packet.pts for packet in packets if packet.pts is not None]
    assert len(times) >= len(packets) - 1
    assert {later - earlier for earlier, later in pairwise(times)} == {90_000 // FPS}
    assert all(packet.dts == packet.pts for packet in packets)


@pytest.mark.parametrize("reader", [lean, ffmpeg])
async def test_pictures_out_of_order(cameras: str, reader: Callable[[str], LeanPackets | FfmpegPackets]) -> None:
    packets = await read(reader(cameras + "/bframes"), lambda packets: len(packets) > 40)
    times = [packet.pts or 0 for packet in packets[-25:]]
    assert times != sorted(times)  # they come in the order of decoding
    begins = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    group = packets[begins[-2] : begins[-1]]
    shades = [float(decode(group[:end]).gray(320).mean()) for end in range(1, len(group) + 1)]
    assert max(shades) > shades[0] + 5
    # When to decode is known to FFmpeg after a while; the lean reader says that it does not know.
    if reader is lean:
        assert {packet.dts for packet in packets[-25:]} == {None}


async def test_udp_for_a_codec_that_only_ffmpeg_knows_is_tcp(cameras: str) -> None:
    packets = await read(either(cameras + "/jpeg", transport="udp"), lambda packets: len(packets) > 1)
    assert packets[0].stream.codec == "mjpeg"


async def test_another_codec_is_left_to_ffmpeg(cameras: str) -> None:
    source = either(cameras + "/jpeg")
    packets = await read(source, lambda packets: len(packets) > 2)
    assert {packet.stream.codec for packet in packets} == {"mjpeg"}
    assert all(packet.is_keyframe for packet in packets)
    assert decode(packets[-1:]).size == (320, 192)


async def test_a_camera_with_sound_only(cameras: str) -> None:
    assert (await miss(either(cameras + "/only-sound"))).fault is Fault.NO_VIDEO


@pytest.mark.parametrize("reader", [lean, ffmpeg])
async def test_intra_refresh(cameras: str, reader: Callable[[str], LeanPackets | FfmpegPackets]) -> None:
    """A video whose pictures are never whole at once says where decoding may begin."""
    packets = await read(reader(cameras + "/intra"), lambda packets: sum(one.is_recovery for one in packets) >= 3)
    # The very first picture is whole.
    assert [number for number, packet in enumerate(packets) if packet.is_keyframe] == [0]
    assert not any(packet.is_keyframe and packet.is_recovery for packet in packets)


@pytest.mark.parametrize("path", ["/h264", "/h265"])
async def test_video_over_udp(cameras: str, path: str) -> None:
    packets = await read(either(cameras + path, transport="udp"), lambda packets: len(packets) > 30)
    check_pictures(packets)


@pytest.mark.parametrize("path", ["/h264", "/jpeg"], ids=["lean", "ffmpeg"])
async def test_a_pinned_certificate(secured: str, certificate: Certificate, path: str) -> None:
    packets = await read(either(secured + path, certificate.sha256), lambda packets: len(packets) > 12)
    assert decode(packets[0:1]).size[0] == 320


@pytest.mark.parametrize("path", ["/h264", "/jpeg"], ids=["lean", "ffmpeg"])
@pytest.mark.parametrize("pin", [None, "0" * 64], ids=["not vouched for", "not the pinned one"])
async def test_a_certificate_that_is_not_trusted(
    secured: str, certificate: Certificate, path: str, pin: str | None
) -> None:
    source = either(secured + path, pin)
    source._ffmpeg_left = int(path == "/jpeg")
    answer = await miss(source)
    assert (answer.fault, answer.certificate_sha256) == (Fault.REFUSED, certificate.sha256)
    assert certificate.sha256 in answer.message


@pytest.mark.parametrize("path", ["/h264", "/jpeg"], ids=["lean", "ffmpeg"])
async def test_a_certificate_somebody_vouches_for(
    secured: str, certificate: Certificate, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
    await read(either(secured + path), lambda packets: len(packets) > 2)
    # It is for this address and for no name.
    named = either((secured + path).replace("127.0.0.1", "localhost"))
    named._ffmpeg_left = int(path == "/jpeg")
    assert (await miss(named)).fault is Fault.REFUSED


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_wrong_login(cameras: str, transport: str) -> None:
    address = RtspAddress(cameras + "/h264", Login(USER, Secret("another word")), HERE)
    assert (await miss(RtspPackets(address, TIMEOUT_SEC, boot_ms, transport))).fault is Fault.UNAUTHORIZED


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_unknown_path(cameras: str, transport: str) -> None:
    assert (await miss(either(cameras + "/none", transport=transport))).fault is Fault.NOT_FOUND


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_a_camera_is_asked_for_a_keyframe_by_whoever_joins_in_the_middle(cameras: str, transport: str) -> None:
    """Its own next one is hours away."""
    url = f"{cameras}/seldom"
    first, hub = Taker(), Hub(lean(url))
    hub.add(first)
    try:
        await until(lambda: len(first.packets) > 10, "somebody watches already")
        second = LeanPackets(RtspAddress(url, LOGIN, HERE), TIMEOUT_SEC, TIMEOUT_SEC, boot_ms, transport=transport)
        packets = await read(second, lambda packets: any(one.is_keyframe for one in packets))
    finally:
        hub.remove(first)
        assert await hub.until_closed(TIMEOUT_SEC)
    assert any(one.is_keyframe for one in packets)
