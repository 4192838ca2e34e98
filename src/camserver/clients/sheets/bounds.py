"""How much a sheet's file may come to. A small file can be made that unpacks to anything, and one long text can stand
in a million rows: neither may take the memory or the disk that everything else needs."""

import os
from pathlib import Path
from typing import Final

from camserver.clients.sheets.sheet import SheetError, SheetTrouble

# One cell: twenty times what is scored of a text.
CELL_MAX_CHARS: Final = 1_000_000
# What every file may come to, and what one may that is large itself. Workbooks unpack to some ten times their size.
COMES_TO_ALWAYS_BYTES: Final = 256_000_000
COMES_TO_RATIO: Final = 100
COMES_TO_MAX_BYTES: Final = 8_000_000_000
# What is left to the others on the disk that files are worked on.
FREE_MIN_BYTES: Final = 200_000_000
FREE_PAUSE_SEC: Final = 60.0


def comes_to_max_bytes(file_bytes: int) -> int:
    """What all the parts of a file, or all its rows, may come to."""
    return min(max(COMES_TO_ALWAYS_BYTES, COMES_TO_RATIO * file_bytes), COMES_TO_MAX_BYTES)


def check_cell(where: str, text: str) -> None:
    if len(text) > CELL_MAX_CHARS:
        message = f"{where} holds more than {CELL_MAX_CHARS} characters; shorten it"
        raise SheetError(SheetTrouble.BROKEN, message)


def check_room(file: int | Path, more_bytes: int) -> None:
    """Before so much is written to a file."""
    disk = os.statvfs(file)
    if disk.f_bavail * disk.f_frsize - more_bytes < FREE_MIN_BYTES:
        message = "there is no room to work on the sheet; free some space where camserver keeps its data"
        raise SheetError(SheetTrouble.FULL, message, FREE_PAUSE_SEC)
