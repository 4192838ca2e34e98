"""A camera's JPEG in the planes that it holds: luma, and colours at half its width and height.

That is what most cameras and camserver's own workers send. What is measured is luma, and a model sees less than the
whole size, so all pixels in RGB are needed only where somebody's clothes are looked at. Scaled out of the planes a
picture costs less than half of the way through RGB.

What is not plainly such a picture (turned, progressive, cut off, of other colours, broken) is none of these: it goes
through Pillow, which decides whether it is a picture at all.
"""

import threading
from functools import cached_property
from typing import Any, Final

import av
import av.error
import numpy as np
import simplejpeg  # type: ignore[import-untyped]  # it ships no types
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray
from PIL import Image

_BEGIN: Final = b"\xff\xd8"
_SCAN: Final = b"\xff\xda"
_END: Final = b"\xff\xd9"
# It may say how the picture is to be turned.
_EXIF: Final = b"Exif\x00"
# The mark of a progressive one.
_PROGRESSIVE: Final = b"\xff\xc2"
_IN_PLANES: Final = ("YCbCr", "420")
_FORMAT: Final = "yuvj420p"
# No camera sends less; so few pixels of colours at half their size look different when scaled.
SIDE_MIN: Final = 64
_of_thread = threading.local()


class Planes:
    """For one thread at a time."""

    def __init__(self, frame: av.VideoFrame) -> None:
        self._frame = frame
        self.size = frame.width, frame.height

    @cached_property
    def rgb(self) -> Image.Image:
        """All of it."""
        return Image.fromarray(self._made("whole", self.size, Interpolation.BILINEAR))

    def scaled(self, size: tuple[int, int]) -> NDArray[np.uint8]:
        """In RGB, each pixel the mean of what it stands for, nearer ones counting more."""
        return self._made("scaled", size, Interpolation.BILINEAR)

    def sampled(self, size: tuple[int, int]) -> NDArray[np.uint8]:
        """In RGB, single pixels from all over it."""
        return self._made("sampled", size, Interpolation.POINT)

    def luma(self) -> Image.Image:
        """All of it, in shades of gray."""
        plane = self._frame.planes[0]
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
        return Image.fromarray(rows[:, : plane.width])

    def _made(self, purpose: str, size: tuple[int, int], how: Interpolation) -> NDArray[Any]:
        made = _reformatter(purpose).reformat(self._frame, *size, "rgb24", interpolation=how, threads=1)
        return made.to_ndarray()


# A picture that is one: in planes, or in RGB.
Picture = Image.Image | Planes


def rgb_of(picture: Picture) -> Image.Image:
    return picture.rgb if isinstance(picture, Planes) else picture


def planes_of(content: bytes, side_below: int) -> Planes | None:
    """None: it has to be opened otherwise. So are larger ones, which need not be decoded at their full size."""
    head = content[: content.find(_SCAN)]
    if not (head.startswith(_BEGIN) and content.endswith(_END)) or _EXIF in head or _PROGRESSIVE in head:
        return None
    try:
        height, width, *kind = simplejpeg.decode_jpeg_header(content)
        if tuple(kind) != _IN_PLANES or min(width, height) < SIDE_MIN or max(width, height) >= side_below:
            return None
        frames = _decoder(side_below).decode(av.Packet(content))
    except (ValueError, av.error.FFmpegError):
        return None
    frame = frames[0] if len(frames) == 1 else None
    if (
        frame is None
        or frame.is_corrupt
        or frame.format.name != _FORMAT
        or (frame.width, frame.height) != (width, height)
    ):
        return None
    return Planes(frame)


def _decoder(side_below: int) -> "av.VideoCodecContext":
    """One for each picture: it remembers tables, and a picture shall not be read by those of another."""
    decoder = av.CodecContext.create("mjpeg", "r")
    decoder.thread_count = 1
    decoder.options = {"max_pixels": str(side_below**2), "err_detect": "explode"}
    return decoder


def _reformatter(purpose: str) -> VideoReformatter:
    """Each thread has its own for each purpose: set up anew only where a picture has another size than the last."""
    found = getattr(_of_thread, purpose, None)
    if found is None:
        found = VideoReformatter()
        setattr(_of_thread, purpose, found)
    return found
