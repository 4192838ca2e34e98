"""The measurements of the contrast rule: how far each cell of a picture stands out from its own noise.

Local contrast (a pixel against the mean around it) is what is compared, so that light does not count. A cell's change
is the smaller of the difference to the previous look and to a slow background (double difference): neither a thing
that left nor one that moved on is seen twice. Each cell knows its usual change `mu` and how much that varies,
`sigma`, learned look by look. Whether it is enough to pass is decided in `domain.gate`.
"""

import math
import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from camserver.base.errors import BadInput

Floats: TypeAlias = NDArray[np.float32]

CELL_PX = 8
# Two numbers of two bytes each: a camera's noise fits into 10 kB. Wider pictures have larger cells instead.
CELLS_MAX = 2400
BACKGROUND_RATE = 0.1
RATE_MIN = 0.03
MU_START = 2.0
SIGMA_START = 1.0

# Columns, rows, looks learned from; then mu and sigma of every cell as half floats.
_HEAD = struct.Struct("<HHI")


@dataclass(frozen=True, slots=True)
class Noise:
    """What is usual in each cell."""

    mu: Floats
    sigma: Floats
    looks: int  # learned from

    def to_bytes(self) -> bytes:
        rows, columns = self.mu.shape
        head = _HEAD.pack(columns, rows, min(self.looks, 2**32 - 1))
        return head + self.mu.astype("<f2").tobytes() + self.sigma.astype("<f2").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Noise":
        """BadInput when these are not the bytes of a noise."""
        if len(data) < _HEAD.size:
            raise BadInput("the state of a gate is cut off")
        columns, rows, looks = _HEAD.unpack_from(data)
        cells = rows * columns
        if not 0 < cells <= CELLS_MAX or len(data) != _HEAD.size + 4 * cells:
            raise BadInput(f"the state of a gate of {columns}x{rows} cells can't be {len(data)} bytes long")
        both = np.frombuffer(data, "<f2", offset=_HEAD.size).astype(np.float32).reshape(2, rows, columns)
        if not np.isfinite(both).all() or (both[1] < 0).any():
            raise BadInput("the state of a gate holds impossible numbers")
        return cls(both[0], both[1], looks)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the next look is compared with. Without pictures: only the noise is known, from before a restart."""

    noise: Noise
    contrast: Floats | None = None  # of the previous look
    background: Floats | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    z_max: float | None  # None: there was nothing to compare with
    learned: int  # looks the noise was learned from before this one
    scene: Scene


def compare(gray: NDArray[np.uint8], before: Scene | None) -> Compared:
    """Measures a look against the scene before it. A picture of another size begins a new scene."""
    cell = cell_px(gray.shape[1], gray.shape[0])
    grid = (math.ceil(gray.shape[0] / cell), math.ceil(gray.shape[1] / cell))
    contrast = local_contrast(gray, 4 * cell - 1)
    noise = before.noise if before is not None and before.noise.mu.shape == grid else _fresh(grid)
    if before is None or before.contrast is None or before.background is None or before.contrast.shape != gray.shape:
        return Compared(None, noise.looks, Scene(noise, contrast, contrast))
    change = np.minimum(np.abs(contrast - before.contrast), np.abs(contrast - before.background))
    cells = _cell_means(change, cell)
    z_max = float(((cells - noise.mu) / (noise.sigma + 1)).max())
    background = before.background + np.float32(BACKGROUND_RATE) * (contrast - before.background)
    return Compared(z_max, noise.looks, Scene(_learn(noise, cells), contrast, background))


def cell_px(width: int, height: int) -> int:
    """The side of a cell: 8 pixels, or the least that keeps the number of cells within its bound."""
    cell = CELL_PX
    while math.ceil(width / cell) * math.ceil(height / cell) > CELLS_MAX:
        cell += 1
    return cell


def local_contrast(gray: NDArray[np.uint8], box: int) -> Floats:
    """100 (g - m) / (m + 10), where m is the mean of the box around each pixel, as far as it is in the picture."""
    height, width = gray.shape
    sums = np.zeros((height + 1, width + 1), np.int32)
    np.cumsum(np.cumsum(gray, axis=0, dtype=np.int32), axis=1, out=sums[1:, 1:])
    low_rows, high_rows = _box_ends(height, box)
    low_columns, high_columns = _box_ends(width, box)
    strips = sums[high_rows] - sums[low_rows]
    areas = np.outer(high_rows - low_rows, high_columns - low_columns).astype(np.float32)
    mean = (strips[:, high_columns] - strips[:, low_columns]).astype(np.float32) / areas
    contrast: Floats = np.float32(100) * (gray - mean) / (mean + np.float32(10))
    return contrast


def _box_ends(length: int, box: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    places = np.arange(length)
    return np.maximum(places - box // 2, 0), np.minimum(places + box // 2 + 1, length)


def _cell_means(change: Floats, cell: int) -> Floats:
    """The mean of each cell; those at the right and lower edge may be smaller."""
    rows, columns = np.arange(0, change.shape[0], cell), np.arange(0, change.shape[1], cell)
    sums = np.add.reduceat(np.add.reduceat(change, rows, axis=0), columns, axis=1)
    heights = np.diff(np.append(rows, change.shape[0]))
    widths = np.diff(np.append(columns, change.shape[1]))
    means: Floats = np.divide(sums, np.outer(heights, widths), dtype=np.float32)
    return means


def _fresh(grid: tuple[int, int]) -> Noise:
    return Noise(np.full(grid, MU_START, np.float32), np.full(grid, SIGMA_START, np.float32), 0)


def _learn(noise: Noise, cells: Floats) -> Noise:
    """What is usual moves towards this look; a large change, which is news and no noise, moves it only a little."""
    surprise = np.clip(cells - noise.mu, -6 * noise.sigma - 0.5, 3 * noise.sigma + 0.5)
    # The first difference is the second look.
    rate = np.float32(max(RATE_MIN, 1 / (noise.looks + 2)))
    return Noise(
        noise.mu + rate * surprise, noise.sigma + rate * (1.25 * np.abs(surprise) - noise.sigma), noise.looks + 1
    )
