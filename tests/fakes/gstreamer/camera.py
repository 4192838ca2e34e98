"""Starts GStreamer's RTSP server as a camera.

Where it is not installed, the test that asks for it is skipped and names the packages; where CI=true it fails.
"""

import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from camserver.media.clips import Clip

# The bindings belong to the system's Python.
PYTHON: Final = "/usr/bin/python3"
PACKAGES: Final = (
    "python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good "
    "gstreamer1.0-plugins-bad"
)
_PROBE = (
    "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; "
    "Gst.init(None); assert all(map(Gst.ElementFactory.find, ('appsrc', 'h264parse', 'rtph264pay')))"
)


@contextmanager
def gstreamer_camera(clip: Clip, fps: int, user: str, password: str, folder: Path) -> Iterator[str]:
    """The address of a camera that plays the clip for ever."""
    _require()
    units = folder / "units"
    units.write_bytes(b"".join(_framed(unit.nals, clip) for unit in clip.units))
    command = [PYTHON, str(Path(__file__).with_name("server.py")), str(units), str(fps), user, password]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            yield f"rtsp://127.0.0.1:{port}/cam"
        finally:
            server.kill()


def _framed(nals: tuple[bytes, ...], clip: Clip) -> bytes:
    if not any(nal[0] & 31 == 7 for nal in nals) and any(nal[0] & 31 == 5 for nal in nals):
        nals = (clip.sps, clip.pps, *nals)
    data = b"".join(b"\0\0\0\1" + nal for nal in nals)
    return struct.pack("!I", len(data)) + data


def _require() -> None:
    try:
        probed = subprocess.run([PYTHON, "-c", _PROBE], capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        _missing(f"there is no {PYTHON}: apt install {PACKAGES}")
    if probed.returncode:
        _missing(f"GStreamer's RTSP server is not installed: apt install {PACKAGES}")


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{what} (skipped where CI is not set)", pytrace=False)
    pytest.skip(what)
