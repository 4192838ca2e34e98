"""Clips as answers: bytes of an object, whole or the part that a player asks for.

Players want parts (`ranges`): some begin with the first two bytes and play nothing from a server that answers with
all of them.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Annotated

from fastapi import Query, Response
from starlette.responses import StreamingResponse

from camserver.base.errors import NotFound
from camserver.base.log import get_logger
from camserver.objects.local import Objects
from camserver.services.web import ranges
from camserver.services.web.calls import Call
from camserver.services.web.ranges import NoSuchPart, Part
from camserver.store.clips import ClipPlace
from camserver.wire.errands import MP4

log = get_logger(__name__)

RESPONSES: dict[int | str, dict[str, object]] = {
    200: {"content": {MP4: {}}},
    206: {"content": {MP4: {}}, "description": "the part that was asked for"},
    304: {"description": "unchanged"},
    416: {"description": "there is no such part"},
}
# In memory at a time, for each of those who download.
CHUNK_BYTES = 262_144


Playable = Annotated[
    bool, Query(description="Made anew as H.264 where not every browser plays it as the camera sent it (H.265).")
]


async def clip_response(
    call: Call, place: ClipPlace, headers: Mapping[str, str], *, playable: bool = False
) -> Response:
    """The clip, a part of it, or 304 when the browser has it. A clip never changes.

    `playable`: one that every browser plays; 503 when there is no room to make it now.
    """
    if playable and (made := await call.web.playable_films.made(place)) is not None:
        return _made_response(call, place, made, headers)
    etag = f'"{place.clip_uuid}"'
    sent = {"ETag": etag, "Accept-Ranges": "bytes", **headers}
    asked = call.request.headers
    if ranges.is_known(asked, etag):
        return Response(status_code=304, headers=sent)
    try:
        part = ranges.wanted_part(asked, etag, place.bytes)
    except NoSuchPart as refused:
        return ranges.no_such_part(refused, place.bytes, call.language)
    wanted = part or Part(0, place.bytes)
    sent["Content-Length"] = str(wanted.length)
    if part is not None:
        sent["Content-Range"] = ranges.content_range(part, place.bytes)
    # Before the answer begins: an object that is not there is still an error then.
    try:
        first = await call.web.objects.get_range(place.object_key, wanted.begin, min(CHUNK_BYTES, wanted.length))
    except NotFound:
        log.error("a clip is gone though its row is there", clip=place.clip_uuid)
        raise NotFound("this clip is gone", reason="picture_gone", kind="clip") from None
    return StreamingResponse(
        _chunks(call.web.objects, place.object_key, wanted, first),
        status_code=200 if part is None else 206,
        media_type=MP4,
        headers=sent,
    )


def _made_response(call: Call, place: ClipPlace, made: bytes, headers: Mapping[str, str]) -> Response:
    etag = f'"{place.clip_uuid}-h264"'
    sent = {"ETag": etag, **headers}
    asked = call.request.headers
    if ranges.is_known(asked, etag):
        return Response(status_code=304, headers=sent)
    return ranges.whole_or_part(asked, made, MP4, sent, call.language)


async def _chunks(objects: Objects, key: str, wanted: Part, first: bytes) -> AsyncIterator[bytes]:
    """Ends early when the object does; the server then breaks the connection off, and the reader knows."""
    yield first
    done = len(first)
    while 0 < done < wanted.length:
        chunk = await objects.get_range(key, wanted.begin + done, min(CHUNK_BYTES, wanted.length - done))
        if not chunk:
            return
        done += len(chunk)
        yield chunk
