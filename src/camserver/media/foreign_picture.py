"""A picture's file as a stranger made it: refused where decoding it would take for ever, brought into RGB, upright.

How many pixels it may have is each reader's own bound. Work for a thread.
"""

from typing import Final

import numpy as np
from PIL import ExifTags, Image

from camserver.base.errors import BadInput

# A progressive JPEG goes over all its pixels once for each scan, and a scan need not be longer than 20 bytes: one of
# a few megabytes would be decoded for minutes. Real ones have about 10.
SCANS_MAX: Final = 100
_JPEG: Final = b"\xff\xd8"
_SCAN: Final = b"\xff\xda"

# What Pillow raises for a broken file; it has no tree of its own for that.
UNREADABLE: Final = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)

_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def check_scans(content: bytes, name: str) -> None:
    """BadInput for a JPEG of more scans than any camera or editor makes. Asked before it is decoded.

    The marker can't be within a scan's own data; those of a thumbnail in it count too, which are few.
    """
    if content.startswith(_JPEG) and content.count(_SCAN) > SCANS_MAX:
        raise BadInput(f"{name} is a JPEG of more than {SCANS_MAX} scans; save it anew")


def in_rgb(picture: Image.Image) -> Image.Image:
    """The picture in RGB; of 16 bits a pixel the upper ones."""
    if picture.mode == "RGB":
        picture.load()
        return picture
    return gray_of_bytes(picture).convert("RGB")


def gray_of_bytes(picture: Image.Image) -> Image.Image:
    """A picture of 16 bits a pixel as one of 8, which Pillow itself would cut off at 255; others as they are."""
    if not picture.mode.startswith("I"):
        return picture
    return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))


def upright(picture: Image.Image, opened: Image.Image) -> Image.Image:
    """The picture as it was taken: turned as the file that it was `opened` from says (EXIF), which viewers do too."""
    if "exif" not in opened.info:
        return picture
    try:
        turn = _TURNS.get(opened.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # whatever the parser makes of somebody's bytes; the picture itself is fine
        return picture
    return picture if turn is None else picture.transpose(turn)
