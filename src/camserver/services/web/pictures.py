"""Pictures as answers: as they are kept, with boxes drawn on, or small; whole or a part.

They carry what lets a browser keep them for whoever may see them, and lets nobody on the way keep them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import Response

from camserver.base.errors import BadInput, NotFound
from camserver.base.log import get_logger
from camserver.domain.analysis import Box
from camserver.objects.keys import Kind, frame_key
from camserver.services.web import ranges
from camserver.services.web.calls import Call
from camserver.store import frame_pages
from camserver.store.cameras import PicturePlace
from camserver.store.frame_pages import THUMB

log = get_logger(__name__)

DIGEST_CHARS = 16
JPEG: Final = "image/jpeg"
# Kept by the browser for the one who is signed in there, by no cache on the way: another sign-in has another cookie,
# another program another token.
VARY: Final = {"Vary": "Cookie, Authorization"}
KEPT: Final = {"Cache-Control": "private, max-age=300", **VARY}
ASKED_AGAIN: Final = {"Cache-Control": "private, no-cache", **VARY}

RESPONSES: dict[int | str, dict[str, object]] = {
    200: {"content": {JPEG: {}}},
    206: {"content": {JPEG: {}}, "description": "the part that was asked for"},
    304: {"description": "unchanged"},
    416: {"description": "there is no such part"},
}


def _etag(frame_uuid: str, kind: str) -> str:
    return f'"{frame_uuid}.{kind}"'


async def picture_response(call: Call, place: PicturePlace, kind: str, headers: Mapping[str, str]) -> Response:
    """The picture (`kind` infer, full or thumb), or 304 when the browser has it. A frame's picture never changes."""
    etag = _etag(place.frame_uuid, kind)
    sent = {"ETag": etag, "X-Captured-At": str(place.captured_at), **headers}
    asked = call.request.headers
    if ranges.is_known(asked, etag):
        return Response(status_code=304, headers=sent)
    content = await (_thumb(call, place) if kind == THUMB else _read(call, place, Kind(kind)))
    return ranges.whole_or_part(asked, content, JPEG, sent, call.language)


async def drawn_response(
    call: Call, place: PicturePlace, kind: str, headers: Mapping[str, str], *, with_words: bool
) -> Response:
    """The picture with what was found in it. That changes once, when the frame is analyzed, so browsers ask again."""
    if kind == THUMB:
        raise BadInput("nothing is drawn on a small picture; leave `boxes` out", reason="no_thumb_boxes")
    boxes = await call.web.store.read(frame_pages.boxes_in, place, kind)
    etag = f'"{place.frame_uuid}.{kind}.{_digest(boxes, with_words)}"'
    sent = {"X-Captured-At": str(place.captured_at), **headers, "ETag": etag, "Cache-Control": "private, no-cache"}
    asked = call.request.headers
    if ranges.is_known(asked, etag):
        return Response(status_code=304, headers=sent)
    kept = await _read(call, place, Kind(kind))
    try:
        drawn = await call.web.drawings.draw(kept, boxes, with_words=with_words)
    except BadInput as error:
        raise _unreadable(place, kind, error) from None
    return ranges.whole_or_part(asked, drawn, JPEG, sent, call.language)


async def _thumb(call: Call, place: PicturePlace) -> bytes:
    found = call.web.thumbnails.find(place.frame_uuid)
    if found is not None:
        return found
    try:
        return await call.web.thumbnails.make(place.frame_uuid, lambda: _read(call, place, Kind(place.kept)))
    except BadInput as error:
        raise _unreadable(place, place.kept, error) from None


def _unreadable(place: PicturePlace, kind: str, error: BadInput) -> NotFound:
    log.error("a kept picture can't be read", frame=place.frame_uuid, kind=kind, cause=error.message)
    return NotFound(
        f"the {kind} picture of frame {place.frame_uuid} can't be read: {error.message}",
        reason="picture_unreadable",
        kind=kind,
    )


def _key(place: PicturePlace, kind: Kind) -> str:
    return frame_key(place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, kind)


async def _read(call: Call, place: PicturePlace, kind: Kind) -> bytes:
    """Kept for a while: a new picture is asked for by every browser that shows its camera."""
    recent, key = call.web.recent_pictures, _key(place, kind)
    found = recent.find(key)
    if found is not None:
        return found
    try:
        found = await call.web.objects.get(key)
    except NotFound:
        # The row is there and the object is not; `camserver db check` counts such rows.
        log.error("a picture is gone though its frame is there", frame=place.frame_uuid, kind=kind.value)
        raise NotFound(
            f"the {kind} picture of frame {place.frame_uuid} is gone", reason="picture_gone", kind=kind.value
        ) from None
    recent.keep(key, found)
    return found


def _digest(boxes: Sequence[Box], with_words: bool) -> str:
    return hashlib.sha256(repr((with_words, boxes)).encode()).hexdigest()[:DIGEST_CHARS]
