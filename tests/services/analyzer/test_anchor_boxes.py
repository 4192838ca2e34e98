"""Boxes of anchors: against the same rules said one anchor at a time."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from camserver.domain.analysis import Box
from camserver.domain.stationary import iou
from camserver.services.analyzer.anchor_boxes import SCORE_MIN, AnchorBoxes, Found, Scale

ANCHORS, CLASSES, FOUND_MAX = 12, 3, 5
# A row of places that overlap their neighbours.
ROW = np.array([[0.5, 0.1 + 0.07 * n, 0.4, 0.2] for n in range(ANCHORS)], np.float32)
HEAD = AnchorBoxes(
    anchors=ROW,
    of_boxes=Scale(0.02, 3),
    of_classes=Scale(0.1, 20),
    of_scores=Scale(1 / 256, -128),
    box_divisors=(1.0, 1.0, 1.0, 1.0),
    iou_max=0.5,
    found_max=FOUND_MAX,
)
NOISE = np.full((ANCHORS, CLASSES), -128, np.int8)
AT_ANCHOR = np.full((ANCHORS, 4), HEAD.of_boxes.zero, np.int8)
a_byte = st.integers(-128, 127)


def plainly(boxes: np.ndarray, classes: np.ndarray) -> list[tuple[int, int, float]]:
    """(anchor, class, score) of what is found."""
    said = []
    for anchor in range(ANCHORS):
        told = [int(value) for value in classes[anchor]]
        best = told.index(max(told))
        score = 1 / (1 + math.exp(-0.1 * (told[best] - 20)))
        told_score = min(round(score * 256), 255) / 256
        if told_score >= SCORE_MIN:
            said.append((anchor, best, told_score, told[best]))
    said.sort(key=lambda one: (-one[3], one[0]))
    kept: list[tuple[int, int, float]] = []
    for anchor, best, score, _ in said:
        if len(kept) < FOUND_MAX and all(iou(box(anchor, boxes), box(other, boxes)) <= 0.5 for other, _, _ in kept):
            kept.append((anchor, best, score))
    return kept


def box(anchor: int, boxes: np.ndarray) -> Box:
    y, x, height, width = (float(value) for value in ROW[anchor])
    dy, dx, taller, wider = (0.02 * (int(value) - 3) for value in boxes[anchor])
    y, x = y + dy * height, x + dx * width
    height, width = height * math.exp(taller), width * math.exp(wider)
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2, "", 0.0)


def told(found: Found) -> list[tuple[int, float]]:
    return list(zip(found.classes.tolist(), found.scores.tolist(), strict=True))


@given(arrays(np.int8, (ANCHORS, CLASSES), elements=a_byte), arrays(np.int8, (ANCHORS, 4), elements=st.just(3)))
def test_it_finds_what_the_rules_say(classes: np.ndarray, boxes: np.ndarray) -> None:
    expected = plainly(boxes, classes)
    found = HEAD.read(boxes, classes)
    assert told(found) == [(best, score) for _, best, score in expected]
    for (anchor, _, _), corners in zip(expected, found.boxes.tolist(), strict=True):
        place = box(anchor, boxes)
        np.testing.assert_allclose(corners, [place.y1, place.x1, place.y2, place.x2], atol=1e-5)


@given(arrays(np.int8, 4, elements=a_byte))
def test_a_box_is_where_its_anchor_and_its_numbers_say(numbers: np.ndarray) -> None:
    boxes, classes = AT_ANCHOR.copy(), NOISE.copy()
    boxes[4], classes[4, 1] = numbers, 127
    found = HEAD.read(boxes, classes)
    place = box(4, boxes)
    assert told(found) == [(1, 255 / 256)]
    np.testing.assert_allclose(found.boxes[0], [place.y1, place.x1, place.y2, place.x2], rtol=1e-4, atol=1e-4)


def test_noise_is_nothing() -> None:
    found = HEAD.read(AT_ANCHOR, NOISE)
    assert found.boxes.shape == (0, 4)
    assert told(found) == []


def test_a_model_that_can_be_sure_of_nothing_finds_nothing() -> None:
    unsure = AnchorBoxes(ROW, HEAD.of_boxes, Scale(0.01, 127), Scale(1 / 4096, -128), (1, 1, 1, 1), 0.5, FOUND_MAX)
    assert told(unsure.read(AT_ANCHOR, np.full((ANCHORS, CLASSES), 127, np.int8))) == []


def test_numbers_of_boxes_are_divided_as_the_model_says() -> None:
    boxes, classes = AT_ANCHOR.copy(), NOISE.copy()
    boxes[0], classes[0, 0] = [53, 53, 3, 3], 127
    halved = AnchorBoxes(ROW, HEAD.of_boxes, HEAD.of_classes, HEAD.of_scores, (2.0, 4.0, 1.0, 1.0), 0.5, FOUND_MAX)
    (corners,) = halved.read(boxes, classes).boxes
    np.testing.assert_allclose((corners[:2] + corners[2:]) / 2, [0.5 + 0.5 * 0.4, 0.1 + 0.25 * 0.2], atol=1e-6)
