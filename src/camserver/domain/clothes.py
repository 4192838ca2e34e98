"""The colour of a person's upper clothing, in the few words of the vocabulary.

From the shares of the pixels by colour, as they were counted in the upper middle of a person's box. Whose box is too
small, hidden or not upright, or in a picture without colours, is not asked about. Clothes are all that is looked at.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from camserver.domain.detections import Detection

TAG_PREFIX = "top_color."
# What must be of one colour for the clothing to be called so. Less is a pattern, or too mixed to say: another colour.
PLAIN_SHARE = 0.5
# Shades of one piece of clothing: folds of a black coat are gray, a white shirt in the shade is.
_NEIGHBOURS = (("black", "gray"), ("white", "gray"))
SCORE_MIN = 0.5
# Of the box in pixels: how tall it must be, and its height over its width for somebody upright and whole.
HEIGHT_MIN_PX = 80
UPRIGHT_MIN, UPRIGHT_MAX = 1.6, 4.5
# Where a standing person's upper clothing is, in shares of the box.
TOP_LEFT, TOP_RIGHT = 0.3, 0.7
TOP_UPPER, TOP_LOWER = 0.2, 0.42


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"
    BLACK = "black"
    WHITE = "white"
    GRAY = "gray"
    OTHER = "other"


def top_place(
    person: Detection, others: Sequence[Detection], size_px: tuple[int, int]
) -> tuple[float, float, float, float] | None:
    """Where to look, as x1, y1, x2, y2 in 0..1 of the picture; None when it can't be seen well."""
    width, height = person.x2 - person.x1, person.y2 - person.y1
    width_px, height_px = width * size_px[0], height * size_px[1]
    upright = height_px / width_px if width_px else 0.0
    if person.score < SCORE_MIN or height_px < HEIGHT_MIN_PX or not UPRIGHT_MIN <= upright <= UPRIGHT_MAX:
        return None
    place = (
        person.x1 + TOP_LEFT * width,
        person.y1 + TOP_UPPER * height,
        person.x1 + TOP_RIGHT * width,
        person.y1 + TOP_LOWER * height,
    )
    return None if any(_covers(other, place) for other in others) else place


def top_tag(shares: Mapping[Colour, float]) -> str:
    """`shares` add up to 1."""
    colour = max(Colour, key=lambda one: shares.get(one, 0.0))
    if shares.get(colour, 0.0) >= PLAIN_SHARE:
        return TAG_PREFIX + colour
    for name, shade in _NEIGHBOURS:
        both = shares.get(Colour(name), 0.0) + shares.get(Colour(shade), 0.0)
        if both >= PLAIN_SHARE and colour in (name, shade):
            return TAG_PREFIX + colour
    return TAG_PREFIX + Colour.OTHER


def _covers(other: Detection, place: tuple[float, float, float, float]) -> bool:
    x1, y1, x2, y2 = place
    return other.x1 < x2 and x1 < other.x2 and other.y1 < y2 and y1 < other.y2
