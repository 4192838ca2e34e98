"""From what an EfficientDet-Lite says of each of its anchors to boxes: arithmetic on arrays, nothing of any runtime.

An anchor is a place where something may be; the model says for each how sure it is of every class, and how the box
differs from the anchor. What it says are bytes, each of which stands for one number.

The model's own last step does the same for all classes of all anchors, in floats: 2.5 million of them, a quarter of
the model's time. Nearly all are noise, which shows in the bytes already.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.int8]
Floats = NDArray[np.float32]

# What the model is less sure of than this is noise; no rule asks for it.
SCORE_MIN = 0.1
_LEAST_BYTE, _BYTES = -128, 256


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers that bytes stand for."""

    step: float
    zero: int  # the byte that stands for 0

    def numbers(self, values: Bytes) -> Floats:
        return (values.astype(np.float32) - np.float32(self.zero)) * np.float32(self.step)

    def nearest(self, numbers: Floats) -> Floats:
        """The numbers as bytes would tell them."""
        told = np.clip(np.round(numbers / np.float32(self.step)) + self.zero, _LEAST_BYTE, _LEAST_BYTE + _BYTES - 1)
        return np.asarray((told - self.zero) * np.float32(self.step), np.float32)


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes as ymin, xmin, ymax, xmax in shares of what the model sees, best score first."""

    boxes: Floats  # [n, 4]
    classes: NDArray[Any]  # [n]
    scores: Floats  # [n]


@dataclass(frozen=True)
class AnchorBoxes:
    """How a model's anchors are read. `anchors`: [N, 4], each y, x, height, width; y and x are of the middle."""

    anchors: Floats
    of_boxes: Scale
    of_classes: Scale  # before the sigmoid
    of_scores: Scale  # after it
    box_divisors: tuple[float, float, float, float]  # of y, x, height, width
    iou_max: float
    found_max: int

    @cached_property
    def _scores(self) -> Floats:
        """The score that each byte stands for, the least byte first."""
        every = np.arange(_LEAST_BYTE, _LEAST_BYTE + _BYTES)
        numbers = (every.astype(np.float32) - self.of_classes.zero) * np.float32(self.of_classes.step)
        return self.of_scores.nearest(np.reciprocal(1 + np.exp(-numbers), dtype=np.float32))

    @cached_property
    def _byte_min(self) -> int:
        """The least byte that is more than noise; 128, which no byte is, when none is."""
        return _LEAST_BYTE + int(np.searchsorted(self._scores, SCORE_MIN))

    def read(self, boxes: Bytes, classes: Bytes) -> Found:
        """`boxes`: [N, 4] as y, x, height, width; `classes`: [N, C]."""
        count = classes.shape[1]
        places = np.flatnonzero(classes.reshape(-1) >= self._byte_min)
        # Of an anchor only its best class counts.
        rows = np.unique(places // count)
        best = classes[rows].argmax(axis=1)
        told = classes[rows, best]
        order = np.argsort(-told.astype(np.int16), kind="stable")
        rows, best, told = rows[order], best[order], told[order]
        corners = self._corners(rows, boxes[rows])
        kept = _without_doubles(corners, self.iou_max, self.found_max)
        return Found(corners[kept], best[kept], self._scores[told[kept].astype(np.int16) - _LEAST_BYTE])

    def _corners(self, rows: NDArray[np.int64], boxes: Bytes) -> Floats:
        anchors = self.anchors[rows]
        numbers = self.of_boxes.numbers(boxes) / np.array(self.box_divisors, np.float32)
        middles = numbers[:, :2] * anchors[:, 2:] + anchors[:, :2]
        halves = np.exp(numbers[:, 2:]) * anchors[:, 2:] / 2
        return np.concatenate([middles - halves, middles + halves], axis=1)


def _without_doubles(boxes: Floats, iou_max: float, found_max: int) -> list[int]:
    """Which boxes stay, of those that overlap too much only the first, whatever their classes."""
    y1, x1, y2, x2 = np.ascontiguousarray(boxes.T)
    areas = (y2 - y1) * (x2 - x1)
    left = np.arange(len(boxes))
    kept: list[int] = []
    while len(left) and len(kept) < found_max:
        first, rest = left[0], left[1:]
        kept.append(int(first))
        heights = np.minimum(y2[first], y2[rest]) - np.maximum(y1[first], y1[rest])
        widths = np.minimum(x2[first], x2[rest]) - np.maximum(x1[first], x1[rest])
        shared = np.maximum(heights, 0) * np.maximum(widths, 0)
        left = rest[shared <= iou_max * (areas[first] + areas[rest] - shared)]
    return kept
