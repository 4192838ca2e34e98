"""WebSocket frames as bytes (RFC 6455), for the live sockets: made once and written to many, read without copies.

Everywhere else a library speaks this protocol. Nothing is compressed, and nothing here reads or writes a socket.
"""

import base64
import hashlib
import os
import struct
from collections.abc import Mapping
from typing import Final

from camserver.base.errors import BadInput

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_UNMASKED: Final = b"\0\0\0\0"
REASON_MAX_BYTES: Final = 123


def accept_key(key: str) -> str:
    """What a server answers to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()


def new_key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def head(opcode: int, size: int) -> bytes:
    """What stands before the payload of a frame that a server sends."""
    if size < 126:
        return bytes((0x80 | opcode, size))
    if size < 65_536:
        return struct.pack("!BBH", 0x80 | opcode, 126, size)
    return struct.pack("!BBQ", 0x80 | opcode, 127, size)


def frame(opcode: int, payload: bytes) -> bytes:
    return head(opcode, len(payload)) + payload


def client_head(opcode: int, size: int) -> bytes:
    """The same of a client. It must mask what it sends, and does so with zeros, which change nothing: masks are there
    because of pages that choose what a browser sends, and no page chooses what is sent here."""
    if size < 126:
        return bytes((0x80 | opcode, 0x80 | size)) + _UNMASKED
    if size < 65_536:
        return struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size) + _UNMASKED
    return struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size) + _UNMASKED


def close_payload(code: int, reason: str = "") -> bytes:
    return struct.pack("!H", code) + reason.encode()[:REASON_MAX_BYTES]


def close_code(payload: bytes) -> int:
    """1005 when none was given."""
    return int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 1005


def request(host: str, target: str, key: str, headers: Mapping[str, str]) -> bytes:
    """The request with which a client asks for a WebSocket."""
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {host}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def accepted(key: str) -> bytes:
    """The answer that makes a connection a WebSocket."""
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_key(key)}\r\n\r\n"
    ).encode()


def sole_message(data: bytes, max_bytes: int) -> memoryview | None:
    """The binary message that `data` is: one frame, all of it and nothing else, with a mask that changes nothing or
    none. None where it is anything else, which `Frames` sorts out."""
    length = len(data)
    if length < 14 or data[0] != 0x80 | BINARY:
        return None
    size = data[1] & 127
    begin = 2 if size < 126 else 4 if size == 126 else 10
    if begin > 2:
        size = int.from_bytes(data[2:begin], "big")
    if data[1] & 0x80:
        if data[begin : begin + 4] != _UNMASKED:
            return None
        begin += 4
    return memoryview(data)[begin:] if length == begin + size and size <= max_bytes else None


class Frames:
    """Messages out of the bytes that arrive; a message in several frames is put together.

    With `idle_max`, so many frames that bring no message (pings, pongs, pieces of messages) may come between two
    calls of `rest`. Where nothing is expected `are_all_idle`, and messages are such frames, too.
    """

    def __init__(self, message_max_bytes: int, idle_max: int | None = None, *, are_all_idle: bool = False) -> None:
        self._max_bytes = message_max_bytes
        self._idle_max = idle_max
        self._idle = 0
        self._are_all_idle = are_all_idle
        self._buffer = bytearray()
        self._begun: tuple[int, bytearray] | None = None  # of a message in several frames

    @property
    def has_part(self) -> bool:
        """Whether what comes next goes on with something."""
        return bool(self._buffer) or self._begun is not None

    def rest(self) -> None:
        """Some time is over."""
        self._idle = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Opcode and payload of what is complete now. BadInput when it is no WebSocket, or too long."""
        kept = self._buffer
        # Mostly whole frames arrive, which are taken from where they are.
        source: bytes | bytearray = data
        if kept:
            kept += data
            source = kept
        found: list[tuple[int, bytes]] = []
        at = 0
        while (one := self._next(source, at)) is not None:
            first, payload, at = one
            message = self._whole(first, payload)
            if message is not None:
                found.append(message)
        if source is kept:
            del kept[:at]
        else:
            kept += data[at:]
        return found

    def _next(self, buffer: bytes | bytearray, at: int) -> tuple[int, bytes, int] | None:
        """First byte, payload and end of the next frame; None when it is not all there."""
        left = len(buffer) - at
        if left < 2:
            return None
        size, begin = buffer[at + 1] & 127, at + 2
        is_masked = buffer[at + 1] & 0x80
        if size == 126:
            if left < 4:
                return None
            size, begin = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
        elif size == 127:
            if left < 10:
                return None
            size, begin = int.from_bytes(buffer[at + 2 : at + 10], "big"), at + 10
        if size > self._max_bytes:
            raise BadInput(f"a message of {size} bytes is longer than {self._max_bytes}")
        mask_at = begin
        if is_masked:
            begin += 4
        if len(buffer) < begin + size:
            return None
        payload = bytes(memoryview(buffer)[begin : begin + size])
        mask = bytes(buffer[mask_at:begin])
        if mask and mask != _UNMASKED:
            payload = _unmasked(payload, mask)
        return buffer[at], payload, begin + size

    def _whole(self, first: int, payload: bytes) -> tuple[int, bytes] | None:
        opcode, is_last = first & 15, first & 0x80
        if self._are_all_idle or opcode >= CLOSE or opcode == CONTINUATION or not is_last:
            self._idle += 1
            if self._idle_max is not None and self._idle > self._idle_max:
                raise BadInput("too many frames come that bring no message")
        if first & 0x70:
            raise BadInput("a frame uses an extension that nobody agreed on")
        if opcode >= CLOSE:
            return opcode, payload
        if opcode != CONTINUATION:
            if is_last:
                return opcode, payload
            self._begun = (opcode, bytearray(payload))
            return None
        if self._begun is None:
            raise BadInput("a message goes on that never began")
        opcode, begun = self._begun
        begun += payload
        if len(begun) > self._max_bytes:
            raise BadInput(f"a message is longer than {self._max_bytes} bytes")
        if not is_last:
            return None
        self._begun = None
        return opcode, bytes(begun)


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")
