"""Pictures cut into square cells: sums, largest and smallest values of each."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=NDArray[Any])


def per_cell(pick: np.ufunc, values: T, side: int) -> T:
    """`pick` (np.add, np.maximum, …) over each cell; those at the right and lower edge may be smaller.

    Whole cells at once and the rest apart: many times quicker than `reduceat`.
    """
    bands = _rows(pick, values, side)
    cells: T = np.ascontiguousarray(_rows(pick, np.ascontiguousarray(bands.T), side).T)  # type: ignore[assignment]
    return cells


def _rows(pick: np.ufunc, values: NDArray[Any], side: int) -> NDArray[Any]:
    height, width = values.shape
    whole = height // side * side
    # The type stays: sums are of floats, and bytes are only compared.
    bands: NDArray[Any] = pick.reduce(values[:whole].reshape(-1, side, width), axis=1, dtype=values.dtype)
    if whole == height:
        return bands
    rest = pick.reduce(values[whole:], axis=0, keepdims=True, dtype=values.dtype)
    return np.concatenate([bands, rest])
