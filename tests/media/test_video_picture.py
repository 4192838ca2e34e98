import io

import numpy as np
import pytest
from av.video.frame import VideoFrame
from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.shots import VideoShot
from camserver.media.video_picture import VideoPicture, decode
from tests.media.video import H264, encoded, flat, packet


def luma_of(jpeg: bytes) -> float:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return float(np.asarray(picture.convert("L")).mean())


@pytest.mark.parametrize(("limited", "full"), [(16, 0), (126, 128), (235, 255)])
def test_limited_range_becomes_full_range(limited: int, full: int) -> None:
    """Cameras send luma 16..235; JPEG and our measurements mean 0..255."""
    picture = decode(encoded([flat(limited)]))
    assert abs(float(picture.gray(320).mean()) - full) < 2
    assert abs(luma_of(picture.small(640)[1]) - full) < 3
    assert abs(luma_of(picture.full()) - full) < 3


def test_full_range_video_stays_as_it_is() -> None:
    picture = decode(encoded([flat(16)], pix_fmt="yuvj420p"))
    assert abs(float(picture.gray(320).mean()) - 16) < 2


def test_sizes() -> None:
    picture = decode(encoded([flat(90, (1280, 720))]))
    assert picture.size == (1280, 720)
    assert picture.gray(320).shape == (180, 320)
    size, jpeg = picture.small(640)
    assert size == (640, 360)
    with Image.open(io.BytesIO(jpeg)) as small, Image.open(io.BytesIO(picture.full())) as full:
        assert (small.size, full.size) == ((640, 360), (1280, 720))


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 720), (722, 406)])
def test_the_luma_is_the_same_whether_the_small_picture_was_made_before_or_not(size: tuple[int, int]) -> None:
    width, height = size
    pixels = np.random.default_rng(1).integers(16, 236, (height * 3 // 2, width), np.uint8)
    frame = VideoFrame.from_ndarray(pixels, format="yuv420p")
    before, picture = VideoPicture(frame).gray(320), VideoPicture(frame)
    picture.small(640)
    assert np.abs(picture.gray(320).astype(int) - before).max() <= 2


@pytest.mark.parametrize("size", [(322, 182), (426, 242), (640, 358)])
def test_sizes_that_leave_a_rest_are_fine(size: tuple[int, int]) -> None:
    picture = decode(encoded([flat(90, size)]))
    for width in (101, 320, 640):
        made, jpeg = picture.small(width)
        with Image.open(io.BytesIO(jpeg)) as small:
            assert small.size == made
        assert abs(float(picture.gray(width).mean()) - 86) < 3


def test_decoding_forward_shows_the_last_picture() -> None:
    packets = encoded([flat(40), flat(120), flat(200)])
    assert [one.is_keyframe for one in packets] == [True, False, False]
    shot = VideoShot(tuple(packets))
    assert shot.boot_ms == 200
    assert abs(float(shot.decode(640).gray(320).mean()) - 214) < 4
    assert abs(float(VideoShot((packets[0],)).decode(640).gray(320).mean()) - 28) < 4


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\0\0\0\1\x65garbage", b"no video at all"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="h264"):
        decode([packet(0, True, data)])


def test_a_picture_of_too_many_pixels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.media.video_picture.PIXELS_MAX", 1000)
    with pytest.raises(BadInput):
        decode(encoded([flat(90)]))


def test_parameter_sets_may_come_from_the_description() -> None:
    (one,) = encoded([flat(90)])
    nals = [b"\0\0\0\1" + nal for nal in one.data.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if nal]
    sets = b"".join(nal for nal in nals if nal[4] & 31 in (7, 8))
    rest = b"".join(nal for nal in nals if nal[4] & 31 not in (7, 8))
    bare = packet(0, True, rest)
    with pytest.raises(BadInput):
        decode([bare])
    described = type(bare)(type(H264)("h264", sets, H264.time_base), 0, 0, True, rest, 0)
    assert decode([described]).size == (640, 360)
