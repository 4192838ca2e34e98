"""Cells that scores landed in beside a stranger's text, and that were put back as they were.

Putting back is a request like any other: somebody may move rows in that very moment. So what was put back is looked
at once more, where the stranger is by then and where the request went.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from camserver.clients.sheets.formats import FileRow
from camserver.domain.sheet_rows import is_same_score

# Who never stops moving rows is not run after for ever.
TRIES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Mending:
    identity: str  # of the row
    row: int  # where it was put back
    first_category: int
    wanted: Mapping[int, float | str]  # by category; "" is nothing
    wrong: Mapping[int, float]  # what had landed there
    tries: int = 1

    def left(self, row: FileRow) -> dict[int, float | str]:
        """What of a row has to be put back still. What somebody typed meanwhile stays."""
        left: dict[int, float | str] = {}
        for category, value in self.wanted.items():
            held = row.held[category] if category < len(row.held) else ""
            is_right = isinstance(value, float) and is_same_score(held, value)
            is_wrong = category in self.wrong and is_same_score(held, self.wrong[category]) and not is_right
            is_lost = value != "" and held in ("", None)
            if is_wrong or is_lost:
                left[category] = value
        return left
