"""Reads a tab of Google Sheets: headers, stretches of rows, and where a row went.

Cells are read as they were entered, since a formula that comes to nothing is still somebody's. Texts are read as they
look; that takes a second request only where one is a formula.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from camserver.base.clock import Clock
from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.google_api import GoogleApi, TabChanged, TooLarge
from camserver.clients.sheets.google_cells import Tab, file_row, one_column, tab_of
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.sheet_layout import CATEGORIES_MAX, Category, SheetLayout, changed_headers, read_categories
from camserver.domain.sheet_rows import RowScores, cell_text

READ_ROWS_MIN: Final = 500
READ_ROWS_MAX: Final = 10_000
READ_CELLS_MAX: Final = 100_000
READ_CHARS_WANTED: Final = 2_000_000
# Where a row is looked for first: somebody inserted or deleted a few.
NEAR_ROWS: Final = 200
# How old what is known of tabs may be: rows are added, ranges protected.
TAB_MAX_AGE_MS: Final = 60_000
CHANGES_MAX: Final = 5


class GoogleReader:
    def __init__(self, api: GoogleApi, layout: SheetLayout, clock: Clock, gid: int | None) -> None:
        self.expected: tuple[Category, ...] = ()
        self._api = api
        self._layout = layout
        self._clock = clock
        self._gid = gid
        self._tab: Tab | None = None
        self._tab_ms = 0
        self._changes = 0  # of the tab, since it was last read
        self._entered_names: list[Any] = []  # what was entered for the names of categories, formulas as such

    async def tab(self, again: bool = False) -> Tab:
        is_old = self._clock.boot_ms() - self._tab_ms > TAB_MAX_AGE_MS
        if self._tab is None or again or is_old:
            tabs = [tab for tab in map(tab_of, await self._api.tabs()) if tab is not None]
            # Once found it is known by its number: people rename tabs.
            by_title = self._layout.tab if self._tab is None else ""
            fits = [tab for tab in tabs if (tab.title == by_title if by_title else self._gid in (None, tab.gid))]
            if not fits:
                names = ", ".join(tab.title for tab in tabs)[:200]
                wanted = self._layout.tab or self._gid
                raise SheetError(SheetTrouble.GONE, f"there is no tab {wanted} (any more); there is {names}")
            self._tab, self._gid, self._tab_ms = fits[0], fits[0].gid, self._clock.boot_ms()
        return self._tab

    async def look_again(self) -> Tab:
        """After the tab was not what it was. One that never is what it was is given up."""
        self._changes += 1
        if self._changes > CHANGES_MAX:
            raise SheetError(SheetTrouble.BUSY, "the tab is renamed or made smaller again and again", 10.0)
        return await self.tab(again=True)

    async def header_rows(self, tab: Tab) -> list[FileRow]:
        layout = self._layout
        rows = [row for row in (layout.name_row, layout.definition_row, layout.detail_row) if 0 < row <= tab.rows]
        if not rows or layout.first_category_index >= tab.columns:
            return []
        last = min(tab.columns, layout.first_category_index + CATEGORIES_MAX) - 1
        ranges = [tab.range(layout.first_category_index, last, row, row) for row in rows]
        found = await self._api.values(ranges, "UNFORMATTED_VALUE")
        return [file_row(row, "", "", values[0] if values else []) for row, values in zip(rows, found, strict=True)]

    async def categories(self) -> tuple[Category, ...]:
        tab = await self.tab()
        self.expected = self._categories_of(await self.header_rows(tab))
        if self.expected:
            (names,) = await self._api.values([self._names_range(tab)], "FORMULA")
            self._entered_names = names[0] if names else []
        return self.expected

    async def pages(self, first_row: int, last_row: int) -> AsyncIterator[list[FileRow]]:
        """The rows of a stretch: few at once where texts are long or categories many, more where there is nothing."""
        tab = await self.tab()
        most = max(min(READ_ROWS_MAX, READ_CELLS_MAX // (max(len(self.expected), 1) + 2)), 1)
        size, row = min(READ_ROWS_MIN, most), first_row
        while row <= min(last_row, tab.rows):
            last = min(row + size - 1, last_row, tab.rows)
            try:
                rows = await self.read(tab, [(row, last)])
            except TooLarge:
                if size == 1:
                    raise SheetError(SheetTrouble.BROKEN, f"row {row} is too large to be read") from None
                size = max(size // 4, 1)
                continue
            except TabChanged:
                tab = await self.look_again()
                continue
            yield rows
            is_long = sum(len(one.text) for one in rows) > READ_CHARS_WANTED
            size = max(size // 2, 1) if is_long else min(size * 2, most)
            row = last + 1

    async def read(self, tab: Tab, runs: Sequence[tuple[int, int]], check: bool = False) -> list[FileRow]:
        """The rows of some stretches, as they are now. With `check`, SheetError when the categories are no longer
        where they were."""
        layout = self._layout
        last = min(layout.first_category_index + (len(self.expected) or CATEGORIES_MAX), tab.columns) - 1
        columns = [(layout.text_index, layout.text_index)]
        if layout.id_index is not None:
            columns.append((layout.id_index, layout.id_index))
        columns.append((layout.first_category_index, last))
        ranges = [tab.range(left, right, first, end) for first, end in runs for left, right in columns]
        names = [self._names_range(tab)] if check and self.expected else []
        found = await self._api.values([*names, *ranges], "FORMULA")
        self._changes = 0
        if names:
            await self._check_names(tab, found.pop(0))
        rows: list[FileRow] = []
        for number, (first, end) in enumerate(runs):
            begin, count = number * len(columns), end - first + 1
            *known, held = found[begin : begin + len(columns)]
            cells = [one_column(part, count) for part in known]
            if any(isinstance(cell, str) and cell.startswith("=") for part in cells for cell in part):
                shown = await self._api.values(ranges[begin : begin + len(known)], "UNFORMATTED_VALUE")
                cells = [one_column(part, count) for part in shown]
            ids = cells[1] if len(cells) > 1 else [""] * count
            for offset, (text, known_by) in enumerate(zip(cells[0], ids, strict=True)):
                rows.append(file_row(first + offset, text, known_by, held[offset] if offset < len(held) else []))
        return rows

    async def find(self, wanted: Sequence[RowScores]) -> dict[str, list[FileRow]]:
        """Where rows are by now, by their identities: near where they were, else anywhere."""
        tab = await self.tab(again=True)
        missing = {one.identity for one in wanted}
        first_data = self._layout.first_data_row
        first = max(min(one.row for one in wanted) - NEAR_ROWS, first_data)
        last = min(max(one.row for one in wanted) + NEAR_ROWS, tab.rows)
        stretches = [(first, last)] if last - first < READ_ROWS_MAX else []
        found: dict[str, list[FileRow]] = {}
        for begin, end in [*stretches, (first_data, tab.rows)]:
            found = {}
            async for rows in self.pages(begin, end):
                for row in rows:
                    if row.identity in missing:
                        found.setdefault(row.identity, []).append(row)
            if len(found) == len(missing):
                break
        return found

    def _names_range(self, tab: Tab) -> str:
        first, row = self._layout.first_category_index, self._layout.name_row
        return tab.range(first, min(first + len(self.expected), tab.columns) - 1, row, row)

    async def _check_names(self, tab: Tab, entered: Sequence[Sequence[Any]]) -> None:
        if (list(entered[0]) if entered else []) == self._entered_names:
            return
        gone = changed_headers(self._layout, self.expected, self._categories_of(await self.header_rows(tab)))
        if gone is not None:
            message = f"{gone}; put the categories back as they were, or begin another run"
            raise SheetError(SheetTrouble.LAYOUT, message)

    def _categories_of(self, headers: Iterable[FileRow]) -> tuple[Category, ...]:
        layout = self._layout
        by_row = {row.row: [cell_text(value) for value in row.held] for row in headers}
        names, definitions, details = (
            by_row.get(row, []) for row in (layout.name_row, layout.definition_row, layout.detail_row)
        )
        return read_categories(layout, names, definitions, details)[0]
