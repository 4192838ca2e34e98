"""The quality of a picture, with and without what is black on purpose."""

import numpy as np
import pytest
from PIL import Image, ImageFilter

from camserver.domain.detections import quality_tags
from camserver.domain.polygons import Polygon
from camserver.media.change import blur_score
from camserver.services.analyzer.pictures import (
    MEASURED_HEIGHT_MAX,
    decode,
    gray_of,
    hidden_pixels,
    quality_of,
)
from tests.services.analyzer.scenery import encoded, masked, place

MASKS = [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0), (0.21, 0.13, 0.87, 0.94)]


def tags(picture: Image.Image, masks: tuple[Polygon, ...] = ()) -> tuple[str, ...]:
    gray = gray_of(decode(encoded(picture), "picture"))
    return quality_tags(quality_of(gray, hidden_pixels(gray.shape, masks)))


def polygon(box: tuple[float, ...]) -> Polygon:
    x1, y1, x2, y2 = box
    return (x1, y1), (x2, y1), (x2, y2), (x1, y2)


@pytest.mark.parametrize("box", MASKS)
def test_a_privacy_mask_makes_a_picture_neither_dark_nor_blurred(box: tuple[float, ...]) -> None:
    assert tags(place()) == ()
    assert tags(masked(place(), box), (polygon(box),)) == ()


@pytest.mark.parametrize("box", MASKS)
def test_behind_a_mask_a_blurred_or_dark_picture_is_still_one(box: tuple[float, ...]) -> None:
    """The mask's own edges are sharp."""
    blurred = place().filter(ImageFilter.GaussianBlur(6))
    assert tags(masked(blurred, box), (polygon(box),)) == ("camera.blur",)
    dark = place().point(lambda value: value // 12)
    assert "camera.dark" in tags(masked(dark, box), (polygon(box),))


@pytest.mark.parametrize("box", MASKS)
def test_a_mask_that_nobody_told_of_does_not_make_a_sharp_picture_blurred(box: tuple[float, ...]) -> None:
    assert "camera.blur" not in tags(masked(place(), box))
    assert "camera.blur" in tags(masked(place().filter(ImageFilter.GaussianBlur(6)), box))


def test_without_masks_the_contracts_numbers_hold() -> None:
    random = np.random.default_rng(2)
    for sharpness in (1, 5, 40):
        gray = np.clip(random.normal(120, sharpness, (180, 320)), 0, 255).astype(np.uint8)
        assert quality_of(gray).blur_score == pytest.approx(blur_score(gray))
    assert tags(Image.new("RGB", (640, 360), (128, 128, 128))) == ("camera.blur",)
    assert tags(Image.new("RGB", (640, 360), (5, 5, 5))) == ("camera.blur", "camera.dark")


def test_of_a_picture_that_is_all_masked_nothing_is_said() -> None:
    assert tags(Image.new("RGB", (640, 360)), (polygon((0.0, 0.0, 1.0, 1.0)),)) == ()


@pytest.mark.parametrize("size", [(1, 30_000), (30_000, 1), (2, 2), (40, 3)])
def test_odd_shapes_are_measured_and_small(size: tuple[int, int]) -> None:
    gray = gray_of(Image.new("RGB", size, (90, 90, 90)))
    assert gray.size <= 320 * MEASURED_HEIGHT_MAX
    quality = quality_of(gray, hidden_pixels(gray.shape, (polygon((0.0, 0.0, 0.4, 0.4)),)))
    assert 0 <= quality.blur_score <= 100
