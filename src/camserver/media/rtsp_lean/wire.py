"""The bytes of an RTSP connection: messages, and between them packets with a channel and a length.

One buffer of a fixed size is read into and looked at in place. Garbage between packets, which some cameras send, is
passed over up to a bound.
"""

from collections.abc import Callable
from typing import TypeAlias

from camserver.base.log import get_logger
from camserver.media.rtsp_lean.messages import BODY_MAX_BYTES, HEAD_MAX_BYTES, BrokenTalk, Reply, parse_message

log = get_logger(__name__)

# Above the largest packet (64 kB and 4 bytes) and the largest message, so that either always fits.
BUFFER_BYTES = 192 * 1024
GARBAGE_MAX_BYTES = 1_000_000
_DOLLAR = 0x24

# Takes a packet (buffer, channel, start, stop) and perhaps some of those that follow it up to an end; says where the
# next one begins.
OnPacket: TypeAlias = Callable[[bytearray, int, int, int, int], int]

assert BUFFER_BYTES > HEAD_MAX_BYTES + BODY_MAX_BYTES + 65_540


class Wire:
    def __init__(self) -> None:
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = 0
        self._end = 0
        self._garbage_bytes = 0

    def room(self) -> memoryview:
        """Where to read into."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._end > BUFFER_BYTES // 2:
            kept = self._end - self._begin
            self._buffer[:kept] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, kept
        return self._view[self._end :]

    def read(self, count: int, on_packet: OnPacket) -> Reply | None:
        """After `count` bytes were read: gives whole packets, up to a reply.

        A reply ends it, so that whoever asked can act; call again with 0 for what follows it.
        """
        self._end += count
        buffer, at, end = self._buffer, self._begin, self._end
        try:
            while end - at >= 4:
                if buffer[at] == _DOLLAR:
                    stop = at + 4 + (buffer[at + 2] << 8 | buffer[at + 3])
                    if stop > end:
                        return None
                    at = on_packet(buffer, buffer[at + 1], at + 4, stop, end)
                elif 65 <= buffer[at] <= 90:
                    message = parse_message(buffer[at:end])
                    if message is None:
                        return None
                    at += message[1]
                    if message[0] is not None:
                        return message[0]
                else:
                    at = self._pass_over(at, end)
            return None
        finally:
            self._begin = at

    def _pass_over(self, at: int, end: int) -> int:
        found = self._buffer.find(b"$", at, end)
        stop = end if found < 0 else found
        if self._garbage_bytes == 0 and self._buffer[at:stop].strip():
            log.info("garbage between the camera's packets is passed over")
        self._garbage_bytes += stop - at
        if self._garbage_bytes > GARBAGE_MAX_BYTES:
            raise BrokenTalk("too much garbage between packets")
        return stop
