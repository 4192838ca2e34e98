"""Which pixels the polygons cover that people draw over a picture (domain/polygons.py)."""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from camserver.domain.polygons import Polygon

Bools: TypeAlias = NDArray[np.bool_]

# Pictures of a size are drawn once. A worker's cameras fit; beyond them the oldest is drawn again.
CACHED_MAX = 512


@lru_cache(maxsize=CACHED_MAX)
def drawn(polygons: tuple[Polygon, ...], height: int, width: int) -> Bools:
    """True inside any of the polygons and on their edges. Not to be written to."""
    picture = Image.new("L", (width, height))
    draw = ImageDraw.Draw(picture)
    for polygon in polygons:
        # A polygon ends between pixels: its edge at 1.0 is the right edge of the last one. What is half covered
        # counts as covered: of what nobody may see, rather one pixel too many is hidden than one too few.
        draw.polygon([(x * width - 0.5, y * height - 0.5) for x, y in polygon], fill=1, outline=1)
    covered = np.array(picture, np.bool_)
    covered.setflags(write=False)
    return covered
