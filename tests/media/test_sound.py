"""Sound in MP4: what a browser would get is read by FFmpeg, lasts as long as it says, and silence is silent."""

import io
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from camserver.base.errors import BadInput
from camserver.media import nal_units
from camserver.media.fragments import AUDIO_TRACK, VIDEO_TRACK, fragment_head, init_segment, mime_of, sample_pieces
from camserver.media.packets import SoundShape
from camserver.media.parameter_sets import describe
from camserver.media.rtsp_lean.describe import SoundTrack, parse_sound
from camserver.media.rtsp_lean.sounds import Sounds
from camserver.media.sound import AAC_FRAME, OPUS_RATE, describe_sound, length, silence
from tests.media.video import encoded, flat

AAC_CONFIG = {(8000, 1): "1588", (16_000, 1): "1408", (44_100, 2): "1210", (48_000, 1): "1188"}


def tone(codec: str, rate: int, channels: int, seconds: float = 0.5) -> list[bytes]:
    """A tone as the codec's packets."""
    encoder: Any = av.CodecContext.create({"aac": "aac", "opus": "libopus"}[codec], "w")
    encoder.sample_rate, encoder.layout = rate, "mono" if channels == 1 else "stereo"
    encoder.format = "fltp" if codec == "aac" else "s16"
    encoder.time_base = Fraction(1, rate)
    encoder.open()
    size = AAC_FRAME if codec == "aac" else rate // 50
    made: list[bytes] = []
    for number in range(int(seconds * rate / size)):
        wave = np.sin(np.arange(number * size, (number + 1) * size) * 440 * 2 * np.pi / rate) * 0.5
        planes = np.tile(wave.astype(np.float32), (channels, 1))
        if codec == "opus":
            planes = np.ascontiguousarray((planes.T.reshape(1, -1) * 32000).astype(np.int16))
        frame = av.AudioFrame.from_ndarray(planes, format=encoder.format.name, layout=encoder.layout.name)
        frame.sample_rate, frame.pts = rate, number * size
        made += [bytes(one) for one in encoder.encode(frame)]
    return made


def film(codec: str, config: bytes, shape: SoundShape, pieces: list[bytes]) -> tuple[bytes, str]:
    """One picture and the pieces, as the streamer sends them."""
    picture = encoded([flat(100, (320, 192))])[0]
    about = describe("h264", nal_units.kind_of_bytes("h264", picture.data).sets)
    sound = describe_sound(codec, config, shape)
    parts = sample_pieces("h264", picture.data)
    out = [
        init_segment(about, sound),
        fragment_head(1, VIDEO_TRACK, 0, 0, 90_000, sum(map(len, parts)), True),
        *parts,
    ]
    at = 0
    for number, piece in enumerate(pieces):
        lasts = length(codec, piece)
        out += [fragment_head(2 + number, AUDIO_TRACK, at, 0, lasts, len(piece), True), piece]
        at += lasts
    return b"".join(out), mime_of(about, sound)


def heard(mp4: bytes) -> Iterator[Any]:
    with av.open(io.BytesIO(mp4), format="mp4") as container:
        yield from container.decode(audio=0)


@pytest.mark.parametrize(("rate", "channels"), list(AAC_CONFIG))
def test_aac_is_played_and_its_silence_is_silent(rate: int, channels: int) -> None:
    config, shape = bytes.fromhex(AAC_CONFIG[rate, channels]), SoundShape(rate, channels)
    mp4, mime = film("aac", config, shape, tone("aac", rate, channels))
    assert mime.endswith(',mp4a.40.2"')
    frames = list(heard(mp4))
    assert {(frame.sample_rate, frame.layout.nb_channels) for frame in frames} == {(rate, channels)}
    assert max(np.abs(frame.to_ndarray()).max() for frame in frames) > 0.3
    mp4, _ = film("aac", config, shape, [silence("aac", channels)] * 5)
    quiet = list(heard(mp4))
    assert len(quiet) == 5
    assert max(np.abs(frame.to_ndarray()).max() for frame in quiet) < 0.001


