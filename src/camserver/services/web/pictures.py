"""Pictures as answers: bytes of an object with what lets a browser keep them, as they are or with boxes drawn on."""

import hashlib
from collections.abc import Mapping, Sequence

from fastapi import Response

from camserver.base.errors import BadInput, NotFound
from camserver.base.log import get_logger
from camserver.domain.analysis import Box
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.calls import Call
from camserver.store import frame_pages
from camserver.store.cameras import PicturePlace

log = get_logger(__name__)

DIGEST_CHARS = 16

RESPONSES: dict[int | str, dict[str, object]] = {
    200: {"content": {"image/jpeg": {}}},
    304: {"description": "unchanged"},
}


async def picture_response(call: Call, place: PicturePlace, kind: Kind, headers: Mapping[str, str]) -> Response:
    """The picture, or 304 when the browser has it. A frame's picture never changes."""
    etag = f'"{place.frame_uuid}.{kind.value}"'
    sent = {"ETag": etag, "X-Captured-At": str(place.captured_at), **headers}
    if _names(call.request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=sent)
    return Response(await _read(call, place, kind), media_type="image/jpeg", headers=sent)


async def drawn_response(
    call: Call, place: PicturePlace, kind: Kind, headers: Mapping[str, str], *, with_words: bool
) -> Response:
    """The picture with what was found in it. That changes once, when the frame is analyzed, so browsers ask again."""
    boxes = await call.web.store.read(frame_pages.boxes_in, place, kind.value)
    etag = f'"{place.frame_uuid}.{kind.value}.{_digest(boxes, with_words)}"'
    sent = {"X-Captured-At": str(place.captured_at), **headers, "ETag": etag, "Cache-Control": "private, no-cache"}
    if _names(call.request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=sent)
    kept = await _read(call, place, kind)
    try:
        drawn = await call.web.drawings.draw(kept, boxes, with_words=with_words)
    except BadInput as error:
        log.error("a kept picture can't be read", frame=place.frame_uuid, kind=kind.value, cause=error.message)
        raise NotFound(
            f"the {kind} picture of frame {place.frame_uuid} can't be drawn on: {error.message}",
            reason="picture_unreadable",
            kind=kind.value,
        ) from None
    return Response(drawn, media_type="image/jpeg", headers=sent)


async def _read(call: Call, place: PicturePlace, kind: Kind) -> bytes:
    key = frame_key(place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, kind)
    try:
        return await call.web.objects.get(key)
    except NotFound:
        # The row is there and the object is not; `camserver db check` counts such rows.
        log.error("a picture is gone though its frame is there", frame=place.frame_uuid, kind=kind.value)
        raise NotFound(
            f"the {kind} picture of frame {place.frame_uuid} is gone", reason="picture_gone", kind=kind.value
        ) from None


def _digest(boxes: Sequence[Box], with_words: bool) -> str:
    return hashlib.sha256(repr((with_words, boxes)).encode()).hexdigest()[:DIGEST_CHARS]


def _names(if_none_match: str, etag: str) -> bool:
    """Proxies that compress mark a tag as weak; for pictures that makes no difference."""
    return etag in (part.strip().removeprefix("W/") for part in if_none_match[:1000].split(","))
