"""A sheet that was uploaded: read from a copy on this machine, filled anew from the journal whenever it is wanted.

Nobody else changes it, so a score is accepted as soon as the journal has it; the file that people download is made of
the upload and the journal when a run stands still (`filling.py`). So any number of machines can work on one run, and
what a crash leaves is never half a file.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

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

# Folders of copies that a crash left go when nothing was done in them for so long.
_LEFT_SEC = 7 * 86_400.0


class UploadedSheet:
    def __init__(self, address: str, inner: FileSheet, folder: Path) -> None:
        self.address = address
        self.layout = inner.layout
        self._inner = inner
        self._folder = folder

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
        await self._inner.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


async def open_uploaded(
    objects: Objects,
    pieces: Sequence[Piece],
    address: str,
    name: str,
    layout: SheetLayout,
    clock: Clock,
    work_folder: Path,
) -> UploadedSheet:
    folder, path = await fetch(objects, pieces, name, work_folder)
    try:
        inner = await open_file(path, layout, clock, work_folder=folder, settle_sec=0)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise
    return UploadedSheet(address, inner, folder)


async def fetch(objects: Objects, pieces: Sequence[Piece], name: str, work_folder: Path) -> tuple[Path, Path]:
    """A copy of the file in a folder of its own, which whoever asked removes."""
    folder = await asyncio.to_thread(_new_folder, work_folder)
    path = folder / f"sheet{Path(name).suffix.lower()}"
    try:
        for piece in pieces:
            try:
                data = await objects.get(piece.object_key)
            except NotFound:
                raise SheetError(SheetTrouble.GONE, f"a piece of {name} is lost; upload it again") from None
            await asyncio.to_thread(_append, path, data)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise
    return folder, path


def _append(path: Path, data: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise file_places.trouble(path, error) from None


def _new_folder(work_folder: Path) -> Path:
    home = work_folder / "scoring"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for one in home.iterdir():
            if one.stat().st_mtime < time.time() - _LEFT_SEC:
                shutil.rmtree(one, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=home))
    except OSError as error:
        raise file_places.trouble(home, error) from None
