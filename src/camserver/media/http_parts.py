"""The first picture out of an endless answer of pictures (multipart/x-mixed-replace, "MJPEG over HTTP")."""

from email.message import Message

import aiohttp

from camserver.base.errors import BadInput

LINES_MAX = 64
CHUNK_BYTES = 65_536


async def first_picture(content: aiohttp.StreamReader, content_type: str, max_bytes: int) -> bytes:
    """BadInput when it is no such answer, or a picture is too large."""
    boundary = _boundary(content_type)
    await _skip_to(content, boundary)
    length = await _length(content)
    if length is None:
        return await _until(content, b"\r\n--" + boundary, max_bytes)
    if not 0 < length <= max_bytes:
        raise BadInput("a picture of the camera is empty or too large")
    return await content.readexactly(length)


def _boundary(content_type: str) -> bytes:
    header = Message()
    header["Content-Type"] = content_type
    # Some write it with its dashes, which belong to the lines that show it.
    boundary = (header.get_boundary() or "").removeprefix("--")
    if not 0 < len(boundary) <= 200:
        raise BadInput("the camera's answer names no boundary between its pictures")
    return boundary.encode()


async def _skip_to(content: aiohttp.StreamReader, boundary: bytes) -> None:
    for _ in range(LINES_MAX):
        line = await content.readline()
        if not line or line.strip().removeprefix(b"--") == boundary:
            return
    raise BadInput("the camera's answer does not begin with a picture")


async def _length(content: aiohttp.StreamReader) -> int | None:
    """How long a picture is, by its headers, which are read."""
    length = None
    for _ in range(LINES_MAX):
        line = (await content.readline()).strip()
        if not line:
            return length
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 12:
            length = int(value)
    raise BadInput("a picture of the camera has too many headers")


async def _until(content: aiohttp.StreamReader, end: bytes, max_bytes: int) -> bytes:
    data = bytearray()
    while True:
        chunk = await content.read(CHUNK_BYTES)
        searched_from = max(len(data) - len(end), 0)
        data += chunk
        found = data.find(end, searched_from)
        if found >= 0:
            return bytes(data[:found])
        if not chunk:
            raise BadInput("the camera's answer ended within a picture")
        if len(data) > max_bytes:
            raise BadInput("a picture of the camera is too large")
