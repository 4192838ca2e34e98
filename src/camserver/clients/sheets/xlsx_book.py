"""An Excel workbook as a packed folder of XML: which part is the sheet, and the texts that cells share.

The parts are read as they are packed, in pieces, with their bytes kept: what is not understood is copied, not
rebuilt. That holds for the XML that spreadsheet programs write. Comments, CDATA and document types, which they do
not, are refused.
"""

import errno
import io
import os
import posixpath
import re
import struct
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from camserver.clients.sheets.bounds import check_room, comes_to_max_bytes
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.xlsx_tags import TAG_MAX_BYTES, attributes, find_all, text_in
from camserver.domain.sheet_layout import ROWS_MAX

PIECE_BYTES: Final = 1 << 18
PIECE_MAX_BYTES: Final = 1 << 22
# One row, or one shared text.
ELEMENT_MAX_BYTES: Final = 32_000_000
# What is read of the packed file at once: its directory, or a whole small part.
READ_MAX_BYTES: Final = 32_000_000
SMALL_PART_MAX_BYTES: Final = 16_000_000
CUT_TAG_MAX_BYTES: Final = 300
# Some for each row that a sheet can have.
SHARED_TEXTS_MAX: Final = 4 * ROWS_MAX
_ENCRYPTED_FLAGS: Final = 0x2041
# What the library raises about a file that is none, or was damaged.
_DAMAGES: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    UnicodeError,
)
_OLE: Final = b"\xd0\xcf\x11\xe0"
_BOOK_PART: Final = re.compile(r"workbook\d*\.xml$")
_TAB: Final = re.compile(rb"<(?:\w+:)?sheet\s[^<>]*+>")
_RELATION: Final = re.compile(rb"<(?:\w+:)?Relationship\s[^<>]*+>")


class Book:
    """An opened workbook; as a context manager it is closed again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _PackedFile(path)
        try:
            self.zip = zipfile.ZipFile(self._file)
            self._check_parts()
        except BaseException as error:
            self._file.close()
            if isinstance(error, _DAMAGES) or _is_misplaced(error):
                raise _no_book(path) from None
            raise

    def _check_parts(self) -> None:
        parts, name = self.zip.infolist(), self.path.name
        most_bytes = comes_to_max_bytes(os.fstat(self._file.fileno()).st_size)
        if sum(info.file_size for info in parts) > most_bytes:
            raise SheetError(SheetTrouble.BROKEN, f"{name} unpacks to more than {most_bytes} bytes; split it")
        if any(info.flag_bits & _ENCRYPTED_FLAGS for info in parts):
            raise SheetError(SheetTrouble.BROKEN, f"{name} is encrypted; save it without a password")
        is_packed_otherwise = any(
            info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in parts
        )
        if is_packed_otherwise or len(self.zip.NameToInfo) != len(parts):
            message = f"{name} is packed in a way that Excel does not use; open it there and save it again"
            raise SheetError(SheetTrouble.BROKEN, message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.zip.close()
        self._file.close()
        if isinstance(error, _DAMAGES) or _is_misplaced(error):
            raise SheetError(
                SheetTrouble.BROKEN, f"{self.path.name} is damaged: {error}; open it in Excel and save it again"
            ) from None

    def sheet_part(self, tab: str) -> str:
        """The name of the part that holds a tab; the first one's without a name."""
        book_part = self._book_part()
        book = self.small(book_part)
        sheets = [attributes(tag) for tag in find_all(_TAB, book)]
        wanted = [sheet for sheet in sheets if not tab or sheet.get("name") == tab]
        if not wanted:
            names = ", ".join(sheet.get("name", "") for sheet in sheets)[:200]
            raise SheetError(SheetTrouble.GONE, f"{self.path.name} has no sheet {tab!r}; it has {names or 'none'}")
        target = self._targets(book_part).get(wanted[0].get("id", ""))
        if target is None or target not in self.zip.NameToInfo:
            raise SheetError(SheetTrouble.BROKEN, f"{self.path.name} lacks the part of its sheet {tab!r}")
        return target

    def book_part(self) -> str:
        return self._book_part()

    def strings_part(self) -> str | None:
        wanted = (name for name in self._targets(self._book_part()).values() if name.endswith("sharedStrings.xml"))
        return next((name for name in wanted if name in self.zip.NameToInfo), None)

    def small(self, name: str) -> bytes:
        if self.zip.getinfo(name).file_size > SMALL_PART_MAX_BYTES:
            raise SheetError(SheetTrouble.BROKEN, f"{self.path.name}: its part {name} is too large")
        return self.zip.read(name)

    def _book_part(self) -> str:
        if "[Content_Types].xml" not in self.zip.NameToInfo:
            raise _no_book(self.path)
        root = self._targets("")
        found = next((name for name in root.values() if _BOOK_PART.search(name)), "xl/workbook.xml")
        if found not in self.zip.NameToInfo:
            raise _no_book(self.path)
        return found

    def _targets(self, part: str) -> dict[str, str]:
        """Parts that a part names, by the ids that it names them with."""
        folder, _, name = part.rpartition("/")
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        if rels not in self.zip.NameToInfo:
            return {}
        found: dict[str, str] = {}
        for tag in find_all(_RELATION, self.small(rels)):
            given = attributes(tag)
            target = given.get("Target", "")
            whole = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            if given.get("TargetMode") != "External":
                found[given.get("Id", "")] = whole
        return found


