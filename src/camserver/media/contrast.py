"""The measurements of the contrast rule: how far each cell of a picture stands out from its own noise.

Local contrast (a pixel against the mean around it) is what is compared, so that light does not count, at a small
width, so that grain does not. A picture that has moved as a whole is moved back first. A cell's change is the smaller
of the difference to the previous look and to a slow background (double difference): neither a thing that left nor one
that moved on is seen twice. Each cell knows its usual change `mu` and how much that varies, `sigma`, learned look by
look. And it must stand out of its picture: where rain or grain lift many cells at once, none of them is news. When
most of the picture is new at once (the infra-red filter), what is usual is learned anew, quickly.

Whether it is enough to pass is decided in `domain.gate`.
"""

import math
import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media import clock_mask
from camserver.media.cells import per_cell
from camserver.media.clock_mask import Clocks
from camserver.media.shift import steadied

Gray: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

# Pixels are averaged to about this width; a cell is so many of those wide and high.
WIDTH = 160
CELL_PX = 4
# Two numbers of two bytes each and one byte for clocks: what a camera's gate knows fits into 13 kB. Pictures that
# are higher than wide have larger cells instead.
CELLS_MAX = 2400
BACKGROUND_RATE = 0.05
# In units of contrast a look: somebody who stands still for a while does not become background.
BACKGROUND_STEP = 0.15
RATE_MIN = 0.03
MU_START = 2.0
SIGMA_START = 1.0
# z = (change - mu) / (sigma + 0.06): without the floor a cell in which nothing ever changes would see ghosts.
SIGMA_FLOOR = 0.06
# A cell is judged by z / (0.8 + 0.35 spread); the spread is what the topmost cells of the picture reach but for 2 %.
# It is bounded: something large and near must not hide behind itself.
SPREAD_BASE, SPREAD_SHARE, SPREAD_TOP, SPREAD_MAX = 0.8, 0.35, 0.98, 25.0
# The whole picture is new when this share of its cells is beyond that z. Then so many looks count as learned from.
WHOLE_SHARE, WHOLE_Z, WHOLE_SETTLED = 0.2, 8.0, 4
# From here on a large change is news and no noise, and moves what is usual only a little.
SETTLED_LOOKS = 12

# Sizes of pictures whose areas are kept; cameras have few different ones.
SIZES_CACHED = 64

# Columns, rows, looks learned from; then mu and sigma of every cell as half floats, then the clocks.
_HEAD = struct.Struct("<HHI")


@dataclass(frozen=True, slots=True)
class Noise:
    """What is usual in each cell."""

    mu: Floats
    sigma: Floats
    looks: int  # learned from
    settled: int  # of those, since the whole picture was new

    @property
    def grid(self) -> tuple[int, int]:
        return self.mu.shape[0], self.mu.shape[1]


@dataclass(frozen=True, slots=True)
class Scene:
    """What the next look is compared with. Without pictures: only the noise is known, from before a restart."""

    noise: Noise
    clocks: Clocks
    contrast: Floats | None = None  # of the previous look
    background: Floats | None = None
    gray: Gray | None = None  # of the previous look, for the clocks
    has_moved: bool = False  # the previous look, as a whole: its edges are made up

    def to_bytes(self) -> bytes:
        """What is worth keeping: without the pictures."""
        rows, columns = self.noise.grid
        head = _HEAD.pack(columns, rows, min(self.noise.looks, 2**32 - 1))
        half = self.noise.mu.astype("<f2").tobytes() + self.noise.sigma.astype("<f2").tobytes()
        return head + half + self.clocks.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Scene":
        """BadInput when these are not the bytes of a scene."""
        if len(data) < _HEAD.size:
            raise BadInput("the state of a gate is cut off")
        columns, rows, looks = _HEAD.unpack_from(data)
        cells = rows * columns
        if not 0 < cells <= CELLS_MAX or len(data) < _HEAD.size + 4 * cells:
            raise BadInput(f"the state of a gate of {columns}x{rows} cells can't be {len(data)} bytes long")
        both = np.frombuffer(data, "<f2", 2 * cells, _HEAD.size).astype(np.float32).reshape(2, rows, columns)
        if not np.isfinite(both).all() or (both[1] < 0).any():
            raise BadInput("the state of a gate holds impossible numbers")
        clocks = Clocks.from_bytes(data[_HEAD.size + 4 * cells :], (rows, columns))
        return cls(Noise(both[0], both[1], looks, looks), clocks)


