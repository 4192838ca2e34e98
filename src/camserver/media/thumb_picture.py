"""A small picture of a kept one, for lists and notices. Work for a thread, never for an event loop."""

import io
from typing import Final

from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.foreign_picture import UNREADABLE, check_scans, in_rgb
from camserver.media.pictures import PIXELS_MAX

# The longer side; smaller pictures stay as large as they are.
SIDE_PX: Final = 320
QUALITY: Final = 75


def make_thumb(content: bytes) -> bytes:
    """A small JPEG of it. BadInput when it is no readable JPEG or PNG."""
    check_scans(content, "the picture")
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as opened:
            width, height = opened.size
            if width * height > PIXELS_MAX:
                raise BadInput(f"the picture has {width}x{height} pixels; at most {PIXELS_MAX} are made smaller")
            # A JPEG is decoded at the nearest eighth of its size that is large enough.
            opened.draft("RGB", (2 * SIDE_PX, 2 * SIDE_PX))
            picture = in_rgb(opened)
    except UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG or PNG ({type(error).__name__})") from None
    picture.thumbnail((SIDE_PX, SIDE_PX))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()
