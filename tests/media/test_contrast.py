import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.contrast import (
    CELLS_MAX,
    Compared,
    Noise,
    Scene,
    _cell_means,
    cell_px,
    compare,
    local_contrast,
)


def street(seed: int = 1) -> NDArray[np.uint8]:
    """A textured picture; the same every time."""
    random = np.random.default_rng(seed)
    return np.kron(random.integers(60, 200, (45, 80)), np.ones((4, 4))).astype(np.uint8)


def seen(picture: NDArray[np.uint8], noise: float, random: np.random.Generator) -> NDArray[np.uint8]:
    return np.clip(picture + random.normal(0, noise, picture.shape), 0, 255).astype(np.uint8)


def learned(looks: int, noise: float = 2.0) -> tuple[Compared, np.random.Generator]:
    random = np.random.default_rng(9)
    compared = compare(seen(street(), noise, random), None)
    for _ in range(looks):
        compared = compare(seen(street(), noise, random), compared.scene)
    return compared, random


def test_the_mean_is_that_of_the_box_as_far_as_it_is_in_the_picture() -> None:
    gray = np.random.default_rng(2).integers(0, 255, (20, 30)).astype(np.uint8)
    contrast = local_contrast(gray, 7)
    for row, column in ((0, 0), (10, 15), (19, 29), (2, 27)):
        box = gray[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4].astype(float)
        expected = 100 * (gray[row, column] - box.mean()) / (box.mean() + 10)
        assert contrast[row, column] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_cells_at_the_edges_are_means_of_what_they_have() -> None:
    change = np.arange(5 * 7, dtype=np.float32).reshape(5, 7)
    means = _cell_means(change, 4)
    assert means.shape == (2, 2)
    assert means[0, 0] == change[:4, :4].mean()
    assert means[1, 1] == change[4:, 4:].mean()


def test_more_light_does_not_count() -> None:
    before, random = learned(60)
    lighter = np.clip(street() * 1.2, 0, 255)
    assert compare(seen(lighter.astype(np.uint8), 2.0, random), before.scene).z_max < 4  # type: ignore[operator]


def test_a_small_visitor_stands_out_of_the_noise() -> None:
    before, random = learned(60)
    quiet = compare(seen(street(), 2.0, random), before.scene).z_max
    visited = street()
    visited[80:100, 100:108] = 20
    found = compare(seen(visited, 2.0, random), before.scene).z_max
    assert quiet is not None
    assert found is not None
    assert quiet < 4 < found


def test_what_left_is_not_seen_again() -> None:
    """Double difference: the look after a visit is like the background, so it is quiet."""
    before, random = learned(60)
    visited = street()
    visited[80:100, 100:108] -= 40
    there = compare(seen(visited, 2.0, random), before.scene)
    gone = compare(seen(street(), 2.0, random), there.scene)
    assert there.z_max is not None
    assert gone.z_max is not None
    assert gone.z_max < 4 < there.z_max


def test_a_cell_that_always_moves_is_learned() -> None:
    random = np.random.default_rng(3)
    compared = compare(street(), None)
    last = []
    for number in range(120):
        picture = street()
        picture[40:56, 40:56] = random.integers(0, 255, (16, 16))
        compared = compare(seen(picture, 2.0, random), compared.scene)
        if number >= 100:
            last.append(compared.z_max)
    assert max(value for value in last if value is not None) < 4


def test_looks_are_counted_from_the_second_on() -> None:
    compared, _ = learned(5)
    assert compared.learned == 4  # before this one
    assert compared.scene.noise.looks == 5


def test_the_first_step_of_learning_by_hand() -> None:
    still = compare(street(), compare(street(), None).scene).scene.noise
    # q = 0, mu = 2, sigma = 1: e = -2, beta = 1/2.
    assert still.mu[0, 0] == pytest.approx(1.0)
    assert still.sigma[0, 0] == pytest.approx(1 + 0.5 * (1.25 * 2 - 1))


def test_another_size_begins_anew() -> None:
    before, _ = learned(10)
    other = compare(street()[:90], before.scene)
    assert (other.z_max, other.learned) == (None, 0)


def test_noise_survives_as_bytes() -> None:
    before, random = learned(60)
    data = before.scene.noise.to_bytes()
    assert len(data) < 10_000
    back = Noise.from_bytes(data)
    assert back.looks == before.scene.noise.looks
    assert np.allclose(back.mu, before.scene.noise.mu, rtol=2e-3)
    first = compare(seen(street(), 2.0, random), Scene(back))
    assert (first.z_max, first.learned) == (None, 60)
    second = compare(seen(street(), 2.0, random), first.scene)
    assert second.learned == 60
    assert second.z_max is not None
    assert second.z_max < 4


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_or_make_finite_noise(data: bytes) -> None:
    try:
        noise = Noise.from_bytes(data)
    except BadInput:
        return
    assert np.isfinite(noise.mu).all()
    assert (noise.sigma >= 0).all()


@given(st.integers(1, 2000), st.integers(1, 4000))
def test_cells_are_bounded_whatever_the_shape(width: int, height: int) -> None:
    cell = cell_px(width, height)
    assert -(-width // cell) * -(-height // cell) <= CELLS_MAX
    assert cell >= 8


def test_at_the_usual_width_a_cell_has_eight_pixels() -> None:
    assert cell_px(320, 180) == cell_px(320, 240) == 8


@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (7, 7), (9, 8)])
def test_odd_shapes_are_fine(shape: tuple[int, int]) -> None:
    gray = np.full(shape, 9, np.uint8)
    assert compare(gray, compare(gray, None).scene).z_max == pytest.approx(-1.0)
