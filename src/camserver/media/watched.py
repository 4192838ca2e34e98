"""Where the gate looks: outside the ignore masks and, if there are zones, inside one of them.

Polygons are shares of the picture as it is shown, so they fit any size of it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from camserver.domain.polygons import Polygon

Bools: TypeAlias = NDArray[np.bool_]

# Pictures of a size are drawn once. A worker's cameras fit; beyond them the oldest is drawn again.
CACHED_MAX = 512


@dataclass(frozen=True, slots=True)
class Watch:
    """Without anything given, everywhere."""

    ignored: tuple[Polygon, ...] = ()
    zones: tuple[Polygon, ...] = ()
    masks_clocks: bool = True  # clocks that are found are not watched

    @property
    def is_everywhere(self) -> bool:
        return not self.ignored and not self.zones


EVERYWHERE = Watch()


@lru_cache(maxsize=CACHED_MAX)
def watched_pixels(watch: Watch, height: int, width: int) -> Bools | None:
    """Which pixels of a picture count; None: all of them."""
    if watch.is_everywhere:
        return None
    seen = drawn(watch.zones, height, width) if watch.zones else np.ones((height, width), np.bool_)
    return seen & ~drawn(watch.ignored, height, width)


@lru_cache(maxsize=CACHED_MAX)
def watched_cells(watch: Watch, height: int, width: int, rows: int, columns: int) -> Bools | None:
    """Which cells of a picture count: those with at least half of them watched. None: all of them."""
    pixels = watched_pixels(watch, height, width)
    if pixels is None:
        return None
    picture = Image.fromarray(pixels.astype(np.uint8) * np.uint8(255))
    return np.asarray(picture.resize((columns, rows), Image.Resampling.BOX)) >= 128


def drawn(polygons: tuple[Polygon, ...], height: int, width: int) -> Bools:
    """True inside any of the polygons."""
    picture = Image.new("L", (width, height))
    draw = ImageDraw.Draw(picture)
    for polygon in polygons:
        # A polygon ends between pixels: its edge at 1.0 is the right edge of the last one.
        draw.polygon([(x * width - 0.5, y * height - 0.5) for x, y in polygon], fill=1)
    return np.asarray(picture, dtype=np.bool_)
