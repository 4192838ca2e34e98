"""What is done with one picture: made small for analysis, measured against the look before.

All of it is work for a thread, never for an event loop. A `Picture` comes from a JPEG or from video; the numbers are
recorded and judged by `domain.gate`, nothing is decided here.
"""

from dataclasses import dataclass
from typing import Protocol

import xxhash

from camserver.domain.gate import Measured
from camserver.media.change import Gray, Reference, blur_score, measure

JPEG_QUALITY = 80
# 8K video has 33 million; beyond it a few bytes could ask for gigabytes of memory.
PIXELS_MAX = 40_000_000


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


@dataclass(frozen=True, slots=True)
class Margins:
    """Bars around the infer picture, in its pixels. It keeps the camera's shape, so there are none today."""

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
    gray = picture.gray(diff_width)
    measured, reference = measure(gray, before, pixel_delta, with_contrast)
    infer_size, infer_jpeg = picture.small(infer_width)
    return Developed(
        full_size=picture.size,
        infer_size=infer_size,
        infer_margins=Margins(),
        infer_jpeg=infer_jpeg,
        infer_hash64_hex=xxhash.xxh3_64_hexdigest(infer_jpeg),
        measured=measured,
        reference=reference,
        blur_score=blur_score(gray),
    )


def fit_width(size: tuple[int, int], width: int) -> tuple[int, int]:
    """The size of a picture that is to be at most `width` wide and keeps its shape."""
    if size[0] <= width:
        return size
    return width, max(round(size[1] * width / size[0]), 1)
