"""Where the boxes of an analysis are in the pictures that are kept of a frame.

Boxes are shares of the infer picture. The full picture has the same shape, and so the same shares, unless whoever
made the infer picture put it between bars to give it another shape; then those bars are not part of the full one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from camserver.domain.analysis import Box

# Sizes are rounded to pixels, so two pictures of one shape differ by this much at most (width over height).
SHAPE_SLACK = 0.02


@dataclass(frozen=True, slots=True)
class Shapes:
    """Sizes and bars of a frame's pictures, in pixels; None: not known."""

    full: tuple[int, int] | None
    infer: tuple[int, int] | None
    bars: tuple[int, int, int, int] = (0, 0, 0, 0)  # of the infer picture: top, left, bottom, right

    @property
    def bars_were_added(self) -> bool:
        if self.full is None or self.infer is None or not any(self.bars):
            return False
        (full_w, full_h), (infer_w, infer_h) = self.full, self.infer
        return abs(full_w * infer_h - infer_w * full_h) > SHAPE_SLACK * infer_w * full_h


def in_full(boxes: Sequence[Box], shapes: Shapes) -> tuple[Box, ...]:
    """The same boxes as shares of the full picture; those that are wholly in a bar are left out."""
    if not shapes.bars_were_added or shapes.infer is None:
        return tuple(boxes)
    top, left, bottom, right = shapes.bars
    width, height = shapes.infer
    inner_w, inner_h = width - left - right, height - top - bottom
    if inner_w <= 0 or inner_h <= 0:
        return tuple(boxes)
    placed = []
    for box in boxes:
        x1, x2 = (_share((x * width - left) / inner_w) for x in (box.x1, box.x2))
        y1, y2 = (_share((y * height - top) / inner_h) for y in (box.y1, box.y2))
        if x1 < x2 and y1 < y2:
            placed.append(replace(box, x1=x1, y1=y1, x2=x2, y2=y2))
    return tuple(placed)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
