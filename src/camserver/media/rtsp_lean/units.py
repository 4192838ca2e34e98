"""Pictures out of RTP packets: H.264 (RFC 6184) and H.265 (RFC 7798), in the order they come.

A picture ends with a marked packet, or where the next one has another time; cameras that mark every slice are found
out and only their times believed. After a hole nothing is given until the next picture that stands alone: what builds
on a lost one shows wrong things.
"""

import struct
from collections import deque
from dataclasses import dataclass

from camserver.base.log import get_logger
from camserver.media import nal_units
from camserver.media.nal_units import START_CODE
from camserver.media.rtsp_lean.messages import Unfit

log = get_logger(__name__)

UNIT_MAX_BYTES = 20_000_000
# Pictures that wait for a new beginning after a hole; a camera without keyframes is given on after so many.
WAITING_MAX = 600
# Times that go back this often within as many pictures are pictures out of order (B-frames), and no clock that jumps.
BACK_STEPS, BACK_WITHIN = 3, 64
_HEADER = struct.Struct("!BBHII")


@dataclass(frozen=True, slots=True)
class Unit:
    data: bytes  # Annex B
    time: int  # when it is shown, in the track's clock, from 0; unwrapped
    is_in_order: bool  # whether pictures come in the order they are shown in
    is_keyframe: bool
    is_recovery: bool
    sets: bytes  # its parameter sets, if it holds them


