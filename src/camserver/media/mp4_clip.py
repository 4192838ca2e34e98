"""A short film out of packets: an MP4 file that browsers play, without encoding anew wherever that is allowed.

Cameras' timestamps are not trusted: where they disagree with the times of arrival, those are used. A camera whose
pictures are turned or masked has its clip encoded, because what was sent is not what may be seen (decision 9); so has
one that never sends a whole picture (intra refresh), because players begin with those.
Work for a thread.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
from av.video.frame import VideoFrame

from camserver.base.errors import BadInput
from camserver.domain.polygons import Polygon
from camserver.media.keyframes import whole_after
from camserver.media.masks import blacken_frame
from camserver.media.packets import Packet
from camserver.media.pictures import OPEN_OPTIONS
from camserver.media.video_picture import new_decoder, turned

TICKS_PER_SEC = 90_000
_TICK = Fraction(1, TICKS_PER_SEC)
CLIP_MAX_BYTES = 60_000_000
# Timestamps that are off by so much from the times of arrival, over a whole clip, are wrong.
DRIFT_MAX_SEC = 2.0
PLAYABLE = ("h264", "hevc")
# Quick rather than small: it runs beside everything else the worker does.
_ENCODER = {"preset": "veryfast", "crf": "26", "tune": "zerolatency"}


@dataclass(frozen=True, slots=True)
class FilmedClip:
    mp4: bytes
    begin_boot_ms: int
    end_boot_ms: int
    codec: str
    width: int
    height: int


def film(packets: Sequence[Packet], rotation: int = 0, masks: tuple[Polygon, ...] = ()) -> FilmedClip:
    """The packets as a film; decoding may begin with the first one and all are of one stream; else BadInput.

    Where the first one is a recovery point, the film begins with the first picture that is whole.
    """
    if not packets:
        raise BadInput("there is no video of that time")
    stream = packets[0].stream
    times = _times(packets)
    hidden = whole_after(packets[0]) or 0
    if hidden >= len(packets):
        raise BadInput("the video of that time is too short: no picture of it is whole")
    if is_encoded(packets, rotation, masks):
        codec, (mp4, (width, height)) = (
            "h264",
            _encode(packets, sorted(times.pts)[hidden:], times.end, rotation, masks),
        )
    else:
        codec, (mp4, (width, height)) = stream.codec, _copy(packets, times)
    if len(mp4) > CLIP_MAX_BYTES:
        raise BadInput(f"the clip would have {len(mp4)} bytes, more than {CLIP_MAX_BYTES}")
    return FilmedClip(mp4, packets[hidden].boot_ms, packets[-1].boot_ms, codec, width, height)


def is_encoded(packets: Sequence[Packet], rotation: int, masks: tuple[Polygon, ...]) -> bool:
    """Whether `film` encodes these anew, as H.264; otherwise it puts them into the file as they are."""
    return bool(rotation or masks or whole_after(packets[0])) or packets[0].stream.codec not in PLAYABLE


@dataclass(frozen=True, slots=True)
class _Times:
    """When each packet is shown and decoded, in ticks from the beginning."""

    pts: tuple[int, ...]
    dts: tuple[int, ...]
    end: int


def _times(packets: Sequence[Packet]) -> _Times:
    arrived = [(packet.boot_ms - packets[0].boot_ms) * TICKS_PER_SEC // 1000 for packet in packets]
    shown = _shown(packets, arrived)
    # In order of decoding the k-th packet is decoded when the k-th picture is shown, a constant earlier.
    in_order = sorted(shown)
    delay = max((later - own for later, own in zip(in_order, shown, strict=True)), default=0)
    dts: list[int] = []
    for tick in in_order:
        dts.append(max(tick - delay, dts[-1] + 1 if dts else tick - delay))
    pts = tuple(max(own, decoded) for own, decoded in zip(shown, dts, strict=True))
    lowest = min(*dts, *pts)
    usual = (in_order[-1] - in_order[0]) // max(len(in_order) - 1, 1) or TICKS_PER_SEC // 10
    shifted_pts = tuple(tick - lowest for tick in pts)
    return _Times(shifted_pts, tuple(tick - lowest for tick in dts), max(shifted_pts) + usual)


def _shown(packets: Sequence[Packet], arrived: list[int]) -> list[int]:
    """When pictures are shown: as the camera says, or as they came where that can't be."""
    stamps = [packet.pts if packet.pts is not None else packet.dts for packet in packets]
    if any(stamp is None for stamp in stamps):
        return arrived
    scale = packets[0].stream.time_base * TICKS_PER_SEC
    said = [int((stamp - (stamps[0] or 0)) * scale) for stamp in stamps if stamp is not None]
    drift = max(abs(one - other) for one, other in zip(said, arrived, strict=True))
    is_stuck = len(set(said)) < len(said)
    return arrived if is_stuck or drift > DRIFT_MAX_SEC * TICKS_PER_SEC else said


