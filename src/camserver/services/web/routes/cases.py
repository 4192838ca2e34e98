"""Cases: opened, filled, noted upon, held, closed and exported by those who may investigate."""

from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query, Response

from camserver.base.errors import BadInput
from camserver.domain.cases import CaseState, ItemKind, checked_note, checked_title
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.case_export import CaseExport
from camserver.services.web.looks import note_case
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.services.web.streamed import Streamed
from camserver.store import case_items, cases
from camserver.store.cases import CaseChange, CaseItem, CaseSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
# Above every key there is.
_NEWEST = 2**62
ZIP = "application/zip"

CaseUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
ObjectUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
Key = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")]


@routes.get("/api/cases", Permission.INVESTIGATE)
async def list_cases(
    call: TheCall,
    state: api.CaseState | None = None,
    before: Key = None,
    limit: Annotated[int, Query(ge=1, le=cases.PAGE_MAX)] = PAGE_USUAL,
) -> api.CasePage:
    """Cases, newest first."""
    found = await call.store.read(cases.page, state, _NEWEST if before is None else int(before), limit)
    return api.CasePage(
        cases=[_shown(case) for case in found],
        next_before=str(found[-1].case_id) if len(found) == limit else None,
    )


@routes.post("/api/cases", Permission.INVESTIGATE, repeat=Repeat.ANSWER, status_code=201)
async def create_case(call: TheCall, asked: api.CaseAsked) -> api.Case:
    """Opens a case, with a first note if there is one."""
    title = checked_title(asked.title)
    note = None if asked.note is None else checked_note(asked.note)
    made = await call.store.write(cases.create, title, call.address, call.now_ms)
    if note is not None:
        await call.store.write(cases.add_note, made.case_uuid, note, call.address, call.now_ms)
        made = await call.store.read(cases.get, made.case_uuid)
    return _shown(made)


@routes.get("/api/cases/{case_uuid}", Permission.INVESTIGATE)
async def get_case(call: TheCall, case_uuid: CaseUuid) -> api.CaseDetail:
    """One case with its notes."""
    found = await call.store.read(cases.get, case_uuid)
    await note_case(call, case_uuid)
    notes = await call.store.read(cases.notes, found.case_id)
    shown = _shown(found).model_dump()
    return api.CaseDetail(**shown, note_list=[api.CaseNote.model_validate(asdict(note)) for note in notes])


@routes.patch("/api/cases/{case_uuid}", Permission.INVESTIGATE, repeat=Repeat.ANSWER)
async def change_case(call: TheCall, case_uuid: CaseUuid, asked: api.CaseChange) -> api.Case:
    """Renames, holds, closes or reopens a case. What a case lets go of stays for some days more."""
    wanted = CaseChange(
        title=None if asked.title is None else checked_title(asked.title),
        hold=asked.hold,
        state=None if asked.state is None else CaseState(asked.state),
    )
    if wanted == CaseChange():
        raise BadInput("nothing is to be changed; give title, state or hold", reason="case_unchanged")
    changed = await call.store.write(cases.change, case_uuid, wanted, call.address, call.now_ms)
    grace_days = call.web.settings.retention.case_grace_days
    after: int | None = 0
    while after is not None:
        after = await call.store.write(case_items.settle, changed.case_id, after, grace_days, call.now_ms)
    return _shown(changed)


@routes.get("/api/cases/{case_uuid}/items", Permission.INVESTIGATE)
async def list_case_items(
    call: TheCall,
    case_uuid: CaseUuid,
    after: Key = None,
    limit: Annotated[int, Query(ge=1, le=cases.PAGE_MAX)] = PAGE_USUAL,
) -> api.CaseItemPage:
    """What a case holds, in the order it was added, as far as the reader's sites go."""
    case_id = await call.store.read(cases.key_of, case_uuid)
    await note_case(call, case_uuid)
    found = await call.store.read(cases.items, case_id, int(after or 0), limit)
    return api.CaseItemPage(
        items=[_shown_item(item) for item in found],
        next_after=str(found[-1].item_id) if len(found) == limit else None,
    )


@routes.post("/api/cases/{case_uuid}/items", Permission.INVESTIGATE, repeat=Repeat.ANSWER)
async def add_case_item(call: TheCall, case_uuid: CaseUuid, asked: api.CaseItemAsked) -> api.CaseItemAdded:
    """Adds a frame, an event with all its frames and its clip, or a clip alone. It is not deleted from then on."""
    added = await call.store.write(
        case_items.add, case_uuid, ItemKind(asked.kind), asked.uuid, call.address, call.now_ms
    )
    return api.CaseItemAdded(added=added)


@routes.delete(
    "/api/cases/{case_uuid}/items/{kind}/{object_uuid}", Permission.INVESTIGATE, status_code=204, repeat=Repeat.ANSWER
)
async def remove_case_item(
    call: TheCall, case_uuid: CaseUuid, kind: api.CaseItemKind, object_uuid: ObjectUuid
) -> None:
    """Takes something out of a case. It stays for some days more."""
    grace_days = call.web.settings.retention.case_grace_days
    await call.store.write(
        case_items.remove, case_uuid, ItemKind(kind), object_uuid, grace_days, call.address, call.now_ms
    )


@routes.post("/api/cases/{case_uuid}/notes", Permission.INVESTIGATE, repeat=Repeat.ANSWER, status_code=201)
async def add_case_note(call: TheCall, case_uuid: CaseUuid, asked: api.CaseNoteAsked) -> api.CaseNote:
    """Adds a note. Notes are never changed."""
    note = await call.store.write(cases.add_note, case_uuid, checked_note(asked.body), call.address, call.now_ms)
    return api.CaseNote.model_validate(asdict(note))


@routes.get(
    "/api/cases/{case_uuid}/export",
    Permission.INVESTIGATE,
    response_class=Response,
    responses={200: {"content": {ZIP: {}}}},
)
async def export_case(call: TheCall, case_uuid: CaseUuid) -> Response:
    """The case as a ZIP: pictures, clips, notes, tables, a page to read, and a signed manifest of hashes."""
    with ExitStack() as held:
        held.enter_context(call.web.exports.one(call.principal))
        case = await call.store.write(cases.begin_export, case_uuid, call.address, call.now_ms)
        export = CaseExport(call, case)
        held.callback(export.close)
        name = f"case-{case.case_uuid}.zip"
        headers = {
            "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}",
            "Cache-Control": "no-store",
        }
        return Streamed(export.chunks(), ZIP, headers, held.pop_all().close)


def _shown(case: CaseSummary) -> api.Case:
    row = asdict(case)
    del row["case_id"]
    return api.Case.model_validate(row)


def _shown_item(item: CaseItem) -> api.CaseItem:
    row = asdict(item)
    del row["item_id"], row["timezone"]
    return api.CaseItem.model_validate(row)
