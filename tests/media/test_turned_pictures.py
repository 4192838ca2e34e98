"""Pictures turned to how the camera hangs, and the bars around some of them."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from camserver.media.change import Reference
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.pictures import Margins, Picture, bars_of, develop
from camserver.media.video_picture import decode
from tests.media.video import encoded

SIZE = (320, 180)
# Luma of the quarters: top left, top right, bottom right, bottom left; with the clock.
QUARTERS = (50, 100, 150, 200)


def quartered(size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    width, height = size
    luma = np.empty((height, width), np.uint8)
    luma[: height // 2, : width // 2], luma[: height // 2, width // 2 :] = QUARTERS[0], QUARTERS[1]
    luma[height // 2 :, width // 2 :], luma[height // 2 :, : width // 2] = QUARTERS[2], QUARTERS[3]
    return luma


def from_video(size: tuple[int, int] = SIZE) -> Picture:
    return decode(encoded([quartered(size)], pix_fmt="yuvj420p"))


def from_jpeg(size: tuple[int, int] = SIZE) -> Picture:
    out = io.BytesIO()
    Image.fromarray(quartered(size)).save(out, "JPEG", quality=95)
    return JpegPicture(out.getvalue(), 160)


def quarters_of(gray: NDArray[np.uint8]) -> list[int]:
    """Which quarter is where, with the clock from the top left."""
    height, width = gray.shape
    points = ((1, 1), (1, 3), (3, 3), (3, 1))
    seen = [int(gray[height * y // 4, width * x // 4]) for y, x in points]
    return [min(range(4), key=lambda number: abs(QUARTERS[number] - luma)) for luma in seen]


def luma_of(jpeg: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return np.asarray(picture.convert("L"))


@pytest.mark.parametrize("make", [from_video, from_jpeg])
@pytest.mark.parametrize(("degrees", "first"), [(0, 0), (90, 3), (180, 2), (270, 1)])
def test_every_picture_is_turned(make: object, degrees: int, first: int) -> None:
    assert callable(make)
    turned = make().turned(degrees)
    expected = [(first + number) % 4 for number in range(4)]
    size = SIZE if degrees in (0, 180) else SIZE[::-1]
    assert turned.size == size
    assert quarters_of(turned.gray(160)) == expected
    small_size, small = turned.small(160)
    assert small_size[0] == 160
    assert luma_of(small).shape == small_size[::-1]
    assert quarters_of(luma_of(small)) == expected
    assert luma_of(turned.full()).shape == size[::-1]
    assert quarters_of(luma_of(turned.full())) == expected


@pytest.mark.parametrize("make", [from_video, from_jpeg])
def test_turning_on(make: object) -> None:
    assert callable(make)
    once_more = make().turned(90).turned(90)
    assert once_more.size == SIZE
    assert quarters_of(once_more.gray(160)) == [2, 3, 0, 1]
    assert quarters_of(luma_of(once_more.full())) == [2, 3, 0, 1]


def test_range_and_odd_sizes_stay() -> None:
    limited = decode(encoded([quartered()]))
    assert abs(int(limited.turned(90).gray(160)[10, 10]) - int(limited.gray(160)[80, 10])) <= 1
    assert from_video((322, 182)).turned(270).size == (182, 322)


def test_a_turned_jpeg_is_as_sharp_as_is_needed() -> None:
    """It is decoded at a fraction of its size, of which the height becomes the width."""
    wide = from_jpeg((1920, 1080))
    assert wide.turned(90).small(160)[0] == (160, 284)


def barred(top: int, left: int, bottom: int, right: int, black: int = 0) -> NDArray[np.uint8]:
    gray = np.full((180, 320), black, np.uint8)
    gray[top : 180 - bottom, left : 320 - right] = 90
    return gray


@pytest.mark.parametrize(
    ("gray", "margins"),
    [
        (barred(0, 0, 0, 0), Margins()),
        (barred(20, 0, 20, 0), Margins(top=40, bottom=40)),
        (barred(0, 40, 0, 41), Margins(left=80, right=82)),
        (barred(10, 40, 10, 40, black=9), Margins(20, 80, 20, 80)),
        (barred(20, 0, 0, 0), Margins()),  # a roof
        (barred(20, 0, 60, 0), Margins()),
        (barred(1, 1, 1, 1), Margins()),  # an edge
        (np.zeros((180, 320), np.uint8), Margins()),  # the night
    ],
)
def test_bars(gray: NDArray[np.uint8], margins: Margins) -> None:
    assert bars_of(gray, (640, 360)) == margins


def test_bars_are_recorded_in_pixels_of_the_infer_picture() -> None:
    luma = np.full((720, 1280), 16, np.uint8)
    luma[:, 160:1120] = 120  # 4:3 within 16:9
    made = develop(
        decode(encoded([luma])),
        infer_width=640,
        diff_width=320,
        before=Reference(),
        pixel_delta=20,
        with_contrast=False,
    )
    assert made.infer_size == (640, 360)
    assert made.infer_margins == Margins(left=80, right=80)
    assert made.infer_margins.any
