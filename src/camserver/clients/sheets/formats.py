"""What a file of a kind (CSV, Excel, Parquet) must be able to do to be a sheet: be read row by row, and be written
anew with some empty cells filled and everything else as it was."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from camserver.domain.sheet_layout import Finding, SheetLayout
from camserver.domain.sheet_rows import cell_text, identity_of


@dataclass(frozen=True, slots=True)
class FileRow:
    row: int  # from 1
    text: str
    known_by: str  # what the id column holds; empty without one
    # What stands in the columns of categories, at most CATEGORIES_MAX of them; a formula counts as something.
    held: Sequence[object]

    @property
    def identity(self) -> str:
        return identity_of(self.text, self.known_by)

    @property
    def filled(self) -> int:
        """Bit n is set when the cell of category n holds something."""
        return sum(1 << index for index, value in enumerate(self.held) if cell_text(value) != "")


# What to write into a row: scores by category. None are written where a cell holds something.
Change = Callable[[FileRow], Mapping[int, float]]


class FileFormat(Protocol):
    """Both functions go over the file once, in bounded memory, and raise SheetError when it can't be read."""

    def scan(self, path: Path, layout: SheetLayout, found: list[Finding]) -> Iterator[FileRow]:
        """Every row of the file in order, headers included; what is wrong with the file is added to `found`."""

    def rewrite(self, path: Path, draft: Path, layout: SheetLayout, change: Change) -> None:
        """Writes the file to `draft`, with what `change` says for each row."""
