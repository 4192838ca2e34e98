"""Runs that score the rows of a sheet: how far they are, pausing, going on, cancelling, trying again what failed."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import scoring_pages
from camserver.store.scoring_pages import RunSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
# Above every key there is.
_NEWEST = 2**62

RunUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
Key = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")]


@routes.get("/api/scoring/runs", Permission.MANAGE_DELIVERIES)
async def list_scoring_runs(
    call: TheCall,
    before: Key = None,
    limit: Annotated[int, Query(ge=1, le=scoring_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.ScoringRunPage:
    """Runs, newest first."""
    found = await call.store.read(scoring_pages.page, _NEWEST if before is None else int(before), limit)
    return api.ScoringRunPage(
        runs=[_shown(run) for run in found],
        next_before=str(found[-1].run_id) if len(found) == limit else None,
    )


@routes.get("/api/scoring/runs/{run_uuid}", Permission.MANAGE_DELIVERIES)
async def get_scoring_run(call: TheCall, run_uuid: RunUuid) -> api.ScoringRunDetail:
    """One run: how far it is, what it cost, and why rows are not in the sheet."""
    run = await call.store.read(scoring_pages.get, run_uuid)
    notes = await call.store.read(scoring_pages.notes, run.run_id)
    return api.ScoringRunDetail(
        **_shown(run).model_dump(), notes=[api.ScoringNote.model_validate(asdict(note)) for note in notes]
    )


@routes.get("/api/scoring/runs/{run_uuid}/chunks", Permission.MANAGE_DELIVERIES)
async def list_scoring_chunks(
    call: TheCall,
    run_uuid: RunUuid,
    after: Key = None,
    limit: Annotated[int, Query(ge=1, le=scoring_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.ScoringChunkPage:
    """The stretches of rows that a run is done in, in their order."""
    run = await call.store.read(scoring_pages.get, run_uuid)
    found = await call.store.read(scoring_pages.chunks, run.run_id, int(after or 0), limit)
    return api.ScoringChunkPage(
        chunks=[api.ScoringChunk.model_validate(asdict(chunk)) for chunk in found],
        next_after=str(found[-1].number) if len(found) == limit else None,
    )


@routes.post("/api/scoring/runs/{run_uuid}/control", Permission.MANAGE_DELIVERIES)
async def control_scoring_run(call: TheCall, run_uuid: RunUuid, asked: api.ScoringControl) -> api.ScoringRun:
    """Pauses a run, lets it go on, cancels it, or makes what failed due again. What is in the sheet stays."""
    return _shown(await call.store.write(scoring_pages.control, run_uuid, asked.wanted, call.address, call.now_ms))


def _shown(run: RunSummary) -> api.ScoringRun:
    shown = asdict(run)
    del shown["run_id"]
    return api.ScoringRun.model_validate(shown)
