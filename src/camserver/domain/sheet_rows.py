"""Rows of a sheet: how one is known again, and which of its cells a score may be written into.

People sort, insert and type while a run goes on. So a row is known by its content, never by its number alone, and a
cell that holds anything but the very score that is to be written is left as it is.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

# Characters of a text that are scored; the rest of a longer one is not sent anywhere.
TEXT_MAX_CHARS: Final = 50_000
# What makes a spreadsheet take a text for a formula.
_FORMULA_BEGINS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@dataclass(frozen=True, slots=True)
class SheetRow:
    row: int  # from 1, as people see it
    text: str
    identity: str  # by which it is known again, wherever it went
    filled: int  # bit n is set when the cell of category n holds something
    picture: str = ""  # the object that shows what the text is about, if there is one

    def open_categories(self, count: int) -> tuple[int, ...]:
        """Those of the first `count` categories whose cells are empty."""
        return tuple(index for index in range(count) if not self.filled >> index & 1)


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores of one block of a row. None leaves the cell empty, as of a category that failed."""

    row: int  # where the row was when it was read
    identity: str
    first_category: int  # of the block: block number x block size
    scores: tuple[float | None, ...]


class Outcome(StrEnum):
    STAGED = "staged"  # kept for the next flush; nothing is in the sheet yet
    WRITTEN = "written"  # the sheet has accepted it, or held these very scores already
    CHANGED = "changed"  # no row of the sheet holds this text any more
    KEPT = "kept"  # every cell of it holds something that somebody else wrote
    PROTECTED = "protected"  # the sheet does not let these cells be written


FINAL: Final = frozenset(Outcome) - {Outcome.STAGED}


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What became of one `RowScores`, which `row`, `identity` and `first_category` name."""

    row: int
    identity: str
    first_category: int
    outcome: Outcome
    now_row: int = 0  # where the row is by now, if it is anywhere
    kept: tuple[int, ...] = ()  # categories whose cells somebody else had filled; the others were written
    reason: str = ""  # for a person, naming the cell or row


def identity_of(text: str, known_by: str = "") -> str:
    """By which a row is known: 32 hexadecimal digits. Equal texts are one unless an id tells them apart, and a text
    that was edited is another one, whatever its id."""
    return hashlib.sha256(f"{len(known_by)}:{known_by}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def cell_text(value: object) -> str:
    """What a cell holds, as a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


@lru_cache(maxsize=4096)
def score_text(score: float) -> str:
    """A score as it stands in a sheet: 0.00 to 1.00."""
    return f"{score:.2f}"


def is_same_score(held: object, score: float) -> bool:
    """Whether a cell holds this very score, in whatever form."""
    try:
        number = float(cell_text(held).strip())
    except ValueError:
        return False
    return math.isfinite(number) and abs(number - round(score, 2)) < 1e-9


@dataclass(frozen=True, slots=True)
class Cells:
    """What is to be done with one block of a row."""

    write: tuple[tuple[int, float], ...]  # category and score
    kept: tuple[int, ...]  # categories whose cells hold something else


def cells_to_write(scores: RowScores, held: Sequence[object]) -> Cells:
    """What to write where; `held` is what the row's cells hold now, from category 0 on."""
    write: list[tuple[int, float]] = []
    kept: list[int] = []
    for offset, score in enumerate(scores.scores):
        category = scores.first_category + offset
        if score is None:
            continue
        now = held[category] if category < len(held) else None
        if now is None or now == "":
            write.append((category, round(score, 2)))
        elif not is_same_score(now, score):
            kept.append(category)
    return Cells(tuple(write), tuple(kept))


def safe_text(text: str) -> str:
    """A text that a spreadsheet takes for a text, whatever it begins with."""
    return f"'{text}" if text.startswith(_FORMULA_BEGINS) else text
