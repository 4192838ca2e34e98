"""How a row is known again, and which cells a score goes into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.sheet_rows import (
    Cells,
    RowScores,
    SheetRow,
    cell_text,
    cells_to_write,
    identity_of,
    is_same_score,
    safe_text,
    score_text,
)

SCORES = st.floats(0, 1)


@given(st.text(), st.text(), st.text(), st.text())
def test_identity_is_that_of_text_and_id(text: str, known_by: str, other: str, other_id: str) -> None:
    same = (text, known_by) == (other, other_id)
    assert (identity_of(text, known_by) == identity_of(other, other_id)) == same


@given(SCORES)
def test_a_score_is_known_again_in_any_form(score: float) -> None:
    text = score_text(score)
    assert is_same_score(text, score)
    assert is_same_score(float(text), score)
    assert 0 <= float(text) <= 1


@pytest.mark.parametrize("held", ["", None, "0.8", 0.86, "nan", "inf", "85 %", True, "=0.85"])
def test_what_is_another_score(held: object) -> None:
    assert not is_same_score(held, 0.85)


@given(
    st.lists(st.one_of(st.none(), SCORES), min_size=1, max_size=10), st.lists(st.sampled_from(["", None, "x", "0.5"]))
)
def test_cells_that_hold_something_are_never_written(scores: list[float | None], held: list[object]) -> None:
    made = cells_to_write(RowScores(5, "", 0, tuple(scores)), held)
    for category, score in made.write:
        assert category >= len(held) or held[category] in ("", None)
        assert score == round(scores[category] or 0, 2)
    filled = {category for category, score in enumerate(scores) if score is not None}
    written = {category for category, _ in made.write}
    assert written | set(made.kept) <= filled
    assert not written & set(made.kept)


def test_blocks_are_counted_from_their_first_category() -> None:
    made = cells_to_write(RowScores(5, "", 2, (0.1, 0.2, None)), ["a", "b", "", "typed"])
    assert made == Cells(((2, 0.1),), (3,))


def test_open_categories() -> None:
    assert SheetRow(5, "text", "", 0b101).open_categories(4) == (1, 3)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "TRUE"), (5.0, "5"), (0.25, "0.25"), (7, "7"), ("=x", "=x"), (1e300, "1e+300")],
)
def test_cells_as_texts(value: object, text: str) -> None:
    assert cell_text(value) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_texts_that_look_like_formulas_are_made_safe(text: str) -> None:
    assert safe_text(text) == f"'{text}"
    assert safe_text(f"a{text}") == f"a{text}"
