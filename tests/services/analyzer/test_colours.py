"""Colours as they are counted: in any light, with folds and noise, and none where there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from camserver.domain.clothes import top_place, top_tag
from camserver.domain.detections import Detection
from camserver.services.analyzer.colours import colours_in, gain_of, lab_of
from camserver.services.analyzer.comparing import has_colours
from camserver.services.analyzer.pictures import decode, gray_of
from tests.services.analyzer.scenery import PERSON, encoded, with_person


def top_of(picture: Image.Image) -> str:
    taken = decode(encoded(picture), "picture")
    place = top_place(Detection("person", 0.8, *PERSON), (), taken.size)
    assert place is not None
    coloured = colours_in(taken, place, gain_of(gray_of(taken)))
    assert coloured is not None
    return top_tag(coloured.shares).removeprefix("top_color.")


@pytest.mark.parametrize("light", [0.6, 1.0])
@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((190, 25, 30), "red"),
        ((130, 20, 25), "red"),
        ((40, 70, 180), "blue"),
        ((25, 30, 80), "blue"),
        ((80, 120, 170), "blue"),  # denim
        ((14, 14, 16), "black"),
        ((245, 245, 240), "white"),
        ((120, 120, 122), "gray"),
        ((40, 130, 60), "other"),  # green
        ((225, 190, 50), "other"),  # yellow
        ((120, 85, 55), "other"),  # brown
        ((210, 165, 140), "other"),  # beige
    ],
)
def test_clothes_by_their_colour_in_light_and_shade(rgb: tuple[int, int, int], name: str, light: float) -> None:
    assert top_of(ImageEnhance.Brightness(with_person(rgb)).enhance(light)) == name


def test_a_picture_without_colours_is_known_by_it() -> None:
    gray = with_person((190, 25, 30)).convert("L").convert("RGB")
    assert has_colours(with_person((120, 120, 120)))
    assert not has_colours(decode(encoded(gray), "picture"))
    assert has_colours(Image.new("RGB", (4, 4), (200, 0, 0)))


def test_a_few_pixels_say_nothing() -> None:
    assert colours_in(Image.new("RGB", (640, 360)), (0.5, 0.5, 0.51, 0.51), 1.0) is None


@pytest.mark.parametrize(
    ("rgb", "lab"),
    [
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 0, 0), (53.2, 80.1, 67.2)),
        ((0, 0, 255), (32.3, 79.2, -107.9)),
        ((119, 119, 119), (50, 0, 0)),
    ],
)
def test_lab_by_its_known_values(rgb: tuple[int, int, int], lab: tuple[float, ...]) -> None:
    assert lab_of(np.array([[rgb]], np.uint8))[0] == pytest.approx(lab, abs=0.3)


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), st.floats(1, 2))
def test_every_pixel_has_one_colour(red: int, green: int, blue: int, gain: float) -> None:
    coloured = colours_in(Image.new("RGB", (20, 20), (red, green, blue)), (0.0, 0.0, 1.0, 1.0), gain)
    assert coloured is not None
    assert sorted(coloured.shares.values()) == [0, 0, 0, 0, 0, 1]
