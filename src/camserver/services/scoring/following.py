"""Finds the rows that people moved while they were scored, so that the journal names each once, where it is."""

from collections.abc import Mapping, Sequence

from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import ResultState
from camserver.domain.sheet_rows import SheetRow
from camserver.store import Store, scoring_journal, scoring_moves
from camserver.store.scoring_moves import Away, Claim, Place

# Results that are looked for in one reading of the sheet.
AT_ONCE = 20_000

Known = Mapping[tuple[int, int, str], ResultState]


class Following:
    def __init__(self, store: Store, sheet: Sheet, run_id: int, block_size: int) -> None:
        self._store = store
        self._sheet = sheet
        self._run_id = run_id
        self._cells = (1 << block_size) - 1

    async def mark(self, known: Known, seen: Mapping[tuple[int, int, str], bool]) -> None:
        """Compares the journal of a stretch of rows with what stands there now: row, block and text, and whether the
        cells are filled."""
        left = tuple(
            Place(*place)
            for place, state in known.items()
            if state in (ResultState.WRITTEN, ResultState.FAILED) and place not in seen
        )
        back = tuple(
            Place(*place) for place, state in known.items() if state is ResultState.AWAY and seen.get(place, False)
        )
        if left or back:
            await self._store.write(scoring_moves.mark, self._run_id, left, back)

    async def follow(self) -> None:
        """Everything that is marked is found or given up."""
        has_followed = False
        while batch := await self._store.read(scoring_moves.away, self._run_id, AT_ONCE):
            await self._find(batch)
            has_followed = True
        if has_followed:
            await self._store.write(scoring_moves.recount, self._run_id)

    async def _find(self, batch: Sequence[Away]) -> None:
        wanted: dict[tuple[str, int], list[Away]] = {}
        for one in batch:
            wanted.setdefault((one.identity, one.first_category), []).append(one)
        there: set[tuple[str, int]] = set()
        async for page in self._sheet.rows(self._sheet.layout.first_data_row):
            places = [
                (row, first) for row in page for first in self._blocks_of(row) if (row.identity, first) in wanted
            ]
            if not places:
                continue
            there.update((row.identity, first) for row, first in places)
            known = await self._store.read(scoring_journal.of_chunk, self._run_id, page[0].row, page[-1].row)
            claims = tuple(
                claim for row, first in places if (claim := _claim(row, first, wanted[row.identity, first], known))
            )
            if claims:
                await self._store.write(scoring_moves.claim, self._run_id, claims)
        rest = [one for several in wanted.values() for one in several]
        doubles = tuple(one.result_id for one in rest if (one.identity, one.first_category) in there)
        gone = tuple(one.result_id for one in rest if (one.identity, one.first_category) not in there)
        await self._store.write(scoring_moves.give_up, self._run_id, doubles, gone)

    def _blocks_of(self, row: SheetRow) -> list[int]:
        """First categories of the blocks in which it has anything."""
        size = self._cells.bit_length()
        return [first for first in range(0, row.filled.bit_length(), size) if row.filled >> first & self._cells]


def _claim(row: SheetRow, first: int, waiting: list[Away], known: Known) -> Claim | None:
    """Which of the results that wait is this row's; None where it has one."""
    state = known.get((row.row, first, row.identity))
    at_home = next((one for one in waiting if one.row == row.row), None)
    if state is ResultState.AWAY and at_home is None:
        return None  # it is looked for later
    if not waiting or state not in (None, ResultState.MOVED, ResultState.AWAY):
        return None
    chosen = at_home or waiting[0]
    waiting.remove(chosen)
    return Claim(chosen.result_id, row.row, first, row.identity)
