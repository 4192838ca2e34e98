"""A sheet that was uploaded: read from a copy on this machine, filled anew from the journal whenever it is wanted.

Nobody else changes it, so a score is accepted as soon as the journal has it; the file that people download is made of
the upload and the journal when a run stands still (`filling.py`). So any number of machines can work on one run, and
what a crash leaves is never half a file.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from camserver.base import scratch
from camserver.base.cancelling import to_its_end
from camserver.base.clock import Clock
from camserver.base.errors import NotFound
from camserver.clients.sheets import file_places
from camserver.clients.sheets.file_sheet import FileSheet
from camserver.clients.sheets.opening import open_file
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.sheet_layout import Category, SheetCheck, SheetLayout
from camserver.domain.sheet_rows import Outcome, RowOutcome, RowScores, SheetRow
from camserver.objects.interface import Objects
from camserver.store.scoring_sheets import Piece


class Copy:
    """An upload as a file of this machine, in a folder of its own that whoever has it removes."""

    def __init__(self, home: Path, name: str) -> None:
        self.folder = home / secrets.token_hex(8)
        self.path = self.folder / f"sheet{Path(name).suffix.lower()}"
        self._held: scratch.Scratch | None = None

    async def begin(self) -> None:
        await to_its_end(asyncio.to_thread(self._begin))

    async def append(self, data: bytes) -> None:
        await to_its_end(asyncio.to_thread(self._append, data))

    async def remove(self) -> None:
        if self._held is not None:
            await to_its_end(asyncio.to_thread(self._held.remove))

    def _begin(self) -> None:
        home = self.folder.parent
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            scratch.sweep(home, "*")  # those that a crash left
            self._held = scratch.Scratch(self.folder)
        except OSError as error:
            raise file_places.trouble(home, error) from None

    def _append(self, data: bytes) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(data)
        except OSError as error:
            raise file_places.trouble(self.path, error) from None


class UploadedSheet:
    def __init__(self, address: str, inner: FileSheet, copy: Copy) -> None:
        self.address = address
        self.layout = inner.layout
        self._inner = inner
        self._copy = copy

    async def check(self) -> SheetCheck:
        return await self._inner.check()

    async def categories(self) -> tuple[Category, ...]:
        return await self._inner.categories()

    async def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        async for page in self._inner.rows(first_row, last_row):
            yield page

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        return [RowOutcome(one.row, one.identity, one.first_category, Outcome.WRITTEN, one.row) for one in scores]

    async def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        staged: Sequence[Sequence[RowOutcome]] = ()  # what was written is in the journal already
        for page in staged:
            yield page

    async def close(self) -> None:
        await to_its_end(self._close())

    async def _close(self) -> None:
        await self._inner.close()
        await self._copy.remove()


async def open_uploaded(
    objects: Objects,
    pieces: Sequence[Piece],
    address: str,
    name: str,
    layout: SheetLayout,
    clock: Clock,
    work_folder: Path,
) -> UploadedSheet:
    copy = await fetch(objects, pieces, name, work_folder)
    try:
        inner = await open_file(copy.path, layout, clock, work_folder=copy.folder, settle_sec=0)
    except BaseException:
        await copy.remove()
        raise
    return UploadedSheet(address, inner, copy)


async def fetch(objects: Objects, pieces: Sequence[Piece], name: str, work_folder: Path) -> Copy:
    copy = Copy(work_folder / "scoring", name)
    try:
        await copy.begin()
        for piece in pieces:
            try:
                data = await objects.get(piece.object_key)
            except NotFound:
                raise SheetError(SheetTrouble.GONE, f"a piece of {name} is lost; upload it again") from None
            await copy.append(data)
    except BaseException:
        await copy.remove()
        raise
    return copy
