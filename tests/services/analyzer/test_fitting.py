"""A place in the picture is found again, however the picture was fitted."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from camserver.services.analyzer.fitting import Fit, fit

SIDES = st.integers(1, 300)
FITS = st.sampled_from(get_args(Fit))


@given(SIDES, SIDES, st.tuples(st.integers(32, 128), st.integers(32, 128)), FITS)
def test_the_whole_picture_is_the_whole_picture(width: int, height: int, size: tuple[int, int], how: Fit) -> None:
    fitted = fit(Image.new("RGB", (width, height)), size, how, 114)
    assert fitted.pixels.shape == (size[1], size[0], 3)
    assert (fitted.left + fitted.width, fitted.top + fitted.height) <= (1.0 + 1e-9, 1.0 + 1e-9)
    edges = (fitted.left, fitted.top, fitted.left + fitted.width, fitted.top + fitted.height)
    assert fitted.place(*edges) == (0.0, 0.0, 1.0, 1.0)
    assert fitted.place(0.0, 0.0, 1.0, 1.0) == (0.0, 0.0, 1.0, 1.0)


@given(FITS, st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2))
def test_a_place_is_inside_or_none(how: Fit, x1: float, y1: float, x2: float, y2: float) -> None:
    place = fit(Image.new("RGB", (64, 36)), (32, 32), how, 0).place(x1, y1, x2, y2)
    if place is not None:
        assert 0 <= place[0] < place[2] <= 1
        assert 0 <= place[1] < place[3] <= 1


@pytest.mark.parametrize(("how", "at"), [("corner", (16, 0)), ("centre", (16, 9)), ("stretch", (16, 0))])
def test_where_the_picture_begins(how: Fit, at: tuple[int, int]) -> None:
    fitted = fit(Image.new("RGB", (64, 28), (255, 255, 255)), (32, 32), how, 0).pixels
    x, y = at
    assert fitted[y, x].tolist() == [255, 255, 255]
    if how == "centre":
        assert fitted[8, 16].tolist() == [0, 0, 0]


def test_in_bars_lies_nothing() -> None:
    fitted = fit(Image.new("RGB", (64, 32)), (32, 32), "corner", 0)
    assert fitted.place(0.1, 0.6, 0.9, 0.9) is None
    assert fitted.place(0.1, 0.4, 0.9, 0.9) == (0.1, 0.8, 0.9, 1.0)
