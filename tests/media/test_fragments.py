"""Fragments: what a browser would get is an MP4 that FFmpeg reads, with the pictures and times that went in."""

import io
import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from camserver.base.errors import BadInput
from camserver.media import nal_units
from camserver.media.fragments import (
    TICKS_PER_SEC,
    VIDEO_TRACK,
    Timeline,
    fragment_head,
    init_segment,
    mime_of,
    sample_pieces,
)
from camserver.media.packets import Packet
from camserver.media.parameter_sets import describe
from tests.media.video import encoded, flat, refreshed

TICK = Fraction(1, TICKS_PER_SEC)
SHADES = [40, 60, 80, 100, 120, 140, 160, 180]


def fragmented(packets: Sequence[Packet]) -> bytes:
    codec = packets[0].stream.codec
    described = describe(codec, nal_units.kind_of_bytes(codec, packets[0].data).sets)
    out, timeline = [init_segment(described)], Timeline()
    for number, packet in enumerate(packets):
        placed = timeline.place(packet.pts, packet.dts, packet.stream.time_base, packet.is_keyframe, packet.boot_ms)
        pieces = sample_pieces(codec, packet.data)
        size = sum(map(len, pieces))
        head = fragment_head(
            number, VIDEO_TRACK, placed.dts, placed.offset, placed.duration, size, packet.is_keyframe
        )
        out += [head, *pieces]
    return b"".join(out)


def decoded(mp4: bytes) -> list[Any]:
    with av.open(io.BytesIO(mp4), format="mp4") as container:
        return list(container.decode(video=0))


def shades_of(frames: Sequence[Any]) -> list[float]:
    return [float(frame.to_ndarray()[: frame.height].mean()) for frame in frames]


def stamped(packets: list[Packet], ticks: int = 9000) -> list[Packet]:
    """With times as a camera's clock has them."""
    return [
        Packet(one.stream, (one.pts or 0) * ticks, None if one.dts is None else one.dts * ticks, *rest(one))
        for one in packets
    ]


def rest(one: Packet) -> tuple[bool, bytes, int]:
    return one.is_keyframe, one.data, one.boot_ms


@pytest.mark.parametrize("size", [(640, 360), (322, 182), (1920, 1080)])
def test_h264_is_decoded_as_it_went_in(size: tuple[int, int]) -> None:
    packets = stamped(encoded([flat(shade, size) for shade in SHADES], 4))
    frames = decoded(fragmented(packets))
    assert [(frame.width, frame.height) for frame in frames] == [size] * len(SHADES)
    assert shades_of(frames) == pytest.approx(SHADES, abs=3)
    assert [frame.key_frame for frame in frames] == [number % 4 == 0 for number in range(8)]
    times = np.diff([frame.pts for frame in frames])
    assert list(times) == [9000] * 7


@pytest.mark.parametrize("with_dts", [True, False])
def test_b_frames_are_shown_in_order(with_dts: bool) -> None:
    made = encoded([flat(shade) for shade in SHADES * 2], 8, bf="2", tune="psnr")
    packets = stamped(made)
    if not with_dts:
        packets = [Packet(one.stream, one.pts, None, *rest(one)) for one in packets]
    assert any(later.pts < earlier.pts for earlier, later in itertools.pairwise(packets)), "no B-frames"
    frames = decoded(fragmented(packets))
    assert shades_of(frames) == pytest.approx(SHADES * 2, abs=4)
    times = [frame.pts for frame in frames]
    assert times == sorted(set(times))


def test_h265_is_decoded_as_it_went_in() -> None:
    packets = refreshed(10)
    frames = decoded(fragmented(packets))
    assert len(frames) == 10
    assert {(frame.width, frame.height) for frame in frames} == {(320, 192)}


def test_known_places_of_units_give_the_same() -> None:
    for packet in (*encoded([flat(90), flat(91)]), *refreshed(2)):
        nals = nal_units.split(packet.data)
        data = nal_units.joined(nals)
        ends = list(itertools.accumulate(len(nal) + 4 for nal in nals))
        starts = [4, *(end + 4 for end in ends[:-1])]
        codec = packet.stream.codec
        assert b"".join(sample_pieces(codec, data, starts)) == b"".join(sample_pieces(codec, packet.data))


def test_what_a_browser_is_told() -> None:
    packet = encoded([flat(90)], profile="high", level="3.1")[0]
    sets = nal_units.kind_of_bytes("h264", packet.data).sets
    described = describe("h264", sets)
    assert (described.width, described.height) == (640, 360)
    sps = next(nal for nal in nal_units.split(sets) if nal[0] & 31 == 7)
    assert mime_of(described) == f'video/mp4; codecs="avc1.{sps[1:4].hex()}"'
    hevc = describe("hevc", nal_units.kind_of_bytes("hevc", refreshed(1)[0].data).sets)
    assert hevc.mime.startswith("hvc1.1.6.L")


@pytest.mark.parametrize(
    ("codec", "extradata"),
    [
        ("h264", b""),
        ("h264", b"\0\0\1\x67\x64"),
        ("hevc", b"\0\0\1\x42\1\1"),
        ("mjpeg", b""),
        ("h264", b"\0\0\1" * 9),
    ],
)
def test_what_can_not_be_described_is_refused(codec: str, extradata: bytes) -> None:
    with pytest.raises(BadInput):
        describe(codec, extradata)


class TestTimeline:
    def test_a_new_connection_goes_on_later(self) -> None:
        timeline = Timeline()
        first = timeline.place(900_000_000, 900_000_000, TICK, True, 1000)
        second = timeline.place(900_006_000, 900_006_000, TICK, False, 1066)
        assert second.dts - first.dts == 6000
        timeline.begin_anew()
        third = timeline.place(5, 5, TICK, True, 3066)
        assert third.dts - second.dts == 2000 * 90

    def test_a_camera_that_sets_its_clock_is_followed(self) -> None:
        timeline = Timeline()
        first = timeline.place(90_000, 90_000, TICK, True, 1000)
        later = timeline.place(9_000_000_000, 9_000_000_000, TICK, False, 1100)
        back = timeline.place(6_000, 6_000, TICK, False, 1200)
        assert later.dts - first.dts == 9000
        assert back.dts - later.dts == 9000

    def test_times_never_stand_still(self) -> None:
        timeline = Timeline()
        times = [timeline.place(1000, 1000, TICK, number == 0, 5).dts for number in range(5)]
        assert times == sorted(set(times))

    def test_without_times_they_are_shown_as_they_come(self) -> None:
        timeline = Timeline()
        timeline.place(None, None, TICK, True, 1000)
        one = timeline.place(None, None, TICK, False, 1040)
        two = timeline.place(None, None, TICK, False, 1100)
        assert (two.dts - one.dts, two.offset) == (60 * 90, 0)
