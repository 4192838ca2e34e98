"""Two pictures of one camera compared as wholes, in the numbers that `domain.tampering` judges by, and in parts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from camserver.domain.detections import Detection
from camserver.domain.polygons import Polygon
from camserver.domain.tampering import PART_AGREES, Compared
from camserver.media.change import Gray
from camserver.media.jpeg_planes import Picture, Planes
from camserver.media.polygon_pixels import Bools
from camserver.media.view import EDGE_LUMA, block_px, steps_of
from camserver.services.analyzer.pictures import PIXEL_DELTA, region_pixels

# Parts of the picture that are compared each for itself.
ROWS, COLUMNS = 3, 4
# A part needs so many blocks that are not hidden, and so much of them must have texture.
PART_BLOCKS_MIN = 40
PART_TEXTURE_MIN = 0.05
# Steps beyond this count alike: a lamp's edge must not outweigh all the rest.
STEP_MAX = 40.0
# Share of a region's pixels; the smallest thing that a detector finds in it is more.
REGION_CHANGED_MIN = 0.002
# Mean distance between the strongest and the weakest of red, green and blue, above which a picture has colours.
# Infra-red pictures have none but what a JPEG adds.
COLOURS_MIN = 4.0
# So many pixels from all over the picture are enough for that.
_COLOURS_SIZE = (48, 36)


def compare(before: Gray, now: Gray, hidden: Bools | None, had_colours: bool, has_colours: bool) -> Compared | None:
    """None when the pictures are of different shapes, or too small to be compared."""
    if before.shape != now.shape or min(now.shape) < ROWS * block_px(now) * 4:
        return None
    parts = _sums(steps_of(before), steps_of(now), _seen_blocks(now, hidden))
    whole = parts.sum(axis=1, keepdims=True)
    if not whole[0]:
        return None
    count, edges_before, edges = parts[0], parts[1], parts[2]
    has_texture = (count >= PART_BLOCKS_MIN) & (np.minimum(edges_before, edges) >= PART_TEXTURE_MIN * count)
    return Compared(
        structure_before=float(whole[1, 0] / whole[0, 0]),
        structure=float(whole[2, 0] / whole[0, 0]),
        likeness=float(_correlations(whole)[0]),
        parts=int(np.count_nonzero(has_texture)),
        agreeing=int(np.count_nonzero(_correlations(parts)[has_texture] >= PART_AGREES)),
        is_recoloured=had_colours != has_colours,
    )


def _sums(steps_before: NDArray[np.float32], steps: NDArray[np.float32], seen: Bools) -> NDArray[np.float64]:
    """A column for each part of the picture, of what is seen of it: how many blocks, how many have an edge before and
    now, then the sums of both pictures' steps, of their squares and of their products."""
    one, other = (np.minimum(values, STEP_MAX) * seen for values in (steps_before, steps))
    rows, columns = (np.arange(n) * length // n for n, length in zip((ROWS, COLUMNS), steps.shape, strict=True))
    each = np.stack(
        [seen, one > EDGE_LUMA, other > EDGE_LUMA, one, other, one * one, other * other, one * other],
        dtype=np.float64,
    )
    return np.add.reduceat(np.add.reduceat(each, rows, axis=1), columns, axis=2).reshape(len(each), -1)


def _correlations(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """-1..1 for each column of `_sums`; 0 where one of the pictures is the same everywhere."""
    count, _, _, one, other, one_squared, other_squared, product = sums
    count = np.maximum(count, 1)
    spread = (one_squared - one * one / count) * (other_squared - other * other / count)
    common = product - one * other / count
    # Sums of equal numbers differ by what rounding leaves.
    return np.where(spread > 1e-6, common / np.sqrt(np.maximum(spread, 1e-6)), 0.0)


def has_colours(picture: Picture) -> bool:
    """Whether a picture has any: at night most cameras have none."""
    if isinstance(picture, Planes):
        small = picture.sampled(_COLOURS_SIZE)
    else:
        small = np.asarray(picture.resize(_COLOURS_SIZE, Image.Resampling.NEAREST))
    red, green, blue = small[..., 0], small[..., 1], small[..., 2]
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    return float(spread.mean(dtype=np.float64)) >= COLOURS_MIN


def changed_share(before: Gray, now: Gray, place: tuple[float, float, float, float]) -> float:
    """Of the pixels in a place (x1, y1, x2, y2 in 0..1), how many changed by more than the light as a whole did."""
    part = _rows_and_columns(now.shape, place)
    return _changed(before, now, now[part].astype(np.int16) - before[part])


def with_boxes(hidden: Bools | None, shape: tuple[int, ...], found: Sequence[Detection]) -> Bools | None:
    """What is hidden, and what these things cover."""
    if not found:
        return hidden
    both = np.zeros(shape, np.bool_) if hidden is None else hidden.copy()
    for one in found:
        both[_rows_and_columns(shape, (one.x1, one.y1, one.x2, one.y2))] = True
    return both


def is_region_changed(before: Gray, now: Gray, region: Polygon) -> bool:
    """Whether anything at all changed in it; cheap, and asked before anything that is not."""
    if before.shape != now.shape:
        return False
    inside = region_pixels(now.shape, region)
    differences = now[inside].astype(np.int16) - before[inside]
    return _changed(before, now, differences) >= REGION_CHANGED_MIN


def _changed(before: Gray, now: Gray, differences: NDArray[np.int16]) -> float:
    lighter = round(float(np.median(now)) - float(np.median(before)))
    changed = np.count_nonzero(np.abs(differences - np.int16(lighter)) > PIXEL_DELTA)
    return int(changed) / differences.size if differences.size else 0.0


def _rows_and_columns(shape: tuple[int, ...], place: tuple[float, float, float, float]) -> tuple[slice, slice]:
    x1, y1, x2, y2 = place
    upper, left = int(y1 * shape[0]), int(x1 * shape[1])
    lower, right = int(np.ceil(y2 * shape[0])), int(np.ceil(x2 * shape[1]))
    return slice(upper, max(lower, upper + 1)), slice(left, max(right, left + 1))


def _seen_blocks(gray: Gray, hidden: Bools | None) -> Bools:
    block = block_px(gray)
    rows, columns = gray.shape[0] // block - 1, gray.shape[1] // block - 1
    if hidden is None:
        return np.ones((rows, columns), np.bool_)
    return ~hidden[: rows * block : block, : columns * block : block]
