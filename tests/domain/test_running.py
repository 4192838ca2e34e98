"""Running is said only when it is plain to see."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.detections import Detection
from camserver.domain.running import Walker, is_running

RED, GREEN = (50.0, 60.0, 40.0), (50.0, -50.0, 40.0)
ASPECT = 16 / 9


def walker(x: float, y: float = 0.8, height: float = 0.4, top: tuple[float, float, float] | None = RED) -> Walker:
    """Somebody whose feet are there; 0.1 of the width is 0.44 of the usual height."""
    return Walker(Detection("person", 0.8, x - 0.04, y - height, x + 0.04, y), top)


@pytest.mark.parametrize(
    ("elapsed_ms", "step", "runs"),
    [
        (1000, 0.2, False),  # 0.9 heights a second: walking
        (1000, 0.5, True),  # 2.2
        (500, 0.25, True),
        (2000, 0.5, False),  # 1.1: hurrying
        (2001, 0.9, False),  # too long ago to know
        (None, 0.5, False),
        (0, 0.5, False),
        (-1000, 0.5, False),
        (100, 0.07, False),  # less than a box may be wrong by
        (200, 0.6, False),  # 13 heights a second: nobody
    ],
)
def test_how_far_in_what_time(elapsed_ms: int | None, step: float, runs: bool) -> None:
    assert is_running([walker(0.3 + step)], [walker(0.3)], elapsed_ms, ASPECT) == runs


def test_whoever_was_not_there_before_does_not_run() -> None:
    assert not is_running([walker(0.8)], [], 1000, ASPECT)
    assert not is_running([], [walker(0.8)], 1000, ASPECT)


def test_somebody_else_who_came_as_another_left_does_not_run() -> None:
    for other in (walker(0.3, top=GREEN), walker(0.3, top=None), walker(0.3, height=0.2)):
        assert not is_running([walker(0.8)], [other], 1000, ASPECT)


def test_two_who_stand_apart_do_not_run() -> None:
    two = [walker(0.2), walker(0.7)]
    assert not is_running(two, two, 1000, ASPECT)
    # One left, the other stayed: the one who stayed was near before.
    assert not is_running(two[:1], two, 1000, ASPECT)
    # One came: whoever is nearest to the one of before is that one.
    assert not is_running(two, two[:1], 1000, ASPECT)


def test_one_of_two_runs() -> None:
    assert is_running([walker(0.05), walker(0.95)], [walker(0.05), walker(0.52)], 1000, ASPECT)


def test_in_a_crowd_nothing_is_said() -> None:
    crowd = [walker(0.1 * n, top=GREEN) for n in range(6)]
    assert not is_running([*crowd, walker(0.95)], [*crowd, walker(0.7)], 500, ASPECT)


_walkers = st.lists(
    st.builds(walker, st.floats(0.05, 0.95), st.floats(0.5, 1), st.floats(0.1, 0.5), st.sampled_from([RED, GREEN])),
    max_size=4,
)


@given(_walkers, st.integers(100, 2000))
def test_nobody_runs_who_stands_still(walkers: list[Walker], elapsed_ms: int) -> None:
    shaken = [replace(one, found=replace(one.found, x1=one.found.x1 + 0.001)) for one in walkers]
    assert not is_running(shaken, walkers, elapsed_ms, ASPECT)
