"""Starts go2rtc, which serves what other RTSP cameras send: its own session descriptions, packets and logins.

It takes any login from loopback; whoever wants to be asked for one connects to another address of the machine.
"""

import json
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from camserver.base import assets
from tests.rig.polling import poll
from tests.rig.ports import LOOPBACK, free_port

PROGRAM = "go2rtc"


class MissingGo2rtc(Exception):
    """It is not there; the message says how to get it."""


@contextmanager
def go2rtc(
    streams: Mapping[str, str], folder: Path, host: str = LOOPBACK, user: str = "", password: str = ""
) -> Iterator[str]:
    """The address, without a path, of a server with a camera for each of `streams` (name: where it comes from)."""
    found = program(folder)
    port = free_port()
    chosen = {
        "rtsp": {"listen": f"{host}:{port}", "username": user, "password": password},
        "streams": dict(streams),
        # Nothing but RTSP, and no other port.
        **{module: {"listen": ""} for module in ("api", "webrtc", "srtp")},
    }
    with (folder / "go2rtc.log").open("w") as log:
        server = subprocess.Popen([found, "-config", json.dumps(chosen)], stdout=log, stderr=log, cwd=folder)
        try:
            poll(lambda: server.poll() is not None or _answers(host, port), "go2rtc answers")
            if server.poll() is not None:
                raise RuntimeError(f"go2rtc ended: {(folder / 'go2rtc.log').read_text()[-1000:]}")
            yield f"rtsp://{host}:{port}"
        finally:
            server.kill()
            server.wait()


def program(folder: Path) -> str:
    if (installed := shutil.which(PROGRAM)) is not None:
        return installed
    fetched = assets.find(PROGRAM, Path("no data folder"))
    if fetched is None:
        how = "run `make setup-dev`" if platform.machine() == "x86_64" else "put it on the PATH"
        raise MissingGo2rtc(f"go2rtc is missing: {how}")
    # An asset is a file like any other; this one has to be run.
    placed = folder / PROGRAM
    if not placed.exists():
        shutil.copyfile(fetched, placed)
        placed.chmod(0o755)
    return str(placed)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
