"""Makes the file that people download: a copy of the upload with everything that its run scored."""

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import uuid_utils

from camserver.base.cancelling import to_its_end
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.clients.sheets.opening import open_file
from camserver.clients.sheets.sheet import WRITE_MAX
from camserver.domain.scoring_sheets import PART_BYTES, part_key, part_sizes
from camserver.domain.sheet_rows import RowScores
from camserver.objects.interface import Objects
from camserver.services.scoring.uploaded_sheet import Copy, fetch
from camserver.store import Store, scoring_desk, scoring_runs
from camserver.store.scoring_runs import Run
from camserver.store.scoring_sheets import Piece

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

LOCK_MS = 120_000
KEEP_EVERY_SEC = 30.0


async def fill(store: Store, objects: Objects, clock: Clock, settings: "Settings", run_id: int) -> bool:
    """Whether the run has its file now; False when another process is at it. What a crash leaves is done anew."""
    run = await store.read(scoring_runs.get, run_id)
    held = None if run.sheet_id is None else await store.read(scoring_desk.sheet_of, run.sheet_id)
    if held is None:
        return False
    token = str(uuid_utils.uuid7())
    now_ms = clock.now_ms()
    if not await store.write(scoring_runs.take_writing, run_id, token, now_ms + LOCK_MS, now_ms):
        return False
    keeping = asyncio.create_task(_keep(store, clock, run_id, token))
    copy: Copy | None = None
    try:
        pieces = await store.read(scoring_desk.pieces, held.sheet.sheet_id)
        copy = await fetch(objects, pieces, held.sheet.name, settings.server.data_dir)
        await _put_scores(store, clock, run, copy)
        made = await _store_pieces(store, objects, clock, run, held.sheet.sheet_uuid, copy.path)
        is_done = await store.write(scoring_desk.filled, run_id, token, made, run.updated_at, clock.now_ms())
        log.info("a sheet was filled", run=run.run_uuid, bytes=sum(one.object_bytes for one in made))
        return is_done
    finally:
        keeping.cancel()
        await to_its_end(_leave(store, run_id, token, keeping, copy))


async def _leave(store: Store, run_id: int, token: str, keeping: asyncio.Task[None], copy: Copy | None) -> None:
    await asyncio.wait([keeping])
    if copy is not None:
        await copy.remove()
    await store.write(scoring_runs.leave_writing, run_id, token)


async def _keep(store: Store, clock: Clock, run_id: int, token: str) -> None:
    while True:
        await clock.sleep(KEEP_EVERY_SEC)
        now_ms = clock.now_ms()
        with suppress(Retry):
            await store.write(scoring_runs.take_writing, run_id, token, now_ms + LOCK_MS, now_ms)


async def _put_scores(store: Store, clock: Clock, run: Run, copy: Copy) -> None:
    sheet = await open_file(copy.path, run.spec.layout, clock, work_folder=copy.folder, settle_sec=0)
    try:
        after_id = 0
        while found := await store.read(scoring_desk.scored, run.run_id, after_id, WRITE_MAX):
            await sheet.write([RowScores(one.row, one.identity, one.first_category, one.scores) for one in found])
            after_id = found[-1].result_id
        async for _ in sheet.flush(final=True):
            pass
    finally:
        await to_its_end(sheet.close())


async def _store_pieces(
    store: Store, objects: Objects, clock: Clock, run: Run, sheet_uuid: str, path: Path
) -> tuple[Piece, ...]:
    assert run.sheet_id is not None
    mark = secrets.token_hex(8)
    size_bytes = (await asyncio.to_thread(path.stat)).st_size
    pieces = tuple(
        Piece(part_key(run.tenant_id, sheet_uuid, number, mark), size)
        for number, size in enumerate(part_sizes(size_bytes))
    )
    await store.write(scoring_desk.announce, run.tenant_id, run.sheet_id, run.run_id, pieces, clock.now_ms())
    for number, piece in enumerate(pieces):
        await objects.put(piece.object_key, await asyncio.to_thread(_read, path, number))
    return pieces


def _read(path: Path, number: int) -> bytes:
    with path.open("rb") as file:
        file.seek(number * PART_BYTES)
        return file.read(PART_BYTES)
