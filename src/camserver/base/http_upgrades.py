"""Requests that offer to go on in another protocol (RFC 9110, 7.8). A WebSocket is the only one that is taken up; any
other offer is left, and the request answered as if it had made none.

The parser takes a request with an offer to end with its head, whatever its headers say of a body: that would be read
as the next request. So the head is written anew without the offer, and read again.
"""

from collections.abc import Iterator, Sequence

Header = tuple[bytes, bytes]


def is_websocket(method: str, version: str, headers: Sequence[Header]) -> bool:
    """Whether this is what RFC 6455 has for a handshake, by method and offer. Fields that stand there twice are one.

    Who offers other protocols beside it is answered in the one that is spoken already.
    """
    if method != "GET" or version != "1.1" or set(_tokens(headers, b"upgrade")) != {b"websocket"}:
        return False
    return b"upgrade" in _tokens(headers, b"connection")


def has_body(headers: Sequence[Header]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0")) for name, value in headers
    )


def head_without_offer(method: str, url: bytes, version: str, headers: Sequence[Header]) -> bytes:
    lines = [b"%s %s HTTP/%s" % (method.encode("ascii"), url, version.encode("ascii"))]
    lines += [b"%s: %s" % header for header in headers if header[0] != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])


def _tokens(headers: Sequence[Header], wanted: bytes) -> Iterator[bytes]:
    for name, value in headers:
        if name == wanted:
            yield from (token.strip().lower() for token in value.split(b","))
