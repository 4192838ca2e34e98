"""How much a picture differs from the one before it, in numbers (decisions 1 to 3).

Works on luma at diff width. Nothing is decided here; `domain.gate` judges. The contrast rule's measurements have
their own module, `contrast`.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from camserver.domain.gate import FIRST_DIFF_RATIO, FIRST_LUMA_DELTA, Measured
from camserver.media.contrast import Compared, Scene, compare, grid_of
from camserver.media.polygon_pixels import Bools
from camserver.media.watched import EVERYWHERE, Watch, watched_cells, watched_pixels

Gray: TypeAlias = NDArray[np.uint8]  # rows x columns, full range


@dataclass(frozen=True, slots=True)
class Reference:
    """What the next look is compared with, each rule its own, and where."""

    gray: Gray | None = None  # the previous look
    scene: Scene | None = None  # None as long as the contrast rule measures nothing
    watch: Watch = EVERYWHERE
    compared: Compared | None = None  # what the contrast rule found in the previous look, for explaining


def measure(now: Gray, before: Reference, pixel_delta: int, with_contrast: bool) -> tuple[Measured, Reference]:
    """The numbers of a look, and the reference for the next."""
    watch = before.watch
    height, width = now.shape
    diff_ratio, luma_delta = _differ(now, before.gray, pixel_delta, watched_pixels(watch, height, width))
    if not with_contrast:
        return Measured(diff_ratio, luma_delta), Reference(now, watch=watch)
    cells = watched_cells(watch, height, width, *grid_of(now.shape))
    compared = compare(now, before.scene, cells, watch.masks_clocks)
    return (
        Measured(diff_ratio, luma_delta, compared.z_max, compared.learned, compared.is_whole),
        Reference(now, compared.scene, watch, compared),
    )


def blur_score(gray: Gray) -> float:
    """100 / (1 + variance of the Laplacian / 100): 0..100, higher is blurrier."""
    if min(gray.shape) < 3:
        return 100.0  # no pixel has neighbours on all sides
    wide = gray.astype(np.int16)
    inner = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * wide[1:-1, 1:-1]
    return 100.0 / (1.0 + float(inner.var(dtype=np.float64)) / 100.0)


def _differ(now: Gray, before: Gray | None, pixel_delta: int, watched: Bools | None) -> tuple[float, float]:
    """Share of changed pixels and change of the mean. Without a picture of that size before, everything changed."""
    if before is None or before.shape != now.shape:
        return FIRST_DIFF_RATIO, FIRST_LUMA_DELTA
    if watched is not None:
        now, before = now[watched], before[watched]
        if not now.size:
            return 0.0, 0.0
    # The larger minus the smaller stays within a byte, which is four times quicker than signed numbers.
    difference = np.maximum(now, before) - np.minimum(now, before)
    changed = int(np.count_nonzero(difference > pixel_delta))
    return changed / now.size, float(now.mean(dtype=np.float64) - before.mean(dtype=np.float64))
