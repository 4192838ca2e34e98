"""Video for tests: pictures encoded as packets, and packets that are only stamped bytes."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from camserver.media.packets import Packet, Stream

H264 = Stream("h264", b"", Fraction(1, 90_000))


def packet(boot_ms: int, is_keyframe: bool = False, data: bytes = b"data", *, is_recovery: bool = False) -> Packet:
    return Packet(H264, boot_ms * 90, boot_ms * 90, is_keyframe, data, boot_ms, is_recovery)


def recovery_data(frames: int) -> bytes:
    """An access unit that says that all of the picture is new after so many frames."""
    word = f"{frames + 1:b}"
    bits = "0" * (len(word) - 1) + word + "1"
    body = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    sei = bytes([6, 6, len(body)]) + body + b"\x80"
    return b"\0\0\0\1" + sei + b"\0\0\0\1\x41slice"


def encoded(
    pictures: Sequence[NDArray[np.uint8]],
    keyframes_apart: int = 100,
    pix_fmt: str = "yuv420p",
    qp: int = 5,
    **options: str,
) -> list[Packet]:
    """The luma pictures as H.264, with parameter sets in every keyframe."""
    height, width = pictures[0].shape
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, pix_fmt
    encoder.time_base, encoder.framerate = Fraction(1, 10), Fraction(10, 1)
    encoder.gop_size = keyframes_apart
    encoder.thread_count = 1
    encoder.options = {"preset": "ultrafast", "tune": "zerolatency", "qp": str(qp)} | {
        name.replace("_", "-"): value for name, value in options.items()
    }
    made = []
    for number, luma in enumerate(pictures):
        planes = np.full((height * 3 // 2, width), 128, np.uint8)
        planes[:height] = luma
        frame = av.VideoFrame.from_ndarray(planes, format=pix_fmt)
        frame.pts = number
        made += encoder.encode(frame)
    made += encoder.encode(None)
    return [Packet(H264, one.pts, one.dts, one.is_keyframe, bytes(one), 100 * n) for n, one in enumerate(made)]


def flat(shade: int, size: tuple[int, int] = (640, 360)) -> NDArray[np.uint8]:
    return np.full((size[1], size[0]), shade, np.uint8)
