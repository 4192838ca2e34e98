"""A picture out of a video stream: decoded from a keyframe, scaled and made a JPEG without leaving YUV.

Cameras send limited-range YUV and JPEG is full range; swscale converts on the way to `yuvj420p` and `gray`.
"""

from collections.abc import Sequence
from typing import Any

import av
import numpy as np
import simplejpeg  # type: ignore[import-untyped]  # it ships no types
from av.codec.context import Flags
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.media.change import Gray
from camserver.media.packets import Packet
from camserver.media.pictures import JPEG_QUALITY, PIXELS_MAX, fit_width


class VideoPicture:
    def __init__(self, frame: VideoFrame) -> None:
        self._frame = frame

    @property
    def size(self) -> tuple[int, int]:
        return self._frame.width, self._frame.height

    def gray(self, width: int) -> Gray:
        size = fit_width(self.size, width)
        return _plane(self._frame.reformat(*size, format="gray", interpolation=Interpolation.AREA), 0)

    def small(self, width: int) -> tuple[tuple[int, int], bytes]:
        size = fit_width(self.size, width)
        return size, self._jpeg(size)

    def full(self) -> bytes:
        return self._jpeg(self.size)

    def _jpeg(self, size: tuple[int, int]) -> bytes:
        frame = self._frame.reformat(*size, format="yuvj420p", interpolation=Interpolation.AREA)
        jpeg: bytes = simplejpeg.encode_jpeg_yuv_planes(*(_plane(frame, number) for number in range(3)), JPEG_QUALITY)
        return jpeg


def decode(packets: Sequence[Packet]) -> VideoPicture:
    """The picture of the last packet; the first one is a keyframe. BadInput when there is none in them.

    A decoder for every look: kept ones hold their reference pictures, three times the memory over many cameras.
    """
    stream = packets[0].stream
    decoder: Any = av.CodecContext.create(stream.codec, "r")
    decoder.thread_count = 1
    decoder.flags |= Flags.low_delay
    decoder.options = {"max_pixels": str(PIXELS_MAX)}
    if stream.extradata:
        decoder.extradata = stream.extradata
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


def _plane(frame: VideoFrame, number: int) -> NDArray[np.uint8]:
    """A copy without the padding at the end of each row."""
    plane = frame.planes[number]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    return np.ascontiguousarray(rows[: plane.height, : plane.width])
