from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.contrast import (
    CELLS_MAX,
    SPREAD_BASE,
    SPREAD_SHARE,
    Compared,
    Scene,
    cell_means,
    cell_px,
    compare,
    grid_of,
    local_contrast,
    shrunk,
)
from camserver.media.shift import moved

Z_PASS = 4.0
STATE_MAX_BYTES = 16_000


def street(seed: int = 1) -> NDArray[np.uint8]:
    """A textured picture; the same every time."""
    random = np.random.default_rng(seed)
    return np.kron(random.integers(60, 200, (23, 40)), np.ones((8, 8)))[:180].astype(np.uint8)


def seen(picture: NDArray[np.generic], noise: float, random: np.random.Generator) -> NDArray[np.uint8]:
    return np.clip(picture + random.normal(0, noise, picture.shape), 0, 255).astype(np.uint8)


def learned(looks: int) -> tuple[Compared, np.random.Generator]:
    """After so many looks at the street, and a source of noise for the next ones."""
    return _learned(looks), np.random.default_rng(10)


@cache
def _learned(looks: int, noise: float = 2.0) -> Compared:
    random = np.random.default_rng(9)
    compared = compare(seen(street(), noise, random), None)
    for _ in range(looks):
        compared = compare(seen(street(), noise, random), compared.scene)
    return compared


def visited(shade: int = 20) -> NDArray[np.uint8]:
    picture = street()
    picture[80:104, 100:110] = shade
    return picture


def z_of(compared: Compared) -> float:
    assert compared.z_max is not None
    return compared.z_max


# The measurements ----------------------------------------------------------------------------------------------


def test_the_mean_is_that_of_the_box_as_far_as_it_is_in_the_picture() -> None:
    sums = np.random.default_rng(2).integers(0, 4 * 255, (20, 30)).astype(np.int32)
    contrast = local_contrast(sums, 4, 7)
    for row, column in ((0, 0), (10, 15), (19, 29), (2, 27)):
        box = sums[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4] / 4
        expected = 100 * (sums[row, column] / 4 - box.mean()) / (box.mean() + 10)
        assert contrast[row, column] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_squares_are_summed_and_what_fills_none_is_left() -> None:
    gray = np.random.default_rng(3).integers(0, 255, (181, 321)).astype(np.uint8)
    sums = shrunk(gray)
    assert sums.shape == (90, 160)
    assert sums[89, 159] == gray[178:180, 318:320].sum()


def test_cells_at_the_edges_are_means_of_what_they_have() -> None:
    change = np.arange(5 * 7, dtype=np.float32).reshape(5, 7)
    means = cell_means(change, 4)
    assert means.shape == (2, 2)
    assert means[0, 0] == change[:4, :4].mean()
    assert means[0, 1] == change[:4, 4:].mean()
    assert means[1, 1] == change[4:, 4:].mean()


@given(st.integers(1, 2000), st.integers(1, 4000))
def test_cells_are_bounded_whatever_the_shape(width: int, height: int) -> None:
    rows, columns = grid_of((height, width))
    assert 1 <= rows * columns <= CELLS_MAX
    assert cell_px((height, width)) >= 4


def test_at_the_usual_width_a_cell_has_eight_pixels() -> None:
    assert grid_of((180, 320)) == (23, 40)
    assert grid_of((240, 320)) == (30, 40)


@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (7, 7), (9, 8), (1, 700)])
def test_odd_shapes_are_fine(shape: tuple[int, int]) -> None:
    gray = np.full(shape, 9, np.uint8)
    assert z_of(compare(gray, compare(gray, None).scene)) < 0


# What stands out -----------------------------------------------------------------------------------------------


def test_more_light_does_not_count() -> None:
    before, random = learned(60)
    lighter = np.clip(street() * 1.2, 0, 255)
    assert z_of(compare(seen(lighter, 2.0, random), before.scene)) < Z_PASS


