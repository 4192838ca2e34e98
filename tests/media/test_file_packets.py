from pathlib import Path

import pytest

from camserver.domain.leases import Fault
from camserver.media.file_packets import FilePackets
from camserver.media.packets import Miss, Packet
from camserver.media.rtsp_source import RtspSource
from camserver.media.shots import VideoShot
from camserver.media.sources import SourceWanted, open_source
from camserver.media.video_picture import decode
from tests.rig.video_files import video_file


def played(path: Path, count: int) -> list[Packet]:
    """So many packets of a file, without waiting for its pace."""
    packets: list[Packet] = []
    clock = [0.0]
    source = FilePackets(
        path, lambda: 5, clock=lambda: clock[0], pause=lambda sec: clock.__setitem__(0, clock[0] + sec)
    )
    assert source.read(packets.append, lambda: len(packets) < count) is None
    # It was played no faster than it lasts.
    assert clock[0] * 1000 >= (packets[-1].dts or 0) - 1
    return packets


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {"bf": "0"}),
        ("b.mp4", "libx264", {"bf": "2"}),
        ("c.mkv", "libx265", {"x265-params": "log-level=none"}),
        ("d.avi", "mjpeg", {"strict": "unofficial"}),
    ],
)
def test_files_are_played_over_and_over(tmp_path: Path, name: str, codec: str, options: dict[str, str]) -> None:
    path = video_file(tmp_path / name, codec, 1, 10, 5, (320, 180), lambda number: 40 + number, **options)
    packets = played(path, 35)
    stamps = [packet.dts or 0 for packet in packets]
    assert stamps == sorted(set(stamps))
    assert 3000 < stamps[-1] < 4000  # three and a half turns of a second
    for packet in packets:
        if packet.is_keyframe:
            assert decode([packet]).size == (320, 180)
    assert sum(packet.is_keyframe for packet in packets) >= 4


async def test_a_file_is_looked_at_like_a_camera(tmp_path: Path) -> None:
    path = video_file(tmp_path / "a video.mp4", seconds=1, fps=10, keyframes_apart=5, bf="0")
    source = open_source(SourceWanted("file", path.as_uri(), interval_ms=1000))
    assert isinstance(source, RtspSource)
    shots = [await source.grab() for _ in range(2)]
    await source.close()
    assert all(isinstance(shot, VideoShot) for shot in shots)


def miss_of(path: Path) -> Miss:
    miss = FilePackets(path, lambda: 5).read(lambda packet: None, lambda: True)
    assert miss is not None
    return miss


def test_what_can_not_be_played(tmp_path: Path) -> None:
    assert miss_of(tmp_path / "none.mp4").fault is Fault.NOT_FOUND
    assert miss_of(tmp_path).fault is Fault.REFUSED
    (tmp_path / "text.mp4").write_text("no video at all")
    assert miss_of(tmp_path / "text.mp4").fault is Fault.NO_VIDEO
    # A list of other files or addresses is a video to FFmpeg, but not to us.
    video_file(tmp_path / "other.ts", bf="0")
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile other.ts\n")
    assert miss_of(tmp_path / "list.mp4").fault is Fault.NO_VIDEO
