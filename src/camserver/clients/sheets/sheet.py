"""What the scoring asks of a sheet, wherever it is kept: a file, or Google Sheets.

A sheet is opened (`opening.py`), checked, read page by page and written block by block:

- `rows` reads a stretch of rows in bounded memory. Row numbers are those of now: after a person sorted or inserted
  rows, a stretch read again holds others. Who reads a sheet by stretches goes over it once more at the end.
- `write` takes scores, each with the identity of the row it is meant for, and says what became of each. Before
  anything is written the row and its cells are read again: a row that went elsewhere is found there, a cell that
  somebody filled is left alone. Nothing is written by row number alone.
- `flush` gives the sheet what is staged. With `final` it does so whatever it costs; without, only when the sheet
  finds it worthwhile. A file is written anew as a whole, so that is done seldom; Google takes some requests a minute.

Staged scores live no longer than the process: whoever writes keeps a journal of what is not `WRITTEN` yet, and writes
that again after a restart. Scores that are in the sheet already count as written.
"""

from collections.abc import AsyncIterator, Sequence
from enum import StrEnum
from typing import Protocol

from camserver.base.errors import CamError, Reject, Unavailable
from camserver.base.secrets import scrub
from camserver.domain.sheet_layout import Category, SheetCheck, SheetLayout
from camserver.domain.sheet_rows import RowOutcome, RowScores, SheetRow

# Rows of one page, and scores (of blocks) of one `write`.
PAGE_ROWS_MAX = 500
WRITE_MAX = 5_000


class SheetTrouble(StrEnum):
    """What the caller should do about it."""

    BUSY = "busy"  # try again, after retry_after_sec if that is told: a quota, a time-out, a cut, a server's failure
    LOCKED = "locked"  # somebody has it open; try again in a while, or ask them to close it
    DENIED = "denied"  # the permission to read or write is lacking or was lost: pause, and tell a person
    GONE = "gone"  # there is no such file, sheet or tab: pause, and tell a person
    LAYOUT = "layout"  # the categories are not those that the run began with: pause, and tell a person
    BROKEN = "broken"  # it can't be read: no sheet of its kind, damaged, or too large
    FULL = "full"  # no room left to write it


# Waiting helps against these.
PASSING = frozenset({SheetTrouble.BUSY, SheetTrouble.LOCKED, SheetTrouble.FULL})


class SheetError(CamError):
    """A sheet that can't be read or written as a whole. Nothing that was staged is lost by it: `flush` again.

    Made as one of its two kinds, by what the caller should do."""

    code = "sheet_error"

    def __new__(cls, kind: SheetTrouble, message: str, retry_after_sec: float | None = None) -> "SheetError":
        chosen = (SheetAway if kind in PASSING else SheetRefused) if cls is SheetError else cls
        return super().__new__(chosen)

    def __init__(self, kind: SheetTrouble, message: str, retry_after_sec: float | None = None) -> None:
        super().__init__(scrub(message))
        self.kind = kind
        self.retry_after_sec = retry_after_sec

    def __reduce__(self) -> tuple[object, ...]:
        return (SheetError, (self.kind, self.message, self.retry_after_sec))


class SheetAway(SheetError, Unavailable):
    """Waiting helps."""


class SheetRefused(SheetError, Reject):
    """A person has to do something first."""


class Sheet(Protocol):
    """One opened sheet. One task reads while another writes; two tasks must not write at once."""

    address: str  # for people: a path, or a link without secrets
    layout: SheetLayout

    async def check(self) -> SheetCheck:
        """Reads all of it once: categories, counts and what is wrong. Findings are never raised; SheetError is when
        it can't be read at all."""

    async def categories(self) -> tuple[Category, ...]:
        """The categories of now; what `check` finds wrong with them is left out. From then on, writing fails with
        LAYOUT when their names stand no longer where they stood."""

    def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        """The rows with a text from `first_row` to `last_row` (inclusive), in pages of at most PAGE_ROWS_MAX."""

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        """At most WRITE_MAX at once. One outcome for each; and those of earlier ones that were staged and are settled
        by now. STAGED ones get their final outcome from a later `write` or `flush`."""

    def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        """Final outcomes of what was staged, in pages. It must be read to its end."""

    async def close(self) -> None:
        """Lets go of everything. What is staged is forgotten."""
