"""What is gone from a shelf, and what only seems to be."""

import pytest

from camserver.domain.detections import Detection
from camserver.domain.shelves import gone_from, is_changed

SHELF = ((0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.6))
BOTTLE = Detection("bottle", 0.6, 0.3, 0.3, 0.36, 0.5)
VASE = Detection("vase", 0.2, 0.3, 0.3, 0.36, 0.5)
OUTSIDE = Detection("bottle", 0.6, 0.7, 0.3, 0.76, 0.5)
CAR = Detection("car", 0.6, 0.25, 0.3, 0.5, 0.5)
IN_FRONT = Detection("person", 0.2, 0.5, 0.1, 0.7, 0.9)
ASIDE = Detection("person", 0.9, 0.7, 0.1, 0.9, 0.9)


@pytest.mark.parametrize(
    ("before", "now", "gone"),
    [
        ([BOTTLE], [], (BOTTLE,)),
        ([BOTTLE], [BOTTLE], ()),
        ([BOTTLE], [VASE], ()),  # still there under another name, and hardly sure
        ([VASE], [], ()),  # was never sure
        ([OUTSIDE], [], ()),
        ([BOTTLE], [ASIDE], (BOTTLE,)),
        ([BOTTLE], [IN_FRONT], ()),  # may hide it
        ([BOTTLE, IN_FRONT], [], ()),
        ([BOTTLE, CAR], [BOTTLE], (CAR,)),
        ([], [BOTTLE], ()),
    ],
)
def test_what_is_gone(before: list[Detection], now: list[Detection], gone: tuple[Detection, ...]) -> None:
    assert gone_from(SHELF, (), before, now) == gone


@pytest.mark.parametrize(
    ("expected", "gone"), [(["bottle"], 1), (["vehicle"], 1), (["vehicle", "bottle"], 2), (["tv"], 0)]
)
def test_only_what_belongs_there_counts(expected: list[str], gone: int) -> None:
    assert len(gone_from(SHELF, expected, [BOTTLE, CAR], [])) == gone


def test_a_thing_that_is_overlooked_changes_no_pixel() -> None:
    assert not is_changed(0.05)
    assert is_changed(0.6)
