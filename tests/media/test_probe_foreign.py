"""Probes of cameras that are not ours: GStreamer's RTSP server with other codecs, sound and TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from camserver.base.secrets import Secret
from camserver.domain.diagnosis import Cause
from camserver.media.addresses import AddressPolicy
from camserver.media.digest import Login
from camserver.media.probe import Caps, Probed, ProbeWanted, probe
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_rtsp_foreign import PASSWORD, USER, mounts
from tests.rig.certificates import Certificate, self_signed

HERE = AddressPolicy(allow_loopback=True)
LOGIN = Login(USER, Secret(PASSWORD))


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
    yield from served(pipelines, certificate.path)


def served(pipelines: dict[str, str], certificate: Path | None) -> Iterator[str]:
    with gstreamer_pipelines(pipelines, USER, PASSWORD, certificate) as url:
        yield url


async def probed(url: str, pin: str | None = None, transport: str = "tcp") -> Probed:
    return await probe(
        ProbeWanted(
            "rtsp", url, LOGIN, transport, pin, connect_timeout_sec=60, keyframe_sec=60, measure_sec=0, addresses=HERE
        )
    )


def caps_of(found: Probed) -> Caps:
    assert found.caps is not None, found.said.en
    assert found.jpeg.startswith(b"\xff\xd8")
    return found.caps


@pytest.mark.parametrize(
    ("path", "codec", "size", "has_audio"),
    [
        ("/h264", "h264", (320, 180), False),
        ("/h265", "hevc", (320, 180), False),
        ("/bframes", "h264", (320, 180), False),
        ("/sound", "h264", (320, 180), True),
        ("/jpeg", "mjpeg", (320, 192), False),
    ],
)
async def test_what_others_send(cameras: str, path: str, codec: str, size: tuple[int, int], has_audio: bool) -> None:
    caps = caps_of(await probed(cameras + path))
    assert (caps.codec, (caps.width, caps.height), caps.has_audio) == (codec, size, has_audio)


async def test_over_udp(cameras: str) -> None:
    assert caps_of(await probed(f"{cameras}/h264", transport="udp")).codec == "h264"


async def test_no_video_and_no_such_path(cameras: str) -> None:
    assert (await probed(f"{cameras}/only-sound")).cause is Cause.NO_VIDEO
    assert (await probed(f"{cameras}/none")).cause is Cause.NO_SUCH_PATH


async def test_a_certificate_of_its_own_is_told_and_can_be_pinned(secured: str, certificate: Certificate) -> None:
    refused = await probed(f"{secured}/h264")
    assert refused.cause is Cause.TLS_NOT_TRUSTED
    assert certificate.sha256 in refused.said.en
    assert certificate.sha256 in refused.said.ja
    assert caps_of(await probed(f"{secured}/h264", pin=certificate.sha256)).codec == "h264"
    other = await probed(f"{secured}/h264", pin="00" * 32)
    assert other.cause is Cause.TLS_PIN_DIFFERS
    assert certificate.sha256 in other.said.en


async def test_pictures_that_are_refreshed_bit_by_bit(cameras: str) -> None:
    assert caps_of(await probed(f"{cameras}/intra")).codec == "h264"
