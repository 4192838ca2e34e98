"""A picture with what an analyzer found drawn on it. Work for a thread, never for an event loop.

The picture that is kept is never touched: this makes another one of it.
"""

import io
from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from camserver.base.errors import BadInput
from camserver.domain.analysis import Box
from camserver.media.foreign_picture import UNREADABLE, check_scans, in_rgb
from camserver.media.jpeg_picture import EDITED_QUALITY
from camserver.media.pictures import PIXELS_MAX, SIDE_MAX

LINE: Final = (252, 211, 77)
EDGE: Final = (0, 0, 0)
# Of the picture's longer side.
LINE_SHARE: Final = 1 / 400
WORD_SHARE: Final = 1 / 50
WORD_PX_MIN: Final = 11
# The drawn-in font has these and no others.
LAST_CHARACTER: Final = "\u00ff"
WORD_CHARS_MAX: Final = 40


def draw_boxes(content: bytes, boxes: Sequence[Box], *, with_words: bool = True) -> bytes:
    """A JPEG of it, as large as it came. BadInput when it is no readable JPEG or PNG."""
    check_scans(content, "the picture")
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as opened:
            width, height = opened.size
            if width * height > PIXELS_MAX or max(width, height) > SIDE_MAX:
                raise BadInput(
                    f"the picture has {width}x{height} pixels; at most {PIXELS_MAX} and {SIDE_MAX} a side can be "
                    "drawn on"
                )
            picture = in_rgb(opened)
    except UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG or PNG ({type(error).__name__})") from None
    pen = ImageDraw.Draw(picture)
    thick = max(round(max(picture.size) * LINE_SHARE), 1)
    # The surest last, so that it is on top.
    for box in sorted(boxes, key=lambda box: box.conf or 0.0):
        _frame(pen, box, picture.size, thick)
    if with_words:
        font = ImageFont.load_default(max(max(picture.size) * WORD_SHARE, WORD_PX_MIN))
        for box in sorted(boxes, key=lambda box: box.conf or 0.0):
            _word(pen, box, picture.size, font)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=EDITED_QUALITY)
    return out.getvalue()


def _frame(pen: ImageDraw.ImageDraw, box: Box, size: tuple[int, int], thick: int) -> None:
    """A bright line between two dark ones, so that it shows on any ground."""
    x1, y1, x2, y2 = _pixels(box, size)
    pen.rectangle((x1 - 1, y1 - 1, x2 + 1, y2 + 1), outline=EDGE, width=1)
    pen.rectangle((x1, y1, x2, y2), outline=LINE, width=thick)


def _word(
    pen: ImageDraw.ImageDraw,
    box: Box,
    size: tuple[int, int],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> None:
    word = _said_of(box)
    if not word:
        return
    x1, y1, _, _ = _pixels(box, size)
    left, top, right, bottom = pen.textbbox((0, 0), word, font=font)
    width, height = right - left + 4, bottom - top + 4
    x = max(min(x1, size[0] - width), 0)
    y = y1 - height if y1 >= height else y1  # above its box where there is room
    pen.rectangle((x, y, x + width, y + height), fill=LINE)
    pen.text((x + 2 - left, y + 2 - top), word, fill=EDGE, font=font)


def _said_of(box: Box) -> str:
    label = (box.label or "")[:WORD_CHARS_MAX]
    readable = label if all(" " <= char <= LAST_CHARACTER for char in label) else ""
    return f"{readable} {'' if box.conf is None else f'{100 * box.conf:.0f} %'}".strip()


def _pixels(box: Box, size: tuple[int, int]) -> tuple[float, float, float, float]:
    width, height = size[0] - 1, size[1] - 1
    return box.x1 * width, box.y1 * height, box.x2 * width, box.y2 * height
