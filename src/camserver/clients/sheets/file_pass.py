"""What one pass over a file does with the staged scores: who meets which row, and what becomes of them."""

from collections import defaultdict
from typing import Final

import numpy as np
import numpy.typing as npt

from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.snapshot import Snapshot
from camserver.clients.sheets.staging import Records, let_go, scores_of
from camserver.domain.sheet_layout import SheetLayout
from camserver.domain.sheet_rows import Cells, Outcome, RowOutcome, RowScores, cells_to_write

PAGE: Final = 2_000

_OPEN, _WRITTEN, _KEPT, _CHANGED = range(4)
_OUTCOMES: Final = {_WRITTEN: Outcome.WRITTEN, _KEPT: Outcome.KEPT, _CHANGED: Outcome.CHANGED}


class Pass:
    """Staged scores against the rows of a file, which come in order. What is found out counts once it is settled."""

    def __init__(self, records: Records, layout: SheetLayout) -> None:
        self._layout = layout
        self.records = records
        self.count = len(records)
        self.targets: npt.NDArray[np.uint32] = records["row"].astype(np.uint32)
        let_go(records)
        self._settled = np.full(self.count, _OPEN, np.uint8)
        self._found = self._settled.copy()
        # Categories whose cells somebody else had filled; seldom any.
        self._kept: dict[int, tuple[int, ...]] = {}
        self._order: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._at = 0
        self._page: list[RowScores] = []  # of the order, from _page_begin on
        self._page_begin = 0
        self.writes = 0

    @property
    def strays(self) -> npt.NDArray[np.bool_]:
        """Those whose row was not where they were sent to."""
        found: npt.NDArray[np.bool_] = self._settled == _CHANGED
        return found

    def taken_rows(self, identities: set[str]) -> dict[str, set[int]]:
        """Rows that others with these identities were written into."""
        beginnings = np.frombuffer(self.records["identity"].tobytes(), "<u8")[::2]
        wanted = np.array([int.from_bytes(bytes.fromhex(one)[:8], "little") for one in identities], np.uint64)
        is_settled = (self._settled == _WRITTEN) | (self._settled == _KEPT)
        taken: dict[str, set[int]] = defaultdict(set)
        for index in np.flatnonzero(is_settled & np.isin(beginnings, wanted)):
            taken[bytes(self.records[index]["identity"]).hex()].add(int(self.targets[index]))
        return taken

    def send(self, indexes: list[int], row: int) -> None:
        """These are to meet another row, in the next pass."""
        self.targets[indexes] = row
        self._settled[indexes] = _OPEN

    def begin(self) -> None:
        self._found = self._settled.copy()
        waiting = np.flatnonzero(self._found == _OPEN).astype(np.uint32)
        self._order = waiting[np.argsort(self.targets[waiting], kind="stable")]
        self._at = 0
        self._page, self._page_begin = [], 0
        self.writes = 0

    def meet(self, row: FileRow) -> dict[int, float]:
        """The scores for this row, by category."""
        scores: dict[int, float] = {}
        identity = ""
        while self._at < len(self._order):
            index = int(self._order[self._at])
            target = int(self.targets[index])
            if target > row.row:
                break
            self._at += 1
            if target < row.row:
                self._found[index] = _CHANGED
                continue
            wanted = self._read(self._at - 1)
            identity = identity or row.identity
            if wanted.identity != identity:
                self._found[index] = _CHANGED
                continue
            cells = cells_to_write(wanted, row.held)
            scores.update(cells.write)
            self._found[index] = _KEPT if _is_all_kept(cells, wanted.scores) else _WRITTEN
            if cells.kept:
                self._kept[index] = cells.kept
        self.writes += len(scores)
        return scores

    def _read(self, at: int) -> RowScores:
        """What stands at a place of the order; places are asked for in order."""
        if at >= self._page_begin + len(self._page):
            self._page_begin = at
            self._page = scores_of(self.records[self._order[at : at + PAGE]])
            let_go(self.records)
        return self._page[at - self._page_begin]

    def end(self) -> None:
        self._found[self._order[self._at :]] = _CHANGED

    def settle(self) -> None:
        """The file is in place."""
        self._settled = self._found

    def outcomes(self, begin: int, end: int) -> list[RowOutcome]:
        found = scores_of(self.records[begin:end])
        let_go(self.records)
        return [self._outcome(begin + index, scores) for index, scores in enumerate(found)]

    def _outcome(self, index: int, scores: RowScores) -> RowOutcome:
        outcome = _OUTCOMES[int(self._settled[index])]
        kept = self._kept.get(index, ())
        now_row = 0 if outcome is Outcome.CHANGED else int(self.targets[index])
        reason = ""
        if outcome is Outcome.CHANGED:
            reason = f"the text of row {scores.row} was edited or removed after it was read; nothing was written"
        elif kept:
            where = ", ".join(self._layout.cell(now_row, category) for category in kept[:5])
            reason = f"{where} held something else, which was left as it was"
        return RowOutcome(scores.row, scores.identity, scores.first_category, outcome, now_row, kept, reason)


def new_rows(snapshot: Snapshot, done: Pass) -> npt.NDArray[np.bool_]:
    """Sends those that met no row of theirs to where it is by now; which of them are sent. Rows with equal texts get
    one each, as far as they go."""
    moved = np.zeros(done.count, np.bool_)
    wanted: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    strays = np.flatnonzero(done.strays)
    for index, scores in zip(strays.tolist(), scores_of(done.records[strays]), strict=True):
        wanted[scores.identity][scores.row].append(index)
    found: dict[str, list[int]] = defaultdict(list)
    for page in snapshot.pages(1, None):
        for row in page:
            if row.identity in wanted:
                found[row.identity].append(row.row)
    taken = done.taken_rows(set(wanted))
    for identity, groups in wanted.items():
        free = [row for row in found[identity] if row not in taken[identity]] or found[identity]
        for (_, indexes), number in zip(sorted(groups.items()), free, strict=False):
            done.send(indexes, number)
            moved[indexes] = True
    return moved


def _is_all_kept(cells: Cells, scores: tuple[float | None, ...]) -> bool:
    given = sum(score is not None for score in scores)
    return given > 0 and len(cells.kept) == given
