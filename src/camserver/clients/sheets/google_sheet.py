"""A tab of Google Sheets as a sheet.

Google offers no write on condition, and people sort and type while a run goes on. So a round reads the rows it is
going to write, writes the empty cells of those that are still what was scored, and the next round reads them again: a
score counts as written when it was seen standing beside its text. One that landed beside another text, because
somebody sorted in between, is taken away there and written where its text is. (Between reading and writing lies one
request. What a person typed is lost only if they sort within that moment a row with it to where a score is going.)
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from camserver.base.clock import Clock
from camserver.base.errors import Bug
from camserver.clients.outgoing import OutgoingHttp
from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.google_api import GoogleApi, ProtectedCells, TabChanged, TooLarge
from camserver.clients.sheets.google_cells import RUN_GAP_ROWS, RUNS_MAX, Tab, area_findings, runs_of, updates
from camserver.clients.sheets.google_mending import TRIES_MAX, Mending
from camserver.clients.sheets.google_reader import GoogleReader
from camserver.clients.sheets.sheet import PAGE_ROWS_MAX, WRITE_MAX, SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Snapshot
from camserver.domain.sheet_layout import Category, Finding, Problem, Severity, SheetCheck, SheetLayout
from camserver.domain.sheet_rows import (
    Cells,
    Outcome,
    RowOutcome,
    RowScores,
    SheetRow,
    cells_to_write,
    is_same_score,
)

FLUSH_MIN_SEC: Final = 2.0
# Blocks that one request writes.
BATCH_MAX: Final = 1_000
# Waiting ones beyond this are written before more are taken.
STAGED_MAX: Final = 20_000
OWN_MAX: Final = 50_000


@dataclass(frozen=True, slots=True)
class _Waiting:
    scores: RowScores
    row: int  # where the row is thought to be by now


@dataclass(frozen=True, slots=True)
class _Sent:
    scores: RowScores
    row: int
    cells: Cells


class GoogleSheet:
    def __init__(
        self, api: GoogleApi, http: OutgoingHttp, layout: SheetLayout, clock: Clock, gid: int | None = None
    ) -> None:
        self.address = f"https://docs.google.com/spreadsheets/d/{api.book_id}" + (f"#gid={gid}" if gid else "")
        self.layout = layout
        self._api = api
        self._http = http
        self._clock = clock
        self._reader = GoogleReader(api, layout, clock, gid)
        self._staged: list[_Waiting] = []
        self._sent: list[_Sent] = []  # written, and not seen beside their texts yet
        self._mended: list[Mending] = []  # put back, and not seen to be right yet
        self._settled: list[RowOutcome] = []  # not told yet
        # Scores that were seen in their place, the latest ones, by identity and first category: put back should
        # others have landed on them.
        self._own: OrderedDict[tuple[str, int], tuple[float | None, ...]] = OrderedDict()
        self._writing = asyncio.Lock()
        self._batch_max = BATCH_MAX
        self._flushed_ms = 0

    async def check(self) -> SheetCheck:
        tab = await self._reader.tab(again=True)
        snapshot = Snapshot(self.layout, None)
        for row in await self._reader.header_rows(tab):
            snapshot.add(row)
        async for rows in self._reader.pages(self.layout.first_data_row, tab.rows):
            for row in rows:
                snapshot.add(row)
        snapshot.finish(None)
        found: list[Finding] = []
        if not await self._api.may_edit():
            message = f"{self._api.email} may only read this sheet; share it with that address as an editor"
            found.append(Finding(Severity.ERROR, Problem.READ_ONLY, "", message))
        check = snapshot.check(found)
        areas = area_findings(tab, self.layout, len(check.categories), max(check.last_row, 1))
        return replace(check, findings=(*check.findings, *areas))

    async def categories(self) -> tuple[Category, ...]:
        return await self._reader.categories()

    async def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        tab = await self._reader.tab()
        mask = (1 << len(self._reader.expected or await self.categories())) - 1
        first = max(first_row, self.layout.first_data_row)
        async for found in self._reader.pages(first, tab.rows if last_row is None else last_row):
            texts = [row for row in found if row.text.strip()]
            for begin in range(0, len(texts), PAGE_ROWS_MAX):
                yield [
                    SheetRow(row.row, row.text, row.identity, row.filled & mask)
                    for row in texts[begin : begin + PAGE_ROWS_MAX]
                ]

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        if len(scores) > WRITE_MAX:
            raise Bug(f"{len(scores)} blocks at once; the most are {WRITE_MAX}")
        while len(self._staged) + len(scores) > STAGED_MAX:
            async with self._writing:
                await self._round()
        self._staged += [_Waiting(one, one.row) for one in scores]
        staged = [RowOutcome(one.row, one.identity, one.first_category, Outcome.STAGED) for one in scores]
        return [*self._told(), *staged]

    async def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        if not final and self._clock.boot_ms() - self._flushed_ms < FLUSH_MIN_SEC * 1000:
            return
        while self._staged or self._sent or self._mended or self._settled:
            if self._staged or self._sent or self._mended:
                async with self._writing:
                    await self._round()
            if self._settled:
                yield self._told()
            if not final:
                return

    async def close(self) -> None:
        await self._http.close()

    def _told(self) -> list[RowOutcome]:
        told, self._settled = self._settled, []
        return told

    async def _round(self) -> None:
        """One request that reads, one that writes. What the round before wrote is looked at first."""
        self._flushed_ms = self._clock.boot_ms()
        tab = await self._reader.tab()
        if self._mended:
            await self._look_after(tab)
            return
        sent, batch = self._sent[: self._batch_max], self._batch()
        wanted = [*(one.row for one in sent), *(one.row for one in batch)]
        runs = runs_of(row for row in wanted if row <= tab.rows)
        try:
            rows = {row.row: row for row in await self._reader.read(tab, runs, check=True)}
        except TooLarge:
            if self._batch_max == 1:
                raise SheetError(SheetTrouble.BROKEN, f"row {runs[0][0]} is too large to be read") from None
            self._batch_max = max(self._batch_max // 4, 1)
            return
        except TabChanged:
            await self._reader.look_again()
            return
        self._see(sent, rows)
        strays = [one for one in sent if not _is_at(one.scores, rows.get(one.row))]
        lost = [one for one in batch if not _is_at(one.scores, rows.get(one.row))]
        if strays or lost:
            found = await self._reader.find([*(one.scores for one in strays), *(one.scores for one in lost)])
            await self._settle_strays(tab, strays, rows, found)
            self._send_on(lost, found)
        if strays:
            return  # cells were emptied that are not empty in what was read
        gone = {id(one) for one in lost}
        await self._send(tab, [one for one in batch if id(one) not in gone], rows)

    def _batch(self) -> list[_Waiting]:
        """The next ones to write, in few stretches."""
        batch: list[_Waiting] = []
        runs, last = 0, -RUN_GAP_ROWS
        for one in sorted(self._staged[: self._batch_max], key=lambda one: one.row):
            runs += one.row - last > RUN_GAP_ROWS
            if runs > RUNS_MAX:
                break
            batch.append(one)
            last = one.row
        return batch

    def _see(self, sent: Sequence[_Sent], rows: Mapping[int, FileRow]) -> None:
        """Those that stand beside their texts are written."""
        seen = [one for one in sent if _is_at(one.scores, rows.get(one.row))]
        gone = {id(one) for one in seen}
        self._sent = [one for one in self._sent if id(one) not in gone]
        self._settled += [self._written(one.scores, one.row, one.cells) for one in seen]

    async def _send(self, tab: Tab, batch: Sequence[_Waiting], rows: Mapping[int, FileRow]) -> None:
        settled: list[RowOutcome] = []
        sent: list[_Sent] = []
        cells: dict[tuple[int, int], float | str] = {}
        for one in batch:
            wanted = cells_to_write(one.scores, rows[one.row].held)
            if any(self._is_protected(tab, one.row, category) for category, _ in wanted.write):
                settled.append(_refused(one))
            elif wanted.write:
                cells |= {(one.row, category): score for category, score in wanted.write}
                sent.append(_Sent(one.scores, one.row, wanted))
            else:
                settled.append(self._written(one.scores, one.row, wanted))
        if cells:
            try:
                await self._api.update(updates(tab, self.layout, cells))
            except ProtectedCells:
                await self._learn_protection(sent)
                return
            except TabChanged:
                await self._reader.look_again()
                return
        done = {id(one) for one in batch}
        self._sent += sent
        self._staged = [one for one in self._staged if id(one) not in done]
        self._settled += settled

    async def _learn_protection(self, sent: Sequence[_Sent]) -> None:
        """What is protected now; the next round leaves it out."""
        tab = await self._reader.tab(again=True)
        if not any(self._is_protected(tab, one.row, category) for one in sent for category, _ in one.cells.write):
            first = min(sent, key=lambda one: one.row)
            where = self.layout.cell(first.row, first.cells.write[0][0])
            message = f"{tab.title} is protected at {where} or further down; let {self._api.email} edit it"
            raise SheetError(SheetTrouble.DENIED, message)

    def _is_protected(self, tab: Tab, row: int, category: int) -> bool:
        column = self.layout.first_category_index + category
        return any(area.holds(row, column) for area in tab.protected)

    def _written(self, scores: RowScores, row: int, cells: Cells) -> RowOutcome:
        given = sum(score is not None for score in scores.scores)
        is_kept = bool(given) and len(cells.kept) == given
        if not is_kept:
            self._own[scores.identity, scores.first_category] = scores.scores
            while len(self._own) > OWN_MAX:
                self._own.popitem(last=False)
        where = ", ".join(self.layout.cell(row, category) for category in cells.kept[:5])
        reason = f"{where} held something else, which was left as it was" if cells.kept else ""
        outcome = Outcome.KEPT if is_kept else Outcome.WRITTEN
        return RowOutcome(scores.row, scores.identity, scores.first_category, outcome, row, cells.kept, reason)

    # -----------------------------------------------------------------------------------------------------------
    # Rows that went elsewhere
    # -----------------------------------------------------------------------------------------------------------

    def _send_on(self, lost: Sequence[_Waiting], found: Mapping[str, list[FileRow]]) -> None:
        """Those that wait for a row that is elsewhere wait for it there; those whose row is nowhere are refused."""
        away = {id(one) for one in lost}
        kept = [one for one in self._staged if id(one) not in away]
        waiting = {(one.scores.identity, one.scores.first_category, one.row) for one in kept}
        taken = waiting | {(one.scores.identity, one.scores.first_category, one.row) for one in self._sent}
        for one in lost:
            places = [row.row for row in found.get(one.scores.identity, [])]
            key = (one.scores.identity, one.scores.first_category)
            free = [row for row in places if (*key, row) not in taken] or places
            if free:
                taken.add((*key, free[0]))
                kept.insert(0, replace(one, row=free[0]))
            else:
                self._settled.append(_changed(one.scores))
        self._staged = kept

    async def _settle_strays(
        self, tab: Tab, strays: Sequence[_Sent], rows: Mapping[int, FileRow], found: Mapping[str, list[FileRow]]
    ) -> None:
        """Those that were sent to a row that is another one by now. They went along with their text, or landed beside
        a stranger: then they are taken away from there and wait again."""
        settled: list[RowOutcome] = []
        cleared: dict[tuple[int, int], float | str] = {}
        again: list[_Waiting] = []
        mended: list[Mending] = []
        for sent in strays:
            places = found.get(sent.scores.identity, [])
            beside = next((row for row in places if _holds(row, sent)), None)
            if beside is not None:
                settled.append(self._written(sent.scores, beside.row, sent.cells))
                continue
            stranger = rows.get(sent.row)
            if stranger is not None and _holds(stranger, sent):
                before = self._as_before(stranger, sent)
                cleared |= {(sent.row, category): value for category, value in before.items()}
                wrong = dict(sent.cells.write)
                mended.append(Mending(stranger.identity, sent.row, sent.scores.first_category, before, wrong))
            if places:
                again.append(_Waiting(sent.scores, places[0].row))
            else:
                settled.append(_changed(sent.scores))
        if cleared:
            await self._api.update(updates(tab, self.layout, cleared))
        self._mended += mended
        gone = {id(one) for one in strays}
        self._sent = [one for one in self._sent if id(one) not in gone]
        self._staged += again
        self._settled += settled

    def _as_before(self, stranger: FileRow, sent: _Sent) -> dict[int, float | str]:
        """What stood in the cells of a row before scores of another landed there: its own scores, or nothing."""
        before = self._own_scores(stranger, sent.scores.first_category)
        return {category: before.get(category, "") for category, _ in sent.cells.write}

    def _own_scores(self, row: FileRow, first: int) -> dict[int, float]:
        own = self._own.get((row.identity, first), ())
        return {first + offset: score for offset, score in enumerate(own) if score is not None}

    async def _look_after(self, tab: Tab) -> None:
        """Looks whether what was put back is right by now; does it once more where rows moved in that moment."""
        try:
            runs = runs_of(sorted({one.row for one in self._mended if one.row <= tab.rows}))
            there = {row.row: row for row in await self._reader.read(tab, runs, check=True)}
        except TabChanged:
            await self._reader.look_again()
            return
        found = await self._reader.find(
            [RowScores(one.row, one.identity, one.first_category, ()) for one in self._mended]
        )
        cells: dict[tuple[int, int], float | str] = {}
        again: list[Mending] = []
        for one in self._mended:
            looked = [(one, row) for row in found.get(one.identity, [])]
            hit = there.get(one.row)
            if hit is not None and hit.identity != one.identity:
                # The request went to another row, and took its scores away if it had some.
                own = self._own_scores(hit, one.first_category)
                looked.append((Mending(hit.identity, hit.row, one.first_category, own, {}, one.tries), hit))
            for mending, row in looked:
                if left := mending.left(row):
                    cells |= {(row.row, category): value for category, value in left.items()}
                    again.append(replace(mending, row=row.row, tries=mending.tries + 1))
        if cells:
            await self._api.update(updates(tab, self.layout, cells))
        self._mended = [one for one in again if one.tries <= TRIES_MAX]


def _is_at(scores: RowScores, row: FileRow | None) -> bool:
    return row is not None and row.identity == scores.identity


def _holds(row: FileRow, sent: _Sent) -> bool:
    """Whether a row holds the scores that were sent."""
    held = row.held
    return all(category < len(held) and is_same_score(held[category], score) for category, score in sent.cells.write)


def _changed(scores: RowScores) -> RowOutcome:
    reason = f"the text of row {scores.row} was edited or removed after it was read; nothing was written"
    return RowOutcome(scores.row, scores.identity, scores.first_category, Outcome.CHANGED, reason=reason)


def _refused(one: _Waiting) -> RowOutcome:
    scores = one.scores
    reason = f"row {one.row} is protected where its scores belong; let the service account edit it"
    return RowOutcome(scores.row, scores.identity, scores.first_category, Outcome.PROTECTED, one.row, reason=reason)
