"""Webcams, as far as that goes without one: FFmpeg is stood in for where a device would be."""

import errno
import stat
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import av.error
import numpy as np
import pytest

from camserver.base.errors import BadInput
from camserver.domain.leases import Fault
from camserver.media import webcam
from camserver.media.packets import Miss, Packet
from camserver.media.shots import VideoShot
from camserver.media.sources import SourceWanted, open_source
from camserver.media.webcam import WebcamPackets, device_of
from tests.rig.pictures import jpeg


def read(source: WebcamPackets, count: int = 1) -> tuple[list[Packet], Miss | None]:
    packets: list[Packet] = []
    miss = source.read(packets.append, lambda: len(packets) < count)
    return packets, miss


def failing(number: int) -> Any:
    def fails(*_: object, **__: object) -> None:
        raise av.FFmpegError(number, "no")

    return fails


@pytest.mark.parametrize(
    "url",
    [
        "webcam:///dev/video0",
        "webcam:///dev/video12",
        "webcam:///dev/v4l/by-id/usb-046d_HD_Pro_Webcam_C920_1A2B-video-index0",
        "webcam:///dev/v4l/by-path/pci-0000:00:14.0-usb-0:2:1.0-video-index0",
    ],
)
def test_devices(url: str) -> None:
    assert device_of(url) == url.removeprefix("webcam://")
    open_source(SourceWanted("webcam", url))


@pytest.mark.parametrize(
    "url",
    [
        "webcam:0",
        "webcam:///dev/sda",
        "webcam:///dev/video0/../sda",
        "webcam://host/dev/video0",
        "/dev/video0",
        "webcam:///dev/v4l/by-id/../../sda",
        "webcam:///dev/v4l/by-id/..",
        "webcam:///dev/v4l/by-id/",
        "webcam:///dev/v4l/by-other/a",
    ],
)
def test_what_is_no_device(url: str) -> None:
    with pytest.raises(BadInput):
        open_source(SourceWanted("webcam", url))


def test_there_is_no_such_device() -> None:
    _, miss = read(WebcamPackets("/dev/video999", lambda: 5))
    assert miss is not None
    assert miss.fault is Fault.NOT_FOUND


def test_a_file_is_no_device(tmp_path: Path) -> None:
    path = tmp_path / "video0"
    path.write_bytes(b"no device")
    assert not stat.S_ISCHR(path.stat().st_mode)
    _, miss = read(WebcamPackets(str(path), lambda: 5))
    assert miss is not None
    assert miss.fault is Fault.NO_VIDEO


@pytest.mark.parametrize(
    ("number", "fault", "says"),
    [
        (errno.EBUSY, Fault.REFUSED, "in use by another program"),
        (errno.EACCES, Fault.REFUSED, "group video"),
        (errno.ENODEV, Fault.NOT_FOUND, "no webcam"),
        (errno.EINVAL, Fault.NO_VIDEO, "can't be opened"),
    ],
)
def test_faults(number: int, fault: Fault, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "open", failing(number))
    _, miss = read(WebcamPackets("/dev/video0", lambda: 5))
    assert miss is not None
    assert miss.fault is fault
    assert says in miss.message


class Device:
    """What PyAV shows of a device that gives these pictures."""

    def __init__(self, codec: str, pictures: list[bytes], size: tuple[int, int] = (0, 0), pixels: str = "") -> None:
        context = SimpleNamespace(name=codec, extradata=b"", width=size[0], height=size[1], pix_fmt=pixels)
        self._video = SimpleNamespace(
            codec_context=context, time_base=Fraction(1, 1_000_000), average_rate=Fraction(15, 1)
        )
        self.streams = SimpleNamespace(video=[self._video])
        self._pictures = pictures

    def demux(self, video: object) -> Iterator[Any]:
        for data in self._pictures:
            yield av.Packet(data)

    def opened(self, *_: object, **__: object) -> "Device":
        return self

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_compressed_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "open", Device("mjpeg", [jpeg(scene=3), jpeg(scene=4)]).opened)
    packets, _ = read(WebcamPackets("/dev/video0", lambda: 5), 2)
    assert [packet.data for packet in packets] == [jpeg(scene=3), jpeg(scene=4)]
    assert all(packet.is_keyframe for packet in packets)
    assert VideoShot((packets[0],)).decode(64).full() == jpeg(scene=3)


def test_plain_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = np.full((48, 64, 2), (126, 128), np.uint8).tobytes()  # yuyv: gray of limited range
    monkeypatch.setattr(av, "open", Device("rawvideo", [plain], (64, 48), "yuyv422").opened)
    packets, _ = read(WebcamPackets("/dev/video0", lambda: 5))
    picture = VideoShot((packets[0],)).decode(64)
    assert picture.size == (64, 48)
    assert abs(float(picture.gray(64).mean()) - 128) < 2


def test_one_device_is_one_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by another name."""
    device, other_name = tmp_path / "video0", tmp_path / "video1"
    device.write_bytes(b"")
    other_name.symlink_to(device)
    misses: list[Miss | None] = []

    def second(packet: Packet) -> None:
        misses.append(read(WebcamPackets(str(other_name), lambda: 5))[1])

    monkeypatch.setattr(av, "open", Device("mjpeg", [jpeg(scene=3)]).opened)
    WebcamPackets(str(device), lambda: 5).read(second, lambda: True)
    assert misses[0] is not None
    assert misses[0].fault is Fault.REFUSED
    assert "in use" in misses[0].message
    # It was let go.
    assert not webcam._open_devices
    assert read(WebcamPackets(str(other_name), lambda: 5))[0]
