"""Where a sheet holds what: texts, categories and scores (decision 48); names of cells; what a check can find.

Rows are numbered from 1 and columns by letters, as people see them. By default a text stands in column C from row 5
on, categories begin in column D, and rows 2, 3 and 4 hold their names, definitions and details. Rules only: reading
and writing are the clients'.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from camserver.base.errors import BadInput
from camserver.domain.policy import setting

# What the largest of the formats can hold (Excel); Google Sheets ends at column ZZZ.
COLUMNS_MAX: Final = 16_384
ROWS_MAX: Final = 1_048_576
CATEGORIES_MAX: Final = 500
NAME_MAX_CHARS: Final = 200
NOTE_MAX_CHARS: Final = 4000
_COLUMN: Final = re.compile(r"[A-Za-z]{1,3}")


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """Where a sheet holds what. A row of 0 is none: a sheet without definitions, say."""

    text_column: str = setting("C", "Column of the texts that are scored.")
    first_category_column: str = setting("D", "Column of the first category; the others follow it.")
    id_column: str = setting(
        "", "Column that tells rows with equal texts apart; empty: rows are known by their text."
    )
    name_row: int = setting(2, "Row with the categories' names.", min=1, max=1000)
    definition_row: int = setting(3, "Row with their definitions; 0: none.", min=0, max=1000)
    detail_row: int = setting(4, "Row with further details of them; 0: none.", min=0, max=1000)
    first_data_row: int = setting(5, "First row with a text.", min=2, max=1001)
    block_size: int = setting(10, "Categories that are scored by one question.", min=1, max=50)
    tab: str = setting("", "Name of the sheet within the file; empty: the first one.")

    def check(self) -> None:
        """BadInput when the parts of the layout contradict each other."""
        text, first = column_number(self.text_column), column_number(self.first_category_column)
        known_by = column_number(self.id_column) if self.id_column else 0
        if text >= first or known_by >= first:
            raise BadInput(
                f"categories begin in column {column_name(first)}, so texts and ids must stand left of it, not in "
                f"{column_name(max(text, known_by))}"
            )
        headers = [row for row in (self.name_row, self.definition_row, self.detail_row) if row]
        if len(set(headers)) != len(headers):
            raise BadInput("names, definitions and details of categories must stand in different rows")
        if max(headers) >= self.first_data_row:
            raise BadInput(
                f"row {max(headers)} describes categories, so texts can't begin in row {self.first_data_row}"
            )

    @property
    def text_index(self) -> int:
        """The text's column, from 0."""
        return column_number(self.text_column) - 1

    @property
    def id_index(self) -> int | None:
        return column_number(self.id_column) - 1 if self.id_column else None

    @property
    def first_category_index(self) -> int:
        return column_number(self.first_category_column) - 1

    def category_column(self, index: int) -> str:
        """The column that the scores of a category stand in; categories are counted from 0."""
        return column_name(self.first_category_index + index + 1)

    def cell(self, row: int, category: int) -> str:
        return f"{self.category_column(category)}{row}"


@dataclass(frozen=True, slots=True)
class Category:
    index: int  # from 0, in the order of columns
    name: str
    definition: str = ""
    detail: str = ""


class Severity(StrEnum):
    ERROR = "error"  # a run can't begin, or go on
    WARNING = "warning"


class Problem(StrEnum):
    """What is wrong with a sheet; stable, for machines."""

    NO_CATEGORIES = "no_categories"
    NAME_MISSING = "name_missing"  # a column without a name between others
    NAME_TWICE = "name_twice"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    NO_TEXTS = "no_texts"
    TEXT_MISSING = "text_missing"  # rows without a text between others
    SAME_TEXT = "same_text"
    ALREADY_FILLED = "already_filled"
    PROTECTED = "protected"
    MERGED = "merged"
    LOCKED = "locked"
    FORMULA = "formula"  # a text is a formula whose value was never computed
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    problem: Problem
    where: str  # a cell, row or column such as D2; empty: the sheet as a whole
    message: str


@dataclass(frozen=True, slots=True)
class SheetCheck:
    """What a sheet holds, and what is wrong with it. Counts are of rows below the headers."""

    categories: tuple[Category, ...]
    findings: tuple[Finding, ...]
    last_row: int  # the last one with a text; 0: none
    texts: int = 0  # rows with a text
    distinct_texts: int = 0  # rows that differ from all others: equal ones are scored once
    empty_rows: int = 0  # rows without one before the last row
    filled_cells: int = 0  # cells of scores, in rows with a text, that hold something already
    text_chars: int = 0  # of all texts together: what an estimate of cost begins with

    @property
    def ok(self) -> bool:
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


