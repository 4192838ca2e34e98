"""Columns, categories and what is wrong with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.sheet_layout import (
    CATEGORIES_MAX,
    COLUMNS_MAX,
    NAME_MAX_CHARS,
    Category,
    Problem,
    SheetLayout,
    blocks,
    changed_headers,
    column_name,
    column_number,
    read_categories,
)

LAYOUT = SheetLayout()


@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "A"), (26, "Z"), (27, "AA"), (52, "AZ"), (53, "BA"), (702, "ZZ"), (703, "AAA"), (16_384, "XFD")],
)
def test_columns(number: int, name: str) -> None:
    assert column_name(number) == name
    assert column_number(name) == column_number(name.lower()) == number


@given(st.integers(1, COLUMNS_MAX))
def test_columns_go_both_ways(number: int) -> None:
    assert column_number(column_name(number)) == number


@pytest.mark.parametrize("name", ["", "1", "A1", "ABCD", "XFE", "あ", "A ", "Å"])
def test_no_columns(name: str) -> None:
    with pytest.raises(BadInput):
        column_number(name)


@pytest.mark.parametrize(
    "layout",
    [
        SheetLayout(text_column="D"),
        SheetLayout(text_column="E"),
        SheetLayout(id_column="D"),
        SheetLayout(definition_row=2),
        SheetLayout(first_data_row=4),
        SheetLayout(first_category_column="12"),
    ],
)
def test_layouts_that_contradict_themselves(layout: SheetLayout) -> None:
    with pytest.raises(BadInput):
        layout.check()


@pytest.mark.parametrize(
    "layout",
    [LAYOUT, SheetLayout(name_row=1, definition_row=0, detail_row=0, first_data_row=2), SheetLayout(id_column="A")],
)
def test_layouts_that_fit(layout: SheetLayout) -> None:
    layout.check()


def test_cells_are_named_as_people_see_them() -> None:
    assert LAYOUT.cell(5, 0) == "D5"
    assert LAYOUT.cell(12, 23) == "AA12"


def test_reads_categories() -> None:
    found, problems = read_categories(LAYOUT, [" angry ", "glad", "", " "], ["very"], ["", "shown", "a note"])
    assert found == (Category(0, "angry", "very", ""), Category(1, "glad", "", "shown"))
    assert problems == ()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], {(Problem.NO_CATEGORIES, "D2")}),
        (["", " "], {(Problem.NO_CATEGORIES, "D2")}),
        (["a", "", "c"], {(Problem.NAME_MISSING, "E2")}),
        (["a", "b", "A"], {(Problem.NAME_TWICE, "F2")}),
        (["a" * (NAME_MAX_CHARS + 1)], {(Problem.TOO_LONG, "D2")}),
        ([str(number) for number in range(CATEGORIES_MAX + 1)], {(Problem.TOO_MANY, "D2")}),
    ],
)
def test_says_what_is_wrong_with_categories(names: list[str], expected: set[tuple[Problem, str]]) -> None:
    found, problems = read_categories(LAYOUT, names, [], [])
    assert {(one.problem, one.where) for one in problems} == expected
    assert all(one.where in one.message or one.problem is Problem.TOO_MANY for one in problems)
    assert len(found) <= CATEGORIES_MAX


@given(st.integers(0, 60), st.integers(1, 20))
def test_blocks_hold_every_category_once(count: int, size: int) -> None:
    categories = [Category(index, str(index)) for index in range(count)]
    made = blocks(categories, size)
    assert [category for block in made for category in block] == categories
    assert all(block[0].index == number * size for number, block in enumerate(made))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (["a", "b"], None),
        (["a", "b", "new"], None),
        (["a", "c"], "E2 was 'b' when the run began and is 'c' now"),
        (["new", "a", "b"], "D2 was 'a' when the run began and is 'new' now"),
        (["a"], "E2 was 'b' when the run began and is empty now"),
    ],
)
def test_categories_that_moved(now: list[str], said: str | None) -> None:
    before = [Category(0, "a", "old words"), Category(1, "b")]
    assert changed_headers(LAYOUT, before, [Category(index, name) for index, name in enumerate(now)]) == said
