"""What is done with one picture: made small for analysis, measured against the look before.

All of it is work for a thread, never for an event loop. A `Picture` comes from a JPEG or from video; the numbers are
recorded and judged by `domain.gate`, nothing is decided here.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from camserver.domain.gate import Measured
from camserver.media.change import Gray, Reference, blur_score, measure
from camserver.media.view import View, view_of

JPEG_QUALITY = 80
# 8K video has 33 million; beyond it a few bytes could ask for gigabytes of memory.
PIXELS_MAX = 40_000_000
# A JPEG can't be larger than 65,500 a side, and what is drawn on a picture is a share of its longer one.
SIDE_MAX = 16_384
# For FFmpeg, which decodes what it opens to find out what it is.
OPEN_OPTIONS = {"max_pixels": str(PIXELS_MAX)}
# Black of video, with some noise of its encoder; and how much of a side a bar takes.
BAR_LUMA_MAX = 12
BAR_LEAST, BAR_MOST = 0.02, 0.4


class Picture(Protocol):
    """A decoded picture."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height as it came."""

    def gray(self, width: int) -> Gray:
        """Its luma, at most so wide, averaged over area."""

    def small(self, width: int) -> tuple[tuple[int, int], bytes]:
        """Size and bytes of a JPEG of it that is at most so wide."""

    def full(self) -> bytes:
        """A JPEG of it as large as it came."""

    def turned(self, degrees: int) -> "Picture":
        """With every pixel turned by 0, 90, 180 or 270 degrees with the clock."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Black bars around the infer picture, in its pixels.

    We add none, the picture keeps the camera's shape; but cameras and recorders put a picture of another shape into
    theirs, and then these are no part of what is seen.
    """

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    @property
    def any(self) -> bool:
        return bool(self.top or self.left or self.bottom or self.right)


@dataclass(frozen=True, slots=True)
class Developed:
    """A picture ready to be judged and sent."""

    full_size: tuple[int, int]
    infer_size: tuple[int, int]
    infer_margins: Margins
    infer_jpeg: bytes
    infer_hash64_hex: str  # of those bytes
    measured: Measured
    reference: Reference  # for the next look
    blur_score: float  # 0..100, higher is blurrier
    view: View | None = None


def develop(
    picture: Picture,
    *,
    infer_width: int,
    diff_width: int,
    before: Reference,
    pixel_delta: int,
    with_contrast: bool,
) -> Developed:
    """Makes the infer picture and measures. The infer picture is never enlarged: that adds nothing."""
    infer_size, infer_jpeg = picture.small(infer_width)
    gray = picture.gray(diff_width)
    measured, reference = measure(gray, before, pixel_delta, with_contrast)
    return Developed(
        full_size=picture.size,
        infer_size=infer_size,
        infer_margins=bars_of(gray, infer_size),
        infer_jpeg=infer_jpeg,
        infer_hash64_hex=xxhash.xxh3_64_hexdigest(infer_jpeg),
        measured=measured,
        reference=reference,
        blur_score=blur_score(gray),
        view=view_of(gray),
    )


def bars_of(gray: Gray, size: tuple[int, int]) -> Margins:
    """The bars in a picture, for a picture of `size` of the same. Only bars of equal width on opposite sides count:
    a dark edge alone may be a roof or the night.
    """
    is_lit = gray > BAR_LUMA_MAX
    rows: NDArray[np.bool_] = np.logical_or.reduce(is_lit, axis=1)
    columns: NDArray[np.bool_] = np.logical_or.reduce(is_lit, axis=0)
    top, bottom = _equal_bars(rows)
    left, right = _equal_bars(columns)
    height_share, width_share = size[1] / len(rows), size[0] / len(columns)
    return Margins(
        top=round(top * height_share),
        left=round(left * width_share),
        bottom=round(bottom * height_share),
        right=round(right * width_share),
    )


def _equal_bars(is_lit: NDArray[np.bool_]) -> tuple[int, int]:
    lit = np.flatnonzero(is_lit)
    if len(lit) == 0:
        return 0, 0
    before, after = int(lit[0]), len(is_lit) - 1 - int(lit[-1])
    least, most = BAR_LEAST * len(is_lit), BAR_MOST * len(is_lit)
    if abs(before - after) > 1 + len(is_lit) // 100 or not least <= min(before, after) <= max(before, after) <= most:
        return 0, 0
    return before, after


def fit_width(size: tuple[int, int], width: int) -> tuple[int, int]:
    """The size of a picture that is to be at most `width` wide and keeps its shape."""
    if size[0] <= width:
        return size
    return width, max(round(size[1] * width / size[0]), 1)
