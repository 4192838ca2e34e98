"""Outputs that no model should make, and suppression against the plain way of doing it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from camserver.domain.analysis import Box
from camserver.domain.stationary import iou
from camserver.services.analyzer.model_form import OnnxForm
from camserver.services.analyzer.onnx_outputs import CANDIDATES_MAX, Found, read

LABELS = 3
FLOATS = st.floats(width=32)


def form(output: str, **more: object) -> OnnxForm:
    return OnnxForm.model_validate({"output": output, "width": 64, "height": 64, **more})


def check_sane(found: Found, most: int) -> None:
    assert len(found.boxes) == len(found.scores) == len(found.classes) <= most
    assert ((found.boxes >= 0) & (found.boxes <= 1)).all()
    assert ((found.scores > 0) & (found.scores <= 1)).all()
    assert (np.diff(found.scores) <= 0).all()
    assert ((found.classes >= 0) & (found.classes < LABELS)).all()


@given(arrays(np.float32, (1, 20, 5 + LABELS), elements=FLOATS))
def test_yolov5_whatever_it_says(said: np.ndarray) -> None:
    check_sane(read([said], form("yolov5", found_max=7), LABELS), 7)


@given(arrays(np.float32, (1, 4 + LABELS, 20), elements=FLOATS))
def test_yolov8_whatever_it_says(said: np.ndarray) -> None:
    check_sane(read([said], form("yolov8", found_max=7), LABELS), 7)


@given(arrays(np.float32, (1, 5, 5 + LABELS), elements=FLOATS))
def test_yolox_whatever_it_says(said: np.ndarray) -> None:
    check_sane(read([said], form("yolox", found_max=7, strides=[32, 64]), LABELS), 7)


@given(arrays(np.float32, (20, 6), elements=FLOATS), st.sampled_from(["xywh", "xyxy"]))
def test_nms_inside_whatever_it_says(said: np.ndarray, boxes: str) -> None:
    check_sane(read([said], form("nms_inside", found_max=7, boxes=boxes), LABELS), 7)


PLACES = st.tuples(*[st.integers(0, 20)] * 4, st.integers(0, LABELS - 1), st.integers(20, 100))


@given(st.lists(PLACES, max_size=30, unique_by=lambda one: one[5]), st.sampled_from([0.0, 0.3, 0.6]))
def test_suppression_is_the_plain_rule(places: list[tuple[int, ...]], iou_max: float) -> None:
    rows = np.zeros((len(places), 5 + LABELS), np.float32)
    for row, (x, y, width, height, number, score) in zip(rows, places, strict=True):
        row[:4] = (x, y, x + width + 1, y + height + 1)
        row[4], row[5 + number] = 1.0, score / 100
    found = read([rows], form("yolov5", boxes="xyxy", iou_max=iou_max), LABELS)
    kept: list[tuple[Box, int]] = []
    for row in sorted(rows, key=lambda one: -one[5:].max()):
        x1, y1, x2, y2 = (float(edge) / 64 for edge in row[:4])
        box, number = Box(x1, y1, x2, y2), int(row[5:].argmax())
        overlaps = [iou(box, other) for other, of in kept if of == number]
        if all(share <= iou_max + 1e-6 for share in overlaps):
            kept.append((box, number))
        # Where it is a matter of rounding, either is right.
        elif any(abs(share - iou_max) < 1e-5 for share in overlaps):
            return
    assert [int(number) for number in found.classes] == [number for _, number in kept]


def test_of_very_many_candidates_the_best_are_looked_at() -> None:
    count = CANDIDATES_MAX * 3
    rows = np.zeros((1, count, 5 + LABELS), np.float32)
    rows[0, :, :4] = [32, 32, 8, 8]
    rows[0, :, 4], rows[0, :, 5] = 1.0, np.linspace(0.2, 0.9, count)
    assert read([rows], form("yolov5"), LABELS).scores == pytest.approx([0.9])


def test_an_empty_output_is_nothing_found() -> None:
    for output, shape in (("yolov5", (1, 0, 8)), ("yolov8", (1, 7, 0)), ("nms_inside", (0, 6))):
        assert len(read([np.zeros(shape, np.float32)], form(output), LABELS).boxes) == 0
