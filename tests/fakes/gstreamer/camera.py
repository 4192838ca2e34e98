"""Starts GStreamer's RTSP server as a camera.

Where it is not installed, the test that asks for it is skipped and names the packages; where CI=true it fails.
"""

import json
import os
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from camserver.media.clips import Clip

# The bindings belong to the system's Python.
PYTHON: Final = "/usr/bin/python3"
PACKAGES: Final = (
    "python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good "
    "gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly"
)
_PROBE = (
    "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; "
    "Gst.init(None); assert all(map(Gst.ElementFactory.find, ('appsrc', 'h264parse', 'rtph264pay')))"
)


class FaultyCamera:
    """A camera whose faults are switched while it runs; server.py says which there are."""

    def __init__(self, server: "subprocess.Popen[str]", folder: Path) -> None:
        self._server = server
        self._folder = folder
        assert server.stdout is not None
        self.url = f"rtsp://127.0.0.1:{int(server.stdout.readline())}/cam"

    def tell(self, *words: str) -> None:
        """Inflicts a fault; it is there when this returns."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(*words, file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        assert answer == "ok\n", answer

    def show(self, clip: Clip) -> None:
        """Shows another clip in the stream that is open."""
        units = self._folder / f"units-{clip.size[0]}x{clip.size[1]}-{len(clip.units)}"
        _write_units(clip, units)
        self.tell("show", str(units))


@contextmanager
def gstreamer_camera(clip: Clip, fps: int, user: str, password: str, folder: Path) -> Iterator[str]:
    """The address of a camera that plays the clip for ever."""
    with faulty_camera(clip, fps, user, password, folder) as camera:
        yield camera.url


@contextmanager
def faulty_camera(clip: Clip, fps: int, user: str, password: str, folder: Path, *how: str) -> Iterator[FaultyCamera]:
    """A camera that plays the clip for ever, until it is told otherwise; server.py says how it may."""
    _require()
    folder.mkdir(exist_ok=True)
    units = folder / "units"
    _write_units(clip, units)
    command = [PYTHON, str(Path(__file__).with_name("server.py")), str(units), str(fps), user, password, *how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield FaultyCamera(server, folder)
        finally:
            server.kill()


def _write_units(clip: Clip, path: Path) -> None:
    path.write_bytes(b"".join(_framed(unit.nals, clip) for unit in clip.units))


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


@contextmanager
def gstreamer_pipelines(
    mounts: Mapping[str, str], user: str = "", password: str = "", certificate: Path | None = None
) -> Iterator[str]:
    """The address, without a path, of a server with a camera at each path: `pay0` of its pipeline."""
    _require()
    asked = {"mounts": dict(mounts), "user": user, "password": password, "certificate": str(certificate or "")}
    command = [PYTHON, str(Path(__file__).with_name("pipelines.py")), json.dumps(asked)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            yield f"{'rtsps' if certificate else 'rtsp'}://127.0.0.1:{port}"
        finally:
            server.kill()


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{what} (skipped where CI is not set)", pytrace=False)
    pytest.skip(what)
