import io

import numpy as np
import pytest
from av import VideoFrame
from PIL import Image

from camserver.domain.polygons import Polygon
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.masks import blacken
from camserver.media.pictures import Picture
from camserver.media.polygon_pixels import drawn
from camserver.media.video_picture import VideoPicture

LEFT_HALF: Polygon = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))
TRIANGLE: Polygon = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
SIZE = (64, 48)


def video(size: tuple[int, int] = SIZE, pixels: str = "yuv420p") -> VideoPicture:
    white = np.full((size[1], size[0], 3), (250, 200, 90), np.uint8)
    return VideoPicture(VideoFrame.from_ndarray(white, format="rgb24").reformat(format=pixels))


def jpeg(size: tuple[int, int] = SIZE) -> JpegPicture:
    file = io.BytesIO()
    Image.new("RGB", size, (250, 200, 90)).save(file, "JPEG", quality=95)
    return JpegPicture(file.getvalue(), size[0])


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), np.int16)


def test_polygons_cover_what_they_enclose() -> None:
    covered = drawn((LEFT_HALF,), SIZE[1], SIZE[0])
    assert covered.shape == (48, 64)
    assert covered[:, :32].all()
    assert not covered[:, 33:].any()
    both = drawn((LEFT_HALF, TRIANGLE), SIZE[1], SIZE[0])
    assert both[0].all()
    assert not both[-1, 40:].any()


def test_the_whole_picture_can_be_covered() -> None:
    everything: Polygon = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    assert drawn((everything,), SIZE[1], SIZE[0]).all()
    assert drawn((everything,), 47, 63).all()


@pytest.mark.parametrize(
    "picture",
    [video(), video(pixels="yuvj420p"), video(pixels="yuv422p"), video((63, 47)), jpeg(), jpeg((63, 47))],
    ids=["video", "full-range", "other-format", "odd", "jpeg", "odd-jpeg"],
)
def test_nothing_of_what_is_covered_is_left(picture: Picture) -> None:
    masked = blacken(picture, [LEFT_HALF])
    for data in (masked.full(), masked.small(40)[1]):
        shown = pixels(data)
        middle = shown.shape[1] // 2
        # A JPEG smears over an edge by up to a block.
        assert shown[:, : max(middle - 16, 4)].max() < 40
        assert shown[:, middle + 16 :].mean() > 120
    gray = masked.gray(32)
    assert gray[:, :12].max() < 30
    assert gray[:, 20:].min() > 100


def test_the_picture_itself_stays() -> None:
    picture = video()
    before = picture.full()
    blacken(picture, [LEFT_HALF])
    assert picture.full() == before
    assert blacken(picture, ()) is picture


def test_masks_lie_on_the_picture_as_it_is_shown() -> None:
    for picture in (video((64, 48)), jpeg((64, 48))):
        masked = blacken(picture.turned(90), [LEFT_HALF])
        shown = pixels(masked.full())
        assert shown.shape[:2] == (64, 48)
        assert shown[:, :8].max() < 40
        assert shown[:, 40:].mean() > 120
