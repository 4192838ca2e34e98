"""H.264 and H.265 in Annex B, as far as one must know what a packet is without decoding it.

An access unit is a picture; it is made of NAL units. Parameter sets say size and profile; a keyframe can be decoded
alone; a recovery point can be decoded from, though the picture is whole only some pictures later.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

START_CODE = b"\x00\x00\x00\x01"
_ANY_START = re.compile(rb"\x00\x00\x01")
# Enough for everything that comes before the picture itself.
NALS_MAX = 64
# H.264 (ITU-T H.264 table 7-1)
AVC_IDR, AVC_SEI, AVC_SPS, AVC_PPS, AVC_DELIMITER = 5, 6, 7, 8, 9
AVC_PICTURE = frozenset(range(1, 6))
AVC_SETS = frozenset({AVC_SPS, AVC_PPS})
AVC_KEY = frozenset({AVC_IDR})
# What says whether a unit is a keyframe or a recovery point, or holds parameter sets.
AVC_TELLING = AVC_SETS | {AVC_IDR, AVC_SEI}
# H.265 (ITU-T H.265 table 7-1)
HEVC_VPS, HEVC_SPS, HEVC_PPS, HEVC_SEI = 32, 33, 34, 39
HEVC_PICTURE = frozenset(range(32))
HEVC_KEY = frozenset(range(16, 22))
HEVC_SETS = frozenset({HEVC_VPS, HEVC_SPS, HEVC_PPS})
HEVC_TELLING = HEVC_SETS | HEVC_KEY | {HEVC_SEI}
RECOVERY_POINT = 6  # a kind of SEI


@dataclass(frozen=True, slots=True)
class UnitKind:
    """What an access unit is."""

    is_keyframe: bool
    is_recovery: bool
    sets: bytes  # its parameter sets in Annex B; empty when it does not hold all of them
    has_picture: bool = True


# What most units are: a picture that builds on others.
PLAIN = UnitKind(is_keyframe=False, is_recovery=False, sets=b"")


def avc_type(nal_first: int) -> int:
    return nal_first & 31


def hevc_type(nal_first: int) -> int:
    return nal_first >> 1 & 63


def kind_of(codec: str, nals: Sequence[bytes]) -> UnitKind:
    """What the unit of these NAL units (without start codes) is."""
    is_hevc = codec == "hevc"
    type_of = hevc_type if is_hevc else avc_type
    types = [type_of(nal[0]) for nal in nals if nal]
    sets = _sets(nals, types, HEVC_SETS if is_hevc else AVC_SETS)
    has_picture = not (HEVC_PICTURE if is_hevc else AVC_PICTURE).isdisjoint(types)
    if not (HEVC_KEY if is_hevc else AVC_KEY).isdisjoint(types):
        return UnitKind(True, False, sets)
    pictures_left = min((left for left in recovery_points(codec, nals) if left >= 0), default=-1)
    # An open group begins with a whole picture that says so by a recovery point at once.
    return UnitKind(has_picture and pictures_left == 0, has_picture and pictures_left > 0, sets, has_picture)


def kind_of_bytes(codec: str, data: bytes) -> UnitKind:
    """The same of an access unit in Annex B."""
    return kind_of(codec, split(data))


def split(data: bytes) -> list[bytes]:
    """The NAL units of an access unit, the last of at most NALS_MAX with all that follows."""
    begins = []
    for match in _ANY_START.finditer(data):
        begins.append(match.end())
        if len(begins) == NALS_MAX:
            break
    nals = []
    for number, begin in enumerate(begins):
        end = begins[number + 1] - 3 if number + 1 < len(begins) else len(data)
        nal = data[begin:end].rstrip(b"\x00") if number + 1 < len(begins) else data[begin:end]
        if nal:
            nals.append(nal)
    return nals


def joined(nals: Iterable[bytes]) -> bytes:
    """In Annex B."""
    return b"".join(START_CODE + nal for nal in nals)


def recovery_points(codec: str, nals: Iterable[bytes]) -> list[int]:
    """What each SEI among these NAL units says about it."""
    kind, type_of = (HEVC_SEI, hevc_type) if codec == "hevc" else (AVC_SEI, avc_type)
    return [recovery_point(codec, nal) for nal in nals if nal and type_of(nal[0]) == kind]


def recovery_point(codec: str, sei: bytes) -> int:
    """How many pictures after an SEI's picture all is new; -1 when it says nothing about that."""
    # Three bytes 0 0 3 stand for 0 0: the 3 keeps start codes out.
    payload = sei[2 if codec == "hevc" else 1 :].replace(b"\x00\x00\x03", b"\x00\x00")
    at = 0
    while at + 2 <= len(payload):
        kind, at = _count(payload, at)
        size, at = _count(payload, at)
        if kind == RECOVERY_POINT and at < len(payload):
            count = _exp_golomb(payload[at : at + 8])
            # H.265 has a signed number there, 1, -1, 2, -2 …; what is new in pictures before it is new in it as well.
            return count if codec != "hevc" or count < 0 else (count + 1) // 2 if count % 2 else 0
        at += size
        if payload[at : at + 1] == b"\x80":
            break
    return -1


def first_slice_begins(codec: str, nal: Sequence[int]) -> bool:
    """Whether a NAL unit of picture data is the first of its picture."""
    # H.264: first_mb_in_slice is 0, the single bit 1. H.265: first_slice_segment_in_pic_flag.
    at = 2 if codec == "hevc" else 1
    return len(nal) > at and bool(nal[at] & 0x80)


def _sets(nals: Sequence[bytes], types: Sequence[int], wanted: frozenset[int]) -> bytes:
    if not wanted.issubset(types):
        return b""
    return joined(nal for nal in nals if nal and _type(nal, wanted) in wanted)


def _type(nal: bytes, wanted: frozenset[int]) -> int:
    return hevc_type(nal[0]) if wanted is HEVC_SETS else avc_type(nal[0])


def _count(payload: bytes, at: int) -> tuple[int, int]:
    """A number that is written as 255s and a rest."""
    total = 0
    while at < len(payload) and payload[at] == 255:
        total += 255
        at += 1
    if at < len(payload):
        total += payload[at]
    return total, at + 1


def _exp_golomb(data: bytes) -> int:
    bits = int.from_bytes(data, "big")
    length = 8 * len(data)
    zeros = length - bits.bit_length()
    if bits == 0 or 2 * zeros + 1 > length:
        return -1
    return (bits >> (length - 2 * zeros - 1)) - 1
