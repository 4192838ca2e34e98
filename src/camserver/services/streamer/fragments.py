"""What one picture is to all viewers: its bytes, framed for the sockets, made once."""

from dataclasses import dataclass

from camserver.base import websocket
from camserver.media.fragments import MOOF_HEAD_BYTES, VIDEO_TRACK, Placed, fragment_head, sample_pieces
from camserver.wire.live import FeedPacket


@dataclass(slots=True)
class Fragment:
    frame: bytes  # a binary WebSocket frame
    begin: int  # where in it the fragment itself begins
    is_key: bool
    dts: int
    duration: int

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
