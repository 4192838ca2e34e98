"""Files about a run for others to read: its chunks, what the sheet has, and a report. The store is what counts."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from camserver.base.records import fields_of
from camserver.domain import scoring_report
from camserver.domain.people import Principal, Role
from camserver.store import ScopedStore, Store, scoring_pages
from camserver.store.scoring_pages import PAGE_MAX
from camserver.store.scoring_runs import Run

PAGE = 5_000
NOTES_MAX = 1_000


async def export(store: Store, run: Run, folder: Path) -> list[Path]:
    """Writes chunk_meta.json, checkpoint.json and run_report.json; the files."""
    scoped = _scoped(store, run)
    chunks = [one async for one in _chunks(scoped, run)]
    blocks = [one async for one in _blocks(scoped, run)]
    documents = {
        "chunk_meta.json": chunks,
        "checkpoint.json": {"completed_blocks": blocks, "updated_at": scoring_report.moment(run.updated_at)},
        "run_report.json": await report(store, run),
    }
    return await asyncio.to_thread(_written, folder, documents)


def _written(folder: Path, documents: dict[str, Any]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, document in documents.items():
        draft = folder / f".{name}.part"
        draft.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
        files.append(draft.replace(folder / name))
    return files


async def report(store: Store, run: Run) -> dict[str, Any]:
    """What became of a run, in figures and with a note for each row that is not in the sheet."""
    scoped = _scoped(store, run)
    totals = (await scoped.read(scoring_pages.get, run.run_uuid)).totals
    states = await scoped.read(scoring_pages.states, run.run_id)
    notes = await scoped.read(scoring_pages.notes, run.run_id, NOTES_MAX)
    return scoring_report.report(
        fields_of(run), run.spec, fields_of(totals), states, [fields_of(one) for one in notes]
    )


def _scoped(store: Store, run: Run) -> ScopedStore:
    """Whoever has the database may read of a run what its tenant's people may."""
    return store.as_(Principal(run.tenant_id, None, Role.SYSTEM_ADMIN))


async def _chunks(store: ScopedStore, run: Run) -> AsyncIterator[dict[str, Any]]:
    after = 0
    while rows := await store.read(scoring_pages.chunks, run.run_id, after, PAGE_MAX):
        for one in rows:
            yield scoring_report.chunk_meta(fields_of(one))
        after = rows[-1].number


async def _blocks(store: ScopedStore, run: Run) -> AsyncIterator[str]:
    after = (0, 0)
    while rows := await store.read(scoring_pages.written_blocks, run.run_id, after, PAGE):
        for row, first_category in rows:
            yield scoring_report.block_name(row, first_category, run.spec.layout.block_size)
        after = rows[-1]
