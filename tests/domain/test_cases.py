"""What a case may be called, and when it holds on to what is in it."""

import pytest

from camserver.base.errors import BadInput
from camserver.domain.cases import CaseState, checked_note, checked_title, holds_items


@pytest.mark.parametrize(
    ("state", "hold", "expected"),
    [
        (CaseState.OPEN, False, True),
        (CaseState.OPEN, True, True),
        (CaseState.CLOSED, True, True),
        (CaseState.CLOSED, False, False),
    ],
)
def test_only_a_closed_case_without_hold_lets_go(state: CaseState, hold: bool, expected: bool) -> None:
    assert holds_items(state, hold) is expected


def test_titles_and_notes_are_checked() -> None:
    assert checked_title("  駐輪場の \u3000 自転車  ") == "駐輪場の 自転車"
    assert checked_note(" two\nlines ") == "two\nlines"
    for bad in ("", " \u3000", "\u200b", "x" * 256, "a\nb", "a\n", "a\tb", "a\u2028b", "gpj.\u202eexe"):
        with pytest.raises(BadInput, match="title"):
            checked_title(bad)
    for bad in ("", "x" * 10_001):
        with pytest.raises(BadInput, match="note"):
            checked_note(bad)
