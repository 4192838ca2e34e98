import struct
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from camserver.services.simulator.rtp import PAYLOAD_MAX_BYTES, Packer, interleave, payloads_of

# A NAL unit begins with its type (1..23) and importance.
nals = st.builds(
    lambda kind, importance, body: bytes([importance << 5 | kind]) + body,
    st.integers(1, 23),
    st.integers(0, 3),
    st.integers(0, 5000).map(lambda size: bytes(range(256)) * (size // 256) + bytes(size % 256)),
)


def unpacked(payloads: list[bytes]) -> list[bytes]:
    """What a receiver makes of it (RFC 6184), written independently of the packing."""
    got: list[bytes] = []
    pieces = b""
    for payload in payloads:
        kind = payload[0] & 31
        if kind == 24:
            at = 1
            while at < len(payload):
                (size,) = struct.unpack_from("!H", payload, at)
                got.append(payload[at + 2 : at + 2 + size])
                at += 2 + size
        elif kind == 28:
            if payload[1] & 0x80:
                pieces = bytes([payload[0] & 0xE0 | payload[1] & 31])
            pieces += payload[2:]
            if payload[1] & 0x40:
                got.append(pieces)
        else:
            got.append(payload)
    return got


@given(st.lists(nals, min_size=1, max_size=12))
def test_a_receiver_gets_the_same_nal_units(units: list[bytes]) -> None:
    payloads = list(payloads_of(units))
    assert all(len(payload) <= PAYLOAD_MAX_BYTES for payload in payloads)
    assert unpacked(payloads) == units


def test_small_ones_travel_together_large_ones_in_pieces() -> None:
    sps, pps, idr = b"\x67" + bytes(20), b"\x68" + bytes(4), b"\x65" + bytes(3000)
    payloads = list(payloads_of([sps, pps, idr]))
    assert [payload[0] & 31 for payload in payloads] == [24, 28, 28, 28]
    assert payloads[0][0] & 0x60 == 0x60  # as important as the most important in it


def test_headers_count_up_and_the_last_packet_is_marked() -> None:
    packer = Packer(ssrc=7, seq=0xFFFF)
    packets = packer.pack([b"\x65" + bytes(3000)], 2**32 + 90)
    heads = [struct.unpack_from("!BBHII", packet) for packet in packets]
    assert [head[2] for head in heads] == [0xFFFF, 0, 1]
    assert [head[1] & 0x80 for head in heads] == [0, 0, 0x80]
    assert {(head[0], head[1] & 0x7F, head[3], head[4]) for head in heads} == {(0x80, 96, 90, 7)}
    more = packer.pack([b"\x41\x01"], 180)
    assert struct.unpack_from("!H", more[0], 2)[0] == 2


@given(st.lists(st.lists(nals, min_size=1, max_size=3), min_size=2, max_size=6))
def test_numbers_never_skip(units: list[list[bytes]]) -> None:
    packer = Packer(1, 65_530)
    seqs = [struct.unpack_from("!H", one, 2)[0] for unit in units for one in packer.pack(unit, 0)]
    assert all((later - earlier) % 65_536 == 1 for earlier, later in pairwise(seqs))


def test_interleaved_frames() -> None:
    assert interleave([b"abc", b"d"], 2) == b"$\x02\x00\x03abc$\x02\x00\x01d"