def test_opus_is_played_and_its_silence_is_silent() -> None:
    shape = SoundShape(OPUS_RATE, 2)
    pieces = tone("opus", OPUS_RATE, 2)
    assert {length("opus", piece) for piece in pieces} == {OPUS_RATE // 50}
    mp4, mime = film("opus", b"", shape, pieces)
    assert mime.endswith(',opus"')
    assert max(np.abs(frame.to_ndarray()).max() for frame in heard(mp4)) > 0.3
    mp4, _ = film("opus", b"", shape, [silence("opus", 2)] * 5)
    assert max(np.abs(frame.to_ndarray()).max() for frame in heard(mp4)) < 0.001
    assert length("opus", silence("opus", 2)) == OPUS_RATE // 50


@pytest.mark.parametrize("config", [b"", b"\x14", b"\xf9\x48\x20", b"\x17\xff", b"\x14\x38"])
def test_sound_that_is_not_known_is_none(config: bytes) -> None:
    with pytest.raises(BadInput):
        describe_sound("aac", config, SoundShape(16_000, 1))


SDP = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("m=audio 0 RTP/AVP 0\r\na=control:track2", ("pcm_mulaw", 0, 8000, 1, b"")),
        ("m=audio 0 RTP/AVP 8\r\na=control:track2", ("pcm_alaw", 8, 8000, 1, b"")),
        (
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000/1\r\na=control:track2\r\n"
            "a=fmtp:97 streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1408",
            ("aac", 97, 16_000, 1, b"\x14\x08"),
        ),
        (
            "m=audio 0 RTP/AVP 98\r\na=rtpmap:98 opus/48000/2\r\na=control:track2",
            ("opus", 98, 48_000, 2, b""),
        ),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000\r\na=fmtp:97 mode=AAC-hbr;config=zz", None),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MP4A-LATM/16000", None),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 L16/999999999/2", None),
        ("m=audio 0 RTP/AVP x", None),
        ("", None),
    ],
)
def test_what_a_camera_says_of_its_sound(lines: str, expected: tuple[object, ...] | None) -> None:
    track = parse_sound((SDP + lines).encode(), "rtsp://camera/stream")
    if expected is None:
        assert track is None
    else:
        assert track == SoundTrack(*expected, "rtsp://camera/stream/track2")  # type: ignore[arg-type]


def rtp(payload: bytes, time: int, payload_type: int = 97) -> bytearray:
    return bytearray(bytes((0x80, 0x80 | payload_type, 0, 1)) + time.to_bytes(4, "big") + b"ssrc" + payload)


def test_aac_frames_come_together_alone_and_in_pieces() -> None:
    sounds = Sounds(SoundTrack("aac", 97, 16_000, 1, b"\x14\x08", ""))
    two = b"\0\x20" + (3 << 3).to_bytes(2, "big") + (2 << 3).to_bytes(2, "big") + b"onetw"
    large = b"\0\x10" + (6 << 3).to_bytes(2, "big")
    whole = 0xFFFFFF00
    for packet in (
        rtp(two, whole),
        rtp(large + b"abc", whole + 2048 & 0xFFFFFFFF),
        rtp(large + b"def", whole + 2048 & 0xFFFFFFFF),
    ):
        sounds.push(packet, 0, len(packet))
    for damaged in (b"\0", b"\0\x10\0\0x", b"\xff\xffxx", b"\0\x11\0\x08x", b"\0\x10\0\x20"):
        packet = rtp(damaged, whole)
        sounds.push(packet, 0, len(packet))
    sounds.push(rtp(b"\0\x10\0\x08x", 0, 96), 0, 17)
    assert [(one.data, one.time) for one in sounds.done] == [(b"one", 0), (b"tw", 1024), (b"abcdef", 2048)]
