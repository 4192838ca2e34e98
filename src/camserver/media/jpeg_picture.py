"""A picture that came as a JPEG file, as from files, snapshots and the test source."""

import io

import numpy as np
from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.change import Gray
from camserver.media.pictures import JPEG_QUALITY, PIXELS_MAX, fit_width

# What Pillow raises for a broken file; it has no tree of its own for that.
_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


class JpegPicture:
    """Decoded at least `width_needed` wide (or as it is). BadInput when it is no readable JPEG."""

    def __init__(self, jpeg: bytes, width_needed: int) -> None:
        self._jpeg = jpeg
        self.size, self._picture = _decode(jpeg, width_needed)

    def gray(self, width: int) -> Gray:
        return np.asarray(_to_width(self._picture.convert("L"), width))

    def small(self, width: int) -> tuple[tuple[int, int], bytes]:
        picture = _to_width(self._picture, width)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=JPEG_QUALITY)
        return picture.size, out.getvalue()

    def full(self) -> bytes:
        return self._jpeg


def _decode(jpeg: bytes, width_needed: int) -> tuple[tuple[int, int], Image.Image]:
    try:
        picture = Image.open(io.BytesIO(jpeg), formats=("JPEG",))
        full_size = picture.size
        if full_size[0] * full_size[1] > PIXELS_MAX:
            raise BadInput(f"a picture of {full_size[0]}x{full_size[1]} is too large to be decoded")
        # A JPEG is decoded at a half, a quarter or an eighth for a fraction of the work.
        picture.draft("RGB", (min(width_needed, full_size[0]), 1))
        return full_size, picture.convert("RGB")
    except BadInput:
        raise
    except _UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG: {type(error).__name__}") from None


def _to_width(picture: Image.Image, width: int) -> Image.Image:
    size = fit_width(picture.size, width)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.BOX)
