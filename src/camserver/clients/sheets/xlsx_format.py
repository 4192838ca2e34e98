"""Excel workbooks (.xlsx, .xlsm): scores are put into the XML of the sheet, and all else stays byte for byte.

A library that loads a workbook and saves it again drops what it does not know (charts, pictures, slicers, macros) and
holds every cell in memory. Here rows pass one by one; styles of cells, rows and columns are kept.
"""

import itertools
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from camserver.clients.sheets.formats import Change, FileRow
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.xlsx_book import Book, Elements, SharedTexts
from camserver.clients.sheets.xlsx_tags import attributes, find, find_all, shown_text, text_after, text_in
from camserver.domain.sheet_layout import (
    CATEGORIES_MAX,
    COLUMNS_MAX,
    ROWS_MAX,
    Finding,
    Problem,
    Severity,
    SheetLayout,
    column_name,
    column_number,
)
from camserver.domain.sheet_rows import score_text

# How patterns must be made, xlsx_tags.py says.
_CELL: Final = re.compile(rb"<(?:\w+:)?c((?:\s[^<>]*?)?)(/?)>")
_CELL_END: Final = re.compile(rb"</(?:\w+:)?c>")
_CELL_NAME: Final = re.compile(rb"""\sr\s*+=\s*+["']([A-Z]{1,3})([0-9]{1,7})["']""")
_VALUE: Final = re.compile(rb"<(?:\w+:)?v(?:\s[^<>]*+)?>")
_FORMULA: Final = re.compile(rb"<(?:\w+:)?f[\s/>]")
_SPANS: Final = re.compile(rb"""(?<!\s)\s++spans\s*+=\s*+["'][^"']*+["']""")
_TYPE: Final = re.compile(rb"""(?<!\s)\s++(?:t|cm|vm)\s*+=\s*+["'][^"']*+["']""")
_COLUMN: Final = re.compile(rb"<(?:\w+:)?col\s[^<>]*+>")
_PROTECTION: Final = re.compile(rb"<(?:\w+:)?sheetProtection\s[^<>]*+>")
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell\s[^<>]*+>")
_CALCULATION: Final = re.compile(rb"<((?:\w+:)?)calcPr((?:\s[^<>]*?)?)(/?)>")
_RANGE: Final = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
_NUMBER: Final = re.compile(r"[0-9]{1,7}")
_INDEX: Final = re.compile(rb"\s*+([0-9]{1,9})\s*+")
# What stands before and after the rows; conditional formats and merged cells can be many.
AROUND_MAX_BYTES: Final = 16_000_000
FORMULAS_SAID_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class _Cell:
    column: int  # from 0
    begin: int
    end: int
    attributes: bytes
    inner: bytes

    @property
    def is_formula(self) -> bool:
        return find(_FORMULA, self.inner) is not None

    @property
    def raw_value(self) -> bytes | None:
        found = find(_VALUE, self.inner)
        return None if found is None else text_after(found)


@dataclass(slots=True)
class _Row:
    number: int
    raw: bytes
    tag_end: int
    prefix: bytes
    cells: list[_Cell]


@dataclass(slots=True)
class _Around:
    """What the sheet says besides its rows."""

    before: bytes = b""
    after: bytes = b""
    ranges: list[tuple[int, int, bytes]] | None = None
    styles: dict[int, bytes] = field(default_factory=dict)

    def column_style(self, column: int) -> bytes:
        """The style of a column, counted from 0. It is looked for once: scores have few columns, rows are many."""
        found = self.styles.get(column)
        if found is None:
            if self.ranges is None:
                self.ranges = list(_column_styles(self.before))
            of_column = [style for first, last, style in self.ranges if first <= column + 1 <= last]
            found = self.styles[column] = of_column[-1] if of_column else b""
        return found


def _column_styles(before: bytes) -> Iterator[tuple[int, int, bytes]]:
    """First and last column, from 1, and their style. No sheet has more of these than it can have columns."""
    for tag in itertools.islice(find_all(_COLUMN, before), COLUMNS_MAX):
        given = attributes(tag)
        first, last = given.get("min", ""), given.get("max", "")
        if given.get("style") and _NUMBER.fullmatch(first) and _NUMBER.fullmatch(last):
            yield int(first), int(last), given["style"].encode()


