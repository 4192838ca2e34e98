"""Pictures of a made-up place for tests of what is measured: people in plain clothes, masked, covered, turned."""

import io
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from camserver.media.scenes import SCENES, draw_scene

SIZE = (640, 360)
# Where a person is drawn: 64 x 180 pixels.
PERSON = (0.4, 0.3, 0.5, 0.8)


@lru_cache
def place(name: str = "quiet") -> Image.Image:
    """Not to be drawn into: copy it."""
    frame = next(draw_scene(SCENES[name]))
    return Image.fromarray(frame.to_ndarray(format="rgb24")).resize(SIZE)


def with_person(top: tuple[int, int, int], box: tuple[float, float, float, float] = PERSON) -> Image.Image:
    """Somebody whose upper clothing has this colour, with folds and noise."""
    picture = place().copy()
    left, upper, right, lower = (round(share * side) for share, side in zip(box, SIZE * 2, strict=True))
    height = lower - upper
    pen = ImageDraw.Draw(picture)
    pen.ellipse((left + 16, upper, right - 16, upper + height // 6), fill=(205, 160, 135))
    pen.rectangle((left + 8, upper + height // 6, right - 8, upper + height // 2), fill=top)
    pen.rectangle((left + 12, upper + height // 2, right - 12, lower), fill=(70, 66, 60))
    part = (left, upper + height // 6, right, upper + height // 2)
    random = np.random.default_rng(1)
    clothing = np.asarray(picture.crop(part)).astype(np.float32)
    folds = 1 - 0.25 * (np.arange(clothing.shape[1]) % 16 < 4)[None, :, None]
    noisy = clothing * folds + random.normal(0, 3, clothing.shape)
    picture.paste(Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)), part)
    return picture


def turned(picture: Image.Image, share: float) -> Image.Image:
    """What a camera sees after it was turned by this share of its picture's width."""
    by = round(picture.width * share)
    return picture.crop((by, 0, picture.width, picture.height)).resize(picture.size)


def covered() -> Image.Image:
    """A palm before the lens: soft slopes and noise."""
    random = np.random.default_rng(3)
    shades = 40 + np.linspace(0, 50, SIZE[0])[None, :, None] + random.normal(0, 4, (SIZE[1], SIZE[0], 3))
    return Image.fromarray(shades.clip(0, 255).astype(np.uint8))


def masked(picture: Image.Image, shares: Sequence[float]) -> Image.Image:
    """Black in a box of the picture, as a worker makes it."""
    made = picture.copy()
    left, upper, right, lower = (round(share * side) for share, side in zip(shares, SIZE * 2, strict=True))
    made.paste((0, 0, 0), (left, upper, right, lower))
    return made


def encoded(picture: Image.Image, form: str = "JPEG") -> bytes:
    out = io.BytesIO()
    picture.save(out, form, quality=80)
    return out.getvalue()
