"""Pictures as answers: bytes of an object with what lets a browser keep them."""

from collections.abc import Mapping

from fastapi import Response

from camserver.base.errors import NotFound
from camserver.base.log import get_logger
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.calls import Call
from camserver.store.cameras import PicturePlace

log = get_logger(__name__)

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
    key = frame_key(place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, kind)
    try:
        data = await call.web.objects.get(key)
    except NotFound:
        # The row is there and the object is not; `camserver db check` counts such rows.
        log.error("a picture is gone though its frame is there", frame=place.frame_uuid, kind=kind.value)
        raise NotFound(
            f"the {kind} picture of frame {place.frame_uuid} is gone", reason="picture_gone", kind=kind.value
        ) from None
    return Response(data, media_type="image/jpeg", headers=sent)


def _names(if_none_match: str, etag: str) -> bool:
    """Proxies that compress mark a tag as weak; for pictures that makes no difference."""
    return etag in (part.strip().removeprefix("W/") for part in if_none_match[:1000].split(","))
