"""Clips as answers: bytes of an object, whole or the part that a player asks for.

Players want parts (one `Range` at a time): some begin with the first two bytes and play nothing from a server that
answers with all of them. Several parts in one request are answered with the whole, as anybody may.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from fastapi import Response
from starlette.responses import StreamingResponse

from camserver.base.errors import NotFound, Reject
from camserver.base.log import get_logger
from camserver.objects.local import Objects
from camserver.services.web.answers import error_response
from camserver.services.web.calls import Call
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
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class NoSuchPart(Reject):
    code = "no_such_part"
    http_status = 416


@dataclass(frozen=True, slots=True)
class Part:
    begin: int
    length: int


def asked_part(header: str, size_bytes: int) -> Part | None:
    """What a Range header asks for; None: the whole. NoSuchPart when the object ends before it."""
    found = _RANGE.fullmatch(header.strip().lower())
    if found is None or found.group(0) == "bytes=-":
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size_bytes)
        begin = size_bytes - length
    else:
        begin = int(first)
        if last and int(last) < begin:
            return None
        length = min(int(last) + 1 if last else size_bytes, size_bytes) - begin
    if length <= 0:
        raise NoSuchPart(f"the clip has {size_bytes} bytes, and none there", reason="bad_range", bytes=size_bytes)
    return Part(begin, length)


async def clip_response(call: Call, place: ClipPlace, headers: Mapping[str, str]) -> Response:
    """The clip, a part of it, or 304 when the browser has it. A clip never changes."""
    etag = f'"{place.clip_uuid}"'
    sent = {"ETag": etag, "Accept-Ranges": "bytes", **headers}
    asked = call.request.headers
    if etag in (part.strip().removeprefix("W/") for part in asked.get("if-none-match", "")[:1000].split(",")):
        return Response(status_code=304, headers=sent)
    part = None
    if asked.get("if-range", etag) == etag:
        try:
            part = asked_part(asked.get("range", ""), place.bytes)
        except NoSuchPart as refused:
            response = error_response(refused, call.language)
            response.headers["Content-Range"] = f"bytes */{place.bytes}"
            return response
    wanted = part or Part(0, place.bytes)
    sent["Content-Length"] = str(wanted.length)
    if part is not None:
        sent["Content-Range"] = f"bytes {part.begin}-{part.begin + part.length - 1}/{place.bytes}"
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
