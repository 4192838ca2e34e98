"""Texts of an exported case that grow while its media is sent: lists as JSON and CSV, and its page.

They move to disk when they get long.
"""

import csv
import io
import json
from collections.abc import Sequence
from tempfile import SpooledTemporaryFile

from camserver.services.web.zip_stream import CHUNK_BYTES

DRAFT_IN_MEMORY_BYTES = 1_000_000


class Draft:
    """A text that is sent later."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(DRAFT_IN_MEMORY_BYTES)  # noqa: SIM115 - closed with the export

    def add(self, text: str) -> None:
        self._file.write(text.encode())

    @property
    def size_bytes(self) -> int:
        return self._file.tell()

    def rewind(self) -> None:
        self._file.seek(0)

    def read(self) -> bytes:
        return self._file.read(CHUNK_BYTES)

    def close(self) -> None:
        self._file.close()


class Table:
    """Rows as JSON and as CSV."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self.json, self.csv = Draft(), Draft()
        self.json.add("[")
        self.csv.add(_csv_line(columns))
        self._is_first = True

    def add(self, row: dict[str, object]) -> None:
        self.json.add(("\n" if self._is_first else ",\n") + json.dumps(row, ensure_ascii=False))
        self._is_first = False
        self.csv.add(_csv_line([_cell(row.get(name)) for name in self._columns]))

    def end(self) -> None:
        self.json.add("\n]\n")


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        value = " ".join(str(one) for one in value)
    text = "" if value is None else str(value)
    # A spreadsheet would run what begins like a formula.
    return (
        f"'{text}" if text[:1] in ("=", "+", "@", "\t", "\r") or (text[:1] == "-" and not _is_number(text)) else text
    )


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
