"""Made-up scenes for cameras that nobody has: a quiet place, the same at night, and one with somebody in it.

Pictures are the same on every machine: drawn once at twice the size, then only noise and the walker change. They are
simple on purpose: enough for a gate and a person's eye, nothing that a detector should find.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from camserver.base.errors import BadInput
from camserver.media.clips import Clip, encode_frames, read_clip

SIZE: Final = (960, 540)
FPS: Final = 10
_RECIPE = "2"  # part of the cache's names; counts up when the pictures change
_SCALE: Final = 2  # drawn larger and made smaller again, which smooths the edges

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Scene:
    seconds: int
    is_night: bool
    noise: float  # standard deviation of the sensor's noise, in grey levels
    has_walker: bool


SCENES: Final = {
    "quiet": Scene(8, False, 1.5, False),
    "night": Scene(8, True, 4.0, False),
    "moving": Scene(12, False, 1.5, True),
}


def encode_scene(name: str, width_max: int, folder: Path, stop: threading.Event | None = None) -> Path:
    """The scene as an H.264 file in `folder`, made when it is not there yet; setting `stop` ends the making."""
    if name not in SCENES:
        raise BadInput(f"there is no scene {name!r}; there are {', '.join(SCENES)}")
    target = folder / f"scene-{name}-{width_max}-{_RECIPE}.mp4"
    if not target.exists():
        width = min(width_max, SIZE[0])
        encode_frames(draw_scene(SCENES[name]), FPS, (width & ~1, SIZE[1] * width // SIZE[0] & ~1), target, stop)
    return target


def black_clip(size: tuple[int, int], folder: Path) -> Clip:
    """What a camera of this size sees with its lens covered."""
    target = folder / f"black-{size[0]}x{size[1]}-{_RECIPE}.mp4"
    if not target.exists():
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = 16
        black = VideoFrame.from_ndarray(planes, format="yuv420p")
        encode_frames([black] * (2 * FPS), FPS, size, target)
    return read_clip(target)


def draw_scene(scene: Scene) -> Iterator[VideoFrame]:
    """Its pictures in order; the last one leads back to the first."""
    random = np.random.default_rng(7)
    empty = _car_park_at_night() if scene.is_night else _yard()
    planes = _planes(empty)
    count = scene.seconds * FPS
    for number in range(count):
        if scene.has_walker:
            planes = _planes(_with_walker(empty, number / count))
        shown = planes.copy()
        luma = shown[: SIZE[1]]
        grain = random.standard_normal(luma.shape, np.float32) * np.float32(scene.noise)
        luma[:] = _bytes(luma + grain)
        yield VideoFrame.from_ndarray(shown, format="yuv420p")


def _planes(picture: Image.Image) -> NDArray[np.uint8]:
    """Luma above, the colours below, as video has them."""
    colours = VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
    return np.asarray(colours.reformat(format="yuv420p").to_ndarray(), np.uint8)


def _yard() -> Image.Image:
    """A house, a lawn with a path, and trees."""
    canvas, draw = _blank()
    _shade(canvas, (0, 0, 960, 230), (168, 196, 222), (222, 230, 234))
    _shade(canvas, (0, 230, 960, 540), (112, 138, 84), (84, 112, 62))
    _polygon(draw, [(430, 232), (520, 232), (760, 540), (300, 540)], (176, 166, 148))
    _rectangle(draw, (110, 96, 470, 268), (190, 172, 150))
    _polygon(draw, [(90, 98), (490, 98), (440, 44), (140, 44)], (126, 74, 60))
    for left in (140, 215, 290):
        _rectangle(draw, (left, 128, left + 48, 184), (238, 236, 228))
        _rectangle(draw, (left + 4, 132, left + 44, 180), (78, 96, 110))
    _rectangle(draw, (384, 150, 436, 268), (92, 62, 44))
    for left, size in ((640, 90), (780, 120), (884, 76)):
        _rectangle(draw, (left - 7, 210, left + 7, 290), (86, 64, 46))
        _ellipse(draw, (left - size // 2, 210 - size, left + size // 2, 226), (66, 98, 54))
    for left in range(540, 960, 34):
        _rectangle(draw, (left, 262, left + 8, 316), (232, 230, 222))
    _rectangle(draw, (540, 276, 960, 284), (232, 230, 222))
    return _finished(canvas)


def _car_park_at_night() -> Image.Image:
    """Marked bays, two parked cars and a lamp, lit enough to be seen."""
    canvas, draw = _blank()
    _shade(canvas, (0, 0, 960, 200), (12, 16, 30), (28, 32, 46))
    _shade(canvas, (0, 200, 960, 540), (40, 42, 46), (54, 54, 56))
    _rectangle(draw, (520, 70, 960, 214), (34, 36, 44))
    for left in range(548, 940, 62):
        lit = (196, 168, 96) if left in (672, 858) else (22, 26, 36)
        _rectangle(draw, (left, 96, left + 34, 134), lit)
        _rectangle(draw, (left, 154, left + 34, 190), (22, 26, 36))
    for left in range(60, 960, 150):
        _polygon(draw, [(left, 300), (left + 6, 300), (left - 40, 470), (left - 48, 470)], (128, 128, 122))
    for left, body in ((240, (58, 66, 84)), (700, (84, 52, 50))):
        _polygon(draw, [(left + 26, 330), (left + 50, 296), (left + 116, 296), (left + 140, 330)], (30, 34, 42))
        _rectangle(draw, (left, 328, left + 166, 376), body)
        for wheel in (left + 22, left + 118):
            _ellipse(draw, (wheel, 360, wheel + 32, 392), (16, 16, 18))
    _rectangle(draw, (470, 90, 476, 330), (70, 72, 76))
    light = Image.new("L", canvas.size, 0)
    glow = ImageDraw.Draw(light)
    _polygon(glow, [(466, 92), (480, 92), (690, 430), (256, 430)], 70)
    _ellipse(glow, (445, 66, 501, 118), 230)
    light = light.filter(ImageFilter.GaussianBlur(24))
    canvas.paste(Image.new("RGB", canvas.size, (255, 226, 168)), (0, 0), light)
    return _finished(canvas)


def _with_walker(empty: Image.Image, turn: float) -> Image.Image:
    """Somebody who comes in from the left, crosses and is gone for the last third of the turn."""
    picture = empty.copy()
    draw = ImageDraw.Draw(picture)
    left = turn * 1.5 * (SIZE[0] + 60) - 60
    stride = 18 * float(np.sin(turn * 2 * np.pi * 18))
    draw.ellipse((left + 18, 268, left + 40, 292), fill=(206, 170, 140))
    draw.rounded_rectangle((left + 12, 292, left + 46, 352), 8, fill=(52, 60, 92))
    for foot in (stride, -stride):
        draw.line((left + 29, 350, left + 29 + foot, 408), fill=(40, 40, 44), width=13)
    return picture


def _blank() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    canvas = Image.new("RGB", (SIZE[0] * _SCALE, SIZE[1] * _SCALE))
    return canvas, ImageDraw.Draw(canvas)


def _shade(canvas: Image.Image, box: tuple[int, int, int, int], top: Colour, bottom: Colour) -> None:
    """Fills a part of the canvas with colours that run from top to bottom."""
    left, upper, right, lower = (edge * _SCALE for edge in box)
    share = np.linspace(0, 1, lower - upper)[:, None, None]
    colours = np.asarray(top) * (1 - share) + np.asarray(bottom) * share
    canvas.paste(Image.fromarray(_bytes(np.broadcast_to(colours, (lower - upper, right - left, 3)))), (left, upper))


def _rectangle(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], colour: Colour | int) -> None:
    draw.rectangle([edge * _SCALE for edge in box], fill=colour)


def _ellipse(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], colour: Colour | int) -> None:
    draw.ellipse([edge * _SCALE for edge in box], fill=colour)


def _polygon(draw: ImageDraw.ImageDraw, points: list[tuple[int, int]], colour: Colour | int) -> None:
    draw.polygon([(x * _SCALE, y * _SCALE) for x, y in points], fill=colour)


def _finished(canvas: Image.Image) -> Image.Image:
    """In its final size, with the fine texture that real surfaces have."""
    pixels = np.asarray(canvas.resize(SIZE, Image.Resampling.LANCZOS), np.float32)
    texture = np.random.default_rng(3).normal(0, 3, pixels.shape[:2])
    return Image.fromarray(_bytes(pixels + texture[..., None]))


def _bytes(pixels: NDArray[np.floating]) -> NDArray[np.uint8]:
    levels: NDArray[np.uint8] = np.clip(pixels, 0, 255).astype(np.uint8)
    return levels
