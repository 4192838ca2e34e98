"""Ranges of a tab of Google Sheets, what was read from them, and what is to be written. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from camserver.clients.sheets.formats import FileRow
from camserver.domain.sheet_layout import Finding, Problem, Severity, SheetLayout, column_name
from camserver.domain.sheet_rows import cell_text

# Rows that lie this near each other are read together.
RUN_GAP_ROWS: Final = 30
RUNS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab. Rows and columns of protected and merged ranges are counted from 0, the ends excluded."""

    gid: int
    title: str
    rows: int
    columns: int
    protected: tuple["Area", ...]  # what this account may not write
    merged: tuple["Area", ...]

    def range(self, first_column: int, last_column: int, first_row: int, last_row: int) -> str:
        """The A1 name of a range; columns from 0, rows from 1, all inclusive."""
        title = self.title.replace("'", "''")
        cells = f"{column_name(first_column + 1)}{first_row}:{column_name(last_column + 1)}{last_row}"
        return f"'{title}'!{cells}"


@dataclass(frozen=True, slots=True)
class Area:
    first_row: int
    end_row: int
    first_column: int
    end_column: int

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell lies in it; the row from 1, the column from 0."""
        return self.first_row <= row - 1 < self.end_row and self.first_column <= column < self.end_column

    @property
    def name(self) -> str:
        first = f"{column_name(self.first_column + 1)}{self.first_row + 1}"
        return f"{first}:{column_name(self.end_column)}{self.end_row}"


def tab_of(told: Mapping[str, Any]) -> Tab | None:
    """A tab from what Google tells of it; None when it is none with cells."""
    given = told.get("properties", {})
    grid = given.get("gridProperties")
    if not isinstance(grid, dict) or not isinstance(given.get("title"), str):
        return None
    rows, columns = int(grid.get("rowCount", 0)), int(grid.get("columnCount", 0))

    def area(one: Mapping[str, Any]) -> Area:
        return Area(
            int(one.get("startRowIndex", 0)),
            int(one.get("endRowIndex", rows)),
            int(one.get("startColumnIndex", 0)),
            int(one.get("endColumnIndex", columns)),
        )

    protected = [
        area(one.get("range", {}))
        for one in told.get("protectedRanges", [])
        if not one.get("warningOnly") and not one.get("requestingUserCanEdit")
    ]
    merged = [area(one) for one in told.get("merges", [])]
    return Tab(int(given.get("sheetId", 0)), given["title"], rows, columns, tuple(protected), tuple(merged))


def area_findings(tab: Tab, layout: SheetLayout, categories: int, last_row: int) -> Iterator[Finding]:
    """Protected and merged cells where scores belong."""
    first, end = layout.first_category_index, layout.first_category_index + categories
    ours = Area(layout.first_data_row - 1, last_row, first, end)
    for area in tab.protected:
        if _overlaps(area, ours):
            covers = area.first_row <= ours.first_row and area.end_row >= ours.end_row
            severity = Severity.ERROR if covers else Severity.WARNING
            message = f"{area.name} is protected, and scores belong there; let the service account edit it"
            yield Finding(severity, Problem.PROTECTED, area.name, message)
    for area in tab.merged:
        if _overlaps(area, ours):
            message = f"{area.name} is one merged cell where scores belong; unmerge it"
            yield Finding(Severity.ERROR, Problem.MERGED, area.name, message)


def _overlaps(one: Area, other: Area) -> bool:
    rows = one.first_row < other.end_row and other.first_row < one.end_row
    return rows and one.first_column < other.end_column and other.first_column < one.end_column


def runs_of(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Stretches that cover all of these rows, near ones together."""
    runs: list[tuple[int, int]] = []
    for row in sorted(set(rows)):
        if runs and row - runs[-1][1] <= RUN_GAP_ROWS:
            runs[-1] = (runs[-1][0], row)
        else:
            runs.append((row, row))
    return runs


def file_row(row: int, text: object, known_by: object, held: Sequence[object]) -> FileRow:
    return FileRow(row, cell_text(text), cell_text(known_by), held)


def one_column(values: Sequence[Sequence[Any]], count: int) -> list[Any]:
    """The cells of a range one column wide."""
    cells = [row[0] if row else "" for row in values[:count]]
    return cells + [""] * (count - len(cells))


def updates(tab: Tab, layout: SheetLayout, cells: Mapping[tuple[int, int], float | str]) -> list[dict[str, Any]]:
    """What to send for cells by (row, category): cells side by side are one range, and so are equal ranges in rows
    that follow each other."""
    spans: list[tuple[int, int, list[float | str]]] = []  # row, first category, values
    for row, category in sorted(cells):
        if spans and spans[-1][0] == row and spans[-1][1] + len(spans[-1][2]) == category:
            spans[-1][2].append(cells[row, category])
        else:
            spans.append((row, category, [cells[row, category]]))
    blocks: list[tuple[int, int, list[list[float | str]]]] = []
    for row, first, values in spans:
        last = blocks[-1] if blocks else None
        if last and last[1] == first and last[0] + len(last[2]) == row and len(last[2][0]) == len(values):
            last[2].append(values)
        else:
            blocks.append((row, first, [values]))
    first_column = layout.first_category_index
    return [
        {
            "range": tab.range(
                first_column + first, first_column + first + len(rows[0]) - 1, row, row + len(rows) - 1
            ),
            "majorDimension": "ROWS",
            "values": rows,
        }
        for row, first, rows in blocks
    ]
