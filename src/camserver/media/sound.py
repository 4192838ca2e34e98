"""Sound in MP4 for browsers: how a track is described, how long a piece lasts, and what silence is.

AAC and Opus only, which is what browsers play. Pure bytes, no decoder.
"""

import struct

from camserver.base.errors import BadInput
from camserver.media.boxes import box, full_box
from camserver.media.fragments import Sound
from camserver.media.packets import SoundShape

AAC_FRAME = 1024  # samples
OPUS_RATE = 48_000
_AAC_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
# Milliseconds a frame by an Opus packet's first five bits, in quarters (RFC 6716, table 2).
_SILK, _HYBRID, _CELT = (40, 80, 160, 240), (40, 80), (10, 20, 40, 80)
_OPUS_QUARTERS = _SILK * 3 + _HYBRID * 2 + _CELT * 4
# Nothing to hear: one channel, and two.
_AAC_SILENCE = {1: bytes.fromhex("00c800802380"), 2: bytes.fromhex("210049900219002380")}
_OPUS_SILENCE = bytes.fromhex("fcfffe")  # 20 ms


def describe_sound(codec: str, config: bytes, shape: SoundShape) -> Sound:
    """The track of an MP4 file; BadInput when browsers don't play it or its description makes no sense."""
    if codec == "opus":
        head = struct.pack(">BBHIhB", 0, shape.channels, 0, OPUS_RATE, 0, 0)
        return Sound("opus", _entry(b"Opus", shape.channels, OPUS_RATE, box(b"dOps", head)), OPUS_RATE)
    if codec != "aac":
        raise BadInput(f"browsers do not play {codec} sound")
    kind, rate, channels = _aac(config)
    specific = bytes((5, len(config))) + config
    decoder = bytes((4, 13 + len(specific), 0x40, 0x15)) + b"\0" * 11 + specific
    whole = bytes((3, 3 + len(decoder) + 3)) + b"\0\2\0" + decoder + b"\6\1\2"
    return Sound(f"mp4a.40.{kind}", _entry(b"mp4a", channels, rate, full_box(b"esds", 0, 0, whole)), rate)


def length(codec: str, data: bytes) -> int:
    """How long a piece lasts, in the ticks of its track."""
    if codec != "opus":
        return AAC_FRAME
    if not data:
        return 0
    code = data[0] & 3
    count = 1 if code == 0 else 2 if code < 3 else (data[1] & 63 if len(data) > 1 else 0)
    return min(count * _OPUS_QUARTERS[data[0] >> 3] * OPUS_RATE // 4000, 6 * OPUS_RATE // 50)


def silence(codec: str, channels: int) -> bytes:
    """A piece with nothing to hear."""
    return _OPUS_SILENCE if codec == "opus" else _AAC_SILENCE[2 if channels == 2 else 1]


def _aac(config: bytes) -> tuple[int, int, int]:
    """Kind, rate and channels by the AudioSpecificConfig (ISO 14496-3)."""
    if not 2 <= len(config) <= 64:
        raise BadInput("the AAC sound comes without its description")
    bits = int.from_bytes(config[:2], "big")
    kind, rate, channels = bits >> 11, bits >> 7 & 15, bits >> 3 & 15
    if kind == 31 or rate >= len(_AAC_RATES) or not 1 <= channels <= 2:
        raise BadInput("the AAC sound is of a kind that is not known here")
    return kind, _AAC_RATES[rate], channels


def _entry(name: bytes, channels: int, rate: int, about: bytes) -> bytes:
    head = b"\0" * 6 + struct.pack(">H", 1) + b"\0" * 8 + struct.pack(">HHHHI", channels, 16, 0, 0, rate << 16)
    return box(name, head, about)
