import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media import nal_units
from camserver.media.nal_units import UnitKind, joined, kind_of, kind_of_bytes, recovery_point, split
from tests.media.video import encoded, flat

SPS, PPS, IDR, P = b"\x67\x42\x00\x1e", b"\x68\xce", b"\x65\x88\x80", b"\x41\x9a\x01"


@given(st.lists(st.sampled_from([SPS, PPS, IDR, P, b"\x06\x05\x01\xff\x80"]), max_size=nal_units.NALS_MAX))
def test_what_is_joined_is_split_again(nals: list[bytes]) -> None:
    assert split(joined(nals)) == nals
    assert split(b"".join(b"\0\0\1" + nal for nal in nals)) == nals


def test_a_unit_of_very_many_is_cut_short() -> None:
    assert len(split(joined([P] * 500))) == nal_units.NALS_MAX


@given(st.binary(max_size=200), st.sampled_from(["h264", "hevc"]))
def test_noise(noise: bytes, codec: str) -> None:
    kind_of_bytes(codec, noise)
    kind_of_bytes(codec, b"\0\0\1" + noise)
    recovery_point(codec, noise)


@pytest.mark.parametrize(
    ("sei", "count"),
    [
        (b"\x06\x06\x01\xc0\x80", 0),  # ue(0) is 1
        (b"\x06\x06\x02\x14\x40\x80", 9),  # ue(9) is 0001010
        (b"\x06\x05\x02ab\x06\x01\x64\x80", 2),  # after something else; ue(2) is 011
        (b"\x06\x05\x02ab\x80", -1),
        (b"\x06", -1),
        (b"\x06\xff\xff\xff", -1),
        (b"\x06\x06\x02\x00\x00\x80", -1),
    ],
)
def test_recovery_points(sei: bytes, count: int) -> None:
    assert recovery_point("h264", sei) == count


@pytest.mark.parametrize(
    ("sei", "count"),
    [
        (b"\x4e\x01\x06\x01\xd0\x80", 0),  # se(0) is 1
        (b"\x4e\x01\x06\x01\x50\x80", 1),  # se(1) is 010
        (b"\x4e\x01\x06\x01\x70\x80", 0),  # se(-1) is 011: whole before it
        (b"\x4e\x01\x06\x02\x04\xd4\x80", 19),  # se(19) is 00000100110
        (b"\x4e\x01\x05\x02ab\x06\x01\x50\x80", 1),  # after something else
        (b"\x4e\x01\x05\x02ab\x80", -1),
        (b"\x4e", -1),
    ],
)
def test_recovery_points_of_hevc(sei: bytes, count: int) -> None:
    assert recovery_point("hevc", sei) == count
    kind = kind_of("hevc", [sei, b"\x02\x01\xd0"])
    assert (kind.is_keyframe, kind.is_recovery) == (count == 0, count > 0)


def test_kinds() -> None:
    at_once, later = b"\x06\x06\x01\xc0\x80", b"\x06\x06\x02\x14\x40\x80"
    assert kind_of("h264", [SPS, PPS, IDR]) == UnitKind(True, False, joined([SPS, PPS]))
    assert kind_of("h264", [P]) == UnitKind(False, False, b"")
    assert kind_of("h264", [at_once, P]) == UnitKind(True, False, b"")
    assert kind_of("h264", [later, P]) == UnitKind(False, True, b"")
    assert kind_of("h264", [SPS, PPS]) == UnitKind(False, False, joined([SPS, PPS]), has_picture=False)
    assert kind_of("h264", [SPS, P]).sets == b""  # one without the other is no beginning
    assert kind_of("hevc", [b"\x26\x01\xaf"]).is_keyframe
    assert not kind_of("hevc", [b"\x02\x01\xd0"]).is_keyframe


def test_real_video() -> None:
    packets = encoded([flat(90), flat(120)])
    kinds = [kind_of_bytes("h264", packet.data) for packet in packets]
    assert [kind.is_keyframe for kind in kinds] == [True, False]
    assert kinds[0].sets.startswith(nal_units.START_CODE + b"\x67")
