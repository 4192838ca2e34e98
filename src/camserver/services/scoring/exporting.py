"""Files about a run for others to read: its chunks, what the sheet has, and a report. The store is what counts."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from camserver.domain.scoring import ChunkPlan
from camserver.store import Store, scoring_chunks, scoring_journal, scoring_runs
from camserver.store.scoring_runs import Run

PAGE = 5_000
NOTES_MAX = 1_000
# What others know: a chunk that is being written is still running.
_SEEN_FROM_OUTSIDE = {"writing": "running"}


async def export(store: Store, run: Run, folder: Path) -> list[Path]:
    """Writes chunk_meta.json, checkpoint.json and run_report.json; the files."""
    chunks = [one async for one in _chunks(store, run.run_id)]
    blocks = [one async for one in _blocks(store, run)]
    documents = {
        "chunk_meta.json": chunks,
        "checkpoint.json": {"completed_blocks": blocks, "updated_at": _moment(run.updated_at)},
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
    totals = await store.read(scoring_runs.totals, run.run_id)
    states = await store.read(scoring_journal.states, run.run_id)
    notes = await store.read(scoring_journal.notes, run.run_id, NOTES_MAX)
    over_ms = run.finished_at or run.updated_at
    answered = states.get("written", 0) + states.get("scored", 0) + states.get("refused", 0) + states.get("moved", 0)
    hits = run.cache_hits + run.same_hits
    return {
        "run_uuid": run.run_uuid,
        "sheet": run.sheet,
        "status": run.status.value,
        "reason": run.reason,
        "message": run.message,
        "provider": run.spec.provider,
        "model": run.spec.model,
        "categories": len(run.spec.categories),
        "last_row": run.last_row,
        "passes": run.passes,
        "totals": asdict(totals),
        "results": states,
        "calls": run.calls,
        "refused_429": run.refused,
        "refused_share": round(run.refused / run.calls, 5) if run.calls else 0.0,
        "cache_hits": run.cache_hits,
        "same_hits": run.same_hits,
        "hit_share": round(hits / answered, 5) if answered else 0.0,
        "tokens_in": run.tokens_in,
        "tokens_out": run.tokens_out,
        "cost_usd": run.cost_micro / 1_000_000,
        "budget_usd": None if run.budget_micro is None else run.budget_micro / 1_000_000,
        "began_at": _moment(run.created_at),
        "seconds": round((over_ms - run.created_at) / 1000, 3),
        "notes": [asdict(one) for one in notes],
    }


async def _chunks(store: Store, run_id: int) -> AsyncIterator[dict[str, Any]]:
    after = 0
    while rows := await store.read(scoring_chunks.exported, run_id, after, PAGE):
        for one in rows:
            yield {
                "chunk_id": ChunkPlan(one.number, one.row_start, one.row_end).name,
                "row_start": one.row_start,
                "row_end": one.row_end,
                "status": _SEEN_FROM_OUTSIDE.get(one.status, one.status),
                "retry_count": one.retry_count,
                "last_error": one.last_error,
                "updated_at": _moment(one.updated_at),
            }
        after = rows[-1].number


async def _blocks(store: Store, run: Run) -> AsyncIterator[str]:
    """row:block, as people number rows and from block 0 on."""
    after = (0, 0)
    while rows := await store.read(scoring_journal.written_blocks, run.run_id, after, PAGE):
        for row, first_category in rows:
            yield f"{row}:{first_category // run.spec.layout.block_size}"
        after = rows[-1]


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
