"""Short H.264 videos that are played again and again by the simulator: read, and encoded where they must be.

A clip is held in memory as access units of NAL units, ready to be packed. What is encoded is kept as an MP4 file in a
cache folder, whole or not at all, so that it is encoded once.
"""

import contextlib
import hashlib
import itertools
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.bitstream import BitStreamFilterContext
from av.video.frame import VideoFrame

from camserver.base.errors import BadInput, Unavailable
from camserver.base.log import get_logger

log = get_logger(__name__)

CLOCK_HZ = 90_000  # of RTP video
CLIP_MAX_BYTES = 200_000_000
# Real cameras send a keyframe every one to four seconds; a video with fewer is encoded again.
KEYFRAMES_APART_MAX_SEC = 4.0
KEYFRAMES_APART_SEC = 1
FPS_MAX = 60
# Quick to make rather than small: it is played on this machine.
_ENCODER = {"preset": "ultrafast", "tune": "zerolatency", "crf": "25", "profile": "baseline"}
_RECIPE = "1"  # part of the cache's names; counts up when clips are encoded differently

_START_CODE = re.compile(rb"\x00\x00\x00?\x01")
_SPS, _PPS, _DELIMITER = 7, 8, 9


@dataclass(frozen=True, slots=True)
class AccessUnit:
    nals: tuple[bytes, ...]
    pts: int  # in 90 kHz from the beginning of the clip
    dts: int
    is_keyframe: bool


@dataclass(frozen=True, slots=True)
class Clip:
    units: tuple[AccessUnit, ...]  # in decoding order; the first is a keyframe
    duration: int  # in 90 kHz
    sps: bytes
    pps: bytes
    size: tuple[int, int]


def read_clip(path: Path) -> Clip:
    """The video of an H.264 file. BadInput when it holds none."""
    with _opened(path) as container:
        video = _video_of(container, path)
        if video.codec_context.name != "h264":
            raise BadInput(f"{path} holds {video.codec_context.name} and not h264")
        units = list(_units(container, video))
        size = (video.codec_context.width, video.codec_context.height)
        frame_time = round(CLOCK_HZ / float(video.average_rate or 25))
    first = next((number for number, unit in enumerate(units) if unit.is_keyframe), None)
    if first is None:
        raise BadInput(f"{path} holds no keyframe")
    return _as_clip(units[first:], size, frame_time, path)


def frozen_clip(clip: Clip) -> Clip:
    """A clip of nothing but the other one's first picture, once a second."""
    return Clip((clip.units[0],), CLOCK_HZ, clip.sps, clip.pps, clip.size)


def is_servable(path: Path) -> bool:
    """Whether a camera could have sent this as it is: H.264 with a keyframe every few seconds."""
    try:
        clip = read_clip(path)
    except BadInput:
        return False
    keyframes = [unit.dts for unit in clip.units if unit.is_keyframe] + [clip.duration]
    apart = max(later - earlier for earlier, later in itertools.pairwise(keyframes))
    return apart <= KEYFRAMES_APART_MAX_SEC * CLOCK_HZ


