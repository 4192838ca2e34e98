"""Sheets that people bring to have them scored: uploaded, linked or made of events, looked at, scored, removed."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

import uuid_utils
from fastapi import Path, Query, Request, Response

from camserver.base.errors import BadInput, Conflict, Forbidden
from camserver.clients.sheets.google_api import google_address
from camserver.clients.sheets.opening import ENDINGS
from camserver.domain.people import Permission
from camserver.domain.scoring import plan_chunks
from camserver.domain.scoring_sheets import (
    PART_BYTES,
    SheetKind,
    SheetWishes,
    event_categories,
    parse_condition,
)
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import check_times
from camserver.services.web.routes.scoring import shown_run
from camserver.services.web.routing import Routes
from camserver.store import event_search, scoring_pages, scoring_sheets
from camserver.store.event_search import SearchFilter
from camserver.store.scoring_sheets import NewSheet, RunWanted, SheetRow
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
# Above every key there is.
_NEWEST = 2**62
# Files of the server's folder that are offered.
FILES_MAX = 500

SheetUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
Key = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")]
_BINARY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@routes.get("/api/scoring", Permission.MANAGE_DELIVERIES)
async def get_scoring_offer(call: TheCall) -> api.ScoringOffer:
    """Whether sheets can be scored here, by which model, and how large they may be."""
    llm, policy = call.web.settings.llm, call.web.settings.scoring
    return api.ScoringOffer(
        is_configured=llm.is_configured,
        provider=llm.provider,
        model=policy.model or llm.model,
        upload_max_bytes=policy.upload_max_bytes,
        part_bytes=PART_BYTES,
        kept_max_bytes=policy.kept_max_bytes,
        endings=list(ENDINGS),
        has_google=call.web.settings.drive.credentials_file is not None and _is_home(call),
        files=await asyncio.to_thread(_files, policy.folder) if _may_use_folder(call) else [],
        running=await call.store.read(scoring_pages.running),
    )


@routes.get("/api/scoring/sheets", Permission.MANAGE_DELIVERIES)
async def list_scoring_sheets(
    call: TheCall,
    before: Key = None,
    limit: Annotated[int, Query(ge=1, le=scoring_sheets.PAGE_MAX)] = PAGE_USUAL,
) -> api.ScoringSheetPage:
    """Sheets, newest first."""
    found = await call.store.read(scoring_sheets.page, _NEWEST if before is None else int(before), limit)
    return api.ScoringSheetPage(
        sheets=[_shown(one) for one in found],
        next_before=str(found[-1].sheet_id) if len(found) == limit else None,
    )


@routes.post("/api/scoring/sheets", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=201)
async def add_scoring_sheet(call: TheCall, asked: api.ScoringSheetAsked) -> api.ScoringSheet:
    """Announces a file that is sent in pieces, or names a sheet that stays where it is. Once all of it is there it is
    looked at: see its `state`."""
    _require_configured(call)
    kind = SheetKind(asked.kind)
    await _check_sheet(call, kind, asked)
    new = NewSheet(
        str(uuid_utils.uuid7()), kind, asked.name, _wishes(asked), asked.size_bytes if kind is SheetKind.FILE else 0
    )
    return await _added(call, new)


@routes.post("/api/scoring/event-sheets", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=201)
async def add_scoring_events(call: TheCall, asked: api.ScoringEventsAsked) -> api.ScoringSheet:
    """The events of a search as a sheet, the newest ones. Their scores are found by searches afterwards."""
    _require_configured(call)
    categories = event_categories({one.name: one.definition for one in asked.categories})
    if len(categories) < len(asked.categories):
        raise BadInput("categories need different names", reason="score_category")
    search = asked.search
    check_times(search.from_ms, search.to_ms)
    wanted = SearchFilter(
        from_ms=search.from_ms,
        to_ms=search.to_ms,
        sites=tuple(search.sites),
        camera_ids=tuple(search.camera_ids),
        primary_events=tuple(search.primary_events),
        tags=tuple(search.tags),
        severity_min=search.severity_min,
        unknown=search.unknown,
        case_uuid=search.case,
        text=search.text,
        scores=tuple(parse_condition(one) for one in search.scores),
    )
    event_ids: list[int] = []
    before: str | None = None
    while len(event_ids) < asked.most:
        page = await call.store.read(event_search.keys, wanted, before, asked.most - len(event_ids))
        event_ids += page.event_ids
        before = page.next_before
        if before is None:
            break
    wishes = SheetWishes({}, asked.model, asked.form, asked.instructions, categories)
    new = NewSheet(str(uuid_utils.uuid7()), SheetKind.EVENTS, asked.name, wishes, 0, tuple(event_ids))
    return await _added(call, new)


@routes.get("/api/scoring/sheets/{sheet_uuid}", Permission.MANAGE_DELIVERIES)
async def get_scoring_sheet(call: TheCall, sheet_uuid: SheetUuid) -> api.ScoringSheet:
    """One sheet: whether it is fit, and what scoring it would take."""
    return _shown(await call.store.read(scoring_sheets.get, sheet_uuid))


@routes.patch("/api/scoring/sheets/{sheet_uuid}", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER)
async def change_scoring_sheet(call: TheCall, sheet_uuid: SheetUuid, asked: api.ScoringWishes) -> api.ScoringSheet:
    """Asks for another layout, model or form; the sheet is looked at again."""
    held = await call.store.read(scoring_sheets.get, sheet_uuid)
    wishes = _wishes(asked, held.wishes)
    return _shown(await call.store.write(scoring_sheets.change, sheet_uuid, wishes, call.address, call.now_ms))


@routes.post("/api/scoring/sheets/{sheet_uuid}/parts/{number}", Permission.MANAGE_DELIVERIES, openapi_extra=_BINARY)
async def send_scoring_part(
    call: TheCall, sheet_uuid: SheetUuid, number: Annotated[int, Path(ge=0, le=999_999)]
) -> api.ScoringSheet:
    """A piece of a file, from 0 on, in order: each of `part_bytes`, the last of what is left. One may be repeated."""
    assert isinstance(call.request, Request)  # of a WebSocket there is no body
    data = await call.request.body()
    place = await call.store.write(scoring_sheets.claim_part, sheet_uuid, number, len(data), call.now_ms)
    if place.is_kept:
        if await call.web.objects.get(place.object_key) != data:
            raise scoring_sheets.all_here()
        return _shown(await call.store.read(scoring_sheets.get, sheet_uuid))
    await call.web.objects.put(place.object_key, data)
    return _shown(await call.store.write(scoring_sheets.note_part, sheet_uuid, place.object_key, call.now_ms))


@routes.delete(
    "/api/scoring/sheets/{sheet_uuid}", Permission.MANAGE_DELIVERIES, status_code=204, repeat=Repeat.ANSWER
)
async def remove_scoring_sheet(call: TheCall, sheet_uuid: SheetUuid) -> Response:
    """Removes a sheet with its files; a run of it that is not over is cancelled. Scores of events stay."""
    await call.store.write(scoring_sheets.remove, sheet_uuid, call.address, call.now_ms)
    return Response(status_code=204)


@routes.post(
    "/api/scoring/sheets/{sheet_uuid}/runs", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=201
)
async def begin_scoring_run(call: TheCall, sheet_uuid: SheetUuid, asked: api.ScoringRunAsked) -> api.ScoringRun:
    """Scores a sheet that was looked at and is fit. Equal questions are asked once, and answered ones not again."""
    sheet = await call.store.read(scoring_sheets.get, sheet_uuid)
    _require_configured(call)
    chunks: tuple[Any, ...] = ()
    if sheet.look is not None and sheet.spec is not None:
        first = sheet.spec.layout.first_data_row
        chunks = tuple(plan_chunks(first, sheet.look["check"]["last_row"], call.web.settings.scoring.chunk_rows))
    wanted = RunWanted(str(uuid_utils.uuid7()), sheet_uuid, _address(sheet), asked.budget_micro, chunks)
    return shown_run(await call.store.write(scoring_sheets.begin_run, wanted, call.address, call.now_ms))


# ---------------------------------------------------------------------------------------------------------------
# What is allowed
# ---------------------------------------------------------------------------------------------------------------


def _require_configured(call: Call) -> None:
    if not call.web.settings.llm.is_configured:
        raise Conflict(
            "no language model is configured; set provider and key in [llm], see docs/guide/scoring.md",
            reason="scoring_off",
        )


async def _check_sheet(call: Call, kind: SheetKind, asked: api.ScoringSheetAsked) -> None:
    if kind is SheetKind.GOOGLE:
        if not _is_home(call):
            # The key is the installation's: whatever others shared with it would be open to every tenant.
            raise Forbidden(
                "Google Sheets are opened with this installation's key, which is for the first tenant; upload a file",
                reason="scoring_google_home",
            )
        if call.web.settings.drive.credentials_file is None or google_address(asked.name) is None:
            raise BadInput(
                "this is no link to Google Sheets, or no key for it is configured (drive.credentials_file)",
                reason="scoring_no_google",
            )
        return
    if not asked.name.lower().endswith(ENDINGS) or "/" in asked.name or not asked.name.isprintable():
        raise BadInput(
            f"the name of a sheet must end with one of {', '.join(ENDINGS)}",
            reason="scoring_file_kind",
            endings=", ".join(ENDINGS),
        )
    if kind is SheetKind.FOLDER:
        if not _may_use_folder(call):
            raise Forbidden(
                "the server's folder is for the first tenant, if it is set at all", reason="scoring_folder"
            )
        if asked.name not in await asyncio.to_thread(_files, call.web.settings.scoring.folder):
            raise BadInput(f"there is no {asked.name} in the server's folder", reason="scoring_no_file")
        return
    most = call.web.settings.scoring.upload_max_bytes
    if not 1 <= asked.size_bytes <= most:
        raise BadInput(f"a sheet may have 1 to {most} bytes", reason="scoring_size", bytes_max=most)


def _may_use_folder(call: Call) -> bool:
    return bool(call.web.settings.scoring.folder) and _is_home(call)


def _is_home(call: Call) -> bool:
    return call.principal.tenant_id == call.web.home.tenant_id


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(FilePath(folder)) as entries:
            found = [one.name for one in entries if one.name.lower().endswith(ENDINGS) and one.is_file()]
    except OSError:
        return []  # not there, or not readable: nothing can be offered
    return sorted(one for one in found if not one.startswith((".", "~$")))[:FILES_MAX]


def _wishes(asked: api.ScoringWishes, held: SheetWishes | None = None) -> SheetWishes:
    """What is left out of a change stays."""
    given = asked.model_fields_set if held is not None else {"layout", "model", "form", "instructions"}
    base = held or SheetWishes()
    layout: Mapping[str, object] = base.layout
    if "layout" in given:
        layout = {} if asked.layout is None else asked.layout.model_dump(exclude_none=True)
    return SheetWishes(
        layout,
        asked.model if "model" in given else base.model,
        asked.form if "form" in given else base.form,
        asked.instructions if "instructions" in given else base.instructions,
        base.categories,
    )


def _address(sheet: SheetRow) -> str:
    """By which runs of the same sheet are known, and people recognize it."""
    return sheet.name if sheet.kind is SheetKind.GOOGLE else f"{sheet.kind}:{sheet.sheet_uuid}"


async def _added(call: Call, new: NewSheet) -> api.ScoringSheet:
    most = call.web.settings.scoring.kept_max_bytes
    return _shown(await call.store.write(scoring_sheets.add, new, most, call.address, call.now_ms))


def _shown(sheet: SheetRow) -> api.ScoringSheet:
    look = sheet.look or {"check": None, "estimate": None, "is_priced": False}
    categories = sheet.spec.categories if sheet.spec is not None else sheet.wishes.categories
    return api.ScoringSheet.model_validate(
        {
            "sheet_uuid": sheet.sheet_uuid,
            "kind": sheet.kind.value,
            "name": sheet.name,
            "state": sheet.state.value,
            "message": sheet.message,
            "model": None if sheet.spec is None else sheet.spec.model,
            "categories": [one.name for one in categories],
            **look,
            "size_bytes": sheet.size_bytes,
            "received_bytes": sheet.received_bytes,
            "created_at": sheet.created_at,
            "updated_at": sheet.updated_at,
        }
    )
