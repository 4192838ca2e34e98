"""Finds date and time burned into a picture, so that the gate can look past them.

Whatever the interval of the looks, one digit of a clock changes at every one of them: seconds, or minutes when the
interval is whole minutes. So a clock is a small flat group of cells that change clearly at nearly every look while
nothing does above and below; the slower digits and the date lie on the same line and are written as strongly. A small
thing that always moves is found too, which costs nothing: a cell that always changes says nothing.
"""

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.cells import per_cell

Gray: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

# A cell has changed clearly when the luma of one of its pixels did by this, and by so many times what is common.
CHANGE_MIN_LUMA = 40
CHANGE_TIMES = 2.5
RATE_MIN = 1 / 32
LOOKS_MIN = 24
EVERY_LOOKS = 8
# Shares of the looks that changed a cell: from here on a digit ticks, up to here it is quiet around it.
TICKS, QUIET = 0.85, 0.3
ROWS_MAX, COLUMNS_MAX = 3, 8
GROUPS_MAX = 4
# Along its line: so many cells to each side, with room for a space between date and time.
LINE_CELLS_MAX = 20
SPACE_CELLS_MAX = 2
# What is written there spans so much of the luma that the ticking digit does.
INK_SHARE = 0.6

_HEAD = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Clocks:
    busy: Floats  # share of the looks that changed each cell
    cells: Bools  # where a clock is
    looks: int = 0

    def to_bytes(self) -> bytes:
        busy = np.round(self.busy * 255).astype(np.uint8)
        return _HEAD.pack(min(self.looks, 2**32 - 1)) + busy.tobytes() + np.packbits(self.cells).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, grid: tuple[int, int]) -> "Clocks":
        """BadInput when these are not the bytes of clocks on such a grid."""
        cells = grid[0] * grid[1]
        if len(data) != _HEAD.size + cells + -(-cells // 8):
            raise BadInput(f"the clocks of {grid[1]}x{grid[0]} cells can't be {len(data)} bytes long")
        (looks,) = _HEAD.unpack_from(data)
        busy = np.frombuffer(data, np.uint8, cells, _HEAD.size).astype(np.float32).reshape(grid) / np.float32(255)
        bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=_HEAD.size + cells), count=cells)
        return cls(busy, bits.astype(np.bool_).reshape(grid), looks)


def none_yet(grid: tuple[int, int]) -> Clocks:
    return Clocks(np.zeros(grid, np.float32), np.zeros(grid, np.bool_))


def watch(before: Clocks, now: Gray, last: Gray, side: int) -> Clocks:
    """After a look, with the one before it; cells are so many pixels wide and high."""
    changes = _fit(per_cell(np.maximum, np.maximum(now, last) - np.minimum(now, last), side), before.busy.shape)
    changed = changes >= max(CHANGE_MIN_LUMA, CHANGE_TIMES * float(np.median(changes)))
    rate = np.float32(max(RATE_MIN, 1 / (before.looks + 1)))
    busy = before.busy + rate * (changed - before.busy)
    looks = before.looks + 1
    if looks < LOOKS_MIN or looks % EVERY_LOOKS:
        return Clocks(busy, before.cells, looks)
    ink = _fit(per_cell(np.maximum, now, side) - per_cell(np.minimum, now, side), busy.shape)
    return Clocks(busy, _find(busy, ink), looks)


def _fit(cells: Gray, grid: tuple[int, ...]) -> Gray:
    """Without the last row or column when the few pixels in it are not measured."""
    return cells[: grid[0], : grid[1]]


def _find(busy: Floats, ink: Gray) -> Bools:
    found = np.zeros(busy.shape, np.bool_)
    ticking = np.argwhere(busy >= TICKS)
    groups = 0
    # Leaves in the wind tick everywhere; there is no clock to be found among so many.
    for row, column in ticking if len(ticking) <= GROUPS_MAX * ROWS_MAX * COLUMNS_MAX else ():
        if found[row, column] or groups == GROUPS_MAX:
            continue
        box = _group(busy, int(row), int(column))
        if box is not None and _is_alone(busy, *box):
            _mark_line(found, ink, *box)
            groups += 1
    return found


def _group(busy: Floats, row: int, column: int) -> tuple[int, int, int, int] | None:
    """Top, bottom, left and right of the restless cells around it; None when that is no line of digits."""
    top = bottom = row
    left = right = column
    while True:
        first_row, first_column = max(top - 1, 0), max(left - 1, 0)
        rows, columns = np.nonzero(busy[first_row : bottom + 2, first_column : right + 2] > QUIET)
        grown = (
            first_row + int(rows.min()),
            first_row + int(rows.max()),
            first_column + int(columns.min()),
            first_column + int(columns.max()),
        )
        if grown == (top, bottom, left, right):
            return grown
        top, bottom, left, right = grown
        if bottom - top >= ROWS_MAX or right - left >= COLUMNS_MAX:
            return None


def _is_alone(busy: Floats, top: int, bottom: int, left: int, right: int) -> bool:
    """Whether it is quiet above and below."""
    above, below = busy[max(top - 2, 0) : top, left : right + 1], busy[bottom + 1 : bottom + 3, left : right + 1]
    return not (above > QUIET).any() and not (below > QUIET).any()


def _mark_line(found: Bools, ink: Gray, top: int, bottom: int, left: int, right: int) -> None:
    rows = slice(top, bottom + 1)
    written = ink[rows].max(axis=0) >= INK_SHARE * ink[rows, left : right + 1].max()
    found[rows, left : right + 1] = True
    found[rows, _reach(written[:left][::-1], left, -1) : left] = True
    found[rows, right + 1 : _reach(written[right + 1 :], right, 1) + 1] = True


def _reach(written: Bools, edge: int, step: int) -> int:
    """The last written column on one side of an edge, no farther than a space from the one before it."""
    last = edge
    for distance, is_written in enumerate(written[:LINE_CELLS_MAX], 1):
        if is_written:
            last = edge + step * distance
        elif abs(last - (edge + step * distance)) > SPACE_CELLS_MAX:
            break
    return last