class _PackedFile(io.FileIO):
    """The packed file. Sizes that it claims for its parts are asked of it, and no more than a bound is given."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        if size > READ_MAX_BYTES:
            raise zipfile.BadZipFile(f"it claims {size} bytes in one")
        return super().read(size) or b""


def _is_misplaced(error: BaseException | None) -> bool:
    """A place that no file has was asked of the disk."""
    return isinstance(error, OSError) and error.errno == errno.EINVAL


def _no_book(path: Path) -> SheetError:
    with path.open("rb") as file:
        is_ole = file.read(4) == _OLE
    if is_ole:
        message = f"{path.name} has a password or is of an Excel before 2007; save it as .xlsx without a password"
    else:
        message = f"{path.name} is no Excel workbook; save it as .xlsx and try again"
    return SheetError(SheetTrouble.BROKEN, message)


class Elements:
    """Goes through a part and finds the elements of one name, each whole, with what stands between them."""

    def __init__(self, file: IO[bytes], name: bytes, until: bytes, part: str) -> None:
        self._file = file
        self._element = name
        self._name = re.compile(rb"<((?:\w+:)?)" + name + rb"(?=[\s/>])")
        # Where they end: elements of this name further on are others.
        self._until = re.compile(rb"<(?:/(?:\w+:)?%b\s*|(?:\w+:)?%b(?:\s[^<>]*)?/)>" % (until, until))
        self.part = part
        self._buffer = b""
        self._at = 0

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        """Pieces of the part in order, and of each whether it is an element or what stands between them."""
        while True:
            found = self._name.search(self._buffer, self._at)
            until = self._until.search(self._buffer, self._at, found.start() if found else len(self._buffer))
            if until is not None:
                break
            if found is None:
                # A tag may be cut by the end of what was read.
                last = self._buffer.rfind(b"<", max(self._at, len(self._buffer) - CUT_TAG_MAX_BYTES))
                yield from self._between(last if last >= 0 else len(self._buffer))
                if not self._more():
                    break
                continue
            yield from self._between(found.start())
            ends = self._end(found[1])
            yield self._checked(ends), True
            self._at = ends
        yield from self._between(len(self._buffer), checked=False)
        while self._more():
            yield from self._between(len(self._buffer), checked=False)

    def _between(self, end: int, checked: bool = True) -> Iterator[tuple[bytes, bool]]:
        if end > self._at:
            yield self._checked(end) if checked else self._buffer[self._at : end], False
        self._at = end

    def _end(self, prefix: bytes) -> int:
        """Where the element ends that begins here, once it is there as a whole."""
        closing = b"</" + prefix + self._element + b">"
        searched = 0  # from where the element begins
        while True:
            tag_end = self._buffer.find(b">", self._at, self._at + TAG_MAX_BYTES)
            if tag_end < 0 and len(self._buffer) - self._at >= TAG_MAX_BYTES:
                raise SheetError(SheetTrouble.BROKEN, f"{self.part} holds a tag longer than {TAG_MAX_BYTES} bytes")
            if tag_end >= 0 and self._buffer[tag_end - 1 : tag_end] == b"/":
                return tag_end + 1
            end = self._buffer.find(closing, self._at + max(searched - len(closing), 0))
            if tag_end >= 0 and end >= 0:
                return end + len(closing)
            searched = len(self._buffer) - self._at
            if searched > ELEMENT_MAX_BYTES or not self._more():
                raise SheetError(SheetTrouble.BROKEN, f"{self.part} holds an element without an end")

    def _more(self) -> bool:
        """Reads on, and forgets what is done with."""
        # As much again as is held: a long element is not put together anew for every piece.
        piece = self._file.read(min(max(PIECE_BYTES, len(self._buffer) - self._at), PIECE_MAX_BYTES))
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        return bool(piece)

    def _checked(self, end: int) -> bytes:
        piece = self._buffer[self._at : end]
        if b"<!" in piece:
            raise SheetError(
                SheetTrouble.BROKEN,
                f"{self.part} holds XML that Excel does not write; open it there and save it again",
            )
        return piece


class SharedTexts:
    """The texts that cells share, in a file of their own: there may be a million."""

    def __init__(self, book: Book, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close()
        self._ends = array("Q", [0])
        try:
            self._take(book)
        except BaseException:
            self._file.close()
            raise

    def _take(self, book: Book) -> None:
        part = book.strings_part()
        if part is None:
            return
        unchecked = 0
        with book.zip.open(part) as file:
            for piece, is_element in Elements(file, b"si", b"sst", part):
                if not is_element:
                    continue
                if len(self._ends) > SHARED_TEXTS_MAX:
                    message = f"{book.path.name} has more than {SHARED_TEXTS_MAX} texts; split it"
                    raise SheetError(SheetTrouble.BROKEN, message)
                data = text_in(piece).encode()
                unchecked += len(data)
                if unchecked > PIECE_MAX_BYTES:
                    check_room(self._file.fileno(), unchecked)
                    unchecked = 0
                self._file.write(data)
                self._ends.append(self._ends[-1] + len(data))
        self._file.flush()

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self._ends) - 1:
            return ""
        begin, end = self._ends[index], self._ends[index + 1]
        return os.pread(self._file.fileno(), end - begin, begin).decode()

    def close(self) -> None:
        self._file.close()
