"""CSV files, as they are: every byte of a field that is not written stays, with its quotes, encoding and line ends.

Records are split without being parsed and put together again, since that would lose what a spreadsheet, or a person,
chose to quote. Encodings are UTF-8 (with or without a byte order mark), UTF-16 with one, and Shift_JIS as Windows has
it (cp932). In Shift_JIS a byte of a character can look like a backslash or a bar, but never like a quote, a comma, a
semicolon, a tab or a line end, so bytes may be split.
"""

import codecs
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from camserver.clients.sheets.formats import Change, FileRow
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.sheet_layout import CATEGORIES_MAX, ROWS_MAX, Finding, SheetLayout
from camserver.domain.sheet_rows import score_text

PIECE_BYTES: Final = 1 << 20
# One record with its line breaks: a quote that is never closed must not take all the memory.
RECORD_MAX_BYTES: Final = 16_000_000
DELIMITERS: Final = (b",", b"\t", b";", b"|")
SNIFFED_RECORDS: Final = 20
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    encoding: str
    mark: bytes  # the byte order mark that the file begins with
    delimiter: bytes

    @property
    def is_wide(self) -> bool:
        return self.encoding.startswith("utf-16")

    @property
    def inner(self) -> str:
        """The encoding of records once they are read: UTF-16 is split as UTF-8."""
        return "utf-8" if self.is_wide else self.encoding


class CsvFormat:
    """A CSV file, or one with tabs, semicolons or bars for commas."""

    def scan(self, path: Path, layout: SheetLayout, found: list[Finding]) -> Iterator[FileRow]:
        dialect = find_dialect(path)
        with path.open("rb") as file:
            for row, record in enumerate(_records(file, dialect), 1):
                fields, _ = split(record, dialect.delimiter)
                yield _file_row(row, fields, dialect, layout)

    def rewrite(self, path: Path, draft: Path, layout: SheetLayout, change: Change) -> None:
        dialect, first = find_dialect(path), layout.first_category_index
        is_wide = dialect.is_wide
        with path.open("rb") as file, draft.open("wb") as out:
            out.write(dialect.mark)
            for row, record in enumerate(_records(file, dialect), 1):
                fields, end = split(record, dialect.delimiter)
                scores = change(_file_row(row, fields, dialect, layout))
                if scores:
                    for category, score in scores.items():
                        index = first + category
                        fields.extend([b""] * (index + 1 - len(fields)))
                        fields[index] = _filled(fields[index], score)
                    record = dialect.delimiter.join(fields) + end
                out.write(record.decode().encode(dialect.encoding) if is_wide else record)


