"""The rows of a file as they were when it was last read, on disk and by page: a stretch of rows is found without
reading the file again, which for a packed format would mean reading all of it each time."""

import json
import os
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from camserver.clients.sheets.bounds import COMES_TO_MAX_BYTES, check_cell, check_room
from camserver.clients.sheets.distinct import Distinct
from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.sheet import PAGE_ROWS_MAX, SheetError, SheetTrouble
from camserver.domain.sheet_layout import (
    Category,
    Finding,
    Problem,
    Severity,
    SheetCheck,
    SheetLayout,
    read_categories,
)
from camserver.domain.sheet_rows import TEXT_MAX_CHARS, SheetRow, cell_text

# Rows that are named one by one in a finding.
ROWS_SAID_MAX: Final = 5
# A page is held in memory: fewer rows are in one that has long texts.
PAGE_MAX_CHARS: Final = 4_000_000


class Signature(NamedTuple):
    """By which a file is known to be the same: it was neither written nor replaced."""

    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> "Signature":
        told = path.stat()
        return cls(told.st_ino, told.st_size, told.st_mtime_ns)


class Snapshot:
    """Rows are added in order, then `finish`, then they are read. What was written is forgotten with the object."""

    def __init__(
        self,
        layout: SheetLayout,
        folder: Path | None,
        distinct_texts: int | None = None,
        comes_to_max_bytes: int = COMES_TO_MAX_BYTES,
    ) -> None:
        """`distinct_texts` where that is known: of a file that only gets scores."""
        self._layout = layout
        self._most_bytes = comes_to_max_bytes
        # Closed with the last reader: one that began before the file was written anew reads on.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._page: list[tuple[int, str, str, int]] = []
        self._page_chars = 0
        # First row and place of each page.
        self._firsts = array("L")
        self._begins = array("Q", [0])
        self._headers: dict[int, list[str]] = {}
        self._distinct = Distinct(folder) if distinct_texts is None else None
        self._empty_before: list[int] = []  # the first rows without a text
        self._empty_rows = 0
        self._counts = {"texts": 0, "filled_cells": 0, "text_chars": 0}
        self._long: list[int] = []
        self._last_row = 0
        self.signature: Signature | None = None
        self.categories: tuple[Category, ...] = ()
        self._findings: tuple[Finding, ...] = ()
        self._mask = 0
        self._is_headed = False
        self.distinct_texts = distinct_texts or 0

    def add(self, row: FileRow, also_filled: int = 0) -> None:
        """One row of the file; `also_filled` are cells that are being filled right now."""
        layout = self._layout
        if row.row < layout.first_data_row:
            if row.row in (layout.name_row, layout.definition_row, layout.detail_row):
                self._headers[row.row] = [cell_text(value) for value in row.held]
            return
        check_cell(f"{layout.text_column.upper()}{row.row}", row.text)
        check_cell(f"{layout.id_column.upper()}{row.row}", row.known_by)
        if not self._is_headed:
            self._read_headers()
        if not row.text.strip():
            return
        missing = row.row - self._last_row - 1 if self._last_row else row.row - layout.first_data_row
        if missing > 0:
            self._empty_rows += missing
            self._empty_before.extend(range(row.row - missing, row.row)[: ROWS_SAID_MAX - len(self._empty_before)])
        self._last_row = row.row
        identity = row.identity
        filled = (row.filled | also_filled) & self._mask
        self._counts["texts"] += 1
        self._counts["filled_cells"] += filled.bit_count()
        self._counts["text_chars"] += min(len(row.text), TEXT_MAX_CHARS)
        if len(row.text) > TEXT_MAX_CHARS and len(self._long) < ROWS_SAID_MAX:
            self._long.append(row.row)
        if self._distinct is not None:
            self._distinct.add(int(identity[:16], 16))
        self._page.append((row.row, row.text, identity, filled))
        self._page_chars += len(row.text)
        if len(self._page) >= PAGE_ROWS_MAX or self._page_chars >= PAGE_MAX_CHARS:
            self._write_page()

    def finish(self, signature: Signature | None) -> None:
        if not self._is_headed:
            self._read_headers()
        self._write_page()
        self._file.flush()
        self.signature = signature
        if self._distinct is not None:
            self.distinct_texts = self._distinct.count()
            self._distinct = None

    def check(self, found: list[Finding]) -> SheetCheck:
        findings = [*found, *self._findings, *self._row_findings()]
        return SheetCheck(
            self.categories,
            tuple(findings),
            self._last_row,
            empty_rows=self._empty_rows,
            distinct_texts=self.distinct_texts,
            **self._counts,
        )

    def pages(self, first_row: int, last_row: int | None) -> Iterator[list[SheetRow]]:
        """The rows of a stretch. Other threads may read at the same time."""
        if not self._firsts:
            return
        at = max(bisect_right(self._firsts, first_row) - 1, 0)
        for number in range(at, len(self._firsts)):
            if last_row is not None and self._firsts[number] > last_row:
                return
            begin, end = self._begins[number], self._begins[number + 1]
            page = json.loads(os.pread(self._file.fileno(), end - begin, begin))
            rows = [
                SheetRow(*one) for one in page if first_row <= one[0] and (last_row is None or one[0] <= last_row)
            ]
            if rows:
                yield rows

    def _write_page(self) -> None:
        if self._page:
            data = json.dumps(self._page).encode()
            if self._begins[-1] + len(data) > self._most_bytes:
                message = f"the rows of the sheet come to more than {self._most_bytes} bytes; split it"
                raise SheetError(SheetTrouble.BROKEN, message)
            check_room(self._file.fileno(), len(data))
            self._file.write(data)
            self._firsts.append(self._page[0][0])
            self._begins.append(self._begins[-1] + len(data))
            self._page.clear()
            self._page_chars = 0

    def _read_headers(self) -> None:
        layout = self._layout
        names, definitions, details = (
            self._headers.get(row, []) for row in (layout.name_row, layout.definition_row, layout.detail_row)
        )
        self.categories, self._findings = read_categories(layout, names, definitions, details)
        # Cells right of the categories are not ours.
        self._mask = (1 << len(self.categories)) - 1
        self._is_headed = True

    def _row_findings(self) -> Iterator[Finding]:
        column = self._layout.text_column.upper()
        first = f"{column}{self._layout.first_data_row}"
        if not self._counts["texts"]:
            message = f"there is no text in column {column} from {first} on; enter texts, or choose another column"
            yield Finding(Severity.ERROR, Problem.NO_TEXTS, first, message)
        if self._empty_rows:
            where = ", ".join(f"{column}{row}" for row in self._empty_before)
            more = "" if self._empty_rows <= len(self._empty_before) else " and others"
            message = f"{self._empty_rows} rows have no text ({where}{more}); they are left out"
            yield Finding(Severity.WARNING, Problem.TEXT_MISSING, f"{column}{self._empty_before[0]}", message)
        if self._long:
            where = f"{column}{self._long[0]}"
            message = f"{where} holds more than {TEXT_MAX_CHARS} characters; only the first ones are scored"
            yield Finding(Severity.WARNING, Problem.TOO_LONG, where, message)
        if self._counts["filled_cells"]:
            message = f"{self._counts['filled_cells']} cells of scores hold something already; they stay as they are"
            yield Finding(Severity.WARNING, Problem.ALREADY_FILLED, "", message)
