"""Where the gate looks: outside the ignore masks and, if there are zones, inside one of them.

Polygons are shares of the picture as it is shown, so they fit any size of it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image

from camserver.domain.polygons import Polygon
from camserver.media.polygon_pixels import CACHED_MAX, Bools, drawn


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
