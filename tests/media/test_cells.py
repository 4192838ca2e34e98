import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media.cells import per_cell


@pytest.mark.parametrize("pick", [np.add, np.maximum, np.minimum])
@given(height=st.integers(1, 30), width=st.integers(1, 30), side=st.integers(1, 9))
def test_each_cell_by_hand(pick: np.ufunc, height: int, width: int, side: int) -> None:
    values = np.random.default_rng(height * 31 + width).integers(0, 200, (height, width)).astype(np.float32)
    cells = per_cell(pick, values, side)
    assert cells.shape == (-(-height // side), -(-width // side))
    for row, column in np.ndindex(*cells.shape):
        part = values[row * side : (row + 1) * side, column * side : (column + 1) * side]
        assert cells[row, column] == pick.reduce(part.ravel())


def test_bytes_stay_bytes() -> None:
    values = np.full((9, 9), 255, np.uint8)
    assert per_cell(np.maximum, values, 4).dtype == np.uint8