class Units:
    """The pictures of one track. `push` each packet, then take `done`."""

    def __init__(self, codec: str, payload_type: int) -> None:
        self._codec = codec
        self._is_hevc = codec == "hevc"
        self._payload_type = payload_type
        self.done: deque[Unit] = deque()
        self.holes = 0
        self._picture_types = nal_units.HEVC_PICTURE if self._is_hevc else nal_units.AVC_PICTURE
        self._data = bytearray()  # the picture that is being put together
        self._heads: list[tuple[int, int]] = []  # type and place in `_data` of each NAL unit, start code included
        self._has_picture = False
        self._is_damaged = False
        self._in_pieces = False
        self._next_seq: int | None = None
        self._timestamp: int | None = None  # of the picture that is being put together
        self._first: int | None = None
        self._unwrapped = 0
        self._last_wrapped = 0
        self._trusts_marks = True
        self._marked_timestamp: int | None = None  # of the picture that ended by a mark
        self._waits = False
        self._waiting = 0
        self._backs: deque[bool] = deque(maxlen=BACK_WITHIN)
        self._last_time: int | None = None
        self._is_reordered = False

    def push(self, buffer: bytearray, start: int, stop: int) -> None:
        """An RTP packet. Unfit when it can't be for this reader."""
        if stop - start < 13:
            return
        first, second, seq, timestamp, _ = _HEADER.unpack_from(buffer, start)
        if second & 0x7F != self._payload_type or first >> 6 != 2:
            return
        at = start + 12 + 4 * (first & 15)
        if first & 0x10 and at + 4 <= stop:
            at += 4 + 4 * (buffer[at + 2] << 8 | buffer[at + 3])
        if first & 0x20:
            stop -= buffer[stop - 1]
        if seq != self._next_seq and self._next_seq is not None:
            self._miss(seq)
        self._next_seq = seq + 1 & 0xFFFF
        if timestamp != self._timestamp:
            self._finish()
            self._timestamp = timestamp
        if at >= stop:
            return
        if self._is_hevc:
            self._push_hevc(buffer, at, stop)
        else:
            self._push_avc(buffer, at, stop)
        # Parameter sets in a packet of their own are marked by some; they belong to the picture that follows.
        if second & 0x80 and self._trusts_marks and self._has_picture:
            self._marked_timestamp = timestamp
            self._finish()

    def _push_avc(self, buffer: bytearray, at: int, stop: int) -> None:
        kind = buffer[at] & 31
        if kind == 28:
            if stop - at < 3:
                return
            piece = buffer[at + 1]
            if piece & 0x80:
                self._begin_nal(piece & 31, bytes((buffer[at] & 0xE0 | piece & 31,)), buffer, at + 2, stop)
            else:
                self._go_on(buffer, at + 2, stop)
            self._in_pieces = not piece & 0x40
        elif 0 < kind < 24:
            self._begin_nal(kind, b"", buffer, at, stop)
        elif kind == 24:
            self._push_together(buffer, at + 1, stop)
        else:
            raise Unfit(f"its packets are of kind {kind}")

    def _push_hevc(self, buffer: bytearray, at: int, stop: int) -> None:
        if stop - at < 3:
            return
        kind = buffer[at] >> 1 & 63
        if kind == 49:
            if stop - at < 4:
                return
            piece = buffer[at + 2]
            if piece & 0x80:
                head = bytes((buffer[at] & 0x81 | (piece & 63) << 1, buffer[at + 1]))
                self._begin_nal(piece & 63, head, buffer, at + 3, stop)
            else:
                self._go_on(buffer, at + 3, stop)
            self._in_pieces = not piece & 0x40
        elif kind < 48:
            self._begin_nal(kind, b"", buffer, at, stop)
        elif kind == 48:
            self._push_together(buffer, at + 2, stop)
        else:
            raise Unfit(f"its packets are of kind {kind}")

    def _push_together(self, buffer: bytearray, at: int, stop: int) -> None:
        """Several small NAL units, each after its size."""
        while at + 2 < stop:
            size = buffer[at] << 8 | buffer[at + 1]
            at += 2
            if not 0 < size <= stop - at:
                self._is_damaged = True
                return
            kind = buffer[at] >> 1 & 63 if self._is_hevc else buffer[at] & 31
            self._begin_nal(kind, b"", buffer, at, at + size)
            at += size

    def _begin_nal(self, kind: int, head: bytes, buffer: bytearray, at: int, stop: int) -> None:
        if kind in self._picture_types:
            if not self._heads and self._timestamp == self._marked_timestamp and self._trusts_marks:
                self._doubt_marks(head, buffer, at)
            self._has_picture = True
        if self._in_pieces:
            self._is_damaged = True  # the one before has no end
            self._in_pieces = False
        self._heads.append((kind, len(self._data)))
        self._data += START_CODE
        self._data += head
        self._data += memoryview(buffer)[at:stop]

    def _go_on(self, buffer: bytearray, at: int, stop: int) -> None:
        if not self._in_pieces or len(self._data) > UNIT_MAX_BYTES:
            self._is_damaged = True
            return
        self._data += memoryview(buffer)[at:stop]

    def _doubt_marks(self, head: bytes, buffer: bytearray, at: int) -> None:
        """A further slice of a picture that was marked as ended: its marks mean nothing."""
        if not nal_units.first_slice_begins(self._codec, head + buffer[at : at + 3]):
            log.info("camera marks every slice of a picture; its times tell pictures apart")
            self._trusts_marks = False
            self._is_damaged = True

    def _miss(self, seq: int) -> None:
        self.holes += 1
        log.debug("packets of the camera are missing", holes=self.holes)
        self._is_damaged = True
        self._waits = True

    def _finish(self) -> None:
        """The picture is complete, or as complete as it gets."""
        if self._has_picture:
            damaged = self._is_damaged or self._in_pieces
            if damaged:
                self._waits = True
            else:
                self._give()
        elif self._heads and self._timestamp is not None and not self._is_damaged and len(self._data) < 65_536:
            # Parameter sets with a time of their own: they stay in front of the next picture.
            return
        self._data = bytearray()
        self._heads = []
        self._has_picture = self._is_damaged = self._in_pieces = False

    def _give(self) -> None:
        data = bytes(self._data)
        kind = nal_units.kind_of(self._codec, self._leading(data))
        if self._waits and not (kind.is_keyframe or kind.is_recovery) and self._waiting < WAITING_MAX:
            self._waiting += 1
            return
        self._waits, self._waiting = False, 0
        time = self._time()
        self._watch_order(time)
        self.done.append(Unit(data, time, not self._is_reordered, kind.is_keyframe, kind.is_recovery, kind.sets))

    def _leading(self, data: bytes) -> list[bytes]:
        """Its NAL units, of those with picture data only the first bytes: they are large."""
        nals = []
        for number, (kind, place) in enumerate(self._heads[: nal_units.NALS_MAX]):
            begin = place + len(START_CODE)
            end = self._heads[number + 1][1] if number + 1 < len(self._heads) else len(data)
            nals.append(data[begin : begin + 2] if kind in self._picture_types else data[begin:end])
        return nals

    def _time(self) -> int:
        wrapped = self._timestamp or 0
        if self._first is None:
            self._first = self._last_wrapped = wrapped
        step = wrapped - self._last_wrapped & 0xFFFFFFFF
        self._unwrapped += step - 0x100000000 if step >= 0x80000000 else step
        self._last_wrapped = wrapped
        return self._unwrapped

    def _watch_order(self, time: int) -> None:
        if self._last_time is not None:
            self._backs.append(time < self._last_time)
            if time < self._last_time and sum(self._backs) >= BACK_STEPS:
                self._is_reordered = True
        self._last_time = time