def encode_frames(
    frames: Iterable[VideoFrame],
    fps: int,
    size: tuple[int, int],
    target: Path,
    stop: threading.Event | None = None,
) -> None:
    """Writes the pictures as an H.264 file, complete or not at all. Setting `stop` ends it, by Unavailable."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two cameras may show the same.
    draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with av.open(str(draft), "w", format="mp4") as container:
            stream: Any = container.add_stream("libx264", rate=fps, options=dict(_ENCODER))
            stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
            stream.gop_size = fps * KEYFRAMES_APART_SEC
            stream.codec_context.thread_count = 1
            for number, frame in enumerate(frames):
                if stop is not None and stop.is_set():
                    raise Unavailable(f"{target.name} is not encoded: the simulator stops")
                scaled = frame.reformat(*size, format="yuv420p")
                scaled.pts, scaled.time_base = number, Fraction(1, fps)
                container.mux(stream.encode(scaled))
            container.mux(stream.encode(None))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def encode_file(path: Path, width_max: int, target: Path, stop: threading.Event | None = None) -> None:
    """Encodes another video, at most so wide, unless `stop` is set before it is done."""
    with _opened(path) as container:
        video = _video_of(container, path)
        width = min(width_max, video.codec_context.width)
        height = video.codec_context.height * width // video.codec_context.width
        fps = min(max(round(float(video.average_rate or 25)), 1), FPS_MAX)
        # Both even, as 4:2:0 wants it.
        size = (max(width & ~1, 2), max(height & ~1, 2))
        try:
            encode_frames(container.decode(video), fps, size, target, stop)
        except av.FFmpegError as error:
            raise BadInput(f"{path} can't be decoded: {error.strerror}") from None


def encode_turned(path: Path, target: Path) -> None:
    """The same video upside down, without colors."""
    with _opened(path) as container:
        video = _video_of(container, path)
        size = (video.codec_context.width, video.codec_context.height)
        fps = min(max(round(float(video.average_rate or 25)), 1), FPS_MAX)
        turned = (
            VideoFrame.from_ndarray(np.ascontiguousarray(frame.to_ndarray(format="gray")[::-1, ::-1]), format="gray")
            for frame in container.decode(video)
        )
        encode_frames(turned, fps, size, target)


def cache_name(path: Path, width_max: int) -> str:
    """Names what is encoded from a file: another file, or the file after a change, has another name."""
    about = path.stat()
    text = f"{_RECIPE}|{path.resolve()}|{about.st_size}|{about.st_mtime_ns}|{width_max}"
    return f"{path.stem[:40]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.mp4"


def split_nals(data: bytes) -> tuple[bytes, ...]:
    """The NAL units of an Annex B byte stream."""
    return tuple(nal for part in _START_CODE.split(data) if (nal := part.rstrip(b"\x00")))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    # Opened here, so that FFmpeg sees a file and never an address, whatever the name looks like.
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from None
    with file:
        try:
            container = av.open(file)
        except (av.FFmpegError, OSError) as error:
            raise BadInput(f"{path} is no video that can be read: {error.strerror}") from None
        with container:
            yield container


def _video_of(container: Any, path: Path) -> Any:
    if not container.streams.video:
        raise BadInput(f"{path} holds no video")
    return container.streams.video[0]


def _units(container: Any, video: Any) -> Iterator[AccessUnit]:
    to_annex_b = BitStreamFilterContext("h264_mp4toannexb", video)
    hertz = float(video.time_base) * CLOCK_HZ
    size_bytes = 0
    for packet in container.demux(video):
        if packet.size == 0:
            continue
        for out in to_annex_b.filter(packet):
            data = bytes(out)
            size_bytes += len(data)
            if size_bytes > CLIP_MAX_BYTES:
                log.warning("video is cut: too large to be kept in memory", max_bytes=CLIP_MAX_BYTES)
                return
            pts = out.pts if out.pts is not None else out.dts
            dts = out.dts if out.dts is not None else out.pts
            nals = tuple(nal for nal in split_nals(data) if nal[0] & 31 != _DELIMITER)
            if nals and pts is not None and dts is not None:
                yield AccessUnit(nals, round(pts * hertz), round(dts * hertz), out.is_keyframe)


def _as_clip(units: list[AccessUnit], size: tuple[int, int], frame_time: int, path: Path) -> Clip:
    """Timestamps from zero, parameter sets found."""
    parameters = {nal[0] & 31: nal for unit in reversed(units) for nal in unit.nals if nal[0] & 31 in (_SPS, _PPS)}
    if _SPS not in parameters or _PPS not in parameters:
        raise BadInput(f"{path} holds no parameter sets")
    begin = units[0].dts
    moved = tuple(AccessUnit(one.nals, one.pts - begin, one.dts - begin, one.is_keyframe) for one in units)
    return Clip(moved, moved[-1].dts + frame_time, parameters[_SPS], parameters[_PPS], size)