def test_a_small_visitor_stands_out_of_the_noise() -> None:
    before, random = learned(60)
    quiet = compare(seen(street(), 2.0, random), before.scene)
    found = compare(seen(visited(), 2.0, random), before.scene)
    assert z_of(quiet) < Z_PASS < z_of(found)
    assert found.cell is not None
    assert 80 // 8 <= found.cell[0] <= 103 // 8
    assert 100 // 8 <= found.cell[1] <= 109 // 8


def test_what_left_is_not_seen_again() -> None:
    """Double difference: the look after a visit is like the background, so it is quiet."""
    before, random = learned(60)
    there = compare(seen(visited(), 2.0, random), before.scene)
    gone = compare(seen(street(), 2.0, random), there.scene)
    assert z_of(gone) < Z_PASS < z_of(there)


def test_somebody_who_stands_for_a_while_does_not_become_background() -> None:
    compared, random = learned(60)
    for _ in range(20):
        compared = compare(seen(visited(), 2.0, random), compared.scene)
    assert z_of(compare(seen(street(), 2.0, random), compared.scene)) < Z_PASS


def test_a_cell_that_always_moves_is_learned() -> None:
    random = np.random.default_rng(3)
    compared = compare(street(), None)
    last = []
    for number in range(120):
        picture = street()
        # Above and below it moves too, so it is no clock.
        picture[40:96, 40:56] = np.kron(random.integers(0, 255, (14, 4)), np.ones((4, 4)))
        compared = compare(seen(picture, 2.0, random), compared.scene)
        if number >= 100:
            last.append(z_of(compared))
    assert not compared.scene.clocks.cells.any()
    assert sum(z >= Z_PASS for z in last) <= 2


def in_rain(picture: NDArray[np.generic], random: np.random.Generator) -> NDArray[np.int16]:
    wet = picture.astype(np.int16)
    for row, column in random.integers(0, (170, 319), (400, 2)):
        wet[row : row + 10, column] += 50
    return wet


def test_where_all_is_restless_a_little_more_is_no_news() -> None:
    """Rain that would pass at every look if its picture were not asked how restless it is."""
    compared, random = learned(60)
    dry_unit = SPREAD_BASE + SPREAD_SHARE * compared.spread
    passed = beyond_dry = 0
    for number in range(40):
        compared = compare(seen(in_rain(street(), random), 2.0, random), compared.scene)
        if number >= 20:
            unit = SPREAD_BASE + SPREAD_SHARE * compared.spread
            passed += z_of(compared) >= Z_PASS
            beyond_dry += z_of(compared) * unit / dry_unit >= Z_PASS
    assert beyond_dry >= 18
    assert passed <= beyond_dry / 2
    assert z_of(compare(seen(in_rain(visited(), random), 2.0, random), compared.scene)) > Z_PASS


def test_something_large_and_near_does_not_hide_behind_itself() -> None:
    before, random = learned(60)
    near = street()
    near[20:180, 40:140] = np.kron(np.random.default_rng(8).integers(0, 255, (20, 13)), np.ones((8, 8)))[:, :100]
    found = compare(seen(near, 2.0, random), before.scene)
    assert found.is_whole or z_of(found) > Z_PASS


# The whole picture ---------------------------------------------------------------------------------------------


