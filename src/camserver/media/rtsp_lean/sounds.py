"""Sound out of RTP packets: G.711 (RFC 3551), AAC (RFC 3640) and Opus (RFC 7587), in the order it comes.

What is lost stays lost: a piece of sound needs no other one.
"""

from collections import deque
from dataclasses import dataclass

from camserver.media.rtsp_lean.describe import SoundTrack

AAC_FRAME = 1024  # samples
# AAC frames are far smaller; one that comes in more pieces than this is none.
FRAME_MAX_BYTES = 16_384
# Nobody takes it: the newest is kept.
WAITING_MAX = 500


@dataclass(slots=True)
class Heard:
    data: bytes
    time: int  # in the track's clock, from 0; unwrapped


class Sounds:
    """The sound of one track. `push` each packet, then take `done`."""

    def __init__(self, track: SoundTrack) -> None:
        self._payload_type = track.payload_type
        self._is_aac = track.codec == "aac"
        self.done: deque[Heard] = deque(maxlen=WAITING_MAX)
        self._last_wrapped: int | None = None
        self._unwrapped = 0
        self._piece = bytearray()  # of an AAC frame that is too large for one packet
        self._piece_bytes = 0

    def push(self, buffer: bytearray, start: int, stop: int) -> None:
        """An RTP packet; one that makes no sense is left out."""
        if stop - start < 13:
            return
        first, second = buffer[start], buffer[start + 1]
        if second & 0x7F != self._payload_type or first >> 6 != 2:
            return
        at = start + 12 + 4 * (first & 15)
        if first & 0x10 and at + 4 <= stop:
            at += 4 + 4 * (buffer[at + 2] << 8 | buffer[at + 3])
        if first & 0x20:
            stop -= buffer[stop - 1]
        if at >= stop:
            return
        time = self._time(int.from_bytes(buffer[start + 4 : start + 8], "big"))
        if self._is_aac:
            self._push_frames(bytes(buffer[at:stop]), time)
        else:
            self.done.append(Heard(bytes(buffer[at:stop]), time))

    def _push_frames(self, payload: bytes, time: int) -> None:
        """Their sizes in front: how many bits those take, then 13 bits each and 3 that do not matter."""
        bits = int.from_bytes(payload[:2], "big")
        count, at = bits // 16, 2 + (bits + 7) // 8
        if not count or bits % 16 or at > len(payload):
            return
        for number in range(count):
            size = int.from_bytes(payload[2 + 2 * number : 4 + 2 * number], "big") >> 3
            if not size or size > FRAME_MAX_BYTES:
                return
            if at + size > len(payload):
                if count == 1:
                    self._push_piece(payload[at:], size, time)
                return
            self.done.append(Heard(payload[at : at + size], time + number * AAC_FRAME))
            at += size

    def _push_piece(self, piece: bytes, size: int, time: int) -> None:
        if size != self._piece_bytes:
            self._piece, self._piece_bytes = bytearray(), size
        self._piece += piece
        if len(self._piece) >= size:
            self.done.append(Heard(bytes(self._piece[:size]), time))
            self._piece, self._piece_bytes = bytearray(), 0

    def _time(self, wrapped: int) -> int:
        if self._last_wrapped is None:
            self._last_wrapped = wrapped
        step = wrapped - self._last_wrapped & 0xFFFFFFFF
        self._unwrapped += step - 0x100000000 if step >= 0x80000000 else step
        self._last_wrapped = wrapped
        return self._unwrapped