@dataclass(frozen=True, slots=True)
class Compared:
    scene: Scene
    learned: int  # looks the noise was learned from before this one
    z: Floats | None = None  # of each cell, over the picture's spread; None: there was nothing to compare with
    spread: float = 0.0
    is_whole: bool = False  # the whole picture is new
    has_moved: bool = False  # and was moved back

    @property
    def z_max(self) -> float | None:
        return None if self.z is None else float(self.z.max())

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the cell that stands out most."""
        if self.z is None:
            return None
        row, column = divmod(int(self.z.argmax()), self.z.shape[1])
        return row, column


def compare(gray: Gray, before: Scene | None, watched: Bools | None = None, masks_clocks: bool = True) -> Compared:
    """Measures a look against the scene before it. A picture of another size begins a new scene.

    `watched` says which cells count; all of them when it is None.
    """
    cell, grid = cell_px(gray.shape), grid_of(gray.shape)
    sums = shrunk(gray)
    seen = None if watched is None else _spread_out(watched, cell, sums.shape)
    contrast = local_contrast(sums, factor_of(gray.shape) ** 2, 4 * cell - 1, seen)
    if before is None or before.noise.grid != grid:
        before = Scene(_fresh(grid), clock_mask.none_yet(grid))
    noise, clocks, last, background = before.noise, before.clocks, before.contrast, before.background
    if last is None or background is None or before.gray is None or before.gray.shape != gray.shape:
        return Compared(Scene(noise, clocks, contrast, contrast, gray), noise.looks)
    back = steadied(contrast, background)
    has_moved = back is not None
    contrast = contrast if back is None else back
    cells = cell_means(np.minimum(np.abs(contrast - last), np.abs(contrast - background)), cell)
    inner = _inner(grid) if has_moved or before.has_moved else None
    counted = _counted(watched, clocks if masks_clocks else None, inner)
    raw = (cells - noise.mu) / (noise.sigma + np.float32(SIGMA_FLOOR))
    z, spread = _over_spread(raw, counted)
    is_whole = noise.settled >= SETTLED_LOOKS and _share_beyond(raw, counted) >= WHOLE_SHARE
    if is_whole:
        # What changed at once is not what is usual from now on, so nothing is learned from this look.
        noise, background = replace(noise, looks=noise.looks + 1, settled=WHOLE_SETTLED), contrast
    else:
        step = np.float32(BACKGROUND_RATE) * (contrast - background)
        background = background + np.clip(step, -BACKGROUND_STEP, BACKGROUND_STEP)
        noise = _learn(noise, cells, inner)
    if masks_clocks:
        clocks = clock_mask.watch(clocks, gray, before.gray, cell * factor_of(gray.shape))
    scene = Scene(noise, clocks, contrast, background, gray, has_moved)
    return Compared(scene, before.noise.looks, z, spread, is_whole, has_moved)


def grid_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of cells of a picture of so many rows and columns."""
    factor, cell = factor_of(shape), cell_px(shape)
    return math.ceil(shape[0] // factor / cell), math.ceil(shape[1] // factor / cell)


def cell_px(shape: tuple[int, ...]) -> int:
    """The side of a cell in the small picture: the least that keeps the number of cells within its bound."""
    factor, cell = factor_of(shape), CELL_PX
    while math.ceil(shape[0] // factor / cell) * math.ceil(shape[1] // factor / cell) > CELLS_MAX:
        cell += 1
    return cell


def factor_of(shape: tuple[int, ...]) -> int:
    """How many pixels are averaged into one, along each side."""
    return max(min(round(shape[1] / WIDTH), shape[0]), 1)


def shrunk(gray: Gray) -> Ints:
    """Sums over squares of pixels; what does not fill one at the right and lower edge is left."""
    factor = factor_of(gray.shape)
    height, width = gray.shape[0] // factor * factor, gray.shape[1] // factor * factor
    rows = gray[:height:factor, :width].astype(np.int32)
    for offset in range(1, factor):
        rows += gray[offset:height:factor, :width]
    sums = rows[:, ::factor].copy()
    for offset in range(1, factor):
        sums += rows[:, offset::factor]
    return sums


def local_contrast(sums: Ints, pixels: int, box: int, seen: Bools | None = None) -> Floats:
    """100 (g - m) / (m + 10), where m is the mean of the box around each square, as far as it is in the picture.

    `sums` are those of so many pixels each. Where something is not to be seen, the contrast is 0, and it is in no
    mean: else what passes there would change the contrast around it.
    """
    reach = box // 2
    if seen is None:
        areas = _box_areas(sums.shape[0], sums.shape[1], reach)
    else:
        sums = sums * seen
        areas = np.maximum(_boxes(seen.astype(np.int32), reach), 1).astype(np.float32)
    mean = _boxes(sums, reach).astype(np.float32) / areas
    contrast: Floats = np.float32(100) * (sums.astype(np.float32) - mean) / (mean + np.float32(10 * pixels))
    return contrast if seen is None else contrast * seen


def _spread_out(cells: Bools, cell: int, shape: tuple[int, ...]) -> Bools:
    """A value a pixel instead of one a cell."""
    return np.repeat(np.repeat(cells, cell, axis=0), cell, axis=1)[: shape[0], : shape[1]]


def _boxes(values: Ints, reach: int) -> Ints:
    """Sums over the box around each value."""
    return _box_sums(np.ascontiguousarray(_box_sums(values, reach).T), reach).T


def cell_means(change: Floats, cell: int) -> Floats:
    """The mean of each cell; those at the right and lower edge may be smaller."""
    return per_cell(np.add, change, cell) / _cell_areas(change.shape[0], change.shape[1], cell)


@lru_cache(maxsize=SIZES_CACHED)
def _cell_areas(height: int, width: int, cell: int) -> Floats:
    high = np.diff(np.append(np.arange(0, height, cell), height))
    wide = np.diff(np.append(np.arange(0, width, cell), width))
    return np.outer(high, wide).astype(np.float32)


def _box_sums(values: Ints, reach: int) -> Ints:
    """Sums over as many rows before and after each row, as far as there are."""
    rows = values.shape[0]
    reach = min(reach, rows - 1)
    until = np.cumsum(values, axis=0, dtype=np.int32)
    boxes = np.empty_like(until)
    boxes[: rows - reach] = until[reach:]
    boxes[rows - reach :] = until[-1]
    boxes[reach + 1 :] -= until[: rows - reach - 1]
    return boxes


@lru_cache(maxsize=SIZES_CACHED)
def _box_areas(height: int, width: int, reach: int) -> Floats:
    high, wide = (
        np.minimum(np.arange(length) + reach, length - 1) - np.maximum(np.arange(length) - reach, 0) + 1
        for length in (height, width)
    )
    return np.outer(high, wide).astype(np.float32)


def _inner(grid: tuple[int, int]) -> Bools:
    """Without the cells at the edges, which a moved picture has made up; the last row and column may be narrow."""
    inner = np.zeros(grid, np.bool_)
    inner[1:-2, 1:-2] = True
    return inner


def _counted(watched: Bools | None, clocks: Clocks | None, inner: Bools | None) -> Bools | None:
    """The cells that count; None: all of them."""
    parts = [part for part in (watched, inner) if part is not None]
    if clocks is not None and clocks.cells.any():
        parts.append(~clocks.cells)
    return np.logical_and.reduce(parts) if parts else None


def _over_spread(raw: Floats, counted: Bools | None) -> tuple[Floats, float]:
    """How far each cell stands out of its picture, and the picture's spread."""
    values = raw.ravel() if counted is None else raw[counted]
    if not values.size:
        return np.zeros_like(raw), 0.0
    place = int(SPREAD_TOP * (values.size - 1))
    spread = min(max(float(np.partition(values, place)[place]), 0.0), SPREAD_MAX)
    z = raw / np.float32(SPREAD_BASE + SPREAD_SHARE * spread)
    return z if counted is None else np.where(counted, z, np.float32(0)), spread


def _share_beyond(raw: Floats, counted: Bools | None) -> float:
    values = raw if counted is None else raw[counted]
    return int(np.count_nonzero(values >= WHOLE_Z)) / values.size if values.size else 0.0


def _fresh(grid: tuple[int, int]) -> Noise:
    return Noise(np.full(grid, MU_START, np.float32), np.full(grid, SIGMA_START, np.float32), 0, 0)


def _learn(noise: Noise, cells: Floats, inner: Bools | None) -> Noise:
    """What is usual moves towards this look."""
    most = 3 * noise.sigma + np.float32(0.5) if noise.settled >= SETTLED_LOOKS else np.float32(np.inf)
    surprise = np.clip(cells - noise.mu, -6 * noise.sigma - np.float32(0.5), most)
    # The first difference is the second look.
    rate = np.float32(max(RATE_MIN, 1 / (noise.settled + 2)))
    mu = noise.mu + rate * surprise
    sigma = noise.sigma + rate * (np.float32(1.25) * np.abs(surprise) - noise.sigma)
    if inner is not None:
        mu, sigma = np.where(inner, mu, noise.mu), np.where(inner, sigma, noise.sigma)
    return Noise(mu, sigma, noise.looks + 1, noise.settled + 1)
