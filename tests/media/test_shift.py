import numpy as np
import pytest
from numpy.typing import NDArray

from camserver.media.shift import SHIFT_MAX_PX, moved, shift_between, steadied


def scene(shape: tuple[int, int] = (90, 160)) -> NDArray[np.float32]:
    """Waves of different lengths: smooth, so that a shift between pixels is defined."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    waves = [(7.3, 19.1, 0.4), (13.7, 11.0, 1.9), (31.0, 23.5, 4.0), (9.9, 47.0, 2.2)]
    return np.asarray(sum(12 * np.sin(x / a + phase) * np.cos(y / b + phase) for a, b, phase in waves), np.float32)


@pytest.mark.parametrize(("across", "down"), [(0.0, 0.0), (0.5, 0.0), (-1.3, 0.7), (3.0, -2.0), (0.0, 4.4)])
def test_a_shift_is_found_again(across: float, down: float) -> None:
    # What was moved right has to be moved left.
    assert shift_between(moved(scene(), across, down), scene()) == pytest.approx((-across, -down), abs=0.15)


def test_whole_pixels_are_moved_exactly() -> None:
    picture = scene()
    assert np.array_equal(moved(picture, 2, -1)[:-1, 2:], picture[1:, :-2])


def test_a_still_picture_with_noise_is_left() -> None:
    random = np.random.default_rng(1)
    noisy = scene() + random.normal(0, 2, (90, 160)).astype(np.float32)
    assert steadied(noisy, scene()) is None


def test_a_moved_picture_lies_on_the_reference_again() -> None:
    back = steadied(moved(scene(), 1.7, -2.2), scene())
    assert back is not None
    assert np.abs(back - scene())[8:-8, 8:-8].mean() < 0.5


def test_somebody_in_the_picture_moves_nothing() -> None:
    visited = scene()
    visited[40:60, 70:80] = -60
    assert steadied(visited, scene()) is None


def test_another_picture_is_not_a_moved_one() -> None:
    assert steadied(np.ascontiguousarray(scene()[::-1]), scene()) is None
    far = moved(scene((90, 200)), SHIFT_MAX_PX * 4, 0)[:, 40:]
    assert steadied(np.ascontiguousarray(far), scene((90, 200))[:, 40:]) is None


@pytest.mark.parametrize("shape", [(1, 1), (2, 50), (3, 3)])
def test_tiny_and_flat_pictures_have_no_shift(shape: tuple[int, int]) -> None:
    assert shift_between(np.ones(shape, np.float32), np.zeros(shape, np.float32)) == (0.0, 0.0)


def test_stripes_have_no_shift() -> None:
    """Along them none can be seen, and noise must not make one up."""
    stripes = np.tile(np.sin(np.arange(160) / 5).astype(np.float32) * 20, (90, 1))
    assert shift_between(stripes, stripes) == (0.0, 0.0)
