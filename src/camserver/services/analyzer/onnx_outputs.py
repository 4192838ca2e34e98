"""What a YOLO-style model says, as boxes: arithmetic on arrays, nothing of any runtime.

yolov8      [1, 4 + C, N] or [1, N, 4 + C]   box, a score for each class
yolov5      [1, N, 5 + C]   box, how sure it is that there is anything, a score for each class
yolox       the same, with boxes still relative to the cells of the model's grids
nms_inside  [1, N, 6] or [N, 6]   x1, y1, x2, y2, score, class; or 7 with the picture's number before it, and then
                                  class before score
nms_split   [1, N, 4], [1, N], [1, N] and perhaps how many of them count: boxes, scores, classes
detr        [1, N, 4 + C], or [1, N, 4] and [1, N, C]   box, a score for each class; each thing once
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camserver.services.analyzer.model_form import OnnxForm

Floats = NDArray[np.float32]

# Greedy suppression compares every box with every other; the best of so many are looked at.
CANDIDATES_MAX = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes as x1, y1, x2, y2 in shares of what the model sees, best score first."""

    boxes: Floats  # [n, 4]
    scores: Floats  # [n]
    classes: NDArray[np.int64]  # [n]


def read(outputs: Sequence[Floats], form: OnnxForm, labels: int) -> Found:
    """ValueError when the outputs do not have the form that they should have."""
    # Numbers that are none, or beyond all bounds, may come and are sorted out below.
    with np.errstate(over="ignore", invalid="ignore"):
        if form.output == "nms_split":
            return _chosen(*_split(outputs), form, labels)
        rows = rows_of(_joined(outputs, labels), form, labels)
        if form.output == "nms_inside":
            return _chosen(*_decided(rows), form, labels)
        found = _chosen(*_scored(rows, form), form, labels)
        return found if form.is_decided else _without_doubles(found, form)


def _joined(outputs: Sequence[Floats], labels: int) -> Floats:
    """Boxes and their scores, where they come apart, side by side."""
    if len(outputs) == 1:
        return outputs[0]
    boxes, scores = (_without_batch(output, 2) for output in outputs)
    if boxes.shape[1:] != (4,) or scores.shape != (len(boxes), labels):
        raise ValueError(
            f"boxes have the shape {boxes.shape} and scores {scores.shape}; with {labels} labels they have (N, 4) "
            f"and (N, {labels})"
        )
    return np.concatenate([boxes, scores], axis=1)


