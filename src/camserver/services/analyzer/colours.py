"""Colours of a part of a picture: which share is of which of the vocabulary's colours, and the one in the middle.

In CIE L*a*b*, where lightness is apart from colour, so that shade changes the one and hardly the other. Lightness is
taken relative to the picture's own brightest parts: a white shirt at dusk is as white as at noon.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from camserver.domain.clothes import Colour
from camserver.domain.running import Lab
from camserver.media.change import Gray

# A part with fewer pixels than this says nothing.
PIXELS_MIN = 60
# Larger parts are made smaller: their colours stay the same.
SIDE_MAX_PX = 48
# The picture's brightest share counts as white; for that, the picture is made brighter by at most so much.
BRIGHTEST_SHARE = 0.02
GAIN_MAX = 2.0
# Lightness below which a colour is black, and above which one without colour is white.
BLACK_BELOW, WHITE_ABOVE = 24.0, 78.0
# Colourfulness (distance from gray) from which on there is a colour. Red needs more: beige and brown are reddish too.
GRAY_BELOW = 14.0
BLUE_ABOVE, RED_ABOVE = 16.0, 32.0
# Hues in degrees.
RED_FROM, RED_TO = -12.0, 48.0
BLUE_FROM, BLUE_TO = 235.0, 315.0

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]],
    np.float32,
)
_WHITE = np.array([0.95047, 1.0, 1.08883], np.float32)
_LINEAR = np.array(
    [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in np.arange(256) / 255], np.float32
)


@dataclass(frozen=True, slots=True)
class Coloured:
    shares: Mapping[Colour, float]  # add up to 1
    middle: Lab


def gain_of(gray: Gray) -> float:
    """How much more light the picture needs for its brightest parts to be white; linear, 1 and up."""
    darker = np.cumsum(np.bincount(gray.reshape(-1), minlength=256))
    brightest = int(np.searchsorted(darker, (1 - BRIGHTEST_SHARE) * gray.size))
    return min(max(float(0.85 / max(_LINEAR[brightest], 1e-3)), 1.0), GAIN_MAX)


def colours_in(picture: Image.Image, place: tuple[float, float, float, float], gain: float) -> Coloured | None:
    """`place`: x1, y1, x2, y2 in 0..1 of the picture."""
    width, height = picture.size
    x1, y1, x2, y2 = place
    part = picture.crop((round(x1 * width), round(y1 * height), round(x2 * width), round(y2 * height)))
    if part.width * part.height < PIXELS_MIN:
        return None
    part.thumbnail((SIDE_MAX_PX, SIDE_MAX_PX), Image.Resampling.BOX)
    lab = lab_of(np.asarray(part), gain)
    colours = _named(lab)
    shares = {colour: int(np.count_nonzero(colours == number)) / len(lab) for number, colour in enumerate(Colour)}
    lightness, a, b = (float(value) for value in np.median(lab, axis=0))
    return Coloured(shares, (lightness, a, b))


def lab_of(rgb: NDArray[np.uint8], gain: float = 1.0) -> NDArray[np.float32]:
    """L*, a* and b* of each pixel, a row each."""
    linear = np.minimum(_LINEAR[rgb.reshape(-1, 3)] * np.float32(gain), 1)
    xyz = linear @ _TO_XYZ.T / _WHITE
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = root.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1).astype(np.float32)


def _named(lab: NDArray[np.float32]) -> NDArray[np.int64]:
    """The place of each pixel's colour in `Colour`."""
    lightness, a, b = lab.T
    strength = np.hypot(a, b)
    hue = np.degrees(np.arctan2(b, a))
    is_red = (strength >= RED_ABOVE) & (hue >= RED_FROM) & (hue <= RED_TO)
    is_blue = (strength >= BLUE_ABOVE) & (hue % 360 >= BLUE_FROM) & (hue % 360 <= BLUE_TO)
    is_black = (lightness < BLACK_BELOW) & (strength < RED_ABOVE)
    is_gray = strength < GRAY_BELOW
    order = list(Colour)
    return np.select(
        [is_red, is_black & ~is_blue, is_blue, is_gray & (lightness > WHITE_ABOVE), is_gray],
        [order.index(colour) for colour in (Colour.RED, Colour.BLACK, Colour.BLUE, Colour.WHITE, Colour.GRAY)],
        order.index(Colour.OTHER),
    )
