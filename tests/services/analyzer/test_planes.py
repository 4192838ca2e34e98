"""Pictures in planes look as they do in RGB, and nothing but plain camera pictures is read that way."""

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from camserver.media.jpeg_planes import Planes, planes_of, rgb_of
from camserver.services.analyzer.comparing import has_colours
from camserver.services.analyzer.pictures import decode, gray_of, open_picture
from tests.services.analyzer.rig import SHARP

SIDE_BELOW = 1280
SIZES = [(640, 360), (960, 540), (641, 361), (200, 150), (300, 900), (64, 65)]
END = b"\xff\xd9"
ORIENTATION = 0x0112


def scene(size: tuple[int, int]) -> Image.Image:
    """Colours that change slowly over the picture, and edges in its light."""
    rows, columns = np.mgrid[0 : size[1], 0 : size[0]]
    light = (rows // 8 + columns // 8) % 2 * 60
    colours = [columns * 180 // size[0], rows * 180 // size[1], np.full_like(rows, 90)]
    pixels = np.stack([colour + light for colour in colours], 2)
    return Image.fromarray(pixels.astype(np.uint8))


def encoded(picture: Image.Image, **how: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", **({"quality": 90} | how))
    return out.getvalue()


def opened(content: bytes) -> Planes:
    planes = planes_of(content, SIDE_BELOW)
    assert planes is not None
    return planes


def difference(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    assert one.shape == other.shape
    return float(np.abs(one.astype(np.int16) - other).mean())


@pytest.mark.parametrize("size", SIZES)
def test_it_looks_as_it_does_in_rgb(size: tuple[int, int]) -> None:
    content = encoded(scene(size))
    planes, picture = opened(content), decode(content, "picture")
    small = (48, max(48 * size[1] // size[0], 1))
    assert planes.size == picture.size
    assert difference(np.asarray(planes.rgb), np.asarray(picture)) < 2.5
    assert difference(planes.scaled(small), np.asarray(picture.resize(small, Image.Resampling.BILINEAR))) < 2.5
    assert difference(gray_of(planes.luma()), gray_of(picture)) < 0.5


@pytest.mark.parametrize("colour", [(128, 128, 128), (0, 0, 0), (255, 255, 255), (200, 40, 40), (30, 60, 220)])
def test_black_white_and_colours_are_the_same(colour: tuple[int, int, int]) -> None:
    content = encoded(Image.new("RGB", (640, 360), colour))
    planes, picture = opened(content), decode(content, "picture")
    assert difference(np.asarray(planes.rgb), np.asarray(picture)) <= 2
    assert difference(gray_of(planes.luma()), gray_of(picture)) <= 1
    assert has_colours(planes) == has_colours(picture)


TURNED = Image.Exif()
TURNED[ORIENTATION] = 6
PLAIN = scene((640, 360))
OTHERS = {
    "cut off": encoded(PLAIN)[:9000],
    "cut off, with an end": encoded(PLAIN)[:9000] + END,
    "overwritten": encoded(PLAIN)[:6000] + bytes(2000) + encoded(PLAIN)[8000:],
    "without a scan": encoded(PLAIN)[:300] + END,
    "only a beginning and an end": b"\xff\xd8" + END,
    "nothing": b"",
    "colours at full size": encoded(PLAIN, subsampling="4:4:4"),
    "colours at half the width": encoded(PLAIN, subsampling="4:2:2"),
    "progressive": encoded(PLAIN, progressive=True),
    "turned": encoded(PLAIN, exif=TURNED),
    "without colours": SHARP,
    "for print": encoded(PLAIN.convert("CMYK")),
    "large": encoded(scene((1280, 720))),
    "a few pixels": encoded(scene((8, 8))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_plain_goes_another_way(name: str) -> None:
    assert planes_of(OTHERS[name], SIDE_BELOW) is None


def test_a_picture_is_not_read_by_the_tables_of_the_one_before() -> None:
    """As cameras send them that leave the tables out: they must be in each."""
    content = encoded(PLAIN, optimize=True)
    assert planes_of(content, SIDE_BELOW) is not None
    begin = content.find(b"\xff\xc4")
    length = int.from_bytes(content[begin + 2 : begin + 4])
    without = content[:begin] + content[begin + 2 + length :]
    alone = planes_of(without, SIDE_BELOW)
    assert alone is None or difference(np.asarray(alone.rgb), np.asarray(opened(content).rgb)) > 5


def test_turned_and_plain_pictures_are_upright() -> None:
    assert open_picture(OTHERS["turned"], "picture").size == (360, 640)
    assert rgb_of(open_picture(encoded(PLAIN), "picture")).size == (640, 360)
