"""RTSP messages (RFC 2326): requests read with bounds, answers written."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from camserver.base.errors import BadInput

VERSION = "RTSP/1.0"
LINE_MAX_BYTES = 4096
HEADERS_MAX = 64
BODY_MAX_BYTES = 4096
REASONS = {
    451: "Parameter Not Understood",
    453: "Not Enough Bandwidth",
    454: "Session Not Found",
    455: "Method Not Valid in This State",
    461: "Unsupported Transport",
}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]  # names in lower case

    @property
    def cseq(self) -> str:
        return self.headers.get("cseq", "0")


async def read_request(
    reader: asyncio.StreamReader, on_report: Callable[[bytes], None] = lambda report: None
) -> Request | None:
    """The next request; None at the end. `on_report` hears what a client sends about its reception (RTCP)."""
    while True:
        first = await reader.read(1)
        if not first:
            return None
        if first == b"$":
            head = await reader.readexactly(3)
            on_report(await reader.readexactly(int.from_bytes(head[1:], "big")))
        elif first not in b"\r\n":
            return await _read_text(first, reader)


async def _read_text(first: bytes, reader: asyncio.StreamReader) -> Request:
    parts = (first.decode("latin-1") + await _line(reader)).split(" ")
    if len(parts) != 3 or parts[2] != VERSION:
        raise BadInput("that is no RTSP request")
    headers: dict[str, str] = {}
    while line := await _line(reader):
        name, colon, value = line.partition(":")
        if not colon or len(headers) >= HEADERS_MAX:
            raise BadInput("the headers of a request are malformed or too many")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_MAX_BYTES:
        raise BadInput("the body of a request is too long")
    await reader.readexactly(int(length))
    return Request(parts[0], parts[1], headers)


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise BadInput("a line of a request is too long") from None
    return line.decode("latin-1").rstrip("\r\n")


def answer(request: Request, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    lines = [f"{VERSION} {status} {REASONS.get(status) or HTTPStatus(status).phrase}", f"CSeq: {request.cseq}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
