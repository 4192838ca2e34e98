"""What one picture, or a piece of sound, is to all viewers: its bytes, framed for the sockets, made once."""

from dataclasses import dataclass

from camserver.base import websocket
from camserver.media.fragments import (
    AUDIO_TRACK,
    MOOF_HEAD_BYTES,
    TICKS_PER_SEC,
    VIDEO_TRACK,
    Placed,
    fragment_head,
    sample_pieces,
)
from camserver.wire.live import FeedPacket


@dataclass(slots=True)
class Fragment:
    frame: bytes  # a binary WebSocket frame
    begin: int  # where in it the fragment itself begins
    is_key: bool
    dts: int  # in ticks of the pictures, of sound too
    duration: int
    is_sound: bool = False

    @property
    def size(self) -> int:
        return len(self.frame) - self.begin

    @property
    def mp4(self) -> memoryview:
        return memoryview(self.frame)[self.begin :]


def make_fragment(number: int, codec: str, packet: FeedPacket, placed: Placed) -> Fragment:
    is_key = packet.is_keyframe
    pieces = sample_pieces(codec, packet.data, packet.starts)
    size = sum(map(len, pieces))
    socket_head = websocket.head(websocket.BINARY, MOOF_HEAD_BYTES + size)
    head = fragment_head(number, VIDEO_TRACK, placed.dts, placed.offset, placed.duration, size, is_key)
    frame = b"".join((socket_head, head, *pieces))
    return Fragment(frame, len(socket_head), is_key, placed.dts, placed.duration)


def make_sound_fragment(number: int, data: bytes, start: int, lasts: int, rate: int) -> Fragment:
    """`start` and `lasts` in ticks of the sound's rate."""
    socket_head = websocket.head(websocket.BINARY, MOOF_HEAD_BYTES + len(data))
    head = fragment_head(number, AUDIO_TRACK, start, 0, lasts, len(data), True)
    dts, duration = start * TICKS_PER_SEC // rate, lasts * TICKS_PER_SEC // rate
    return Fragment(b"".join((socket_head, head, data)), len(socket_head), False, dts, duration, True)
