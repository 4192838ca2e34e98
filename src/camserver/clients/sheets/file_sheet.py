"""A sheet that is a file: read from a snapshot of its rows, written anew as a whole and put in place at once.

No file of these kinds can have cells filled in the middle, so every flush costs a pass over all of it. Scores are
staged, and the file is written when the time since the last pass is FLUSH_SHARE times what that pass took: the cost
stays a small share of the run, however large the file. Nothing is lost by waiting, since the journal is elsewhere.

In the pass every row is known by its content. A row whose text is not what was scored is looked for in the whole file
and, if it is there, filled in a second pass. A file that somebody wrote during a pass is left alone, and the pass is
made again.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from camserver.base.clock import Clock
from camserver.base.errors import Bug
from camserver.clients.sheets import file_places
from camserver.clients.sheets.bounds import comes_to_max_bytes
from camserver.clients.sheets.file_pass import Pass, new_rows
from camserver.clients.sheets.formats import FileFormat, FileRow
from camserver.clients.sheets.sheet import WRITE_MAX, SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Signature, Snapshot
from camserver.clients.sheets.staging import Staging
from camserver.domain.sheet_layout import (
    Category,
    Finding,
    Problem,
    Severity,
    SheetCheck,
    SheetLayout,
    changed_headers,
)
from camserver.domain.sheet_rows import Outcome, RowOutcome, RowScores, SheetRow

P = ParamSpec("P")
R = TypeVar("R")

FLUSH_MIN_SEC: Final = 30.0
FLUSH_SHARE: Final = 20.0
# A pass takes memory for what is staged, so it is made with so many of them all the same.
STAGED_MAX: Final = 250_000
# How often a pass is made again because somebody wrote the file during it.
PASSES_MAX: Final = 3
# A file that is not ours changed just now may still be being written.
SETTLE_SEC: Final = 1.0
BUSY_PAUSE_SEC: Final = 10.0
OUTCOMES_PAGE: Final = 5_000


class FileSheet:
    def __init__(
        self,
        path: Path,
        layout: SheetLayout,
        form: FileFormat,
        clock: Clock,
        work_folder: Path | None = None,
        settle_sec: float = SETTLE_SEC,
    ) -> None:
        self.address = str(path)
        self.layout = layout
        self._path = path
        self._form = form
        self._clock = clock
        self._folder = work_folder
        self._settle_sec = settle_sec
        self._snapshot: Snapshot | None = None
        self._found: list[Finding] = []
        self._expected: tuple[Category, ...] | None = None
        self._staging = Staging(layout.block_size, work_folder)
        self._threads = ThreadPoolExecutor(2, "sheet")
        self._scanning = asyncio.Lock()
        self._flushing = asyncio.Lock()
        # A pass whose waiter was cancelled goes on; the next one begins after it.
        self._one_pass = threading.Lock()
        self._flushed_ms = clock.boot_ms()
        self._took_ms = 0

    async def check(self) -> SheetCheck:
        snapshot = await self._current()
        return snapshot.check([*await self._run(self._file_findings), *self._found])

    async def categories(self) -> tuple[Category, ...]:
        self._expected = (await self._current()).categories
        return self._expected

    async def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        pages = (await self._current()).pages(first_row, last_row)
        while (page := await self._run(next, pages, None)) is not None:
            yield page

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        if len(scores) > WRITE_MAX:
            raise Bug(f"{len(scores)} blocks at once; the most are {WRITE_MAX}")
        await self._run(self._staging.add, scores)
        return [RowOutcome(one.row, one.identity, one.first_category, Outcome.STAGED) for one in scores]

    async def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        if not self._staging.count or not (final or self._is_due()):
            return
        async with self._flushing:
            begun_ms = self._clock.boot_ms()
            try:
                done = await self._passes()
            finally:
                self._flushed_ms = self._clock.boot_ms()
                self._took_ms = self._flushed_ms - begun_ms
            for begin in range(0, done.count, OUTCOMES_PAGE):
                yield await self._run(done.outcomes, begin, begin + OUTCOMES_PAGE)
            await self._run(self._staging.drop, done.count)

    async def close(self) -> None:
        async with self._flushing:
            await asyncio.to_thread(self._threads.shutdown)
        self._staging.close()
        self._snapshot = None

    def _is_due(self) -> bool:
        if self._staging.count >= STAGED_MAX:
            return True
        waited_ms = self._clock.boot_ms() - self._flushed_ms
        return waited_ms >= max(FLUSH_MIN_SEC * 1000, FLUSH_SHARE * self._took_ms)

    # -----------------------------------------------------------------------------------------------------------
    # Reading
    # -----------------------------------------------------------------------------------------------------------

    async def _current(self) -> Snapshot:
        """The rows of the file as it is now; read again when somebody wrote it."""
        async with self._scanning:
            for _ in range(PASSES_MAX):
                now = await self._run(Signature.of, self._path)
                held = self._snapshot
                if held is not None and held.signature == now:
                    return held
                if held is not None:
                    await self._clock.sleep(self._settle_sec)
                    # A pass of our own may be what wrote it, and has its rows in a moment.
                    await self._run(self._await_pass)
                    if self._snapshot is not held or await self._run(Signature.of, self._path) != now:
                        continue
                made, found = await self._run(self._scan)
                # Whoever still reads the old one holds it; it goes with them.
                self._snapshot, self._found = made, found
                if made.signature == await self._run(Signature.of, self._path):
                    return made
        raise self._busy()

    def _scan(self) -> tuple[Snapshot, list[Finding]]:
        found: list[Finding] = []
        signature = Signature.of(self._path)
        snapshot = Snapshot(self.layout, self._folder, None, comes_to_max_bytes(signature.size_bytes))
        for row in self._form.scan(self._path, self.layout, found):
            snapshot.add(row)
        snapshot.finish(signature)
        return snapshot, found

    def _file_findings(self) -> list[Finding]:
        found: list[Finding] = []
        if not file_places.is_writable(self._path):
            message = (
                f"{self._path.name} or its folder can't be written by this user; allow it, or name an output file"
            )
            found.append(Finding(Severity.ERROR, Problem.READ_ONLY, "", message))
        if file_places.opened_by(self._path) is not None:
            message = f"{self._path.name} is open in Excel or LibreOffice; scores are written once it is closed there"
            found.append(Finding(Severity.WARNING, Problem.LOCKED, "", message))
        return found

    # -----------------------------------------------------------------------------------------------------------
    # Writing
    # -----------------------------------------------------------------------------------------------------------

    async def _passes(self) -> Pass:
        """Fills the file with what is staged: where it was read, then where it went meanwhile."""
        await self._run(file_places.check_not_open, self._path)
        done = Pass(self._staging.load(), self.layout)
        await self._one(done)
        if bool(done.strays.any()) and await self._run(new_rows, await self._current(), done):
            await self._one(done)
        return done

    async def _one(self, done: Pass) -> None:
        for _ in range(PASSES_MAX):
            await self._current()  # the categories are still where they were, and nobody writes right now
            if await self._run(self._write_anew, done):
                return
        raise self._busy()

    def _await_pass(self) -> None:
        with self._one_pass:
            pass

    def _write_anew(self, done: Pass) -> bool:
        """One pass over the file. False when somebody wrote the file during it."""
        with self._one_pass:
            held = self._snapshot
            if held is None or held.signature is None:
                return False
            self._check_headers(held.categories)
            most_bytes = comes_to_max_bytes(held.signature.size_bytes)
            made = Snapshot(self.layout, self._folder, held.distinct_texts, most_bytes)

            def change(row: FileRow) -> Mapping[int, float]:
                scores = done.meet(row) if row.row >= self.layout.first_data_row else {}
                made.add(row, sum(1 << category for category in scores))
                return scores

            done.begin()
            draft = file_places.new_draft(self._path)
            try:
                self._form.rewrite(self._path, draft, self.layout, change)
                done.end()
                if not done.writes and Signature.of(self._path) == held.signature:
                    done.settle()
                    return True
                signature = file_places.put_in_place(draft, self._path, held.signature)
            finally:
                draft.unlink(missing_ok=True)
            if signature is None:
                return False
            made.finish(signature)
            self._snapshot = made
            done.settle()
            return True

    def _check_headers(self, now: tuple[Category, ...]) -> None:
        gone = changed_headers(self.layout, self._expected or (), now)
        if gone is not None:
            message = f"{self._path.name}: {gone}; put the categories back as they were, or begin another run"
            raise SheetError(SheetTrouble.LAYOUT, message)

    def _busy(self) -> SheetError:
        message = f"{self._path.name} is being written by somebody else again and again; scores wait until that ends"
        return SheetError(SheetTrouble.BUSY, message, BUSY_PAUSE_SEC)

    async def _run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))
        except OSError as error:
            raise file_places.trouble(self._path, error) from None
