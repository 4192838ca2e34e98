"""Packs H.264 access units into RTP packets (RFC 6184, packetization mode 1), framed for RTSP over TCP.

Small NAL units of one access unit go together (STAP-A), large ones in pieces (FU-A).
"""

import struct
from collections.abc import Iterable, Iterator

PAYLOAD_TYPE = 96
PAYLOAD_MAX_BYTES = 1400

_STAP_A, _FU_A = 24, 28
_HEADER = struct.Struct("!BBHII")
_FRAME = struct.Struct("!cBH")
_SIZE = struct.Struct("!H")


class Packer:
    """Numbers the packets of one stream, for all who listen to it."""

    def __init__(self, ssrc: int, seq: int = 0) -> None:
        self.ssrc = ssrc
        self._seq = seq

    def pack(self, nals: Iterable[bytes], timestamp: int) -> list[bytes]:
        """The RTP packets of an access unit; the last one is marked."""
        payloads = list(payloads_of(nals))
        packets = []
        for number, payload in enumerate(payloads):
            marker = 0x80 if number == len(payloads) - 1 else 0
            head = _HEADER.pack(0x80, marker | PAYLOAD_TYPE, self._seq, timestamp % 2**32, self.ssrc)
            self._seq = (self._seq + 1) % 2**16
            packets.append(head + payload)
        return packets


def payloads_of(nals: Iterable[bytes]) -> Iterator[bytes]:
    together: list[bytes] = []
    for nal in nals:
        if together and _stap_bytes([*together, nal]) > PAYLOAD_MAX_BYTES:
            yield _together(together)
            together = []
        if len(nal) > PAYLOAD_MAX_BYTES - 3:
            yield from _pieces(nal) if len(nal) > PAYLOAD_MAX_BYTES else (nal,)
        else:
            together.append(nal)
    if together:
        yield _together(together)


def interleave(packets: Iterable[bytes], channel: int) -> bytes:
    """RTP packets as they stand between RTSP messages."""
    return b"".join(_FRAME.pack(b"$", channel, len(packet)) + packet for packet in packets)


def _stap_bytes(nals: list[bytes]) -> int:
    return 1 + sum(_SIZE.size + len(nal) for nal in nals)


def _together(nals: list[bytes]) -> bytes:
    if len(nals) == 1:
        return nals[0]
    importance = max(nal[0] & 0x60 for nal in nals)
    return bytes([importance | _STAP_A]) + b"".join(_SIZE.pack(len(nal)) + nal for nal in nals)


def _pieces(nal: bytes) -> Iterator[bytes]:
    indicator, kind = nal[0] & 0xE0 | _FU_A, nal[0] & 0x1F
    step = PAYLOAD_MAX_BYTES - 2
    for start in range(1, len(nal), step):
        first = 0x80 if start == 1 else 0
        last = 0x40 if start + step >= len(nal) else 0
        yield bytes([indicator, first | last | kind]) + nal[start : start + step]
