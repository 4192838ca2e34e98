"""The pictures of the test source: a plain scene, a shape that crosses it, and the number of the look.

Picture n is always the same bytes on the same machine. Nothing here knows a camera.
"""

import io

from PIL import Image, ImageDraw

JPEG_QUALITY = 85
_GROUND = (96, 104, 96)
_WALL = (150, 146, 138)
_SHAPE = (240, 200, 60)


def draw(size: tuple[int, int], number: int | None, period: int) -> bytes:
    """The `number`-th picture as a JPEG, or the empty scene without one; the shape crosses in `period` pictures."""
    width, height = size
    picture = Image.new("RGB", size, _GROUND)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, width, height // 3), fill=_WALL)
    for column in range(0, width, max(width // 8, 1)):
        pen.line((column, height // 3, width // 2, height), fill=_WALL)
    if number is not None:
        side = max(height // 5, 8)
        left = (width - side) * (number % period) // max(period - 1, 1)
        top = height // 2 - side // 2
        pen.ellipse((left, top, left + side, top + side), fill=_SHAPE)
        pen.text((8, 8), f"look {number}", fill=(0, 0, 0))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()
