"""Transcoding: what comes out is H.264 that shows the same, masked where it must be, and no more than was allowed."""

import io
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from camserver.domain.leases import Fault
from camserver.media.packets import Miss, Packet, SoundShape, Stream
from camserver.media.parameter_sets import describe
from camserver.media.sound_encoding import AAC_STREAM
from camserver.media.transcoding import (
    HOPELESS_MS,
    LATE_MS,
    Transcoding,
    VideoTranscoder,
    VideoWork,
    target_size,
)
from tests.media.video import encoded, flat, refreshed
from tests.rig.polling import until

SHADES = [40, 60, 80, 100, 120, 140]
LEFT_HALF = (((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)),)


def jpegs(shades: Sequence[int]) -> list[Packet]:
    from PIL import Image

    stream = Stream("mjpeg", b"", Fraction(1, 1000))
    made = []
    for number, shade in enumerate(shades):
        file = io.BytesIO()
        Image.fromarray(flat(shade, (320, 192))).convert("RGB").save(file, "JPEG")
        made.append(Packet(stream, 100 * number, None, True, file.getvalue(), 100 * number))
    return made


def stamped(packets: Sequence[Packet]) -> list[Packet]:
    """Ten a second, as a camera's clock has it."""
    return [
        Packet(one.stream, (one.pts or 0) * 9000, None, one.is_keyframe, one.data, 100 * number)
        for number, one in enumerate(packets)
    ]


def through(transcoder: VideoTranscoder, packets: Sequence[Packet], late_ms: int = 0) -> list[Packet]:
    return [made for packet in packets for made in transcoder.feed(packet, late_ms)]


def pictures(packets: Sequence[Packet]) -> list[Any]:
    decoder: Any = av.CodecContext.create("h264", "r")
    frames = [frame for packet in packets for frame in decoder.decode(av.Packet(packet.data))]
    return [*frames, *decoder.decode(None)]


def luma(frame: Any) -> Any:
    return frame.to_ndarray(format="gray")


@pytest.mark.parametrize(
    "packets",
    [
        pytest.param(refreshed(8), id="h265 with intra refresh"),
        pytest.param(stamped(encoded([flat(shade) for shade in SHADES], 4, bf="2", b_adapt="0")), id="b-frames"),
        pytest.param(stamped(encoded([flat(shade) for shade in SHADES], 4, "yuvj420p")), id="full range"),
        pytest.param(jpegs(SHADES), id="mjpeg"),
    ],
)
def test_what_comes_out_is_plain_h264_in_order(packets: list[Packet]) -> None:
    made = through(VideoTranscoder(VideoWork(width_max=320, fps_max=30)), packets)
    assert len(made) >= len(packets) - 3  # what was put in order is still inside
    assert made[0].is_keyframe
    about = describe("h264", made[0].stream.extradata)
    assert (about.mime[:8], about.width) == ("avc1.4d4", 320) or (about.mime[:7], about.width) == ("avc1.42", 320)
    times = [one.pts or 0 for one in made]
    assert times == sorted(set(times))
    shades = [float(luma(frame).mean()) for frame in pictures(made)]
    assert shades == sorted(shades)
    assert np.diff([one.boot_ms for one in made]).min() >= 0


@pytest.mark.parametrize("rotation", [0, 90])
def test_nothing_under_a_mask_comes_out(rotation: int) -> None:
    packets = stamped(encoded([flat(200, (640, 384))] * 4, 4))
    made = through(VideoTranscoder(VideoWork(width_max=320, rotation=rotation, masks=LEFT_HALF)), packets)
    frames = pictures(made)
    assert len(frames) == 4
    for frame in frames:
        assert (frame.width, frame.height) == ((320, 192) if rotation == 0 else (192, 320))
        gray = luma(frame)
        middle = frame.width // 2
        assert gray[:, : middle - 2].max() < 20
        assert gray[:, middle + 4 :].min() > 150


