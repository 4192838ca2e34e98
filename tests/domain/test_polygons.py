"""Polygons: what is one, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.polygons import (
    CAMERA_POINTS_MAX,
    DECIMALS,
    POINTS_MAX,
    area,
    contains,
    problem,
    rounded,
    total_problem,
    zones_problem,
)

share = st.floats(0, 1)
SQUARE = [[0.0, 0.0], [0.5, 0.0], [0.5, 0.5], [0.0, 0.5]]


@pytest.mark.parametrize(
    ("points", "code"),
    [
        (SQUARE, None),
        ([[0, 0], [1, 0], [1, 1]], None),
        # A bow tie has no area in sum, and still covers something.
        ([[0, 0], [1, 1], [1, 0], [0, 1]], None),
        ([], "polygon_points"),
        ([[0, 0], [1, 1]], "polygon_points"),
        ([[0, 0]] * (POINTS_MAX + 1), "polygon_points"),
        ([[0, 0], [1, 0], [1, 1.001]], "polygon_outside"),
        ([[0, 0], [1, 0], [1, -0.1]], "polygon_outside"),
        ([[0, 0], [1, 0], [1, float("nan")]], "polygon_outside"),
        ([[0, 0], [1, 0], [1]], "polygon_outside"),
        ([[0, 0], [1, 0], [1, 1, 1]], "polygon_outside"),
        ([[0, 0], [0.5, 0.5], [1, 1]], "polygon_line"),
        ([[0, 0], [1, 0], [0, 0], [1, 0]], "polygon_line"),
        ([[0.5, 0.5]] * 3, "polygon_line"),
        ([[0.1, 0.1], [0.100001, 0.1], [0.1, 0.100001]], "polygon_line"),
    ],
)
def test_what_makes_a_polygon(points: list[list[float]], code: str | None) -> None:
    found = problem(points)
    assert (None if found is None else found.code) == code
    assert found is None or found.text


def test_the_area_is_a_share_of_the_picture() -> None:
    assert area(SQUARE) == pytest.approx(0.25)
    assert area([[0, 0], [1, 0], [1, 1], [0, 1]]) == pytest.approx(1)


@given(st.lists(st.tuples(share, share), min_size=3, max_size=POINTS_MAX))
def test_rounding_stays_in_the_picture_and_close(points: list[tuple[float, float]]) -> None:
    near = 0.5 * 10**-DECIMALS + 1e-12
    for (x, y), (rounded_x, rounded_y) in zip(points, rounded(points), strict=True):
        assert 0 <= rounded_x <= 1
        assert 0 <= rounded_y <= 1
        assert abs(x - rounded_x) <= near
        assert abs(y - rounded_y) <= near


def test_zones_have_names_of_their_own() -> None:
    assert zones_problem(["gate", "yard"]) is None
    found = zones_problem(["gate", "yard", "gate"])
    assert found is not None
    assert "'gate'" in found.text


def test_all_of_a_camera_is_bounded() -> None:
    assert total_problem(CAMERA_POINTS_MAX) is None
    assert total_problem(CAMERA_POINTS_MAX + 1) is not None


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_inside(x: float, y: float) -> None:
    triangle = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    if abs(x + y - 1) > 1e-9 and min(x, y) > 0:
        assert contains(triangle, x, y) == (x + y < 1)
    hollow = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.1), (0.0, 1.0))
    assert not contains(hollow, 0.5, 0.5)
    assert contains(hollow, 0.1, 0.5)
