import struct
from collections.abc import Sequence
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media.rtsp_lean import units as units_module
from camserver.media.rtsp_lean.messages import Unfit
from camserver.media.rtsp_lean.units import RUN_MIN, Unit, Units
from camserver.media.rtsp_lean.wire import Wire
from camserver.services.simulator.rtp import Packer

START = b"\0\0\0\1"
SPS, PPS = b"\x67\x42\x00\x1e\xab", b"\x68\xce\x3c\x80"
# Recovery points (SEI of kind 6): whole at once, and after 9 pictures (ue(9) is 0001010).
AT_ONCE, LATER = b"\x06\x06\x01\xc0\x80", b"\x06\x06\x02\x14\x40\x80"


def key(size: int = 10, fill: int = 1) -> bytes:
    return b"\x65\x88" + bytes([fill]) * size


def other(size: int = 10, fill: int = 2, first: bool = True) -> bytes:
    return b"\x41" + (b"\x9a" if first else b"\x1a") + bytes([fill]) * size


def annex_b(*nals: bytes) -> bytes:
    return b"".join(START + nal for nal in nals)


def put_together(packets: Sequence[bytes], codec: str = "h264", payload_type: int = 96) -> list[Unit]:
    units = Units(codec, payload_type)
    for packet in packets:
        units.push(bytearray(packet), 0, len(packet))
    return list(units.done)


def received(packets: Sequence[bytes], others: set[int], sizes: Sequence[int], codec: str = "h264") -> list[Unit]:
    """The same over a connection, behind some of them a packet of another channel, read in pieces of these sizes."""
    sent = b"".join(
        interleaved(0, packet) + (interleaved(1, b"sound" * 4) if number in others else b"")
        for number, packet in enumerate(packets)
    )
    wire, units, sizes_again = Wire(), Units(codec, 96), cycle(sizes)

    def take(buffer: bytearray, channel: int, start: int, stop: int, end: int) -> int:
        if channel != 0:
            return stop
        units.push(buffer, start, stop)
        return units.push_more(buffer, channel, stop, end)

    while sent:
        units.detach()
        room = wire.room()
        count = min(len(room), len(sent), next(sizes_again))
        room[:count], sent = sent[:count], sent[count:]
        wire.read(count, take)
    return list(units.done)


def interleaved(channel: int, packet: bytes) -> bytes:
    return struct.pack("!BBH", 0x24, channel, len(packet)) + packet


def packed(pictures: Sequence[Sequence[bytes]], first_time: int = 1000, step: int = 3000) -> list[list[bytes]]:
    packer = Packer(7, 65_530)  # the numbers wrap soon
    return [packer.pack(nals, first_time + step * number) for number, nals in enumerate(pictures)]


def flat(packets: Sequence[Sequence[bytes]]) -> list[bytes]:
    return [one for some in packets for one in some]


nal = st.builds(
    lambda kind, body: bytes([0x60 | kind]) + b"\x88" + body, st.sampled_from([1, 5, 6, 7, 8, 9]), st.binary()
)
large = st.builds(lambda body: b"\x65\x88" + body * 40, st.binary(min_size=50, max_size=200))
picture = st.builds(
    lambda some, last: [*some, last], st.lists(nal | large, max_size=5), st.sampled_from([key(), other()])
)


@given(st.lists(picture, min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_what_was_packed_comes_out_again(pictures: list[list[bytes]], first_time: int) -> None:
    made = put_together(flat(packed(pictures, first_time)))
    assert [one.data for one in made] == [annex_b(*nals) for nals in pictures]
    assert [one.time for one in made] == [3000 * number for number in range(len(pictures))]


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_noise_never_crashes(noise: list[bytes]) -> None:
    for head in (
        b"",
        b"\x80\x60\0\1\0\0\0\1\0\0\0\1",
        b"\x90\x60\0\1\0\0\0\1\0\0\0\1",
        b"\xa0\x60\0\1\0\0\0\1\0\0\0\1",
    ):
        for codec in ("h264", "hevc"):
            try:
                put_together([head + one for one in noise], codec)
            except Unfit:
                continue  # nobody knows yet what the camera sends


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=60), st.booleans()), max_size=20))
def test_noise_after_a_picture_is_damage_and_the_next_keyframe_is_whole(noise: list[tuple[bytes, bool]]) -> None:
    for codec, first, later in (("h264", key(), key(9, 3)), ("hevc", IDR + b"xx", IDR + b"zz")):
        payloads = [
            (first, 0, True),
            *((one, 3000, mark) for one, mark in noise),
            (later, 6000, True),
            (first, 9000, True),
        ]
        packets = [
            struct.pack("!BBHII", 0x80, mark << 7 | 96, number, time, 7) + payload
            for number, (payload, time, mark) in enumerate(payloads)
        ]
        # Without its mark a picture ends where the next begins.
        made = put_together(packets, codec)
        assert made[0].data == annex_b(first)
        assert any(one.data.endswith(annex_b(later)) and one.is_keyframe for one in made)


