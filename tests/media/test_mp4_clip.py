import io
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest

from camserver.base.errors import BadInput
from camserver.media.mp4_clip import film
from camserver.media.packets import Packet, Stream
from camserver.media.video_picture import decode
from tests.media.video import refreshed

SIZE = (160, 96)
FRAMES = 40
RIGHT_HALF = ((0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 1.0))


def recorded(codec: str = "libx264", **options: str) -> list[Packet]:
    """Four seconds at ten frames a second, the n-th of luma 16 + 4n, as a camera would have sent them."""
    encoder: Any = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = *SIZE, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, 10), Fraction(10, 1)
    encoder.gop_size = 10
    encoder.options = {"preset": "ultrafast", **options}
    made = []
    for number in range(FRAMES):
        planes = np.full((SIZE[1] * 3 // 2, SIZE[0]), 128, np.uint8)
        planes[: SIZE[1]] = 16 + 4 * number
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts = number
        made += encoder.encode(frame)
    made += encoder.encode(None)
    stream = Stream("hevc" if codec == "libx265" else "h264", b"", Fraction(1, 10))
    return [
        Packet(stream, one.pts, one.dts, bool(one.is_keyframe), bytes(one), 5_000 + 100 * n)
        for n, one in enumerate(made)
    ]


def played(mp4: bytes) -> tuple[Any, list[float], list[float]]:
    """The track as a player sees it: about it, when each picture is shown, and how bright it is."""
    with av.open(io.BytesIO(mp4)) as container:
        video = container.streams.video[0]
        about = (video.codec_context.name, video.codec_context.width, video.codec_context.height)
        frames = list(container.decode(video))
    return (
        about,
        [frame.time for frame in frames],
        [float(frame.to_ndarray(format="gray").mean()) for frame in frames],
    )


def rises(levels: list[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(levels))


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("libx264", {"tune": "zerolatency"}),
        ("libx264", {"preset": "medium", "bf": "3"}),  # pictures are sent in another order than they are shown
        ("libx265", {"x265-params": "log-level=none"}),
    ],
    ids=["h264", "b-frames", "h265"],
)
def test_a_film_shows_every_picture_in_order(codec: str, options: dict[str, str]) -> None:
    packets = recorded(codec, **options)
    clip = film(packets)
    (name, width, height), times, levels = played(clip.mp4)
    assert (name, width, height) == (clip.codec, *SIZE)
    assert (clip.width, clip.height) == SIZE
    assert len(levels) == FRAMES
    assert rises(levels)
    assert times[-1] - times[0] == pytest.approx(3.9, abs=0.01)
    assert (clip.begin_boot_ms, clip.end_boot_ms) == (5_000, 5_000 + 100 * (FRAMES - 1))


def test_the_index_is_at_the_beginning() -> None:
    mp4 = film(recorded(tune="zerolatency")).mp4
    assert mp4.index(b"moov") < mp4.index(b"mdat")


def test_browsers_know_h265_by_its_name() -> None:
    mp4 = film(recorded("libx265", **{"x265-params": "log-level=none"})).mp4
    assert b"hvc1" in mp4
    assert b"hev1" not in mp4


@pytest.mark.parametrize("stamp", ["none", "stuck", "jump"])
def test_timestamps_that_can_not_be_are_those_of_arrival(stamp: str) -> None:
    def spoil(number: int, packet: Packet) -> Packet:
        wrong = {"none": None, "stuck": 7, "jump": number + (100_000 if number > 20 else 0)}[stamp]
        return replace(packet, pts=wrong, dts=wrong)

    clip = film([spoil(number, packet) for number, packet in enumerate(recorded(tune="zerolatency"))])
    _, times, levels = played(clip.mp4)
    assert len(levels) == FRAMES
    assert rises(levels)
    assert times[-1] - times[0] == pytest.approx(3.9, abs=0.01)


def test_a_masked_camera_has_its_film_encoded() -> None:
    clip = film(recorded(tune="zerolatency"), masks=(RIGHT_HALF,))
    with av.open(io.BytesIO(clip.mp4)) as container:
        pictures = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    assert len(pictures) == FRAMES
    assert all(picture[:, 90:].max() < 12 for picture in pictures)
    assert pictures[-1][:, :70].min() > 150


def test_a_turned_camera_has_its_film_turned() -> None:
    clip = film(recorded(tune="zerolatency"), rotation=90)
    about, _, levels = played(clip.mp4)
    assert about == ("h264", SIZE[1], SIZE[0])
    assert (clip.width, clip.height) == (SIZE[1], SIZE[0])
    assert len(levels) == FRAMES


def test_pictures_in_a_row_become_a_film() -> None:
    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = *SIZE, "yuvj420p"
    encoder.time_base = Fraction(1, 10)
    stream = Stream("mjpeg", b"", Fraction(1, 90_000))
    packets = []
    for number in range(10):
        frame = av.VideoFrame.from_ndarray(np.full((SIZE[1], SIZE[0], 3), 20 * number, np.uint8), format="rgb24")
        (made,) = encoder.encode(frame.reformat(format="yuvj420p"))
        packets.append(Packet(stream, None, None, True, bytes(made), 200 * number))
    about, times, levels = played(film(packets).mp4)
    assert about[0] == "h264"
    assert rises(levels)
    assert times[-1] - times[0] == pytest.approx(1.8, abs=0.01)


def test_nothing_is_no_film() -> None:
    with pytest.raises(BadInput, match="no video of that time"):
        film([])
    broken = [replace(packet, data=b"\0\0\0\1nothing") for packet in recorded(tune="zerolatency")[:3]]
    with pytest.raises(BadInput, match="decoded"):
        film(broken)


def test_intra_refresh_is_shown_from_the_first_whole_picture() -> None:
    made = refreshed(60)
    clip = film(made[20:])
    assert (clip.codec, clip.begin_boot_ms, clip.end_boot_ms) == ("h264", made[39].boot_ms, made[59].boot_ms)
    with av.open(io.BytesIO(clip.mp4)) as container:
        shown = list(container.decode(video=0))
    assert len(shown) == 21
    assert [round((frame.time or 0) * 20) for frame in shown] == list(range(21))
    whole = decode(made[:40]).gray(320)
    assert abs(shown[0].to_ndarray(format="gray").astype(int) - whole).mean() < 6
    with pytest.raises(BadInput):
        film(made[20:30])
