"""Small video files for tests, made on the spot."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np


def video_file(
    path: Path,
    codec: str = "libx264",
    seconds: int = 2,
    fps: int = 10,
    keyframes_apart: int = 10,
    size: tuple[int, int] = (320, 180),
    shade: Callable[[int], int] = lambda number: 40 + number,
    **options: str,
) -> Path:
    """Plain pictures, each of its own shade (of limited-range luma), so that one can tell which it is."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=fps, options={"threads": "1", "sc_threshold": "0", **options})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.gop_size = keyframes_apart
        for number in range(seconds * fps):
            planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
            planes[: size[1]] = shade(number)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def sounding_file(
    path: Path, codec: str = "libx264", seconds: int = 30, fps: int = 10, rate: int = 16_000, **options: str
) -> Path:
    """Pictures as H.264, or as `codec` says, and a tone as AAC."""
    with av.open(str(path), "w") as container:
        plain = {"threads": "1", "preset": "ultrafast", "tune": "zerolatency"}
        video: Any = container.add_stream(codec, rate=fps, options=plain | options)
        video.width, video.height, video.pix_fmt, video.gop_size = 320, 192, "yuv420p", fps
        audio: Any = container.add_stream("aac", rate=rate, layout="mono")
        heard = 0
        for number in range(seconds * fps):
            planes = np.full((288, 320), 128, np.uint8)
            planes[:192, 3 * number % 280 : 3 * number % 280 + 40] = 220
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(video.encode(frame))
            while heard < (number + 1) * rate // fps:
                wave = np.sin(np.arange(heard, heard + 1024) * 440 * 2 * np.pi / rate) * 0.5
                piece = av.AudioFrame.from_ndarray(wave.astype(np.float32)[None], format="fltp", layout="mono")
                piece.sample_rate, piece.pts, piece.time_base = rate, heard, Fraction(1, rate)
                container.mux(audio.encode(piece))
                heard += 1024
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    return path