def _split(outputs: Sequence[Floats]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    boxes, scores, classes = (_without_batch(one, wanted) for one, wanted in zip(outputs, (2, 1, 1), strict=False))
    if boxes.shape[1:] != (4,) or scores.shape != (len(boxes),) or classes.shape != scores.shape:
        raise ValueError(
            f"boxes, scores and classes have the shapes {boxes.shape}, {scores.shape} and {classes.shape}, not "
            "(N, 4), (N) and (N)"
        )
    count = len(boxes)
    if len(outputs) == 4:
        said = outputs[3].ravel()
        if len(said) != 1 or not 0 <= said[0] <= count:
            raise ValueError(f"it says {said[:4]} as the number of its finds, of which there are at most {count}")
        count = int(said[0])
    return boxes[:count], scores[:count], _whole(classes[:count])


def _without_batch(output: Floats, dimensions: int) -> Floats:
    """Without the number of the picture, of which there is one."""
    one: Floats = output[0] if output.ndim == dimensions + 1 and output.shape[0] == 1 else output
    if one.ndim != dimensions:
        raise ValueError(f"an output has the shape {output.shape}, which is none of {dimensions} dimensions")
    return one


def rows_of(output: Floats, form: OnnxForm, labels: int) -> Floats:
    """One row a candidate."""
    shape = output.shape
    rows = output[0] if output.ndim == 3 and shape[0] == 1 else output
    by_form = {"yolov8": (4 + labels,), "detr": (4 + labels,), "nms_inside": (6, 7)}
    columns = by_form.get(form.output, (5 + labels,))
    # Exporters differ in which comes first; where both would do, it is as the makers have it.
    if form.output == "yolov8" and rows.ndim == 2 and (rows.shape[0] in columns or rows.shape[1] not in columns):
        rows = rows.T
    if rows.ndim != 2 or rows.shape[1] not in columns:
        wanted = " or ".join(str(number) for number in columns)
        raise ValueError(
            f"the output has the shape {shape}; {form.output} with {labels} labels has {wanted} values a box"
        )
    return rows


def _decided(rows: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    if rows.shape[1] == 7:
        rows = rows[:, [1, 2, 3, 4, 6, 5]]
    return rows[:, :4], rows[:, 4], _whole(rows[:, 5])


def _scored(rows: Floats, form: OnnxForm) -> tuple[Floats, Floats, NDArray[np.int64]]:
    boxes, by_class = rows[:, :4], rows[:, 4:]
    if form.sigmoid:
        by_class = np.reciprocal(1 + np.exp(-by_class), dtype=np.float32)
    if form.output not in ("yolov8", "detr"):
        by_class = by_class[:, 1:] * by_class[:, :1]
    if form.output == "yolox":
        boxes = _from_grids(boxes, form)
    classes = by_class.argmax(axis=1) if len(by_class) else np.zeros(0, np.int64)
    return boxes, by_class[np.arange(len(by_class)), classes], classes.astype(np.int64)


def _from_grids(boxes: Floats, form: OnnxForm) -> Floats:
    """Boxes are (x, y) from their cell and the logarithm of their size, in cells; the grids follow one another."""
    cells = []
    for stride in form.strides:
        ys, xs = np.mgrid[: form.height // stride, : form.width // stride]
        cells.append(np.stack([xs.ravel(), ys.ravel(), np.full(xs.size, stride)], axis=1))
    grid = np.concatenate(cells).astype(np.float32)
    if len(grid) != len(boxes):
        raise ValueError(
            f"the output has {len(boxes)} boxes, but grids of the strides {form.strides} have {len(grid)}"
        )
    strides = grid[:, 2:]
    return np.concatenate([(boxes[:, :2] + grid[:, :2]) * strides, np.exp(boxes[:, 2:]) * strides], axis=1)


def _chosen(boxes: Floats, scores: Floats, classes: NDArray[np.int64], form: OnnxForm, labels: int) -> Found:
    """Those that are sure enough and make sense, as corners in shares."""
    usable = (scores >= form.score_min) & (scores <= 1.0) & np.isfinite(boxes).all(axis=1)
    usable &= (classes >= 0) & (classes < labels)
    kept = np.flatnonzero(usable)
    kept = kept[np.argsort(-scores[kept], kind="stable")][:CANDIDATES_MAX]
    if form.is_decided:
        kept = kept[: form.found_max]
    return Found(_corners(boxes[kept], form), scores[kept], classes[kept])


def _corners(boxes: Floats, form: OnnxForm) -> Floats:
    if form.is_xywh:
        half = boxes[:, 2:] / 2
        boxes = np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    across = [form.width, form.height] * 2 if not form.is_share else [1, 1, 1, 1]
    shares: Floats = np.clip(boxes / np.array(across, np.float32), 0.0, 1.0)
    return shares


def _without_doubles(found: Found, form: OnnxForm) -> Found:
    """Of boxes of one class that overlap too much only the best."""
    boxes, classes = found.boxes, found.classes
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.arange(len(boxes))
    best: list[int] = []
    while len(left) and len(best) < form.found_max:
        first, rest = left[0], left[1:]
        best.append(int(first))
        sides = np.minimum(boxes[first, 2:], boxes[rest, 2:]) - np.maximum(boxes[first, :2], boxes[rest, :2])
        shared = np.clip(sides, 0.0, None).prod(axis=1)
        together = areas[first] + areas[rest] - shared
        left = rest[(shared <= form.iou_max * together) | (classes[rest] != classes[first])]
    return Found(boxes[best], found.scores[best], classes[best])


def _whole(values: Floats) -> NDArray[np.int64]:
    """Class numbers; what is none becomes -1."""
    return np.where(np.abs(values) < 1e6, values, -1.0).astype(np.int64)
