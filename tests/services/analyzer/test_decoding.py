"""Pictures as they are decoded: bounded, in RGB, and the same numbers whichever way they were made small."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from camserver.services.analyzer.pictures import WIDTH_NEEDED, decode, gray_of
from tests.services.analyzer.hostile import SIDE, made, png
from tests.services.analyzer.scenery import place


def encoded(picture: Image.Image, form: str = "JPEG", **how: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **how)
    return out.getvalue()


@pytest.mark.parametrize(
    "size", [(640, 360), (640, 272), (1280, 720), (2560, 1440), (640, 361), (768, 576), (960, 540), (320, 180)]
)
@pytest.mark.parametrize("how", [{}, {"subsampling": 0}, {"progressive": True}])
def test_a_picture_that_is_only_measured_has_the_same_pixels(size: tuple[int, int], how: dict[str, Any]) -> None:
    content = encoded(place().resize(size), quality=90, **how)
    whole, small = decode(content, "picture"), decode(content, "picture", only_measured=True)
    assert small.width <= whole.width
    assert small.width < whole.width or size not in ((640, 360), (640, 272))
    of_whole, of_small = (gray_of(one).astype(np.int16) for one in (whole, small))
    assert of_whole.shape == of_small.shape
    assert np.abs(of_whole - of_small).max() <= 3
    assert np.abs(of_whole - of_small).mean() < 0.5


@pytest.mark.parametrize(
    "content",
    [made("RGB", (64, 48), "JPEG"), made("L", (64, 48), "JPEG"), made("CMYK", (64, 48), "JPEG")]
    + [made(mode, (64, 48)) for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16")],
)
def test_all_are_in_rgb(content: bytes) -> None:
    picture = decode(content, "picture")
    assert (picture.mode, picture.size) == ("RGB", (64, 48))
    assert np.asarray(picture).shape == (48, 64, 3)


@pytest.mark.parametrize(("depth", "colour"), [(8, 2), (8, 3), (1, 0), (16, 0)])
def test_a_large_one_is_made_small_at_once(depth: int, colour: int) -> None:
    picture = decode(png(SIDE, SIDE, depth, colour), "picture")
    assert picture.mode == "RGB"
    assert WIDTH_NEEDED <= picture.width < 2 * WIDTH_NEEDED
