"""An RTSP camera made of GStreamer's own server. Run by the system's Python; imports nothing of camserver.

    python3 server.py UNITS FPS USER PASSWORD

UNITS is a file of H.264 access units (Annex B), each after its length in 4 bytes. They are pushed again and again
with growing timestamps. Prints the port it listens on, then serves /cam until its input ends.
"""

import struct
import sys
import threading
from typing import Any

import gi  # type: ignore[import-not-found]  # only the system's Python has it

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # type: ignore[import-not-found]  # noqa: E402

PIPELINE = (
    "( appsrc name=src is-live=true format=time caps=video/x-h264,stream-format=byte-stream,alignment=au "
    "! h264parse ! rtph264pay name=pay0 pt=96 )"
)


def read_units(path: str) -> list[bytes]:
    with open(path, "rb") as file:
        data = file.read()
    units, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("!I", data, at)
        units.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return units


class Pusher:
    """Feeds one media, which all clients share."""

    def __init__(self, media: Any, units: list[bytes], fps: int) -> None:
        self.units = units
        self.step = Gst.SECOND // fps
        self.number = 0
        self.source = media.get_element().get_child_by_name("src")
        self.timer = GLib.timeout_add(1000 // fps, self.push)
        media.connect("unprepared", self.stop)

    def push(self) -> bool:
        buffer = Gst.Buffer.new_wrapped(self.units[self.number % len(self.units)])
        buffer.pts = buffer.dts = self.number * self.step
        buffer.duration = self.step
        self.number += 1
        return bool(self.source.emit("push-buffer", buffer) == Gst.FlowReturn.OK)

    def stop(self, _media: Any) -> None:
        if self.timer:
            GLib.source_remove(self.timer)
            self.timer = 0


def only_for(user: str, password: str) -> Any:
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    auth.add_digest(user, password, token)
    return auth


def quit_at_end(loop: Any) -> None:
    sys.stdin.read()
    GLib.idle_add(loop.quit)


def main() -> None:
    path, fps, user, password = sys.argv[1:5]
    Gst.init(None)
    units = read_units(path)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    server.set_auth(only_for(user, password))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(PIPELINE)
    factory.set_shared(True)
    factory.add_role_from_structure(
        Gst.Structure.from_string("viewer,media.factory.access=(bool)true,media.factory.construct=(bool)true")[0]
    )
    factory.connect("media-configure", lambda _, media: Pusher(media, units, int(fps)))
    server.get_mount_points().add_factory("/cam", factory)
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    loop = GLib.MainLoop()
    # Whoever started it holds its input open.
    threading.Thread(target=quit_at_end, args=(loop,), daemon=True).start()
    loop.run()


if __name__ == "__main__":
    main()
