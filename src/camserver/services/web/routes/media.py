"""Signed media links (decision 29): made by somebody signed in, opened by whoever has the address."""

from typing import Annotated

from fastapi import Query, Response

from camserver.base.errors import BadInput, Forbidden
from camserver.domain import links
from camserver.domain.links import LinkKeys, Signature
from camserver.domain.people import Permission
from camserver.domain.shares import Sharing, link_ttl_sec
from camserver.objects.keys import Kind
from camserver.services.web import films, pictures
from camserver.services.web.access import Gate
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.looks import note_link
from camserver.services.web.routing import Routes
from camserver.services.web.throttle import LINKS, wrong_links_of
from camserver.store import archive_links, audit, clips, frame_pages, media_links
from camserver.store.media_links import CLIP
from camserver.wire import api

routes = Routes()

# A search engine that is given a link must not keep what it opens. Pages of other sites that were given one show it:
# whoever has it may see that, whatever else their browser knows.
_HEADERS = {
    "Cache-Control": "private, max-age=60",
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
_OBJECTS = (*(kind.value for kind in Kind), frame_pages.THUMB, CLIP)

_RESPONSES: dict[int | str, dict[str, object]] = {
    **films.RESPONSES,
    200: {"content": {"image/jpeg": {}, "video/mp4": {}}},
}

# Unbounded in form: whatever is wrong with a link is the same answer.
Part = Annotated[str, Query(max_length=200)]


@routes.post("/api/media/link", Permission.READ)
async def make_link(call: TheCall, asked: api.MediaLinkAsked) -> api.MediaLink:
    """A link that opens one picture, the clip of the frame's event, or a copy at an archive, without signing in.

    It works until it expires and can't be revoked: `ttl_sec` is at most 7 days, and one hour for those who may not
    share (`media.shares`). What belongs to a case has none.
    """
    principal = call.principal
    maker = f"{principal.tenant_id} {principal.user_id} {principal.token_id}"
    call.web.links_made.count(maker, call.web.clock.boot_ms(), LINKS)
    media = call.web.settings.media
    ttl_sec = link_ttl_sec(principal, Sharing(media.shares), asked.ttl_sec, media.link_ttl_sec)
    exp_unix = call.now_ms // 1000 + ttl_sec
    await call.store.read(media_links.check, asked.frame_uuid, asked.kind, asked.archive_file_id)
    details = {"kind": "copy" if asked.archive_file_id is not None else asked.kind, "expires_at": exp_unix * 1000}
    entry = audit.Entry("media_link_made", call.now_ms, call.address, "frame", asked.frame_uuid, details)
    await call.web.notes.write(principal, entry)
    signature = links.sign(_keys(call), asked.frame_uuid, asked.archive_file_id or asked.kind, exp_unix)
    url = f"{call.web.public_url}/media/frame/{asked.frame_uuid}?{signature.query}"
    return api.MediaLink(url=url, expires_at=exp_unix * 1000)


@routes.get("/media/frame/{frame_uuid}", Gate.PUBLIC, response_class=Response, responses=_RESPONSES)
async def open_link(
    call: TheCall,
    frame_uuid: str,
    exp: Part = "",
    sig: Part = "",
    kid: Part = "",
    boxes: Annotated[bool, Query(description="Draw where something was found on it.")] = False,
) -> Response:
    """The picture, clip or copy of a signed link; 403 when the link is not whole, not ours or over.

    Whoever has a link may see where something was found, but not what it was called.
    """
    given = Signature(exp, sig, kid)
    # Before anything is read: without a signature nobody learns whether there is such a frame.
    try:
        kind = links.opened(_keys(call), frame_uuid, given, _OBJECTS, call.now_ms)
    except Forbidden as refused:
        # A link of ours that is over is no guess: it is not counted, and no row is read for it.
        if _is_over(refused):
            raise
        # What is wrong is counted before it is looked up any further; a right link to what is kept here is never held
        # up by it, one to a copy at an archive, which only its row tells from a wrong one, may be.
        wrong = wrong_links_of(call.address)
        call.web.throttle.count_try(wrong, call.web.clock.boot_ms(), LINKS)
        if not links.is_of(_keys(call), given):
            raise
        return await _archived(call, frame_uuid, given)
    if kind == CLIP:
        if boxes:
            raise BadInput("a clip has no boxes; leave `boxes` out", reason="no_clip_boxes")
        place = await call.web.store.read(clips.linked, frame_uuid)
        await note_link(call, kind, frame_uuid)
        return await films.clip_response(call, place, _HEADERS)
    picture = await call.web.store.read(frame_pages.linked_picture, frame_uuid, kind)
    await note_link(call, kind, frame_uuid)
    if boxes:
        return await pictures.drawn_response(call, picture, kind, _HEADERS, with_words=False)
    return await pictures.picture_response(call, picture, kind, _HEADERS)


async def _archived(call: Call, frame_uuid: str, given: Signature) -> Response:
    """The copy at an archive that the link was signed for; the same answer as before when it is none of them."""
    copies = await call.web.store.read(archive_links.linked, frame_uuid)
    ids = [one.archive_file_id for one in copies]
    counted = wrong_links_of(call.address)
    try:
        opened = links.opened(_keys(call), frame_uuid, given, ids, call.now_ms)
    except Forbidden as refused:
        if _is_over(refused):
            call.web.throttle.forgive(counted)
        raise
    await note_link(call, "copy", frame_uuid)
    call.web.throttle.forgive(counted)
    copy = copies[ids.index(opened)]
    return await call.web.archive_files.response(call.request.headers, copy, _HEADERS, call.language)


def _is_over(refused: Forbidden) -> bool:
    """Whether a link was refused for its time alone: its signature was right."""
    return refused.details.get("reason") == "link_expired"


def _keys(call: Call) -> LinkKeys:
    previous = call.web.secrets.media_hmac_previous
    return LinkKeys(
        call.web.secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode()
    )