class XlsxFormat:
    def __init__(self, work_folder: Path | None = None) -> None:
        self._work_folder = work_folder

    def scan(self, path: Path, layout: SheetLayout, found: list[Finding]) -> Iterator[FileRow]:
        with Book(path) as book:
            part = book.sheet_part(layout.tab)
            texts = SharedTexts(book, self._work_folder)
            around = _Around()
            try:
                with book.zip.open(part) as file:
                    for piece, row in _rows(Elements(file, b"row", b"sheetData", part)):
                        if row is None:
                            _keep(around, piece)
                            continue
                        around.after = b" "
                        _tell_formulas(row, layout, found)
                        yield _file_row(row, texts, layout)
            finally:
                texts.close()
        found.extend(_findings(around.after, layout))

    def rewrite(self, path: Path, draft: Path, layout: SheetLayout, change: Change) -> None:
        with Book(path) as book:
            part, book_part = book.sheet_part(layout.tab), book.book_part()
            texts = SharedTexts(book, self._work_folder)
            try:
                with zipfile.ZipFile(draft, "w") as out:
                    for info in book.zip.infolist():
                        with out.open(_like(info), "w", force_zip64=info.file_size > 1 << 30) as target:
                            if info.filename == part:
                                for piece in self._changed(book, part, texts, layout, change):
                                    target.write(piece)
                            elif info.filename == book_part:
                                target.write(_computed_anew(book.small(book_part)))
                            else:
                                with book.zip.open(info) as source:
                                    shutil.copyfileobj(source, target, 1 << 18)
            finally:
                texts.close()

    def _changed(
        self, book: Book, part: str, texts: SharedTexts, layout: SheetLayout, change: Change
    ) -> Iterator[bytes]:
        around = _Around()
        with book.zip.open(part) as file:
            for piece, row in _rows(Elements(file, b"row", b"sheetData", part)):
                if row is None:
                    _keep(around, piece)
                    yield piece
                    continue
                around.after = b" "
                scores = change(_file_row(row, texts, layout))
                yield _written(row, scores, layout, around) if scores else piece


def _keep(around: _Around, piece: bytes) -> None:
    if around.after:
        around.after += piece
    else:
        around.before += piece
    if len(around.before) + len(around.after) > AROUND_MAX_BYTES:
        raise SheetError(SheetTrouble.BROKEN, f"the sheet says more than {AROUND_MAX_BYTES} bytes besides its rows")


def _rows(elements: Elements) -> Iterator[tuple[bytes, _Row | None]]:
    last, count = 0, 0
    for piece, is_row in elements:
        if not is_row:
            yield piece, None
            continue
        tag_end = piece.index(b">") + 1
        tag = piece[:tag_end]
        given = attributes(tag).get("r", "")
        last = int(given) if _NUMBER.fullmatch(given) else last + 1
        count += 1
        if max(last, count) > ROWS_MAX:
            raise SheetError(SheetTrouble.BROKEN, f"{elements.part} has more than {ROWS_MAX} rows; split the sheet")
        prefix = tag[1 : tag.index(b"row")]
        yield piece, _Row(last, piece, tag_end, prefix, _cells(piece, tag_end, f"{elements.part}, row {last}"))


def _cells(raw: bytes, begin: int, where: str) -> list[_Cell]:
    cells: list[_Cell] = []
    column = -1
    while (found := find(_CELL, raw, begin)) is not None:
        end = inner_end = found.end()
        if not found[2]:
            closing = find(_CELL_END, raw, end)
            if closing is None:
                message = f"{where} holds a cell without an end; open it in Excel and save it again"
                raise SheetError(SheetTrouble.BROKEN, message)
            inner_end, end = closing.span()
        if len(cells) >= COLUMNS_MAX:
            raise SheetError(SheetTrouble.BROKEN, f"{where} holds more than {COLUMNS_MAX} cells")
        named = _CELL_NAME.search(found[1])
        column = column_number(named[1].decode()) - 1 if named else column + 1
        cells.append(_Cell(column, found.start(), end, found[1], raw[found.end() : inner_end]))
        begin = end
    return cells


def _value(cell: _Cell, texts: SharedTexts) -> str:
    """What a cell shows; of a formula what it came to when the workbook was saved."""
    kind = attributes(cell.attributes).get("t", "n") if b"t=" in cell.attributes else "n"
    if kind == "inlineStr":
        return text_in(cell.inner)
    raw = cell.raw_value
    if raw is None:
        return ""
    if kind == "s":
        index = _INDEX.fullmatch(raw)
        return texts[int(index[1])] if index else ""
    text = shown_text(raw)
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    return text