def find_dialect(path: Path) -> Dialect:
    """The encoding from the mark, else by reading all of it: a file is Shift_JIS when it is no UTF-8."""
    with path.open("rb") as file:
        head = file.read(4)
        mark, encoding = next(((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", ""))
        if not encoding:
            encoding = next((name for name in ("utf-8", "cp932") if _reads_as(file, name)), "")
    if not encoding:
        raise SheetError(
            SheetTrouble.BROKEN,
            f"{path.name} is neither UTF-8 nor Shift_JIS; save it as CSV UTF-8 and try again",
        )
    return Dialect(encoding, mark, _find_delimiter(path, Dialect(encoding, mark, b",")))


def _reads_as(file: BinaryIO, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    file.seek(0)
    try:
        while piece := file.read(PIECE_BYTES):
            if b"\0" in piece:
                return False
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _find_delimiter(path: Path, dialect: Dialect) -> bytes:
    """The one that the first records have most of; a comma when they have none."""
    # A bar may be half of a Shift_JIS character.
    candidates = DELIMITERS if dialect.encoding != "cp932" else DELIMITERS[:-1]

    def found(delimiter: bytes) -> int:
        with path.open("rb") as file:
            records = itertools.islice(_records(file, replace(dialect, delimiter=delimiter)), SNIFFED_RECORDS)
            return sum(len(split(record, delimiter)[0]) - 1 for record in records)

    return max(candidates, key=found)


def _records(file: BinaryIO, dialect: Dialect) -> Iterator[bytes]:
    """Records with their line ends. A line end within quotes belongs to its record."""
    file.seek(len(dialect.mark))
    parts: list[bytes] = []
    size, count, inside = 0, 0, False
    for line in _lines(file, dialect):
        parts.append(line)
        size += len(line)
        if size > RECORD_MAX_BYTES:
            raise SheetError(
                SheetTrouble.BROKEN,
                f"row {count + 1} is longer than {RECORD_MAX_BYTES} bytes; is a quote in it never closed?",
            )
        if b'"' in line:
            inside = _is_inside_after(line, inside, dialect.delimiter)
        if inside:
            continue
        count += 1
        if count > ROWS_MAX:
            raise SheetError(SheetTrouble.BROKEN, f"the file has more than {ROWS_MAX} rows; split it")
        yield line if len(parts) == 1 else b"".join(parts)
        parts.clear()
        size = 0
    if parts:
        # The last quote was never closed: what follows it is one field.
        yield b"".join(parts)


def _lines(file: BinaryIO, dialect: Dialect) -> Iterator[bytes]:
    """Lines with their ends: LF, CR LF or CR."""
    decoder = codecs.getincrementaldecoder(dialect.encoding)() if dialect.is_wide else None
    rest = b""
    while piece := file.read(PIECE_BYTES):
        rest += _narrow(decoder, piece)
        if len(rest) > RECORD_MAX_BYTES + 4 * PIECE_BYTES:
            raise SheetError(SheetTrouble.BROKEN, f"a line of the file is longer than {RECORD_MAX_BYTES} bytes")
        lines = rest.splitlines(keepends=True)
        # It may go on, and be it with the LF of its CR.
        rest = lines.pop() if lines else b""
        yield from lines
    rest += _narrow(decoder, b"")
    yield from rest.splitlines(keepends=True)


def _narrow(decoder: codecs.IncrementalDecoder | None, piece: bytes) -> bytes:
    if decoder is None:
        return piece
    try:
        return decoder.decode(piece, final=not piece).encode()
    except UnicodeError:
        raise SheetError(SheetTrouble.BROKEN, "the file is no UTF-16, which its first bytes say it is") from None


# Up to the quote that closes a field; two of them stand for one.
_CLOSED: Final = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


def _is_inside_after(line: bytes, inside: bool, delimiter: bytes) -> bool:
    """Whether a quoted field goes on after this line. A quote opens one only where a field begins."""
    at = 0
    while True:
        if not inside and line.startswith(b'"', at):
            inside, at = True, at + 1
        if inside:
            closed = _CLOSED.match(line, at)
            if closed is None:
                return True
            inside, at = False, closed.end()
        at = line.find(delimiter, at) + len(delimiter)
        if at < len(delimiter):
            return False


def split(record: bytes, delimiter: bytes) -> tuple[list[bytes], bytes]:
    """The raw fields of a record, quotes and all, and its line end."""
    body = record.rstrip(b"\r\n")
    end = record[len(body) :]
    if b'"' not in body:
        return body.split(delimiter), end
    fields: list[bytes] = []
    begin = 0
    while True:
        closed = _CLOSED.match(body, begin + 1) if body.startswith(b'"', begin) else None
        stop = body.find(delimiter, closed.end() if closed else begin)
        if stop < 0:
            return [*fields, body[begin:]], end
        fields.append(body[begin:stop])
        begin = stop + len(delimiter)


def _value(field: bytes, encoding: str) -> str:
    text = field.decode(encoding, "replace")
    if text.startswith('"') and len(text) > 1:
        inner, _, after = text[1:].rpartition('"')
        return inner.replace('""', '"') + after
    return text


def _filled(field: bytes, score: float) -> bytes:
    """A field that was empty, with a score in it; in quotes when it was."""
    text = score_text(score).encode()
    return b'"' + text + b'"' if field and field.strip() == b'""' else text


def _file_row(row: int, fields: list[bytes], dialect: Dialect, layout: SheetLayout) -> FileRow:
    def at(index: int | None) -> str:
        return _value(fields[index], dialect.inner) if index is not None and index < len(fields) else ""

    first = layout.first_category_index
    held = [_value(field, dialect.inner).strip() if field else "" for field in fields[first : first + CATEGORIES_MAX]]
    return FileRow(row, at(layout.text_index), at(layout.id_index), held)