@pytest.mark.parametrize(("codec", "kinds"), [("h264", [0, 25, 26, 27, 29, 30, 31]), ("hevc", [50, 51, 63])])
def test_a_packet_of_an_unknown_kind_among_pictures_spoils_only_them(codec: str, kinds: list[int]) -> None:
    first, plain = (key(), other()) if codec == "h264" else (IDR + b"xx", TRAIL + b"yy")
    for kind in kinds:
        odd = bytes([kind, 0, 0, 0]) if codec == "h264" else bytes([kind << 1, 1, 0, 0])
        packets = [
            struct.pack("!BBHII", 0x80, 0x80 | 96, number, 3000 * number, 7) + payload
            for number, payload in enumerate([first, plain, odd, plain, first, plain])
        ]
        made = put_together(packets, codec)
        # What follows the damage may build on it: nothing until the next picture that stands alone.
        assert [one.time for one in made] == [0, 3000, 12_000, 15_000]


@given(st.data())
def test_a_lost_packet_spoils_no_picture_that_is_given(data: st.DataObject) -> None:
    pictures = [[SPS, PPS, key(5000, number)] if number % 4 == 0 else [other(3000, number)] for number in range(12)]
    packets = flat(packed(pictures))
    lost = data.draw(st.sets(st.integers(1, len(packets) - 1), min_size=1, max_size=3))
    made = put_together([one for number, one in enumerate(packets) if number not in lost])
    # Parameter sets may be lost: they come again, and those from before are good.
    wholes = {annex_b(*nals[-1:]): number for number, nals in enumerate(pictures)}
    numbers = [wholes[one.data.removeprefix(annex_b(SPS, PPS))] for one in made]
    for number in numbers:
        # Whatever it builds on was given before it.
        assert set(range(number - number % 4, number)) <= set(numbers)


long_picture = st.builds(
    lambda some, sizes: [*some, *(key(size, 1 + number) for number, size in enumerate(sizes))],
    st.lists(st.sampled_from([SPS, PPS, AT_ONCE]), max_size=2),
    st.lists(st.integers(1, 40_000), min_size=1, max_size=3),
)


@given(
    st.lists(long_picture | picture, min_size=1, max_size=6),
    st.sets(st.integers(1, 60), max_size=2),
    st.sets(st.integers(0, 60), max_size=3),
    st.lists(st.sampled_from([1500, 5000, 20_000, 200_000]), min_size=1, max_size=4),
)
def test_in_runs_the_same_comes_out_as_packet_by_packet(
    pictures: list[list[bytes]], lost: set[int], others: set[int], sizes: list[int]
) -> None:
    packets = [one for number, one in enumerate(flat(packed(pictures))) if number not in lost]
    assert received(packets, others, sizes) == put_together(packets)


@pytest.mark.parametrize("changed_byte", [1, 3, 12, 13])
def test_a_packet_that_differs_ends_a_run(changed_byte: int) -> None:
    """Its mark, its number, how it is packed or what it is a piece of."""
    packets = flat(packed([[SPS, PPS, key(40_000)], [key(5)], [other()]]))
    number = 4 + 2 * RUN_MIN
    odd = bytearray(packets[number])
    odd[changed_byte] ^= 0x82 if changed_byte == 1 else 0x40
    packets[number] = bytes(odd)
    assert received(packets, set(), [200_000]) == put_together(packets)


