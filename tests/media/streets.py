"""Made-up looks at a street with known visitors, for figures about the gate.

A textured scene at diff width; visitors are small (0.05 to 0.8 % of the picture), some with low contrast, some stand
still for a while. Scenes: day, night (noisy and dark), light (clouds and a lamp), sway (a bush that moves).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SIZE: Final = (180, 320)
SCENES: Final = ("day", "night", "light", "sway")


@dataclass(frozen=True, slots=True)
class Look:
    gray: NDArray[np.uint8]
    visit: int | None  # the number of the visit that is seen, if any


def looks(scene: str, count: int, quiet_first: int, seed: int = 5) -> Iterator[Look]:
    """After `quiet_first` empty looks, a visit of three looks about every fifteen."""
    random = np.random.default_rng(seed)
    empty = _street(random)
    bush = random.normal(0, 18, (40, 60))
    left, visit, stays = 0, -1, 0
    place, size, shade, step = (0, 0), (0, 0), 0.0, 0
    for number in range(count):
        picture = empty.copy()
        if left == 0 and number > quiet_first and random.random() < 1 / 12:
            visit, left = visit + 1, 3
            stays = random.random() < 0.25
            height = int(random.uniform(11, 34))
            size = (height, max(height * 2 // 5, 3))
            place = (int(random.uniform(60, 180 - height)), int(random.uniform(20, 250)))
            shade = random.choice([-1, 1]) * random.uniform(18, 25 if random.random() < 0.33 else 70)
            step = 0 if stays else int(random.uniform(6, 20))
        seen = None
        if left:
            top, column = place[0], place[1] + step * (3 - left)
            picture[top : top + size[0], column : column + size[1]] += shade
            left, seen = left - 1, visit
        yield Look(_taken(picture, scene, number, bush, random), seen)


def _street(random: np.random.Generator) -> NDArray[np.float64]:
    rows, columns = SIZE
    picture = np.linspace(150, 100, rows)[:, None] * np.ones((1, columns))
    picture += np.kron(random.normal(0, 14, (rows // 4, columns // 4)), np.ones((4, 4)))
    picture[40:90, 40:120] = 170
    picture[55:75, 50:110:10] = 60
    return picture


def _taken(
    picture: NDArray[np.float64], scene: str, number: int, bush: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.uint8]:
    """The picture as the camera sees it."""
    noise = 1.5
    if scene == "night":
        picture, noise = picture * 0.35, 2.5
    elif scene == "light":
        picture = picture * (1 + 0.25 * np.sin(number / 7)) * (0.85 if number // 20 % 2 else 1.0)
    elif scene == "sway":
        picture[100:140, 230:290] += np.roll(bush, int(random.integers(-3, 4)), axis=1)
    return np.clip(picture + random.normal(0, noise, SIZE), 0, 255).astype(np.uint8)
