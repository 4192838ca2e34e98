"""A picture out of a video stream: decoded from a keyframe, scaled and made a JPEG without leaving YUV.

Cameras send limited-range YUV and JPEG is full range; swscale converts on the way to `yuvj420p` and `gray`.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import av
import numpy as np
import simplejpeg  # type: ignore[import-untyped]  # it ships no types
from av.codec.context import Flags
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.change import Gray
from camserver.media.packets import Packet, Stream
from camserver.media.pictures import JPEG_QUALITY, PIXELS_MAX, fit_width

# Cameras of a worker have a few sizes only.
SCALERS_MAX = 32
# Numpy turns against the clock; pictures are turned with it.
_TURNS = {0: 0, 90: 3, 180: 2, 270: 1}


class VideoPicture:
    def __init__(self, frame: VideoFrame) -> None:
        self._frame = frame
        self._small: VideoFrame | None = None  # as it was made a JPEG last

    @property
    def frame(self) -> VideoFrame:
        return self._frame

    @property
    def size(self) -> tuple[int, int]:
        return self._frame.width, self._frame.height

    def gray(self, width: int) -> Gray:
        size = fit_width(self.size, width)
        small = self._small
        # The mean of means of four is the same, and a small picture is read ten times as quickly.
        is_twice = small is not None and (small.width, small.height) == (2 * size[0], 2 * size[1])
        return _plane(_scaled(small if small is not None and is_twice else self._frame, size, "gray"), 0)

    def small(self, width: int) -> tuple[tuple[int, int], bytes]:
        size = fit_width(self.size, width)
        self._small = _scaled(self._frame, size, "yuvj420p")
        return size, _jpeg(self._small)

    def full(self) -> bytes:
        return _jpeg(_scaled(self._frame, self.size, "yuvj420p"))

    def turned(self, degrees: int) -> "VideoPicture":
        return self if degrees == 0 else VideoPicture(turned(self._frame, degrees))


def _jpeg(frame: VideoFrame) -> bytes:
    """Of a full-range frame."""
    jpeg: bytes = simplejpeg.encode_jpeg_yuv_planes(*(_plane(frame, number) for number in range(3)), JPEG_QUALITY)
    return jpeg


class _Scalers(threading.local):
    """Of a thread: the last few, by what they make of what. Making one takes longer than using it."""

    def __init__(self) -> None:
        self.by_work: dict[tuple[object, ...], VideoReformatter] = {}


_scalers = _Scalers()


def _scaled(frame: VideoFrame, size: tuple[int, int], pixels: str) -> VideoFrame:
    work = (frame.width, frame.height, frame.format.name, size, pixels)
    scaler = _scalers.by_work.get(work)
    if scaler is None:
        if len(_scalers.by_work) >= SCALERS_MAX:
            _scalers.by_work.clear()
        scaler = _scalers.by_work[work] = VideoReformatter()
    return scaler.reformat(frame, *size, format=pixels, interpolation=Interpolation.AREA, threads=1)


def new_decoder(stream: Stream) -> Any:
    """A decoder for every look, and never one for two cameras.

    Kept ones hold their reference pictures, three times the memory over many cameras. One that goes from camera to
    camera saved a tenth of the work (H.265: a quarter), but its buffers hold other cameras' pictures, which a damaged
    picture might show. Leaving out the loop filter made no clear difference on keyframes.
    """
    decoder: Any = av.CodecContext.create(stream.codec, "r")
    decoder.thread_count = 1
    decoder.flags |= Flags.low_delay
    decoder.options = {"max_pixels": str(PIXELS_MAX)}
    if stream.extradata:
        decoder.extradata = stream.extradata
    if stream.raw is not None:
        if stream.raw.width * stream.raw.height > PIXELS_MAX:
            raise BadInput(f"a picture of {stream.raw.width}x{stream.raw.height} is too large")
        decoder.width, decoder.height, decoder.pix_fmt = stream.raw.width, stream.raw.height, stream.raw.pixels
    return decoder


def decode(packets: Sequence[Packet]) -> VideoPicture:
    """The picture of the last packet; the first one is a keyframe. BadInput when there is none in them."""
    # Parameter sets may have changed within the group; a decoder begins with those of its first picture.
    stream = packets[0].stream
    decoder = new_decoder(stream)
    last: VideoFrame | None = None
    try:
        for packet in packets:
            for frame in decoder.decode(av.Packet(packet.data)):
                last = frame
        for frame in decoder.decode(None):
            last = frame
    except av.FFmpegError as error:
        raise BadInput(f"the camera's {stream.codec} video can't be decoded: {error.strerror}") from None
    if last is None:
        raise BadInput(f"the camera's {stream.codec} video holds no complete picture")
    if last.is_corrupt:
        raise BadInput(f"a picture of the camera's {stream.codec} video is damaged")
    return VideoPicture(last)


def with_planes(frame: VideoFrame, edit: Callable[[list[NDArray[np.uint8]]], list[NDArray[np.uint8]]]) -> VideoFrame:
    """A copy of which `edit` has changed luma and the two colours, each of these with a quarter of the pixels."""
    if frame.format.name not in ("yuv420p", "yuvj420p") or frame.width % 2 or frame.height % 2:
        frame = frame.reformat(frame.width & ~1, frame.height & ~1, format="yuv420p")
    planes = edit([_plane(frame, number) for number in range(3)])
    height, width = planes[0].shape
    packed = np.concatenate([plane.ravel() for plane in planes]).reshape(height * 3 // 2, width)
    edited = VideoFrame.from_ndarray(packed, format=frame.format.name)
    edited.color_range, edited.colorspace = frame.color_range, frame.colorspace
    return edited


def turned(frame: VideoFrame, degrees: int) -> VideoFrame:
    """The frame, or a copy that is turned with the clock."""
    if degrees == 0:
        return frame
    return with_planes(frame, lambda planes: [np.rot90(plane, _TURNS[degrees]) for plane in planes])


def _plane(frame: VideoFrame, number: int) -> NDArray[np.uint8]:
    """A copy without the padding at the end of each row."""
    plane = frame.planes[number]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    return rows[: plane.height, : plane.width].copy()