def test_kinds_of_pictures() -> None:
    pictures = [[SPS, PPS, key()], [other()], [AT_ONCE, other()], [LATER, other()], [SPS, PPS, other()]]
    made = put_together(flat(packed(pictures)))
    assert [(one.is_keyframe, one.is_recovery) for one in made] == [
        (True, False),
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert [one.sets for one in made] == [annex_b(SPS, PPS), b"", b"", b"", annex_b(SPS, PPS)]


def marked(packet: bytes, is_marked: bool) -> bytes:
    return packet[:1] + bytes([packet[1] & 0x7F | (0x80 if is_marked else 0)]) + packet[2:]


def test_pictures_without_marks_end_where_the_next_begins() -> None:
    packets = [marked(one, False) for one in flat(packed([[SPS, PPS, key()], [other()], [other()]]))]
    assert [one.data for one in put_together(packets)] == [annex_b(SPS, PPS, key()), annex_b(other())]


def test_parameter_sets_that_are_marked_belong_to_the_picture() -> None:
    packer = Packer(7)
    packets = [
        *packer.pack([SPS], 0),
        *packer.pack([PPS], 0),
        *packer.pack([key()], 0),
        *packer.pack([other()], 3000),
    ]
    assert [one.data for one in put_together(packets)] == [annex_b(SPS, PPS, key()), annex_b(other())]


def test_parameter_sets_with_another_time_belong_to_the_next_picture() -> None:
    packer = Packer(7)
    packets = [*packer.pack([SPS, PPS], 0), *packer.pack([key()], 3000), *packer.pack([other()], 6000)]
    made = put_together(packets)
    assert [one.data for one in made] == [annex_b(SPS, PPS, key()), annex_b(other())]
    assert made[0].sets == annex_b(SPS, PPS)


def test_a_camera_that_marks_every_slice_is_found_out() -> None:
    packer = Packer(7)
    packets = []
    for number in range(6):
        nals = [SPS, PPS, key(), b"\x65\x08more"] if number % 3 == 0 else [other(), other(first=False)]
        packets += [marked(one, True) for nal in nals for one in packer.pack([nal], 3000 * number)]
    made = put_together(packets)
    # The first ones are wrong, but from the next keyframe on all slices are there.
    assert made[-2].data == annex_b(SPS, PPS, key(), b"\x65\x08more")
    assert made[-1].data == annex_b(other(), other(first=False))


def test_pictures_out_of_order_are_found_out() -> None:
    packer = Packer(7)
    times = [0, 9000, 3000, 6000, 18_000, 12_000, 15_000, 27_000, 21_000, 24_000]
    made = put_together([one for time in times for one in packer.pack([key()], time)])
    assert [one.time for one in made] == times
    assert [one.is_in_order for one in made[:4] + made[-2:]] == [True] * 4 + [False] * 2


def test_a_clock_that_jumps_back_once_is_no_reordering() -> None:
    packer = Packer(7)
    times = [100_000, 103_000, 106_000, 1000, 4000, 7000]
    made = put_together([one for time in times for one in packer.pack([key()], time)])
    assert [one.time for one in made] == [time - 100_000 for time in times]
    assert all(one.is_in_order for one in made)


def test_a_clock_that_stands_still_gives_one_picture_for_each_mark() -> None:
    packer = Packer(7)
    made = put_together([one for _ in range(4) for one in packer.pack([key()], 5000)])
    assert [one.time for one in made] == [0] * 4


def test_headers_may_have_contributors_an_extension_and_padding() -> None:
    body = key()
    packet = struct.pack("!BBHII", 0x80 | 0x20 | 0x10 | 2, 0x80 | 96, 1, 0, 7) + bytes(8)
    packet += struct.pack("!HH", 0xBEDE, 1) + bytes(4) + body + b"\0\0\3"
    assert [one.data for one in put_together([packet])] == [annex_b(body)]


def test_other_payload_types_are_passed_over() -> None:
    assert put_together(flat(packed([[key()]])), payload_type=97) == []


@pytest.mark.parametrize("kind", [0, 25, 26, 27, 29, 30, 31])
def test_interleaved_packets_are_for_another_reader(kind: int) -> None:
    with pytest.raises(Unfit):
        put_together([struct.pack("!BBHII", 0x80, 96, 1, 0, 7) + bytes([kind, 0, 0, 0])])


def test_a_picture_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "UNIT_MAX_BYTES", 10_000)
    made = put_together(flat(packed([[key(50_000)], [key(100)]])))
    assert [len(one.data) for one in made] == [len(annex_b(key(100)))]


VPS, HSPS, HPPS = b"\x40\x01aaa", b"\x42\x01bbb", b"\x44\x01ccc"
IDR, TRAIL = b"\x26\x01\xaf", b"\x02\x01\xd0"


def hevc_packets() -> list[bytes]:
    """Together (48), in pieces (49) and alone."""
    together = b"\x60\x01" + b"".join(struct.pack("!H", len(one)) + one for one in (VPS, HSPS, HPPS))
    idr = IDR + b"x" * 5
    pieces = [b"\x62\x01" + bytes([0x80 | 19]) + idr[2:5], b"\x62\x01" + bytes([0x40 | 19]) + idr[5:]]
    payloads = [(together, 0, 0), (pieces[0], 0, 0), (pieces[1], 1, 0), (TRAIL + b"yy", 1, 3000)]
    return [
        struct.pack("!BBHII", 0x80, mark << 7 | 96, number, time, 7) + payload
        for number, (payload, mark, time) in enumerate(payloads)
    ]


def test_hevc() -> None:
    made = put_together(hevc_packets(), "hevc")
    assert [one.data for one in made] == [annex_b(VPS, HSPS, HPPS, IDR + b"x" * 5), annex_b(TRAIL + b"yy")]
    assert [one.is_keyframe for one in made] == [True, False]
    assert made[0].sets == annex_b(VPS, HSPS, HPPS)


def test_hevc_in_runs() -> None:
    body = bytes(range(256)) * 100
    cuts = [body[begin : begin + 1000] for begin in range(0, len(body), 1000)]
    heads = [0x80 | 19, *[19] * (len(cuts) - 2), 0x40 | 19]
    packets = [
        struct.pack("!BBHII", 0x80, (head == heads[-1]) << 7 | 96, number, 0, 7) + b"\x62\x01" + bytes([head]) + cut
        for number, (head, cut) in enumerate(zip(heads, cuts, strict=True))
    ]
    assert [one.data for one in received(packets, {9}, [200_000], "hevc")] == [annex_b(IDR[:2] + body)]
    assert received([*packets[:9], *packets[10:]], set(), [200_000], "hevc") == []


def test_hevc_with_a_hole_in_its_keyframe_gives_nothing() -> None:
    packets = hevc_packets()
    assert put_together([packets[0], *packets[2:]], "hevc") == []
