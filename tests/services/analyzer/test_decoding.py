"""Pictures as they are decoded: bounded and in RGB."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from camserver.services.analyzer.pictures import WIDTH_NEEDED, decode
from tests.services.analyzer.hostile import SIDE, made, png


def encoded(picture: Image.Image, form: str = "JPEG", **how: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **how)
    return out.getvalue()


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
