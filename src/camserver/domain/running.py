"""Whether somebody runs, from where people were one picture earlier.

Only what is plain to see counts: somebody of the same size and in clothes of the same colour was far enough away
shortly before, and nobody stood nearer who might be the same person. Running straight at the camera moves nobody
sideways and is not seen. Without the time between the pictures, or with more than two seconds, nothing is said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from camserver.domain.detections import Detection

Lab: TypeAlias = tuple[float, float, float]  # CIE L*a*b*

TAG_RUNNING = "behavior.running"
ELAPSED_MIN_MS, ELAPSED_MAX_MS = 100, 2000
# Heights of the body a second. Walking is 0.8 (1.4 m/s), hurrying 1.2; sprinters reach 6.
RUNNING_SPEED, SPEED_MAX = 1.8, 6.0
# Of the height: boxes are not exact to less.
MOVED_MIN = 0.4
# Heights of one body in two pictures, as a ratio, and the distance of two colours that are one.
SAME_HEIGHT = 1.3
SAME_COLOUR = 20.0
# In a crowd nobody can be told from the next.
PEOPLE_MAX = 6


@dataclass(frozen=True, slots=True)
class Walker:
    found: Detection
    top: Lab | None  # colour of the upper clothing, where it could be measured


def is_running(now: Sequence[Walker], before: Sequence[Walker], elapsed_ms: int | None, aspect: float) -> bool:
    """Whether any of them does. `aspect`: the picture's width over its height."""
    if elapsed_ms is None or not ELAPSED_MIN_MS <= elapsed_ms <= ELAPSED_MAX_MS:
        return False
    if max(len(now), len(before)) > PEOPLE_MAX:
        return False
    return any(_runs(walker, now, before, elapsed_ms / 1000, aspect) for walker in now)


def _runs(walker: Walker, now: Sequence[Walker], before: Sequence[Walker], elapsed_sec: float, aspect: float) -> bool:
    earlier = min(before, key=lambda one: _distance(walker, one, aspect), default=None)
    if earlier is None or min(now, key=lambda one: _distance(one, earlier, aspect)) is not walker:
        return False
    if not _are_same(walker, earlier):
        return False
    heights = _distance(walker, earlier, aspect) / _height(walker)
    return heights >= MOVED_MIN and RUNNING_SPEED <= heights / elapsed_sec <= SPEED_MAX


def _are_same(one: Walker, other: Walker) -> bool:
    if one.top is None or other.top is None:
        return False
    short, tall = sorted((_height(one), _height(other)))
    return tall <= SAME_HEIGHT * short and math.dist(one.top, other.top) <= SAME_COLOUR


def _distance(one: Walker, other: Walker, aspect: float) -> float:
    """Between their feet, in heights of the picture."""
    across = (one.found.x1 + one.found.x2 - other.found.x1 - other.found.x2) / 2 * aspect
    return math.hypot(across, one.found.y2 - other.found.y2)


def _height(walker: Walker) -> float:
    return walker.found.y2 - walker.found.y1
