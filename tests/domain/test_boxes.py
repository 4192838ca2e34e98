"""Boxes on the full picture are where they were on the infer picture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Box
from camserver.domain.boxes import Shapes, in_full

BOX = Box(0.25, 0.25, 0.75, 0.75, "person", 0.9)


def edges(box: Box) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2


@pytest.mark.parametrize(
    "shapes",
    [
        Shapes((1920, 1080), (640, 360)),
        # Bars that the camera itself has are in both pictures.
        Shapes((1920, 1080), (640, 360), (0, 80, 0, 80)),
        Shapes((1917, 1080), (640, 361), (20, 0, 20, 0)),
        Shapes(None, (640, 360), (0, 80, 0, 80)),
        Shapes((1920, 1080), None, (0, 80, 0, 80)),
    ],
    ids=["no bars", "the camera's bars", "rounded sizes", "full size unknown", "infer size unknown"],
)
def test_pictures_of_one_shape_share_their_boxes(shapes: Shapes) -> None:
    assert in_full((BOX,), shapes) == (BOX,)


def test_bars_that_were_added_are_taken_off() -> None:
    # A wide picture in a square of 640: 140 pixels of bar above and below it.
    shapes = Shapes((1920, 1080), (640, 640), (140, 0, 140, 0))
    (placed,) = in_full((Box(0.25, 140 / 640, 0.75, 0.5, "person", 0.9),), shapes)
    assert edges(placed) == pytest.approx((0.25, 0.0, 0.75, 0.5))
    assert (placed.label, placed.conf) == ("person", 0.9)


def test_a_box_in_a_bar_is_nowhere() -> None:
    shapes = Shapes((1920, 1080), (640, 640), (140, 0, 140, 0))
    assert in_full((Box(0.1, 0.0, 0.2, 0.1),), shapes) == ()


def test_bars_without_anything_between_them_are_not_believed() -> None:
    assert in_full((BOX,), Shapes((1920, 1080), (640, 640), (320, 0, 320, 0))) == (BOX,)


share = st.floats(0, 1, allow_nan=False)
bar = st.integers(0, 400)


@given(
    st.tuples(share, share, share, share),
    st.tuples(bar, bar, bar, bar),
    st.tuples(st.integers(1, 4000), st.integers(1, 4000)),
)
def test_what_is_placed_is_inside_the_picture(
    corners: tuple[float, ...], bars: tuple[int, int, int, int], full: tuple[int, int]
) -> None:
    x1, x2 = sorted(corners[:2])
    y1, y2 = sorted(corners[2:])
    for placed in in_full((Box(x1, y1, x2, y2),), Shapes(full, (640, 640), bars)):
        assert 0 <= placed.x1 <= placed.x2 <= 1
        assert 0 <= placed.y1 <= placed.y2 <= 1
