"""Pictures out of RTP packets: H.264 (RFC 6184) and H.265 (RFC 7798), in the order they come.

A picture ends with a marked packet, or where the next one has another time; cameras that mark every slice are found
out and only their times believed. After a hole nothing is given until the next picture that stands alone: what builds
on a lost one shows wrong things.

Most packets are pieces in the middle of a large NAL unit. They are taken in runs, and the bytes of a picture are
copied once, when it is complete: with many cameras that is most of what reading them costs.
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
# The same behind its channel and length, and what begins a piece: two bytes in H.264, three in H.265.
_MORE_AVC, _MORE_HEVC = struct.Struct("!HHHHI4xBB"), struct.Struct("!HHHHI4xBxB")
# Shorter runs are not worth it.
RUN_MIN = 4
_DOLLAR = 0x24
# The last byte of a packet's number, as it counts up.
_NUMBERS = bytes(range(256))


@dataclass(slots=True)
class Unit:
    """Never changed; frozen ones take several times as long to make."""

    data: bytes  # Annex B
    time: int  # when it is shown, in the track's clock, from 0; unwrapped
    is_in_order: bool  # whether pictures come in the order they are shown in
    is_keyframe: bool
    is_recovery: bool
    sets: bytes  # its parameter sets, if it holds them
    starts: tuple[int, ...] = ()  # where its NAL units begin, behind their start codes


class Units:
    """The pictures of one track. `push` each packet, then take `done`."""

    def __init__(self, codec: str, payload_type: int) -> None:
        self._codec = codec
        self._is_hevc = codec == "hevc"
        self._payload_type = payload_type
        self.done: deque[Unit] = deque()
        self.holes = 0
        self.ssrc: int | None = None  # the number of the stream, once something came
        self._has_begun = False  # with a picture that stands alone
        self._has_ended_one = False  # a picture of any kind
        self._picture_types = nal_units.HEVC_PICTURE if self._is_hevc else nal_units.AVC_PICTURE
        self._sei_type = nal_units.HEVC_SEI if self._is_hevc else nal_units.AVC_SEI
        self._telling_types = nal_units.HEVC_TELLING if self._is_hevc else nal_units.AVC_TELLING
        self._more = _MORE_HEVC if self._is_hevc else _MORE_AVC
        # Where a packet says that it is a piece of a NAL unit.
        self._kind_bits, self._piece_kind = (0x7E, 49 << 1) if self._is_hevc else (0x1F, 28)
        # Which of those bytes must be the same in a run of packets. The rest follows from them: the channel from the
        # payload's type; the time, for pieces that begin no NAL unit and have the next number.
        self._equal_places = (0, 2, 3, 4, 5, *range(16, self._more.size - 1))
        # The picture that is being put together, in parts; some still lie in the buffer that they came in.
        self._parts: list[bytes | memoryview] = []
        self._detached = 0  # how many of them do not
        self._size_bytes = 0
        self._heads: list[tuple[int, int]] = []  # type and place in it of each NAL unit, start code included
        self._has_picture = False
        self._is_telling = False  # something in it says what it is; most are pictures that build on others
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

    @property
    def misses_keyframe(self) -> bool:
        """Whether what comes can't be shown until there is a picture that stands alone."""
        return self._waits or (self._has_ended_one and not self._has_begun)

    def push(self, buffer: bytearray, start: int, stop: int) -> None:
        """An RTP packet, which stays as it is until `detach`. Unfit when the camera can't be for this reader: as long
        as there was no picture. Afterwards a packet that makes no sense is a damaged one."""
        if stop - start < 13:
            return
        first, second, seq, timestamp, ssrc = _HEADER.unpack_from(buffer, start)
        if second & 0x7F != self._payload_type or first >> 6 != 2:
            return
        self.ssrc = ssrc
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
        self._put(buffer, at, stop)
        if second & 0x80:
            self._end_by_mark()

    def push_more(self, buffer: bytearray, channel: int, at: int, end: int) -> int:
        """Takes the packets of a connection from `at` on, each behind its channel and length, as long as they are
        whole and simply further pieces of the last one's picture. Where the first other one begins: for `push`.
        """
        head_bytes, unpack = self._more.size, self._more.unpack_from
        kind_bits, piece_kind, timestamp = self._kind_bits, self._piece_kind, self._timestamp
        # Version 2 and nothing before or behind the payload; marked or not.
        mark, plain = _DOLLAR << 8 | channel, 0x8000 | self._payload_type
        while self._heads and end - at > head_bytes:
            its_mark, size, flags, seq, its_timestamp, kind, piece = unpack(buffer, at)
            if its_mark != mark or its_timestamp != timestamp or seq != self._next_seq:
                break
            stop = at + 4 + size
            if stop > end or size <= head_bytes - 4 or flags & 0xFF7F != plain or kind & kind_bits != piece_kind:
                break
            if not piece & 0xC0 and self._in_pieces and (count := self._run(buffer, at, end, size + 4)):
                at += count * (size + 4)
                continue
            self._next_seq = seq + 1 & 0xFFFF
            self._put(buffer, at + 16, stop)
            at = stop
            if flags & 0x80:
                self._end_by_mark()
        return at

    def _run(self, buffer: bytearray, at: int, end: int, step: int) -> int:
        """Takes a run of packets of one size that are pieces in the middle of a NAL unit; how many they are, or 0.

        What stands in the same place of all of them is looked at together: columns, and not packet by packet.
        """
        head_bytes, seq = self._more.size, self._next_seq or 0
        if self._is_damaged or self._size_bytes > UNIT_MAX_BYTES or end - at < RUN_MIN * step:
            return 0
        kinds = buffer[at + head_bytes - 1 : end : step]
        count = len(kinds) - len(kinds.lstrip(kinds[:1]))
        count = min(count, (end - at) // step, 256 - (seq & 0xFF))
        stop = at + count * step
        if count < RUN_MIN or buffer[at + 7 : stop : step] != _NUMBERS[seq & 0xFF : (seq & 0xFF) + count]:
            return 0
        for place in self._equal_places:
            if buffer[at + place : stop : step].count(buffer[at + place]) != count:
                return 0
        view = memoryview(buffer)
        self._parts += [view[begin : begin + step - head_bytes] for begin in range(at + head_bytes, stop, step)]
        self._size_bytes += count * (step - head_bytes)
        self._next_seq = seq + count & 0xFFFF
        return count

    def detach(self) -> None:
        """Before the buffer of earlier packets is used again: what is still needed of it is copied."""
        if len(self._parts) > self._detached:
            self._parts[self._detached :] = [b"".join(self._parts[self._detached :])]
            self._detached += 1

    def _put(self, buffer: bytearray, at: int, stop: int) -> None:
        if self._is_hevc:
            self._push_hevc(buffer, at, stop)
        else:
            self._push_avc(buffer, at, stop)

    def _end_by_mark(self) -> None:
        # Parameter sets in a packet of their own are marked by some; they belong to the picture that follows.
        if self._trusts_marks and self._has_picture:
            self._marked_timestamp = self._timestamp
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
            self._doubt_packet(kind)

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
            self._doubt_packet(kind)

    def _doubt_packet(self, kind: int) -> None:
        """One of a kind that this reader does not know: another way of packing, or damage."""
        if self._first is None:
            raise Unfit(f"its packets are of kind {kind}")
        log.debug("a packet of the camera makes no sense", kind=kind)
        self._is_damaged = self._waits = True

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
        if kind in self._telling_types and (head or kind != self._sei_type or not says_nothing(buffer, at, stop)):
            self._is_telling = True
        if self._in_pieces:
            self._is_damaged = True  # the one before has no end
            self._in_pieces = False
        self._heads.append((kind, self._size_bytes))
        self._parts.append(START_CODE + head)
        self._parts.append(memoryview(buffer)[at:stop])
        self._size_bytes += len(START_CODE) + len(head) + stop - at

    def _go_on(self, buffer: bytearray, at: int, stop: int) -> None:
        if not self._in_pieces or self._size_bytes > UNIT_MAX_BYTES:
            self._is_damaged = True
            return
        self._parts.append(memoryview(buffer)[at:stop])
        self._size_bytes += stop - at

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
            self._has_ended_one = True
            if self._is_cut_short:
                self._waits = True
            else:
                self._give()
        elif self._heads and self._timestamp is not None and not self._is_cut_short and self._size_bytes < 65_536:
            # Parameter sets with a time of their own: they stay in front of the next picture.
            return
        self._parts = []
        self._detached = self._size_bytes = 0
        self._heads = []
        self._has_picture = self._is_telling = self._is_damaged = self._in_pieces = False

    @property
    def _is_cut_short(self) -> bool:
        return self._is_damaged or self._in_pieces

    def _give(self) -> None:
        data = b"".join(self._parts)
        kind = self._kind(data) if self._is_telling else nal_units.PLAIN
        if self._waits and not (kind.is_keyframe or kind.is_recovery) and self._waiting < WAITING_MAX:
            self._waiting += 1
            return
        self._waits, self._waiting = False, 0
        self._has_begun = self._has_begun or kind.is_keyframe or kind.is_recovery
        time = self._time()
        self._watch_order(time)
        starts = tuple(place + len(START_CODE) for _, place in self._heads)
        self.done.append(
            Unit(data, time, not self._is_reordered, kind.is_keyframe, kind.is_recovery, kind.sets, starts)
        )

    def _kind(self, data: bytes) -> nal_units.UnitKind:
        """Of its NAL units with picture data only the first bytes are looked at: they are large."""
        heads = self._heads[: nal_units.NALS_MAX]
        ends = [place for _, place in self._heads[1 : len(heads) + 1]]
        if len(ends) < len(heads):
            ends.append(len(data))
        return nal_units.kind_of(
            self._codec,
            [
                data[place + 4 : place + 6] if kind in self._picture_types else data[place + 4 : end]
                for (kind, place), end in zip(heads, ends, strict=True)
            ],
        )

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


def says_nothing(buffer: bytearray, at: int, stop: int) -> bool:
    """Whether an SEI is surely no recovery point. Many cameras send another one with every picture."""
    return buffer.find(nal_units.RECOVERY_POINT, at + 1, stop) < 0
