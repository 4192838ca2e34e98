"""The colour of upper clothing: where it is looked for, and what is said."""

import pytest

from camserver.domain.clothes import Colour, top_place, top_tag
from camserver.domain.detections import Detection

SIZE = (640, 360)
# 64 x 162 pixels.
STANDING = Detection("person", 0.8, 0.4, 0.3, 0.5, 0.75)


def test_it_is_looked_for_in_the_upper_middle_of_a_person() -> None:
    place = top_place(STANDING, (), SIZE)
    assert place is not None
    x1, y1, x2, y2 = place
    assert STANDING.x1 < x1 < x2 < STANDING.x2
    assert STANDING.y1 < y1 < y2 < (STANDING.y1 + STANDING.y2) / 2


@pytest.mark.parametrize(
    "person",
    [
        Detection("person", 0.45, 0.4, 0.3, 0.5, 0.75),  # not sure
        Detection("person", 0.8, 0.4, 0.3, 0.44, 0.5),  # far away
        Detection("person", 0.8, 0.3, 0.3, 0.6, 0.75),  # sitting, or two at once
        Detection("person", 0.8, 0.4, 0.1, 0.43, 0.9),  # a sliver behind a post
    ],
)
def test_it_is_not_looked_for_where_it_can_not_be_seen(person: Detection) -> None:
    assert top_place(person, (), SIZE) is None


def test_whoever_is_behind_something_is_not_looked_at() -> None:
    behind = Detection("car", 0.6, 0.42, 0.4, 0.9, 0.9)
    beside = Detection("backpack", 0.6, 0.3, 0.3, 0.42, 0.5)
    assert top_place(STANDING, (behind,), SIZE) is None
    assert top_place(STANDING, (beside,), SIZE) is not None


@pytest.mark.parametrize(
    ("shares", "tag"),
    [
        ({Colour.RED: 0.8, Colour.GRAY: 0.2}, "top_color.red"),
        ({Colour.BLACK: 0.45, Colour.GRAY: 0.4, Colour.OTHER: 0.15}, "top_color.black"),  # folds of a black coat
        ({Colour.WHITE: 0.4, Colour.GRAY: 0.42, Colour.OTHER: 0.18}, "top_color.gray"),
        ({Colour.RED: 0.4, Colour.BLUE: 0.4, Colour.BLACK: 0.2}, "top_color.other"),  # a pattern
        ({Colour.OTHER: 0.9, Colour.RED: 0.1}, "top_color.other"),
        ({}, "top_color.other"),
    ],
)
def test_what_it_is_called(shares: dict[Colour, float], tag: str) -> None:
    assert top_tag(shares) == tag
