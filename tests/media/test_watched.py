import numpy as np
import pytest

from camserver.media.polygon_pixels import drawn
from camserver.media.watched import Watch, watched_cells, watched_pixels

LEFT_HALF = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))
TOP_HALF = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.5))
ALL = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def test_a_half_covers_half_of_the_pixels() -> None:
    inside = drawn((LEFT_HALF,), 90, 160)
    assert inside[:, :79].all()
    assert not inside[:, 81:].any()
    assert drawn((ALL,), 9, 7).all()


def test_a_triangle_covers_half_of_its_box() -> None:
    inside = drawn((((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)),), 200, 200)
    assert inside.mean() == pytest.approx(0.5, abs=0.02)
    assert inside[5, 5]
    assert not inside[195, 195]


def test_without_polygons_all_is_watched() -> None:
    assert watched_pixels(Watch(), 90, 160) is None
    assert watched_cells(Watch(), 90, 160, 23, 40) is None


def test_ignored_goes_before_zones() -> None:
    seen = watched_pixels(Watch(ignored=(TOP_HALF,), zones=(LEFT_HALF,)), 100, 100)
    assert seen is not None
    assert seen[75, 25]
    assert not seen[25, 25]
    assert not seen[75, 75]


def test_several_zones_add_up() -> None:
    seen = watched_pixels(Watch(zones=(TOP_HALF, LEFT_HALF)), 100, 100)
    assert seen is not None
    assert seen.mean() == pytest.approx(0.75, abs=0.02)


def test_a_cell_counts_when_half_of_it_is_watched() -> None:
    ignored = ((0.0, 0.0), (0.24, 0.0), (0.24, 1.0), (0.0, 1.0))
    cells = watched_cells(Watch(ignored=(ignored,)), 100, 100, 4, 10)
    assert cells is not None
    # 24 columns of pixels: two cells and less than half of the third.
    assert np.array_equal(cells[0], [False, False, *[True] * 8])
