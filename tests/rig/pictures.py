"""Tiny pictures that say what an analyzer shall see in them.

Two ways: a *hint*, JSON in the JPEG's comment, which says anything but is lost when a picture is encoded
anew; and a *scene*, a number from 0 to 255 drawn as bars, which survives scaling and JPEG.
"""

import io
import json
from collections.abc import Mapping

from PIL import Image, UnidentifiedImageError

HINT_PREFIX = b"camserver-hint:"
BARS = 8
DARK, BRIGHT = 32, 224
# Between a bar and its inverse below; drawn with 192, and scaling and JPEG leave far more than half of it.
CONTRAST_MIN = 96


def jpeg(
    hint: Mapping[str, object] | None = None,
    *,
    scene: int | None = None,
    size: tuple[int, int] = (64, 48),
    shade: int = 128,
    quality: int = 75,
) -> bytes:
    """A JPEG with a hint, a scene or neither; `shade` (0..255) is the gray of a picture without a scene."""
    picture = Image.new("L", size, shade) if scene is None else _bars(scene, size)
    out = io.BytesIO()
    comment = b"" if hint is None else HINT_PREFIX + json.dumps(hint).encode()
    picture.save(out, "JPEG", quality=quality, comment=comment)
    return out.getvalue()


def png(*, scene: int | None = None, size: tuple[int, int] = (64, 48), shade: int = 128) -> bytes:
    picture = Image.new("L", size, shade) if scene is None else _bars(scene, size)
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def jpeg_of_bytes(total_bytes: int, hint: Mapping[str, object] | None = None) -> bytes:
    """A valid JPEG of exactly `total_bytes`: bytes after the picture's end are ignored by every decoder."""
    picture = jpeg(hint)
    if len(picture) > total_bytes:
        raise ValueError(f"a picture needs {len(picture)} bytes, {total_bytes} are too few")
    return picture + bytes(total_bytes - len(picture))


def hint_of(picture: bytes) -> dict[str, object] | None:
    """The hint in a JPEG; None when it has none or is no picture."""
    try:
        with Image.open(io.BytesIO(picture)) as image:
            comment = image.info.get("comment", b"")
    except (UnidentifiedImageError, OSError):
        return None
    if not isinstance(comment, bytes) or not comment.startswith(HINT_PREFIX):
        return None
    hint: dict[str, object] = json.loads(comment.removeprefix(HINT_PREFIX))
    return hint


def scene_of(picture: bytes) -> int | None:
    """The scene drawn in a picture; None when it shows none. Raises OSError when it is no picture."""
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("L").resize((BARS, 2), Image.Resampling.BOX)
    above = [_gray(small, bar, 0) for bar in range(BARS)]
    below = [_gray(small, bar, 1) for bar in range(BARS)]
    if any(abs(a - b) < CONTRAST_MIN for a, b in zip(above, below, strict=True)):
        return None
    return sum((a > b) << bar for bar, (a, b) in enumerate(zip(above, below, strict=True)))


def _gray(image: Image.Image, x: int, y: int) -> int:
    return image.crop((x, y, x + 1, y + 1)).tobytes()[0]  # mode L: one byte a pixel


def _bars(scene: int, size: tuple[int, int]) -> Image.Image:
    if not 0 <= scene < 1 << BARS:
        raise ValueError(f"scene {scene} is not in 0..{(1 << BARS) - 1}")
    small = Image.new("L", (BARS, 2))
    for bar in range(BARS):
        bright = bool(scene >> bar & 1)
        small.putpixel((bar, 0), BRIGHT if bright else DARK)
        small.putpixel((bar, 1), DARK if bright else BRIGHT)
    return small.resize(size, Image.Resampling.NEAREST)
