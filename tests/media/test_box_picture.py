"""Boxes are drawn where they are, and nothing else is changed."""

import io

import numpy as np
import pytest
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.analysis import Box
from camserver.media.box_picture import LINE, draw_boxes
from tests.rig.pictures import jpeg, png

GREY = jpeg(size=(640, 360))


def pixels(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "JPEG"
        return np.asarray(picture.convert("RGB")).astype(int)


def bright(content: bytes) -> np.ndarray:
    """Where a box's line is, or its word's ground."""
    return np.abs(pixels(content) - LINE).max(axis=2) < 60


def test_a_line_is_around_the_box_and_not_in_it() -> None:
    drawn = bright(draw_boxes(GREY, [Box(0.25, 0.25, 0.75, 0.75, "person", 0.9)], with_words=False))
    rows, columns = np.nonzero(drawn)
    assert (rows.min(), rows.max()) == (pytest.approx(90, abs=3), pytest.approx(269, abs=3))
    assert (columns.min(), columns.max()) == (pytest.approx(160, abs=3), pytest.approx(479, abs=3))
    assert not drawn[100:260, 170:470].any()


def test_words_are_drawn_when_they_are_wanted() -> None:
    box = Box(0.25, 0.25, 0.75, 0.75, "person", 0.9)
    without = bright(draw_boxes(GREY, [box], with_words=False))
    words = bright(draw_boxes(GREY, [box]))
    assert not without[70:85].any()
    assert words[70:85, 160:200].any()


@pytest.mark.parametrize(
    "box",
    [
        Box(0.0, 0.0, 1.0, 1.0, "person", 1.0),
        Box(0.99, 0.99, 1.0, 1.0, "a very long name of a thing that nobody has seen before", 0.5),
        Box(0.5, 0.5, 0.5001, 0.5001),
        Box(0.1, 0.1, 0.2, 0.2, "人物", 0.5),
        Box(0.1, 0.1, 0.2, 0.2, "two\nlines", None),
        Box(0.1, 0.1, 0.2, 0.2, "", None),
    ],
    ids=["whole", "corner", "tiny", "japanese", "lines", "nameless"],
)
def test_any_box_can_be_drawn(box: Box) -> None:
    assert pixels(draw_boxes(GREY, [box])).shape == (360, 640, 3)


def test_without_boxes_it_looks_the_same() -> None:
    assert np.abs(pixels(draw_boxes(GREY, [])) - pixels(GREY)).max() <= 2


def test_a_png_becomes_a_jpeg() -> None:
    assert pixels(draw_boxes(png(size=(64, 48)), [])).shape == (48, 64, 3)


@pytest.mark.parametrize("content", [b"", b"no picture", GREY[:200]], ids=["nothing", "text", "half"])
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match="no readable JPEG or PNG"):
        draw_boxes(content, [])
