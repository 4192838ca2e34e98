"""A sheet in memory that behaves as one of the clients does: scores are staged, rows may move, cells may be taken."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from camserver.clients.sheets.sheet import SheetError
from camserver.domain.sheet_layout import Category, SheetCheck, SheetLayout
from camserver.domain.sheet_rows import Outcome, RowOutcome, RowScores, SheetRow, cells_to_write, identity_of

FIRST = 5


@dataclass
class Line:
    text: str
    cells: list[float | str | None]


@dataclass
class ListSheet:
    """Survives a "crash" of the process that writes to it: `reopened` forgets what was only staged."""

    names: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    address: str = "list"
    layout: SheetLayout = field(default_factory=SheetLayout)
    staged: list[RowScores] = field(default_factory=list)
    stages: bool = False  # as files do; else written at once
    trouble: list[SheetError] = field(default_factory=list)  # strikes at the next writes
    writes: int = 0

    @staticmethod
    def of(texts: Sequence[str], names: Sequence[str] = ("red", "green"), **options: object) -> "ListSheet":
        lines = [Line(text, [None] * len(names)) for text in texts]
        return ListSheet(tuple(names), lines, **options)  # type: ignore[arg-type]  # the names are its own

    def reopened(self) -> "ListSheet":
        self.staged.clear()
        return self

    def cells(self) -> list[list[float | str | None]]:
        return [line.cells for line in self.lines]

    async def check(self) -> SheetCheck:
        return SheetCheck(await self.categories(), (), FIRST + len(self.lines) - 1, len(self.lines))

    async def categories(self) -> tuple[Category, ...]:
        return tuple(Category(index, name) for index, name in enumerate(self.names))

    async def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        last = FIRST + len(self.lines) - 1 if last_row is None else last_row
        found = []
        for number in range(max(first_row, FIRST), min(last, FIRST + len(self.lines) - 1) + 1):
            line = self.lines[number - FIRST]
            filled = sum(1 << index for index, cell in enumerate(line.cells) if cell is not None)
            if line.text:
                found.append(SheetRow(number, line.text, identity_of(line.text), filled))
        yield found

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        self.writes += 1
        if self.trouble:
            raise self.trouble.pop(0)
        if not self.stages:
            return [self._written(one) for one in scores]
        self.staged += scores
        return [RowOutcome(one.row, one.identity, one.first_category, Outcome.STAGED) for one in scores]

    async def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        if self.trouble:
            raise self.trouble.pop(0)
        if final or len(self.staged) > 100:
            staged, self.staged = self.staged, []
            yield [self._written(one) for one in staged]

    def _written(self, scores: RowScores) -> RowOutcome:
        number = self._place(scores)
        named = scores.row, scores.identity, scores.first_category
        if number is None:
            return RowOutcome(*named, Outcome.CHANGED, reason="the row is gone")
        line = self.lines[number - FIRST]
        cells = cells_to_write(scores, line.cells)
        for category, score in cells.write:
            line.cells[category] = score
        if cells.kept and not cells.write:
            return RowOutcome(*named, Outcome.KEPT, number, cells.kept, "somebody typed here")
        return RowOutcome(*named, Outcome.WRITTEN, number, cells.kept)

    def _place(self, scores: RowScores) -> int | None:
        numbers = [scores.row, *range(FIRST, FIRST + len(self.lines))]
        for number in numbers:
            line = self.lines[number - FIRST] if FIRST <= number < FIRST + len(self.lines) else None
            if line is not None and identity_of(line.text) == scores.identity:
                return number
        return None

    async def close(self) -> None:
        self.staged.clear()
