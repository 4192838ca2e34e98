"""Excel workbooks (.xlsx, .xlsm): scores are put into the XML of the sheet, and all else stays byte for byte.

A library that loads a workbook and saves it again drops what it does not know (charts, pictures, slicers, macros) and
holds every cell in memory. Here rows pass one by one; styles of cells, rows and columns are kept.
"""

import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from camserver.clients.sheets.formats import Change, FileRow
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.xlsx_book import Book, Elements, SharedTexts, attributes, shown_text, text_in
from camserver.domain.sheet_layout import (
    CATEGORIES_MAX,
    Finding,
    Problem,
    Severity,
    SheetLayout,
    column_name,
    column_number,
)
from camserver.domain.sheet_rows import score_text

_CELL: Final = re.compile(rb"<((?:\w+:)?)c((?:\s[^>]*?)?)(?:/>|>(.*?)</(?:\w+:)?c>)", re.DOTALL)
_CELL_NAME: Final = re.compile(rb"""\sr\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["']""")
_VALUE: Final = re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>([^<]*)</")
_FORMULA: Final = re.compile(rb"<(?:\w+:)?f[\s/>]")
_SPANS: Final = re.compile(rb"""\s+spans\s*=\s*["'][^"']*["']""")
_TYPE: Final = re.compile(rb"""\s+(?:t|cm|vm)\s*=\s*["'][^"']*["']""")
_COLUMN: Final = re.compile(rb"<(?:\w+:)?col\s[^>]*>")
_PROTECTION: Final = re.compile(rb"<(?:\w+:)?sheetProtection\s[^>]*>")
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*>")
_CALCULATION: Final = re.compile(rb"<((?:\w+:)?)calcPr((?:\s[^>]*?)?)(/?)>")
_RANGE: Final = re.compile(r"([A-Z]{1,3})([0-9]+)(?::([A-Z]{1,3})([0-9]+))?")
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
        return _FORMULA.search(self.inner) is not None


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
    styles: dict[int, bytes] = field(default_factory=dict)

    def column_style(self, column: int) -> bytes:
        """The style of a column, counted from 0."""
        if not self.styles and self.before:
            for tag in _COLUMN.findall(self.before):
                given = attributes(tag)
                if given.get("style") and given.get("min", "").isdigit() and given.get("max", "").isdigit():
                    for number in range(int(given["min"]), min(int(given["max"]), 16_384) + 1):
                        self.styles[number - 1] = given["style"].encode()
            self.styles.setdefault(-1, b"")
        return self.styles.get(column, b"")


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
    last = 0
    for piece, is_row in elements:
        if not is_row:
            yield piece, None
            continue
        tag_end = piece.index(b">") + 1
        tag = piece[:tag_end]
        given = attributes(tag).get("r", "")
        last = int(given) if given.isdigit() and len(given) < 8 else last + 1
        prefix = tag[1 : tag.index(b"row")]
        yield piece, _Row(last, piece, tag_end, prefix, _cells(piece, tag_end))


def _cells(raw: bytes, begin: int) -> list[_Cell]:
    cells: list[_Cell] = []
    column = -1
    for found in _CELL.finditer(raw, begin):
        named = _CELL_NAME.search(found[2])
        column = column_number(named[1].decode()) - 1 if named else column + 1
        cells.append(_Cell(column, found.start(), found.end(), found[2], found[3] or b""))
    return cells


def _value(cell: _Cell, texts: SharedTexts) -> str:
    """What a cell shows; of a formula what it came to when the workbook was saved."""
    kind = attributes(cell.attributes).get("t", "n") if b"t=" in cell.attributes else "n"
    if kind == "inlineStr":
        return text_in(cell.inner)
    found = _VALUE.search(cell.inner)
    if found is None:
        return ""
    if kind == "s":
        return texts[int(found[1])] if found[1].strip().isdigit() else ""
    text = shown_text(found[1])
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
        if cell.column == layout.text_index and cell.is_formula and _VALUE.search(cell.inner) is None:
            where = f"{layout.text_column.upper()}{row.number}"
            message = f"{where} is a formula that was never computed; open the workbook in Excel and save it"
            found.append(Finding(Severity.WARNING, Problem.FORMULA, where, message))


def _findings(after: bytes, layout: SheetLayout) -> Iterator[Finding]:
    protection = _PROTECTION.search(after)
    if protection is not None and attributes(protection[0]).get("sheet") in ("1", "true"):
        message = "the sheet is protected; take the protection off in Excel (Review, Unprotect Sheet)"
        yield Finding(Severity.ERROR, Problem.PROTECTED, "", message)
    for tag in _MERGED.findall(after):
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

    def told(found: re.Match[bytes]) -> bytes:
        if b"fullCalcOnLoad" in found[2]:
            return found[0]
        return b"<" + found[1] + b"calcPr" + found[2] + b' fullCalcOnLoad="1"' + found[3] + b">"

    return _CALCULATION.sub(told, book, count=1)


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.compress_type = info.compress_type if info.compress_type in (0, 8) else zipfile.ZIP_DEFLATED
    made.external_attr = info.external_attr
    return made
