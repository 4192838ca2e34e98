"""Video for tests: pictures encoded as packets, and packets that are only stamped bytes."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from camserver.media.nal_units import joined, split
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


def refreshed(count: int, every: int = 20, size: tuple[int, int] = (320, 192)) -> list[Packet]:
    """Pictures as H.265 that are never whole at once after the first, with a bright block that goes its way.

    The encoder refreshes but does not say so; the recovery points that cameras send are put in.
    """
    encoder: Any = av.CodecContext.create("libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt = *size, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, 20), Fraction(20, 1)
    encoder.thread_count = 1
    params = f"intra-refresh=1:keyint={every}:bframes=0:pools=none:log-level=none"
    encoder.options = {"preset": "ultrafast", "tune": "zerolatency", "x265-params": params}
    made: list[bytes] = []
    for number in range(count):
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = 40 + number
        planes[60:100, 4 * number % 280 : 4 * number % 280 + 30] = 220
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts = number
        made += [bytes(one) for one in encoder.encode(frame)]
    made += [bytes(one) for one in encoder.encode(None)]
    stream = Stream("hevc", b"", Fraction(1, 90_000))
    return [
        Packet(
            stream,
            4500 * number,
            4500 * number,
            number == 0,
            _with_recovery(data, every - 1) if number and number % every == 0 else data,
            50 * number,
            is_recovery=number > 0 and number % every == 0,
        )
        for number, data in enumerate(made)
    ]


def _with_recovery(data: bytes, pictures: int) -> bytes:
    """An access unit of H.265 with a recovery point in front of its picture."""
    *before, picture = split(data)
    word = f"{2 * pictures:b}"
    bits = "0" * (len(word) - 1) + word + "101"
    body = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    return joined([*before, bytes([0x4E, 1, 6, len(body)]) + body + b"\x80", picture])