def _file_row(row: _Row, texts: SharedTexts, layout: SheetLayout) -> FileRow:
    text, known_by = "", ""
    first = layout.first_category_index
    held: list[object] = []
    for cell in row.cells:
        if cell.column == layout.text_index:
            text = _value(cell, texts)
        elif cell.column == layout.id_index:
            known_by = _value(cell, texts)
        elif first <= cell.column < first + CATEGORIES_MAX and cell.inner:
            held.extend([""] * (cell.column - first - len(held)))
            # A formula is somebody's, also when it comes to nothing.
            held.append(_value(cell, texts) or ("=" if cell.is_formula else ""))
    return FileRow(row.number, text, known_by, held)


def _written(row: _Row, scores: Mapping[int, float], layout: SheetLayout, around: _Around) -> bytes:
    """The row with scores in it, each where its column belongs."""
    tag = _SPANS.sub(b"", row.raw[: row.tag_end])
    given = attributes(tag)
    row_style = given.get("s", "").encode() if given.get("customFormat") in ("1", "true") else b""
    wanted = {layout.first_category_index + category: score for category, score in scores.items()}
    p, closing = row.prefix, b"</" + row.prefix + b"row>"
    parts = [tag]

    def put(column: int, held: bytes | None) -> None:
        name = f"{column_name(column + 1)}{row.number}".encode()
        if held is None:
            style = row_style or around.column_style(column)
            held = b' r="' + name + b'"' + (b' s="' + style + b'"' if style else b"")
        value = score_text(wanted.pop(column)).encode()
        parts.append(b"<" + p + b"c" + held + b"><" + p + b"v>" + value + b"</" + p + b"v></" + p + b"c>")

    at = row.tag_end
    for cell in row.cells:
        for column in sorted(column for column in wanted if column < cell.column):
            put(column, None)
        parts.append(row.raw[at : cell.begin])
        if cell.column in wanted:
            put(cell.column, _TYPE.sub(b"", cell.attributes))
        else:
            parts.append(row.raw[cell.begin : cell.end])
        at = cell.end
    for column in sorted(wanted):
        put(column, None)
    return b"".join([*parts, row.raw[at:] or closing])


def _tell_formulas(row: _Row, layout: SheetLayout, found: list[Finding]) -> None:
    if row.number < layout.first_data_row or len(found) >= FORMULAS_SAID_MAX:
        return
    for cell in row.cells:
        if cell.column == layout.text_index and cell.is_formula and cell.raw_value is None:
            where = f"{layout.text_column.upper()}{row.number}"
            message = f"{where} is a formula that was never computed; open the workbook in Excel and save it"
            found.append(Finding(Severity.WARNING, Problem.FORMULA, where, message))


def _findings(after: bytes, layout: SheetLayout) -> Iterator[Finding]:
    protection = find(_PROTECTION, after)
    if protection is not None and attributes(protection[0]).get("sheet") in ("1", "true"):
        message = "the sheet is protected; take the protection off in Excel (Review, Unprotect Sheet)"
        yield Finding(Severity.ERROR, Problem.PROTECTED, "", message)
    for tag in find_all(_MERGED, after):
        where = attributes(tag).get("ref", "")
        found = _RANGE.fullmatch(where)
        if found is None or found[3] is None:
            continue
        is_right = column_number(found[3]) > layout.first_category_index
        if is_right and int(found[4]) >= layout.first_data_row:
            message = f"{where} is one merged cell where scores belong; unmerge it"
            yield Finding(Severity.ERROR, Problem.MERGED, where, message)
            return


def _computed_anew(book: bytes) -> bytes:
    """Formulas over scores were computed before there were any: Excel is told to compute them when it opens this."""

    found = find(_CALCULATION, book)
    if found is None or b"fullCalcOnLoad" in found[2]:
        return book
    told = b"<" + found[1] + b"calcPr" + found[2] + b' fullCalcOnLoad="1"' + found[3] + b">"
    return book[: found.start()] + told + book[found.end() :]


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.compress_type = info.compress_type if info.compress_type in (0, 8) else zipfile.ZIP_DEFLATED
    made.external_attr = info.external_attr
    return made
