import io

import numpy as np
import pytest
from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.thumbnails import BYTES_MAX, listed, thumbnail


def noise(width: int, height: int, quality: int = 95) -> bytes:
    """A picture that hardly gets smaller by encoding."""
    pixels = np.random.default_rng(1).integers(0, 255, (height, width, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality)
    return out.getvalue()


def test_a_small_picture_stays_as_it_is() -> None:
    small = noise(160, 90)
    assert len(small) <= BYTES_MAX
    assert thumbnail(small) is small


def test_a_large_one_is_made_to_fit() -> None:
    large = noise(640, 360)
    assert len(large) > BYTES_MAX
    made = thumbnail(large)
    assert len(made) <= BYTES_MAX
    width, height = Image.open(io.BytesIO(made)).size
    assert width / height == pytest.approx(16 / 9, rel=0.02)


def test_what_is_no_picture_is_refused() -> None:
    for broken in (b"", b"not a picture", noise(64, 36)[:200]):
        with pytest.raises(BadInput):
            thumbnail(broken)


def test_one_that_can_not_be_made_to_fit_is_refused() -> None:
    with pytest.raises(BadInput):
        thumbnail(noise(640, 360), bytes_max=500)


def test_in_a_list_it_is_so_wide_at_most() -> None:
    assert Image.open(io.BytesIO(listed(noise(640, 360)))).size == (320, 180)
    assert Image.open(io.BytesIO(listed(noise(160, 90)))).size == (160, 90)
    with pytest.raises(BadInput):
        listed(b"no picture")
