"""A picture that came as a JPEG file, as from files, snapshots and the test source."""

import io
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.change import Gray
from camserver.media.foreign_picture import UNREADABLE, check_scans
from camserver.media.pictures import JPEG_QUALITY, PIXELS_MAX, SIDE_MAX, fit_width

# A picture that is kept and had to be encoded anew.
EDITED_QUALITY = 90

Edit: TypeAlias = Callable[[Image.Image], Image.Image]
# Pillow turns against the clock.
_TURNS = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}


class JpegPicture:
    """Decoded at least `width_needed` wide (or as it is). BadInput when it is no readable JPEG."""

    def __init__(
        self, jpeg: bytes, width_needed: int, edits: tuple[Edit, ...] = (), lies_on_its_side: bool = False
    ) -> None:
        self._jpeg = jpeg
        self._width_needed = width_needed
        self._edits = edits
        self._lies_on_its_side = lies_on_its_side
        (width, height), self._picture = _decode(jpeg, width_needed)
        for edit in edits:
            self._picture = edit(self._picture)
        self.size = (height, width) if lies_on_its_side else (width, height)

    def gray(self, width: int) -> Gray:
        return np.asarray(_to_width(self._picture.convert("L"), width))

    def small(self, width: int) -> tuple[tuple[int, int], bytes]:
        picture = _to_width(self._picture, width)
        return picture.size, _encoded(picture, JPEG_QUALITY)

    def full(self) -> bytes:
        """The one that came, if nothing was done to it."""
        if not self._edits:
            return self._jpeg
        _, picture = _decode(self._jpeg, self.size[0] + self.size[1])
        for edit in self._edits:
            picture = edit(picture)
        return _encoded(picture, EDITED_QUALITY)

    def turned(self, degrees: int) -> "JpegPicture":
        if degrees == 0:
            return self
        # What was the height is the width then, and has to be as much as is needed.
        width, height = self.size
        is_quarter = degrees != 180
        needed = self._width_needed * width // height + 1 if is_quarter else self._width_needed
        edits = (*self._edits, lambda picture: picture.transpose(_TURNS[degrees]))
        return JpegPicture(self._jpeg, needed, edits, self._lies_on_its_side != is_quarter)

    def edited(self, edit: Edit) -> "JpegPicture":
        """With something done to the picture, at whatever size it is decoded; the size must stay."""
        return JpegPicture(self._jpeg, self._width_needed, (*self._edits, edit), self._lies_on_its_side)


def _encoded(picture: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()


def _decode(jpeg: bytes, width_needed: int) -> tuple[tuple[int, int], Image.Image]:
    check_scans(jpeg, "the picture")
    try:
        picture = Image.open(io.BytesIO(jpeg), formats=("JPEG",))
        full_size = picture.size
        if full_size[0] * full_size[1] > PIXELS_MAX or max(full_size) > SIDE_MAX:
            raise BadInput(f"a picture of {full_size[0]}x{full_size[1]} is too large to be decoded")
        # A JPEG is decoded at a half, a quarter or an eighth for a fraction of the work.
        picture.draft("RGB", (min(width_needed, full_size[0]), 1))
        return full_size, picture.convert("RGB")
    except BadInput:
        raise
    except UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG: {type(error).__name__}") from None


def _to_width(picture: Image.Image, width: int) -> Image.Image:
    size = fit_width(picture.size, width)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.BOX)
