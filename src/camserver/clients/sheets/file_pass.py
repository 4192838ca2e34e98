"""What one pass over a file does with the staged scores: who meets which row, and what becomes of them."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.snapshot import Snapshot
from camserver.clients.sheets.staging import Records, let_go, scores_of
from camserver.domain.sheet_layout import SheetLayout
from camserver.domain.sheet_rows import Cells, Outcome, RowOutcome, RowScores, cells_to_write

PAGE: Final = 2_000
# Records that are gone through without a look at each: what was looked at leaves memory after so many.
STRETCH: Final = 16_384

# 64 bits each.
Keys = npt.NDArray[np.uint64]
_HALF: Final = np.uint64(32)
_ROW: Final = np.uint64(0xFFFF_FFFF)

_OPEN, _WRITTEN, _KEPT, _CHANGED = range(4)
_OUTCOMES: Final = {_WRITTEN: Outcome.WRITTEN, _KEPT: Outcome.KEPT, _CHANGED: Outcome.CHANGED}


class Pass:
    """Staged scores against the rows of a file, which come in order. What is found out counts once it is settled."""

    def __init__(self, records: Records, layout: SheetLayout) -> None:
        self._layout = layout
        self.records = records
        self.count = len(records)
        self.targets: npt.NDArray[np.uint32] = np.empty(self.count, np.uint32)
        for stretch in self._stretches():
            self.targets[stretch] = records[stretch]["row"]
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

    def keys_of(self, is_meant: npt.NDArray[np.bool_]) -> Keys:
        """By which rows are looked for, of those that are meant: the beginning of what each is known by."""
        found = [np.zeros(0, np.uint64)]
        for stretch in self._stretches():
            names = np.frombuffer(self.records[stretch]["identity"].tobytes(), ">u8")[::2]
            found.append(names[is_meant[stretch]].astype(np.uint64))
        return np.concatenate(found)

    @property
    def is_in_place(self) -> npt.NDArray[np.bool_]:
        """Those that met a row of theirs."""
        found: npt.NDArray[np.bool_] = (self._settled == _WRITTEN) | (self._settled == _KEPT)
        return found

    def _stretches(self) -> Iterator[slice]:
        """All records, some at a time."""
        for begin in range(0, self.count, STRETCH):
            yield slice(begin, min(begin + STRETCH, self.count))
            let_go(self.records)

    def send(self, indexes: npt.NDArray[np.intp], rows: npt.NDArray[np.uint64]) -> None:
        """These are to meet other rows, in the next pass."""
        self.targets[indexes] = rows
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


def new_rows(snapshot: Snapshot, done: Pass) -> bool:
    """Sends those that met no row of theirs to where it is by now; whether one is. Rows with equal texts get one
    each, as far as they go. After a sheet was sorted these are all that are staged, so they are kept as numbers: the
    place of the key among those looked for, and the row in the lower half."""
    strays = np.flatnonzero(done.strays)
    keys = done.keys_of(done.strays)
    known = np.unique(keys)
    free = _free(
        _found(snapshot, known), _joined(known, done.keys_of(done.is_in_place), done.targets[done.is_in_place])
    )
    wanted = _joined(known, keys, done.targets[strays])
    rows = np.unique(wanted)  # the blocks of a row go to the same one
    begins = np.searchsorted(free >> _HALF, rows >> _HALF, "left")
    ends = np.searchsorted(free >> _HALF, rows >> _HALF, "right")
    at = begins + np.arange(len(rows)) - np.searchsorted(rows >> _HALF, rows >> _HALF, "left")
    of_row = np.searchsorted(rows, wanted)
    is_there = (at < ends)[of_row]
    done.send(strays[is_there], free[at[of_row[is_there]]] & _ROW)
    return bool(is_there.any())


def _found(snapshot: Snapshot, known: Keys) -> Keys:
    """Where the rows are that are looked for."""
    found = [np.zeros(0, np.uint64)]
    for page in snapshot.pages(1, None):
        keys = np.array([int(row.identity[:16], 16) for row in page], np.uint64)
        found.append(_joined(known, keys, np.array([row.row for row in page])))
    return np.concatenate(found)


def _free(found: Keys, taken: Keys) -> Keys:
    """Those that no other was written into; all of a text of which none is left."""
    free = found[~np.isin(found, taken)]
    return np.sort(np.concatenate([free, found[~np.isin(found >> _HALF, free >> _HALF)]]))


def _joined(known: Keys, keys: Keys, rows: npt.NDArray[np.generic]) -> Keys:
    """Of the keys that are known, with their rows."""
    if not len(known):
        return known
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    is_known = known[at] == keys
    joined: Keys = (at[is_known].astype(np.uint64) << _HALF) | rows[is_known].astype(np.uint64)
    return joined


def _is_all_kept(cells: Cells, scores: tuple[float | None, ...]) -> bool:
    given = sum(score is not None for score in scores)
    return given > 0 and len(cells.kept) == given
