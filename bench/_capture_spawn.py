"""One program a look, as the source document has it: ffmpeg is started, gives one JPEG and ends.

Taken is the machine's ffmpeg, else the one that the package imageio-ffmpeg carries, else a Python program that does
the same with the FFmpeg of PyAV; the bench says which. The spawn only gets the picture: making it small, measuring
change and keeping it are not counted, while ours does all of that.
"""

import importlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench._cameras import PASSWORD, USER

SMALL_PROBE = ("-probesize", "32", "-analyzeduration", "0")
TIMEOUT_SEC = 60


@dataclass(frozen=True, slots=True)
class Spawn:
    name: str
    program: tuple[str, ...]

    def look(self, url: str, more: tuple[str, ...] = ()) -> int:
        """Bytes of the picture."""
        parts = urlsplit(url)
        url = parts._replace(netloc=f"{USER}:{PASSWORD}@{parts.netloc}").geturl()
        if self.name.startswith("ffmpeg"):
            take = ["-frames:v", "1", "-f", "image2pipe", "-c:v", "mjpeg", "-"]
            command = [
                *self.program,
                "-nostdin",
                "-loglevel",
                "error",
                "-rtsp_transport",
                "tcp",
                *more,
                "-i",
                url,
                *take,
            ]
        else:
            command = [*self.program, url, *more]
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SEC)
        if done.returncode or not done.stdout.startswith(b"\xff\xd8"):
            raise RuntimeError(f"{self.name} got no picture: {done.stderr[-300:]!r}")
        return len(done.stdout)


def find() -> Spawn:
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is not None:
        return Spawn(f"ffmpeg {_version(ffmpeg)} of this machine", (ffmpeg,))
    try:
        carried = importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return Spawn("Python with PyAV's FFmpeg", (sys.executable, "-m", "bench._capture_spawn"))
    return Spawn(f"ffmpeg {_version(carried)} of imageio-ffmpeg", (carried,))


def _version(program: str) -> str:
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=TIMEOUT_SEC)
    return said.stdout.split()[2].partition("-")[0]


def look_by_pyav(url: str, more: list[str]) -> None:
    """What ffmpeg does, by its libraries: probe, decode the first picture, encode it."""
    from fractions import Fraction
    from typing import Any

    import av

    probe = {name.lstrip("-"): value for name, value in zip(more[::2], more[1::2], strict=True)}
    with av.open(url, options={"rtsp_transport": "tcp", **probe}, timeout=(30, 30)) as container:
        frame = next(container.decode(video=0)).reformat(format="yuvj420p")
    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = frame.width, frame.height, "yuvj420p"
    encoder.time_base = Fraction(1, 25)
    frame.pts = 0
    for packet in [*encoder.encode(frame), *encoder.encode(None)]:
        sys.stdout.buffer.write(bytes(packet))


if __name__ == "__main__":
    look_by_pyav(sys.argv[1], sys.argv[2:])
