"""What a camera looks at, in two small values that travel with every look.

`structure` is how much of the picture has any texture: it falls to nothing when the lens is covered. `view_hex` says
where that texture is, cell by cell: it changes as a whole when the camera is turned, and hardly when the light
changes or somebody walks by. Nothing is decided here; `domain.sight` does, on the server, so a worker need not
remember.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camserver.domain.sight import VIEW_COLUMNS, VIEW_ROWS

# Texture is measured on means of blocks, in which a sensor's noise has gone and a scene's edges have not.
COARSE_WIDTH = 80
# Steps between neighbouring means, in luma, both directions together. A covered lens has soft slopes of less.
EDGE_LUMA = 6.0


@dataclass(frozen=True, slots=True)
class View:
    structure: float  # 0..1
    view_hex: str  # a bit a cell, row by row; 1: more texture than in half of the cells


def view_of(gray: NDArray[np.uint8]) -> View | None:
    """None for a picture too small to say anything about it."""
    block = block_px(gray)
    rows, columns = gray.shape[0] // block, gray.shape[1] // block
    if rows <= VIEW_ROWS or columns <= VIEW_COLUMNS:
        return None
    steps = steps_of(gray)
    cells = _means(_means(steps, VIEW_ROWS).T, VIEW_COLUMNS).T
    bits = np.packbits(cells > np.median(cells))
    return View(float(np.count_nonzero(steps > EDGE_LUMA)) / steps.size, bits.tobytes().hex())


def block_px(gray: NDArray[np.uint8]) -> int:
    """The side of the blocks in a picture, in its pixels."""
    width: int = gray.shape[1]
    return max(round(width / COARSE_WIDTH), 1)


def steps_of(gray: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Where texture is: steps between the means of neighbouring blocks, one row and column less than there are."""
    block = block_px(gray)
    rows, columns = gray.shape[0] // block, gray.shape[1] // block
    # Rows first, in whole numbers: twice as quick as one mean over both.
    bands = gray[: rows * block, : columns * block].reshape(rows, block, -1).sum(axis=1, dtype=np.uint16)
    coarse = bands.reshape(rows, columns, block).sum(axis=2, dtype=np.uint32).astype(np.float32) / block**2
    steps = np.abs(np.diff(coarse, axis=1)[:-1]) + np.abs(np.diff(coarse, axis=0)[:, :-1])
    return np.asarray(steps, np.float32)


def _means(values: NDArray[np.float32], parts: int) -> NDArray[np.float32]:
    """Means over the rows of so many parts of equal size, as far as they divide."""
    begins = np.arange(parts) * values.shape[0] // parts
    counts = np.diff(np.append(begins, values.shape[0]))
    sums = np.add.reduceat(values, begins, axis=0)
    return np.asarray(sums / counts[:, None], np.float32)
