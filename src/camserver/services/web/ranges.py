"""What a reader already has, and which part of it they ask for: `If-None-Match`, `Range`, `If-Range`.

One part at a time. Several parts in one request are answered with the whole, as anybody may.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Response
from starlette.datastructures import Headers

from camserver.base.errors import Reject
from camserver.services.web.answers import error_response
from camserver.services.web.messages import Language

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
HEADER_READ_MAX_CHARS = 1000


class NoSuchPart(Reject):
    code = "no_such_part"
    http_status = 416


@dataclass(frozen=True, slots=True)
class Part:
    begin: int
    length: int


def is_known(headers: Headers, etag: str) -> bool:
    """Proxies that compress mark a tag as weak; for media that makes no difference. `*` knows whatever there is."""
    named = [part.strip() for part in headers.get("if-none-match", "")[:HEADER_READ_MAX_CHARS].split(",")]
    return named == ["*"] or etag in (part.removeprefix("W/") for part in named)


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
        raise NoSuchPart(f"it has {size_bytes} bytes, and none there", reason="bad_range", bytes=size_bytes)
    return Part(begin, length)


def wanted_part(headers: Headers, etag: str, size_bytes: int) -> Part | None:
    """The part that is asked for of what has this tag; None: the whole."""
    if headers.get("if-range", etag) != etag:
        return None
    return asked_part(headers.get("range", ""), size_bytes)


def content_range(part: Part, size_bytes: int) -> str:
    return f"bytes {part.begin}-{part.begin + part.length - 1}/{size_bytes}"


def no_such_part(refused: NoSuchPart, size_bytes: int, language: Language) -> Response:
    response = error_response(refused, language)
    response.headers["Content-Range"] = f"bytes */{size_bytes}"
    return response


def whole_or_part(
    asked: Headers, content: bytes, media_type: str, sent: Mapping[str, str], language: Language
) -> Response:
    """The answer with something that is in memory; `sent` holds its ETag."""
    headers = {**sent, "Accept-Ranges": "bytes"}
    try:
        part = wanted_part(asked, sent["ETag"], len(content))
    except NoSuchPart as refused:
        return no_such_part(refused, len(content), language)
    if part is None:
        return Response(content, media_type=media_type, headers=headers)
    headers["Content-Range"] = content_range(part, len(content))
    return Response(
        content[part.begin : part.begin + part.length], status_code=206, media_type=media_type, headers=headers
    )
