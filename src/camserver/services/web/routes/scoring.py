"""Runs that score the rows of a sheet: how far they are, pausing, going on, cancelling, trying again what failed."""

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import Path, Query, Response

from camserver.base.records import fields_of
from camserver.domain import scoring_report
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.services.web.scoring_files import DOCUMENTS, attachment, filled_sheet
from camserver.services.web.streamed import Streamed
from camserver.store import scoring_pages, scoring_sheets
from camserver.store.scoring_pages import Overview
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
        runs=[shown_run(run) for run in found],
        next_before=str(found[-1].run.run_id) if len(found) == limit else None,
    )


@routes.get("/api/scoring/runs/{run_uuid}", Permission.MANAGE_DELIVERIES)
async def get_scoring_run(call: TheCall, run_uuid: RunUuid) -> api.ScoringRunDetail:
    """One run: how far it is, what it cost, and why rows are not in the sheet."""
    run = await call.store.read(scoring_pages.get, run_uuid)
    notes = await call.store.read(scoring_pages.notes, run.run.run_id)
    return api.ScoringRunDetail(
        **shown_run(run).model_dump(), notes=[api.ScoringNote.model_validate(asdict(note)) for note in notes]
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
    found = await call.store.read(scoring_pages.chunks, run.run.run_id, int(after or 0), limit)
    return api.ScoringChunkPage(
        chunks=[api.ScoringChunk.model_validate(asdict(chunk)) for chunk in found],
        next_after=str(found[-1].number) if len(found) == limit else None,
    )


@routes.post("/api/scoring/runs/{run_uuid}/control", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER)
async def control_scoring_run(call: TheCall, run_uuid: RunUuid, asked: api.ScoringControl) -> api.ScoringRun:
    """Pauses a run, lets it go on, cancels it, or makes what failed due again. What is in the sheet stays."""
    return shown_run(await call.store.write(scoring_pages.control, run_uuid, asked.wanted, call.address, call.now_ms))


@routes.get("/api/scoring/runs/{run_uuid}/result", Permission.MANAGE_DELIVERIES, response_class=Response)
async def download_scoring_result(call: TheCall, run_uuid: RunUuid) -> Response:
    """The uploaded sheet with its scores, as of when the run last paused or ended."""
    name, pieces = await call.store.read(scoring_sheets.result, run_uuid)
    headers = {**attachment(name), "Content-Length": str(sum(one.object_bytes for one in pieces))}
    return Streamed(filled_sheet(call, pieces), "application/octet-stream", headers)


@routes.get("/api/scoring/runs/{run_uuid}/files/{document}", Permission.MANAGE_DELIVERIES, response_class=Response)
async def download_scoring_document(
    call: TheCall,
    run_uuid: RunUuid,
    document: Literal["chunk_meta.json", "checkpoint.json", "run_report.json"],
) -> Response:
    """A run's chunks, what the sheet has of it (`row:block`), or its report."""
    run = await call.store.read(scoring_pages.get, run_uuid)
    return Streamed(DOCUMENTS[document](call, run), "application/json", attachment(document))


def shown_run(found: Overview) -> api.ScoringRun:
    run = found.run
    return api.ScoringRun.model_validate(
        {
            **{name: value for name, value in fields_of(run).items() if name in api.ScoringRun.model_fields},
            "status": run.status.value,
            "provider": run.spec.provider,
            "model": run.spec.model,
            "categories": [one.name for one in run.spec.categories],
            "brought": None if found.brought is None else fields_of(found.brought),
            "has_result": run.filled_at is not None and found.brought is not None,
            "totals": fields_of(found.totals),
            "metrics": scoring_report.metrics(fields_of(run), found.totals.done),
        }
    )
