from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from camserver.base.errors import BadInput
from camserver.media.clock_mask import Clocks, none_yet, watch

Gray = NDArray[np.uint8]
GRID = (23, 40)
SIDE = 8
BACKGROUND = np.kron(np.random.default_rng(1).integers(60, 180, (45, 80)), np.ones((4, 4))).astype(np.uint8)


def written(text: str, at: tuple[int, int]) -> Gray:
    picture = Image.fromarray(BACKGROUND)
    pen = ImageDraw.Draw(picture)
    pen.text(at, text, fill=255, stroke_width=1, stroke_fill=0)
    return np.asarray(picture)


def clock(interval_sec: int, at: tuple[int, int] = (180, 8)) -> Callable[[int], Gray]:
    def look(number: int) -> Gray:
        sec = 40_000 + number * interval_sec
        return written(f"2026-11-15 {sec // 3600 % 24:02}:{sec // 60 % 60:02}:{sec % 60:02}", at)

    return look


def watched(look: Callable[[int], Gray], looks: int) -> Clocks:
    random = np.random.default_rng(2)
    clocks = none_yet(GRID)
    last: Gray | None = None
    for number in range(looks):
        now = np.clip(look(number) + random.normal(0, 3, BACKGROUND.shape), 0, 255).astype(np.uint8)
        if last is not None:
            clocks = watch(clocks, now, last, SIDE)
        last = now
    return clocks


@pytest.mark.parametrize("interval_sec", [1, 2, 5, 10, 60, 600, 3600])
@pytest.mark.parametrize("at", [(180, 4), (6, 6), (100, 160)])
def test_a_clock_is_found_whatever_the_interval(interval_sec: int, at: tuple[int, int]) -> None:
    cells = watched(clock(interval_sec, at), 60).cells
    assert cells.any()
    rows, columns = np.nonzero(cells)
    assert rows.min() >= at[1] // SIDE
    assert rows.max() <= (at[1] + 14) // SIDE
    # From the date to the seconds: the slow digits too, which nobody has seen changing.
    width = int(ImageDraw.Draw(Image.new("L", (1, 1))).textlength("2026-11-15 23:59:59"))
    assert set(range(at[0] // SIDE + 1, (at[0] + width) // SIDE)) <= set(columns.tolist())


def test_a_still_picture_has_no_clock() -> None:
    assert not watched(lambda _: BACKGROUND, 60).cells.any()


def test_text_that_never_changes_is_no_clock() -> None:
    assert not watched(lambda _: written("Entrance 2F", (10, 10)), 60).cells.any()


def test_leaves_in_the_wind_are_no_clock() -> None:
    random = np.random.default_rng(3)

    def tree(_: int) -> Gray:
        picture = BACKGROUND.copy()
        picture[40:100, 60:160] = np.kron(random.integers(0, 255, (15, 25)), np.ones((4, 4)))
        return picture

    assert not watched(tree, 60).cells.any()


def test_somebody_who_walks_through_is_no_clock() -> None:
    def walker(number: int) -> Gray:
        picture = BACKGROUND.copy()
        left = 3 * number % 300
        picture[60:100, left : left + 14] = 10
        return picture

    assert not watched(walker, 120).cells.any()


def test_somebody_who_waves_in_one_place_for_a_while_is_no_clock() -> None:
    """A person is higher than a line of digits, and sometimes still."""
    random = np.random.default_rng(4)

    def waving(number: int) -> Gray:
        picture = BACKGROUND.copy()
        if number % 5:
            picture[60:100, 100 : 112 + int(random.integers(0, 8))] = random.integers(0, 120)
        return picture

    assert not watched(waving, 120).cells.any()


def test_a_clock_that_is_switched_off_is_forgotten() -> None:
    ticking = clock(1)
    clocks = watched(lambda number: ticking(number) if number < 60 else BACKGROUND, 60)
    assert clocks.cells.any()
    clocks = watched(lambda number: ticking(number) if number < 60 else BACKGROUND, 130)
    assert not clocks.cells.any()


def test_it_travels_as_bytes() -> None:
    found = watched(clock(1), 60)
    back = Clocks.from_bytes(found.to_bytes(), GRID)
    assert np.array_equal(back.cells, found.cells)
    assert np.allclose(back.busy, found.busy, atol=0.01)
    assert back.looks == found.looks
    with pytest.raises(BadInput):
        Clocks.from_bytes(found.to_bytes()[:-1], GRID)
