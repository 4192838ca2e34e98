"""Fragmented MP4 for browsers, made by hand: an init segment, then one fragment a picture, at once.

A muxer of a library holds each picture back until the next one tells how long it lasts, a whole picture's time of
delay. Here a picture lasts as long as the one before did, which players take well, and a fragment's bytes are put
together once for all who get them.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from camserver.media.boxes import box, full_box
from camserver.media.nal_units import AVC_DELIMITER, AVC_SETS, HEVC_SETS
from camserver.media.parameter_sets import Described

TICKS_PER_SEC = 90_000
VIDEO_TRACK, AUDIO_TRACK = 1, 2
# Access unit delimiters and parameter sets: the init segment has the latter, a fragment needs neither.
_AVC_LEFT_OUT = AVC_SETS | {AVC_DELIMITER}
_HEVC_LEFT_OUT = HEVC_SETS | {35}
# A camera's clock that goes on by so much more or less than ours was set, or the camera was begun anew.
JUMP_TICKS = 3 * TICKS_PER_SEC
USUAL_TICKS = TICKS_PER_SEC // 15
LONGEST_TICKS = TICKS_PER_SEC
_KEY, _NOT_KEY = 0x02000000, 0x01010000  # depends on no other; depends on others and is no sync sample
_MATRIX = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

# moof(mfhd, traf(tfhd, tfdt, trun)) with one sample, and the head of its mdat.
_MOOF = struct.Struct(">I4sI4sIII4sI4sIII4sIQI4sIIiIIIiI4s")
_MOOF_BYTES = 8 + 16 + 8 + 16 + 20 + 36
MOOF_HEAD_BYTES = _MOOF.size


def fragment_head(number: int, track: int, dts: int, offset: int, duration: int, size: int, is_key: bool) -> bytes:
    """Everything of a fragment but the sample's `size` bytes, which follow. Times in the track's ticks."""
    return _MOOF.pack(
        _MOOF_BYTES,
        b"moof",
        16,
        b"mfhd",
        0,
        number & 0xFFFFFFFF,
        _MOOF_BYTES - 24,
        b"traf",
        16,
        b"tfhd",
        0x020000,
        track,
        20,
        b"tfdt",
        0x01000000,
        dts,
        36,
        b"trun",
        0x01000F01,
        1,
        _MOOF_BYTES + 8,
        duration,
        size,
        _KEY if is_key else _NOT_KEY,
        offset,
        size + 8,
        b"mdat",
    )


def sample_pieces(codec: str, data: bytes | memoryview, starts: Sequence[int] = ()) -> Sequence[bytes | memoryview]:
    """An access unit in Annex B as MP4 has it, with lengths instead of start codes, in pieces to be joined.

    `starts`: where its NAL units begin, behind start codes of four bytes, if that is known.
    """
    if starts:
        return _pieces_at(codec, data, starts)
    pieces: list[bytes] = []
    left_out, shift, mask = (_HEVC_LEFT_OUT, 1, 63) if codec == "hevc" else (_AVC_LEFT_OUT, 0, 31)
    parts = bytes(data).split(b"\0\0\1")
    last = len(parts) - 1
    for number, part in enumerate(parts):
        # A start code may begin with one more zero, which is none of the unit's before it.
        nal = part if number == last else part.rstrip(b"\0")
        if nal and number and (nal[0] >> shift & mask) not in left_out:
            pieces.append(len(nal).to_bytes(4, "big"))
            pieces.append(nal)
    return pieces


def _pieces_at(codec: str, data: bytes | memoryview, starts: Sequence[int]) -> list[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    data = memoryview(data)
    left_out, shift, mask = (_HEVC_LEFT_OUT, 1, 63) if codec == "hevc" else (_AVC_LEFT_OUT, 0, 31)
    stop = len(data)
    for start in reversed(starts):
        if start < stop and (data[start] >> shift & mask) not in left_out:
            pieces += (data[start:stop], (stop - start).to_bytes(4, "big"))
        stop = start - 4
    pieces.reverse()
    return pieces


# ---------------------------------------------------------------------------------------------------------------
# Times
# ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Placed:
    """When a picture is decoded, how much later it is shown (or earlier), and how long it lasts.

    Never changed; frozen ones take several times as long to make.
    """

    dts: int
    offset: int
    duration: int


class Timeline:
    """Places pictures on a time that only grows, whatever cameras and connections do.

    Cameras' times are kept as long as they go on about as fast as ours. Where pictures come in another order than
    they are shown in and nobody says when they are decoded (B-frames), they are decoded one after the other.
    """

    def __init__(self) -> None:
        self._offset: int | None = None  # what is added to the camera's times
        self._dts = 0
        self._duration = USUAL_TICKS
        self._arrived_ms = 0
        self._since_key = 0
        self._key_dts: int | None = None

    def begin_anew(self) -> None:
        """Another connection, whose times have nothing to do with those before."""
        self._offset = None
        self._key_dts = None

    def place(self, pts: int | None, dts: int | None, time_base: Fraction, is_key: bool, arrived_ms: int) -> Placed:
        went_on = max(arrived_ms - self._arrived_ms, 0) * (TICKS_PER_SEC // 1000)
        self._arrived_ms = arrived_ms
        stamp = pts if pts is not None else dts
        if stamp is None:
            # Without a time it is shown when it comes.
            at = self._dts + max(went_on, 1)
            return self._settled(at, at)
        shown = _ticks(stamp, time_base)
        decoded = None if dts is None else _ticks(dts, time_base)
        at = shown if decoded is None else decoded
        if self._offset is None or abs(at + self._offset - self._dts - went_on) > JUMP_TICKS + went_on // 2:
            self._offset = self._dts + max(went_on if self._dts else 0, self._duration) - at
            self._key_dts = None
        shown += self._offset
        if decoded is not None:
            decoded += self._offset
        elif is_key:
            decoded = shown
        else:
            decoded = self._dts + self._duration
        if is_key and dts is None:
            self._learn(decoded)
        self._since_key += 1
        return self._settled(max(decoded, self._dts + 1), shown, learns=dts is not None)

    def _learn(self, key_dts: int) -> None:
        """How long a picture lasts, from keyframe to keyframe."""
        if self._key_dts is not None and self._since_key:
            duration = (key_dts - self._key_dts) // self._since_key
            if 0 < duration <= LONGEST_TICKS:
                self._duration = duration
        self._key_dts, self._since_key = key_dts, 0

    def _settled(self, dts: int, shown: int, learns: bool = True) -> Placed:
        if learns and 0 < dts - self._dts <= LONGEST_TICKS:
            self._duration = dts - self._dts
        self._dts = dts
        return Placed(dts, shown - dts, self._duration)


def _ticks(stamp: int, time_base: Fraction) -> int:
    if time_base.denominator == TICKS_PER_SEC and time_base.numerator == 1:
        return stamp
    return stamp * TICKS_PER_SEC * time_base.numerator // time_base.denominator


# ---------------------------------------------------------------------------------------------------------------
# The init segment
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sound:
    """An audio track as an MP4 file describes it."""

    mime: str  # mp4a.40.2, opus
    entry: bytes  # of the sample description, whole
    rate: int  # ticks a second


def init_segment(video: Described, sound: Sound | None = None) -> bytes:
    tracks = [_track(VIDEO_TRACK, TICKS_PER_SEC, b"vide", _video_entry(video), video.width, video.height)]
    if sound is not None:
        tracks.append(_track(AUDIO_TRACK, sound.rate, b"soun", sound.entry, 0, 0))
    times = struct.pack(">4I", 0, 0, 1000, 0)
    next_track = struct.pack(">I", len(tracks) + 1)
    head = full_box(b"mvhd", 0, 0, times, b"\0\1\0\0\1\0", b"\0" * 10, _MATRIX, b"\0" * 24, next_track)
    extends = [
        full_box(b"trex", 0, 0, struct.pack(">5I", number, 1, 0, 0, 0)) for number in range(1, len(tracks) + 1)
    ]
    return box(b"ftyp", b"iso5\0\0\2\0iso5iso6mp41") + box(b"moov", head, *tracks, box(b"mvex", *extends))


def mime_of(video: Described, sound: Sound | None = None) -> str:
    """As MediaSource is asked for it."""
    names = video.mime if sound is None else f"{video.mime},{sound.mime}"
    return f'video/mp4; codecs="{names}"'


def _track(number: int, rate: int, kind: bytes, entry: bytes, width: int, height: int) -> bytes:
    is_sound = kind == b"soun"
    head = full_box(
        b"tkhd",
        0,
        7,
        struct.pack(">5I", 0, 0, number, 0, 0),
        b"\0" * 8,
        struct.pack(">4H", 0, 0, 0x100 if is_sound else 0, 0),
        _MATRIX,
        struct.pack(">2I", width << 16, height << 16),
    )
    media = box(
        b"mdia",
        full_box(b"mdhd", 0, 0, struct.pack(">4IHH", 0, 0, rate, 0, 0x55C4, 0)),
        full_box(b"hdlr", 0, 0, b"\0" * 4, kind, b"\0" * 12, b"camserver\0"),
        box(
            b"minf",
            full_box(b"smhd", 0, 0, b"\0" * 4) if is_sound else full_box(b"vmhd", 0, 1, b"\0" * 8),
            box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), full_box(b"url ", 0, 1))),
            box(
                b"stbl",
                full_box(b"stsd", 0, 0, struct.pack(">I", 1), entry),
                *(full_box(name, 0, 0, b"\0" * 4) for name in (b"stts", b"stsc", b"stco")),
                full_box(b"stsz", 0, 0, b"\0" * 8),
            ),
        ),
    )
    return box(b"trak", head, media)


def _video_entry(video: Described) -> bytes:
    return box(
        video.entry,
        b"\0" * 6 + struct.pack(">H", 1) + b"\0" * 16,
        struct.pack(">HHIIIH", video.width, video.height, 0x480000, 0x480000, 0, 1),
        b"\0" * 32,
        struct.pack(">Hh", 24, -1),
        box(video.config_name, video.config),
    )
