"""How commands show things: tables that line up with Japanese names in them, ages, and the reader's language."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

Language = Literal["ja", "en"]


def reader_language(environ: Mapping[str, str] = os.environ) -> Language:
    """The language of the terminal, by the variables that name it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if given := environ.get(name, ""):
            return "ja" if given.lower().startswith("ja") else "en"
    return "en"


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their headings, each column as wide as its widest cell."""
    shown = [head, *rows]
    widths = [max(columns_of(row[number]) for row in shown) for number in range(len(head))]
    lines = [
        "  ".join(cell + " " * (width - columns_of(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    return "\n".join(lines)


def moment(at_ms: int) -> str:
    """A moment by the clock of this machine."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def age(then_ms: int | None, now_ms: int) -> str:
    """How long ago, in the largest unit that says something."""
    if then_ms is None:
        return "-"
    return lasted(now_ms - then_ms)


def lasted(length_ms: int) -> str:
    """How long something took, in the largest unit that says something."""
    seconds = max(length_ms, 0) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