def _copy(packets: Sequence[Packet], times: _Times) -> tuple[bytes, tuple[int, int]]:
    file = io.BytesIO()
    stream = packets[0].stream
    # A muxer must know what the first pictures tell a demuxer: size, parameter sets, profile.
    beginning = io.BytesIO(_annex_b_parameters(stream.extradata) + b"".join(one.data for one in packets[:2]))
    try:
        with (
            av.open(beginning, format=stream.codec, options=dict(OPEN_OPTIONS)) as told,
            av.open(file, "w", format="mp4", options=_moov_first(packets)) as out,
        ):
            track: Any = out.add_stream_from_template(told.streams.video[0])
            size = (track.width, track.height)
            if not all(size):
                raise BadInput("the video of that time can't be decoded")
            # Browsers know H.265 in MP4 by this name only.
            if stream.codec == "hevc":
                track.codec_context.codec_tag = "hvc1"
            for number, packet in enumerate(packets):
                out.mux(_packet(packet, track, times, number))
    except av.FFmpegError as error:
        raise BadInput(f"the video can't be put into a film: {error.strerror}") from None
    return file.getvalue(), size


def _annex_b_parameters(extradata: bytes) -> bytes:
    """Parameter sets from the camera's description, which many cameras do not send again with their pictures."""
    return extradata if extradata.startswith((b"\0\0\0\1", b"\0\0\1")) else b""


def _moov_first(packets: Sequence[Packet]) -> dict[str, str]:
    """The index goes to the beginning, where a browser looks first: room is left for it there."""
    return {"moov_size": str(4_096 + 64 * len(packets) + len(packets[0].stream.extradata))}


def _packet(packet: Packet, track: Any, times: _Times, number: int) -> "av.Packet[Any]":
    made = av.Packet(packet.data)
    made.stream = track
    made.time_base = _TICK
    made.pts, made.dts = times.pts[number], times.dts[number]
    following = times.dts[number + 1] if number + 1 < len(times.dts) else times.end - (times.pts[-1] - times.dts[-1])
    made.duration = max(following - times.dts[number], 1)
    made.is_keyframe = packet.is_keyframe
    return made


def _encode(
    packets: Sequence[Packet], shown: Sequence[int], end: int, rotation: int, masks: tuple[Polygon, ...]
) -> tuple[bytes, tuple[int, int]]:
    """`shown`: when each picture is, in order, where the first of them may not be that of the first packet."""
    file = io.BytesIO()
    order = iter([tick - shown[0] for tick in shown])
    size = (0, 0)
    try:
        with av.open(file, "w", format="mp4", options=_moov_first(packets)) as out:
            track: Any = None
            for decoded in _decoded(packets):
                frame = turned(decoded, rotation)
                frame = blacken_frame(frame, masks) if masks else _even(frame)
                if track is None:
                    size = (frame.width, frame.height)
                    track = out.add_stream("libx264", rate=30, options=_ENCODER)
                    track.width, track.height, track.pix_fmt = *size, "yuv420p"
                    track.codec_context.time_base = _TICK
                    track.codec_context.thread_count = 1
                frame.pts, frame.time_base = next(order, end - shown[0]), _TICK
                out.mux(track.encode(frame))
            if track is None:
                raise BadInput("the video of that time can't be decoded")
            out.mux(track.encode(None))
    except av.FFmpegError as error:
        raise BadInput(f"the video can't be made a film: {error.strerror}") from None
    return file.getvalue(), size


def _even(frame: VideoFrame) -> VideoFrame:
    return frame.reformat(frame.width & ~1, frame.height & ~1, format="yuv420p")


def _decoded(packets: Sequence[Packet]) -> Iterator[VideoFrame]:
    """Every picture that can be decoded, in order of showing."""
    decoder = new_decoder(packets[0].stream)
    try:
        for packet in packets:
            yield from decoder.decode(av.Packet(packet.data))
        yield from decoder.decode(None)
    except av.FFmpegError as error:
        raise BadInput(f"the video can't be decoded: {error.strerror}") from None
