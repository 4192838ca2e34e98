"""Polygons that people draw over a camera's picture: masks and zones.

Points are shares (0..1) of the picture as it is shown after rotation, so they survive a change of resolution. Drawing
them into pixels is in `media`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
Polygon: TypeAlias = tuple[Point, ...]

POLYGONS_MAX = 16  # of one kind
POINTS_MIN = 3
POINTS_MAX = 64  # of one polygon
# Of all masks and zones of a camera together: with them a START stays within the size of a message.
CAMERA_POINTS_MAX = 2048
ZONE_NAME_MAX_CHARS = 64
# A ten-thousandth is less than half a pixel of a 4K picture.
DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of the picture with a name."""

    name: str
    points: Polygon


@dataclass(frozen=True, slots=True)
class Problem:
    """`code` is for programs and translations, `text` for people."""

    code: str
    text: str


def rounded(points: Sequence[Sequence[float]]) -> Polygon:
    return tuple((round(float(x), DECIMALS), round(float(y), DECIMALS)) for x, y in points)


def area(points: Sequence[Sequence[float]]) -> float:
    """The polygon's area as a share of the picture (of a polygon that does not cross itself)."""
    turned = [*points[1:], points[0]]
    pairs = zip(points, turned, strict=True)
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)) / 2


def contains(points: Sequence[Sequence[float]], x: float, y: float) -> bool:
    """Whether a point is inside of the polygon: a line from it to the right crosses an odd number of its sides."""
    turned = [*points[1:], points[0]]
    is_inside = False
    for (ax, ay), (bx, by) in zip(points, turned, strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            is_inside = not is_inside
    return is_inside


def problem(points: Sequence[Sequence[float]]) -> Problem | None:
    """What is wrong with a polygon; None when it is good."""
    if not POINTS_MIN <= len(points) <= POINTS_MAX:
        return Problem("polygon_points", f"a polygon has {POINTS_MIN} to {POINTS_MAX} points, this one {len(points)}")
    for point in points:
        if len(point) != 2 or not all(math.isfinite(value) and 0 <= value <= 1 for value in point):
            return Problem("polygon_outside", "every point is a pair [x, y] of shares of the picture from 0 to 1")
    # Crossing lines can cancel each other out in the area, so only points on one line are refused.
    if len(set(rounded(points))) < POINTS_MIN or (area(points) == 0 and _on_one_line(points)):
        return Problem("polygon_line", "the points of a polygon lie on one line, so it covers nothing")
    return None


def _on_one_line(points: Sequence[Sequence[float]]) -> bool:
    ax, ay = points[0]
    bx, by = max(points[1:], key=lambda point: math.dist(point, points[0]))
    return all(abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) < 1e-9 for x, y in points)


def zones_problem(names: Sequence[str]) -> Problem | None:
    twice = {name for name in names if list(names).count(name) > 1}
    return Problem("zone_names", f"two zones have the name {min(twice)!r}") if twice else None


def total_problem(points: int) -> Problem | None:
    if points <= CAMERA_POINTS_MAX:
        return None
    return Problem(
        "polygon_total", f"the masks and zones of a camera have at most {CAMERA_POINTS_MAX} points, not {points}"
    )
