"""A picture with a grid of shares on it, to read the corners of masks and zones from. Work for a thread.

The picture that is kept is never touched: this makes another one of it.
"""

import io
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from camserver.base.errors import BadInput
from camserver.media.foreign_picture import UNREADABLE, check_scans
from camserver.media.jpeg_picture import EDITED_QUALITY
from camserver.media.pictures import PIXELS_MAX, SIDE_MAX

# Lines at each tenth, which have a number, and between them.
TENTHS: Final = 10
LINE: Final = (252, 211, 77)
FINE: Final = (200, 200, 200)
EDGE: Final = (0, 0, 0)
# A small picture is enlarged, so that the numbers do not hide what is to be read.
WIDTH_MIN: Final = 1280
WORD_SHARE: Final = 1 / 75


def draw_grid(content: bytes) -> bytes:
    """A JPEG with lines at each twentieth and numbers at each tenth. BadInput when it is no readable JPEG."""
    check_scans(content, "the picture")
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as opened:
            width, height = opened.size
            if width * height > PIXELS_MAX or max(width, height) > SIDE_MAX:
                raise BadInput(
                    f"the picture has {width}x{height} pixels; at most {PIXELS_MAX} and {SIDE_MAX} a side can be "
                    "drawn on"
                )
            picture = opened.convert("RGB")
    except UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG ({type(error).__name__})") from None
    enlarged = max(-(-WIDTH_MIN // width), 1)
    if enlarged > 1 and width * height * enlarged * enlarged <= PIXELS_MAX:
        picture = picture.resize((width * enlarged, height * enlarged), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    for step in range(2 * TENTHS + 1):
        _line(pen, step / (2 * TENTHS), picture.size, is_tenth=step % 2 == 0)
    font = ImageFont.load_default(picture.width * WORD_SHARE)
    for step in range(TENTHS + 1):
        _numbers(pen, step / TENTHS, picture.size, font)
    out = io.BytesIO()
    # Thin lines keep their colour only where every pixel has one.
    picture.save(out, "JPEG", quality=EDITED_QUALITY, subsampling=0)
    return out.getvalue()


def _line(pen: ImageDraw.ImageDraw, share: float, size: tuple[int, int], *, is_tenth: bool) -> None:
    """One down and one across. Tenths have a dark edge, so that they show on any ground."""
    x, y = _pixel(share, size[0]), _pixel(share, size[1])
    for line in (((x, 0), (x, size[1])), ((0, y), (size[0], y))):
        if is_tenth:
            pen.line(line, fill=EDGE, width=5)
        pen.line(line, fill=LINE if is_tenth else FINE, width=2 if is_tenth else 1)


def _numbers(
    pen: ImageDraw.ImageDraw,
    share: float,
    size: tuple[int, int],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> None:
    """Along the upper edge x, along the left one y."""
    word = f"{share:.1f}"
    left, top, right, bottom = pen.textbbox((0, 0), word, font=font)
    width, height = right - left + 4, bottom - top + 4
    places = [(_pixel(share, size[0]) - width / 2, 0.0)]
    if share > 0:  # 0.0 is in the corner already
        places.append((0.0, _pixel(share, size[1]) - height / 2))
    for wanted_x, wanted_y in places:
        x, y = min(max(wanted_x, 0), size[0] - width), min(max(wanted_y, 0), size[1] - height)
        pen.rectangle((x, y, x + width, y + height), fill=LINE)
        pen.text((x + 2 - left, y + 2 - top), word, fill=EDGE, font=font)


def _pixel(share: float, length: int) -> int:
    return min(round(share * length), length - 1)