def infrared() -> NDArray[np.uint8]:
    return (255 - street() // 2).astype(np.uint8)


def test_a_new_picture_is_said_once_and_learned_quickly() -> None:
    before, random = learned(60)
    switched = compare(seen(infrared(), 8.0, random), before.scene)
    assert switched.is_whole
    assert switched.learned == 60
    after = switched
    later = []
    for _ in range(30):
        after = compare(seen(infrared(), 8.0, random), after.scene)
        later.append(after)
    assert not any(one.is_whole for one in later)
    assert sum(z_of(one) >= Z_PASS for one in later) <= 1
    found = compare(seen(np.minimum(infrared(), visited(0)), 8.0, random), after.scene)
    assert z_of(found) > Z_PASS


# The shaking mast ----------------------------------------------------------------------------------------------


def smooth() -> NDArray[np.float32]:
    random = np.random.default_rng(4)
    coarse = random.normal(120, 40, (23, 40)).astype(np.float32)
    y, x = np.linspace(0, 21.9, 180), np.linspace(0, 38.9, 320)
    row, column = y.astype(int)[:, None], x.astype(int)[None, :]
    down, across = (y % 1)[:, None], (x % 1)[None, :]
    upper = coarse[row, column] * (1 - across) + coarse[row, column + 1] * across
    lower = coarse[row + 1, column] * (1 - across) + coarse[row + 1, column + 1] * across
    return np.asarray(upper * (1 - down) + lower * down, np.float32)


def test_a_picture_that_moves_as_a_whole_is_moved_back() -> None:
    random = np.random.default_rng(5)
    compared = compare(seen(smooth(), 2.0, random), None)
    for _ in range(60):
        compared = compare(seen(smooth(), 2.0, random), compared.scene)
    shaken = compare(seen(moved(smooth(), 2.6, -1.4), 2.0, random), compared.scene)
    assert shaken.has_moved
    assert z_of(shaken) < Z_PASS
    with_somebody = smooth()
    with_somebody[80:104, 100:110] = 10
    found = compare(seen(moved(with_somebody, 2.6, -1.4), 2.0, random), compared.scene)
    assert z_of(found) > Z_PASS


# Where it looks ------------------------------------------------------------------------------------------------


def test_cells_that_are_not_watched_do_not_count() -> None:
    before, random = learned(60)
    watched = np.ones((23, 40), np.bool_)
    watched[10:13, 12:14] = False  # exactly where somebody comes, not where the contrast reaches beyond
    compared = compare(seen(street(), 2.0, random), None, watched)
    for _ in range(60):
        compared = compare(seen(street(), 2.0, random), compared.scene, watched)
    assert z_of(compare(seen(visited(), 2.0, random), compared.scene, watched)) < Z_PASS
    assert z_of(compare(seen(visited(), 2.0, random), before.scene)) > Z_PASS


def test_nothing_watched_is_nothing_found() -> None:
    before, random = learned(60)
    found = compare(seen(visited(), 2.0, random), before.scene, np.zeros((23, 40), np.bool_))
    assert (z_of(found), found.is_whole) == (0.0, False)


# Learning and keeping ------------------------------------------------------------------------------------------


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


def test_a_slightly_other_size_keeps_what_was_learned_and_compares_nothing() -> None:
    before, random = learned(60)
    wider = np.pad(street(), ((0, 0), (0, 1)))
    assert grid_of(wider.shape) == before.scene.noise.grid
    first = compare(seen(wider, 2.0, random), before.scene)
    assert (first.z_max, first.learned) == (None, 60)
    assert z_of(compare(seen(wider, 2.0, random), first.scene)) < Z_PASS


def test_a_scene_survives_as_bytes() -> None:
    before, random = learned(60)
    data = before.scene.to_bytes()
    assert len(data) < STATE_MAX_BYTES
    back = Scene.from_bytes(data)
    assert back.noise.looks == before.scene.noise.looks
    assert np.allclose(back.noise.mu, before.scene.noise.mu, rtol=2e-3, atol=1e-3)
    first = compare(seen(street(), 2.0, random), back)
    assert (first.z_max, first.learned) == (None, 60)
    second = compare(seen(street(), 2.0, random), first.scene)
    assert second.learned == 60
    assert z_of(second) < Z_PASS


def test_the_largest_scene_is_small_enough_to_travel() -> None:
    tall = np.zeros((4000, 400), np.uint8)
    rows, columns = grid_of(tall.shape)
    assert rows * columns > 0.8 * CELLS_MAX
    assert len(compare(tall, None).scene.to_bytes()) < STATE_MAX_BYTES


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_or_make_a_finite_scene(data: bytes) -> None:
    try:
        scene = Scene.from_bytes(data)
    except BadInput:
        return
    assert np.isfinite(scene.noise.mu).all()
    assert (scene.noise.sigma >= 0).all()


def test_a_scene_that_was_cut_off_is_refused() -> None:
    data = compare(street(), None).scene.to_bytes()
    for length in (0, 5, 100, len(data) - 1):
        with pytest.raises(BadInput):
            Scene.from_bytes(data[:length])
    with pytest.raises(BadInput):
        Scene.from_bytes(data + b"\0")
