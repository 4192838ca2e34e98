"""Who looked at evidence: written into the audit log before it is sent.

Evidence is what a case holds (any picture, clip or page of it), a clip, a full picture, and what is for
investigation only: such tags and what a language model said. The small pictures of walls and lists are not, unless a
case holds them.

Evidence is not shown when the look can't be noted: a log that has holes whenever the disk is full would prove
nothing, and filling the disk would be the way to look unseen. Ordinary pictures, lists and states are shown all the
same.

A person who opens the same thing again within ten minutes is one entry. What this process noted a moment ago is
remembered, so that a player that asks for part after part of a clip costs nothing.
"""

from collections.abc import Iterable

from camserver.domain.people import Permission
from camserver.domain.vocabulary import INVESTIGATION_ONLY, Vocabulary
from camserver.services.web.calls import Call
from camserver.services.web.labels import group_of
from camserver.store import audit, cases, tenant_export
from camserver.wire import api

FULL = "full"
CLIP = "clip"


async def note_media(call: Call, what: str, uuid: str, in_case: bool) -> None:
    """`what` is the kind of picture, or clip; `uuid` the frame's, of a clip its event's."""
    if not in_case and what not in (FULL, CLIP):
        return
    key = _key(call, "media", what, uuid, in_case)
    if call.web.looks.has(key, call.now_ms):
        return
    if in_case:
        await call.store.write(cases.note_look, what, uuid, call.address, call.now_ms)
    else:
        action, kind = ("clip_opened", "event") if what == CLIP else ("picture_opened", "frame")
        await call.store.write(audit.look, audit.Entry(action, call.now_ms, call.address, kind, uuid))
    call.web.looks.add(key, call.now_ms)


async def note_case(call: Call, case_uuid: str) -> None:
    await _note(call, "case_opened", "case", case_uuid)


async def note_investigation(
    call: Call, kind: str, uuid: str, tags: Iterable[api.Tag], has_memo: bool = False
) -> None:
    """What is for investigation only of an event or a frame. A page of many is one look, with no `uuid`."""
    if call.principal.may(Permission.INVESTIGATE) and (
        has_memo or any(tag.group == INVESTIGATION_ONLY for tag in tags)
    ):
        await _note(call, "investigation_opened" if uuid else "investigation_listed", kind, uuid)


async def note_listed(
    call: Call, kind: str, vocabulary: Vocabulary, tag_ids: Iterable[str], has_memo: bool = False, uuid: str = ""
) -> None:
    """The same, by the tags' ids."""
    if call.principal.may(Permission.INVESTIGATE) and (
        has_memo or any(group_of(vocabulary, tag_id) == INVESTIGATION_ONLY for tag_id in set(tag_ids))
    ):
        await _note(call, "investigation_opened" if uuid else "investigation_listed", kind, uuid)


async def note_link(call: Call, what: str, frame_uuid: str) -> None:
    """A signed link that was opened; by whom is not known."""
    key = (None, call.address, "link", what, frame_uuid)
    if not call.web.looks.has(key, call.now_ms):
        await call.web.store.write(audit.link_opened, frame_uuid, what, call.address, call.now_ms)
        call.web.looks.add(key, call.now_ms)


async def note_export(call: Call, tenant: str) -> None:
    """Rows or pictures of an export of a tenant, by name or uuid: each part can be asked for by itself."""
    key = _key(call, "export", tenant)
    if not call.web.looks.has(key, call.now_ms):
        await call.store.write_beyond(tenant_export.note, tenant, call.address, call.now_ms)
        call.web.looks.add(key, call.now_ms)


async def _note(call: Call, action: str, kind: str, uuid: str) -> None:
    key = _key(call, action, kind, uuid)
    if not call.web.looks.has(key, call.now_ms):
        await call.store.write(audit.look, audit.Entry(action, call.now_ms, call.address, kind, uuid))
        call.web.looks.add(key, call.now_ms)


def _key(call: Call, *what: object) -> tuple[object, ...]:
    return (call.principal.tenant_id, *audit.actor(call.principal), call.address, *what)