@lru_cache(maxsize=1000)
def column_number(name: str) -> int:
    """1 for A, 27 for AA. BadInput when it is no column."""
    if not _COLUMN.fullmatch(name):
        raise BadInput(f"{name!r} is no column; name it by its letters, such as C")
    number = 0
    for letter in name.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    if number > COLUMNS_MAX:
        raise BadInput(f"there is no column {name.upper()}; the last one is {column_name(COLUMNS_MAX)}")
    return number


def column_name(number: int) -> str:
    if number < 1:
        raise BadInput(f"columns are numbered from 1, not {number}")
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def blocks(categories: Sequence[Category], size: int) -> tuple[tuple[Category, ...], ...]:
    """The categories in the groups that are asked about together; block n holds those from n x size on."""
    return tuple(tuple(categories[begin : begin + size]) for begin in range(0, len(categories), size))


def read_categories(
    layout: SheetLayout, names: Sequence[str], definitions: Sequence[str], details: Sequence[str]
) -> tuple[tuple[Category, ...], tuple[Finding, ...]]:
    """The categories of a sheet from its header rows, each from the first category's column on, and what is wrong
    with them. They end at the last name; cells to the right of it are somebody's notes."""
    findings: list[Finding] = []
    named = [name.strip() for name in names]
    while named and not named[-1]:
        named.pop()
    where = f"{layout.first_category_column.upper()}{layout.name_row}"
    if not named:
        message = f"{where} holds no category; enter their names in row {layout.name_row} from there on"
        findings.append(Finding(Severity.ERROR, Problem.NO_CATEGORIES, where, message))
    if len(named) > CATEGORIES_MAX:
        message = f"row {layout.name_row} names {len(named)} categories; the most are {CATEGORIES_MAX}"
        findings.append(Finding(Severity.ERROR, Problem.TOO_MANY, where, message))
        del named[CATEGORIES_MAX:]
    categories = tuple(
        Category(index, name, _at(definitions, index), _at(details, index)) for index, name in enumerate(named)
    )
    first_of: dict[str, str] = {}
    for category in categories:
        findings.extend(_wrong_with(layout, category, first_of))
    return categories, tuple(findings)


def _wrong_with(layout: SheetLayout, category: Category, first_of: dict[str, str]) -> list[Finding]:
    where = layout.cell(layout.name_row, category.index)
    found: list[Finding] = []
    if not category.name:
        message = f"{where} is empty, with categories to its right; name it or remove the column"
        return [Finding(Severity.ERROR, Problem.NAME_MISSING, where, message)]
    other = first_of.setdefault(category.name.casefold(), where)
    if other != where:
        message = f"{where} names {category.name[:40]!r}, as {other} does; categories need different names"
        found.append(Finding(Severity.ERROR, Problem.NAME_TWICE, where, message))
    parts = (
        (layout.name_row, category.name, NAME_MAX_CHARS),
        (layout.definition_row, category.definition, NOTE_MAX_CHARS),
        (layout.detail_row, category.detail, NOTE_MAX_CHARS),
    )
    for row, text, most in parts:
        if len(text) > most:
            cell = layout.cell(row, category.index)
            message = f"{cell} holds {len(text)} characters; the most are {most}"
            found.append(Finding(Severity.ERROR, Problem.TOO_LONG, cell, message))
    return found


def changed_headers(layout: SheetLayout, before: Sequence[Category], now: Sequence[Category]) -> str | None:
    """What became of the categories that a run began with: None when nothing did, else what to say of it. Columns
    that were added to the right of them change nothing."""
    for was in before:
        where = layout.cell(layout.name_row, was.index)
        if was.index >= len(now) or not now[was.index].name:
            return f"{where} was {was.name[:40]!r} when the run began and is empty now"
        if now[was.index].name != was.name:
            return f"{where} was {was.name[:40]!r} when the run began and is {now[was.index].name[:40]!r} now"
    return None


def _at(texts: Sequence[str], index: int) -> str:
    return texts[index].strip() if index < len(texts) else ""
