"""Made-up scenes for cameras that nobody has: a quiet place, the same at night, and one with somebody in it.

Pictures are the same on every machine. They are rough on purpose: enough for a gate and a person's eye, nothing that
a detector should find.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.clips import encode_frames

SIZE: Final = (960, 540)
FPS: Final = 10
_RECIPE = "1"  # part of the cache's names; counts up when the pictures change


@dataclass(frozen=True, slots=True)
class Scene:
    seconds: int
    light: float  # 1: day
    noise: float  # standard deviation of the sensor's noise, in luma
    has_walker: bool


SCENES: Final = {
    "quiet": Scene(8, 1.0, 1.5, False),
    "night": Scene(8, 0.3, 5.0, False),
    "moving": Scene(12, 1.0, 1.5, True),
}


def encode_scene(name: str, width_max: int, folder: Path) -> Path:
    """The scene as an H.264 file in `folder`, made when it is not there yet."""
    if name not in SCENES:
        raise BadInput(f"there is no scene {name!r}; there are {', '.join(SCENES)}")
    target = folder / f"scene-{name}-{width_max}-{_RECIPE}.mp4"
    if not target.exists():
        width = min(width_max, SIZE[0])
        encode_frames(draw_scene(SCENES[name]), FPS, (width & ~1, SIZE[1] * width // SIZE[0] & ~1), target)
    return target


def draw_scene(scene: Scene) -> Iterator[VideoFrame]:
    """Its pictures in order; the last one leads back to the first."""
    random = np.random.default_rng(7)
    empty = _backdrop(random)
    count = scene.seconds * FPS
    for number in range(count):
        luma = empty.copy()
        if scene.has_walker:
            _add_walker(luma, number / count)
        luma = luma * np.float32(scene.light) + random.normal(0, scene.noise, luma.shape).astype(np.float32)
        yield _frame(luma)


def _backdrop(random: np.random.Generator) -> NDArray[np.float32]:
    """Sky, a wall with windows, and a rough ground."""
    width, height = SIZE
    picture = np.empty((height, width), np.float32)
    horizon = height * 2 // 5
    picture[:horizon] = np.linspace(210, 170, horizon, dtype=np.float32)[:, None]
    picture[horizon:] = np.linspace(95, 130, height - horizon, dtype=np.float32)[:, None]
    picture[horizon // 3 : horizon + 20, width // 8 : width // 2] = 140
    for column in range(width // 8 + 20, width // 2 - 50, 80):
        picture[horizon // 2 : horizon - 20, column : column + 40] = 70
    grain = random.normal(0, 12, (height // 6, width // 6)).astype(np.float32)
    picture += np.kron(grain, np.ones((6, 6), np.float32))[:height, :width]
    return picture


def _add_walker(luma: NDArray[np.float32], turn: float) -> None:
    """Somebody who comes in from the left, crosses and is gone for the last third of the turn."""
    width, height = SIZE
    tall, wide = height // 4, height // 12
    left = int(turn * 1.5 * (width + wide)) - wide
    top = height // 2 - int(6 * abs(np.sin(turn * 40)))
    body = luma[top : top + tall, max(left, 0) : max(left + wide, 0)]
    body[: tall // 5] = 175
    body[tall // 5 : tall * 3 // 5] = 40
    body[tall * 3 // 5 :] = 60


def _frame(luma: NDArray[np.float32]) -> VideoFrame:
    planes = np.full((SIZE[1] * 3 // 2, SIZE[0]), 128, np.uint8)
    planes[: SIZE[1]] = np.clip(luma, 16, 235)
    return VideoFrame.from_ndarray(planes, format="yuv420p")
