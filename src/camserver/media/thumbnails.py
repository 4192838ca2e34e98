"""Pictures small enough to go into a message or a list. Work for a thread, never for an event loop."""

from typing import Final

from camserver.base.errors import BadInput
from camserver.media.jpeg_picture import JpegPicture

BYTES_MAX: Final = 100_000
# Tried in turn; noise is what makes a picture large, and it goes first when a picture shrinks.
WIDTHS: Final = (640, 480, 320, 240, 160)
# In a list; what is less wide stays so.
LISTED_WIDTH: Final = 320


def listed(jpeg: bytes) -> bytes:
    """The picture as lists show it. BadInput when it is no readable JPEG."""
    _, small = JpegPicture(jpeg, LISTED_WIDTH).small(LISTED_WIDTH)
    return small


def thumbnail(jpeg: bytes, bytes_max: int = BYTES_MAX) -> bytes:
    """The picture as it is, or made smaller until it fits. BadInput when it is no readable JPEG."""
    picture = JpegPicture(jpeg, WIDTHS[0])
    if len(jpeg) <= bytes_max:
        return jpeg
    for width in WIDTHS:
        _, small = picture.small(width)
        if len(small) <= bytes_max:
            return small
    raise BadInput(f"the picture can't be made smaller than {bytes_max} bytes")
