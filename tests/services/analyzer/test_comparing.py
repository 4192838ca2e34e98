"""Two pictures of a camera: covered, turned, or only another light and somebody in front."""

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from camserver.domain.polygons import Polygon
from camserver.domain.tampering import tampering_tags
from camserver.services.analyzer.comparing import changed_share, compare, has_colours, is_region_changed
from camserver.services.analyzer.pictures import decode, gray_of, hidden_pixels
from tests.services.analyzer.scenery import PERSON, covered, encoded, masked, place, turned, with_person

LEFT_THIRD = ((0.0, 0.0), (0.3, 0.0), (0.3, 1.0), (0.0, 1.0))
SHELF = ((0.35, 0.2), (0.6, 0.2), (0.6, 0.9), (0.35, 0.9))


def said(before: Image.Image, now: Image.Image, masks: tuple[Polygon, ...] = ()) -> tuple[str, ...]:
    earlier, later = (decode(encoded(one), "picture") for one in (before, now))
    gray = gray_of(later)
    hidden = hidden_pixels(gray.shape, masks)
    compared = compare(gray_of(earlier), gray, hidden, has_colours(earlier), has_colours(later))
    return () if compared is None else tampering_tags(compared, is_glaring=False)


@pytest.mark.parametrize("name", ["quiet", "night"])
def test_a_camera_that_is_turned(name: str) -> None:
    for share in (0.12, 0.3, 0.5):
        assert said(place(name), turned(place(name), share)) == ("camera.moved",), share


def test_another_place_altogether() -> None:
    assert said(place("quiet").convert("L").convert("RGB"), place("night").convert("L").convert("RGB")) == (
        "camera.moved",
    )


@pytest.mark.parametrize("light", [0.25, 0.5, 1.6])
def test_light_is_no_move(light: float) -> None:
    assert said(place(), ImageEnhance.Brightness(place()).enhance(light)) == ()


def test_somebody_in_front_is_no_move() -> None:
    assert said(place(), with_person((180, 30, 30))) == ()
    assert said(place(), with_person((30, 30, 180), (0.2, 0.02, 0.6, 0.98))) == ()


def test_infra_red_is_no_move() -> None:
    """It also turns light into dark: leaves shine."""
    gray = place().convert("L").point(lambda value: 255 - value).convert("RGB")
    assert said(place(), gray) == ()


def test_a_covered_lens() -> None:
    assert said(place(), covered()) == ("camera.occluded",)
    assert said(covered(), covered()) == ()
    assert said(covered(), place()) == (), "uncovered is no complaint"


def test_a_lamp_that_goes_out_is_no_cover_while_anything_can_be_seen() -> None:
    assert said(place(), place().point(lambda value: value // 14)) == ()


def test_what_is_masked_hides_neither_a_cover_nor_a_move() -> None:
    box = (0.0, 0.0, 0.3, 1.0)
    before = masked(place(), box)
    assert said(before, masked(turned(place(), 0.3), box), (LEFT_THIRD,)) == ("camera.moved",)
    assert said(before, masked(covered(), box), (LEFT_THIRD,)) == ("camera.occluded",)
    assert said(before, before, (LEFT_THIRD,)) == ()


def test_pictures_that_can_not_be_compared_say_nothing() -> None:
    whole = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    assert said(place(), place().resize((360, 640))) == ()
    assert said(Image.new("RGB", (8, 2)), Image.new("RGB", (8, 2))) == ()
    assert said(place(), covered(), (whole,)) == ()


def test_where_a_picture_changed() -> None:
    before, now = gray_of(place()), gray_of(with_person((20, 20, 120)))
    assert changed_share(before, now, PERSON) > 0.5
    assert changed_share(before, now, (0.0, 0.0, 0.2, 0.2)) == 0
    assert is_region_changed(before, now, SHELF)
    assert not is_region_changed(before, now, ((0.0, 0.0), (0.2, 0.0), (0.2, 0.3)))
    brighter = np.clip(before.astype(np.int16) + 40, 0, 255).astype(np.uint8)
    assert changed_share(before, brighter, (0.0, 0.0, 1.0, 1.0)) < 0.2, "the light as a whole is no change of a thing"
