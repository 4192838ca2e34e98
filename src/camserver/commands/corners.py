"""Polygons as people type them: corners `X,Y` in shares of the picture, with blanks between them."""

from typing import Any

from camserver.base.errors import BadInput
from camserver.commands.camera_words import say


def corners(option: str, text: str) -> list[list[float]]:
    """Whether they make a region is the server's to say."""
    try:
        points = [[float(share) for share in point.split(",")] for point in text.split()]
    except ValueError:
        points = []
    if not points or any(len(point) != 2 for point in points):
        raise BadInput(say("bad_corners", option=option, text=text))
    return points


def zone(text: str) -> dict[str, Any]:
    """`NAME=X,Y X,Y …`; the name may hold anything but an equals sign."""
    name, equals, points = text.partition("=")
    if not name.strip() or not equals:
        raise BadInput(say("bad_zone", text=text))
    return {"name": name.strip(), "points": corners("--zone", points)}


def corners_shown(points: list[list[float]]) -> str:
    """As they are typed."""
    return " ".join(f"{x:g},{y:g}" for x, y in points)