def test_it_keeps_to_its_rate_and_size() -> None:
    packets = [
        Packet(one.stream, 3000 * number, None, one.is_keyframe, one.data, 33 * number)
        for number, one in enumerate(encoded([flat(40 + number, (640, 384)) for number in range(75)], 30))
    ]
    made = through(VideoTranscoder(VideoWork(width_max=320, fps_max=10)), packets)
    assert 18 <= len(made) <= 27  # 2.5 seconds at ten a second, whatever the steps of thirty allow
    # A keyframe every two seconds, for those who come later.
    first, second = [one.pts or 0 for one in made if one.is_keyframe]
    assert (first, second - first) == (made[0].pts, 180_000)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((3840, 2160), (1280, 720)), ((640, 360), (640, 360)), ((1081, 1921), (720, 1280)), ((1, 1), (2, 2))],
)
def test_sizes(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert target_size(*size, 1280) == expected


def test_what_is_late_is_left_out_and_what_is_hopeless_up_to_the_next_keyframe() -> None:
    transcoder = VideoTranscoder(VideoWork(fps_max=30))
    packets = stamped(encoded([flat(40 + 4 * number) for number in range(12)], 4))
    assert len(through(transcoder, packets[:2])) == 2
    assert through(transcoder, packets[2:3], LATE_MS + 1) == []
    assert len(through(transcoder, packets[3:4])) == 1  # it was decoded all the same
    assert through(transcoder, packets[4:5], HOPELESS_MS + 1) == []
    assert through(transcoder, packets[5:8]) == []
    assert len(through(transcoder, packets[8:])) == 4


class Taken:
    """A `Consumer` that keeps what comes."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.miss: Miss | None = None

    def offer(self, packet: Packet) -> None:
        self.packets.append(packet)

    def ended(self, miss: Miss) -> None:
        self.miss = miss

    def of(self, stream: Stream) -> list[Packet]:
        return [one for one in self.packets if one.stream == stream]


G711 = Stream("pcm_mulaw", b"", Fraction(1, 8000), sound=SoundShape(8000, 1))


async def test_pictures_go_straight_and_telephone_sound_becomes_aac() -> None:
    taken = Taken()
    work = Transcoding(taken, None, lambda: 0)
    picture = encoded([flat(40)])[0]
    work.offer(Packet(G711, None, None, False, b"", 0))
    work.offer(picture)
    assert picture in taken.packets
    for number in range(50):
        work.offer(Packet(G711, 160 * number, None, False, bytes([0x80 + number] * 160), 20 * number))
    await until(lambda: len(taken.of(AAC_STREAM)) > 12, "sound comes out")
    heard = taken.of(AAC_STREAM)
    assert heard[0].data == b""
    assert np.diff([one.pts for one in heard[1:]]).tolist() == [1024] * (len(heard) - 2)
    decoder: Any = av.CodecContext.create("aac", "r")
    decoder.extradata = AAC_STREAM.extradata
    frames = [frame for one in heard[1:] for frame in decoder.decode(av.Packet(one.data))]
    assert {(frame.sample_rate, frame.layout.name) for frame in frames} == {(16_000, "mono")}
    work.close()
    await until(lambda: "live-transcode" not in {one.name for one in threading.enumerate()}, "its thread is gone")


async def test_a_crash_shows_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("masks can't be drawn")

    monkeypatch.setattr("camserver.media.transcoding.blacken_frame", fail)
    taken = Taken()
    work = Transcoding(taken, VideoWork(masks=LEFT_HALF), lambda: 0)
    packets = stamped(encoded([flat(200)] * 3, 3))
    work.offer(packets[0])
    work.begin(packets[:1])
    for packet in packets[1:]:
        work.offer(packet)
    await until(lambda: taken.miss is not None, "the end")
    await until(lambda: "live-transcode" not in {one.name for one in threading.enumerate()}, "its thread is gone")
    for packet in packets:
        work.offer(packet)
    assert taken.packets == []
    assert taken.miss is not None
    assert taken.miss.fault is Fault.CRASH
    work.close()
