"""An RTSP camera made of GStreamer's own server. Run by the system's Python; imports nothing of camserver.

    python3 server.py UNITS FPS USER PASSWORD [described]

With "described" only the description holds parameter sets and never the video, as some cameras have it.

UNITS is a file of H.264 access units (Annex B), each after its length in 4 bytes. They are pushed again and again
with growing timestamps. Prints the port it listens on, then serves /cam until its input ends. Each line of its input
is a fault from now on, answered with "ok":

    stall | go                nothing is sent, though connections stay | all is well again
    drop                      ends every connection
    refuse | accept           no password is right | the right one is
    slow SEC                  waits before it describes what it has, up to the next "go"
    show UNITS                another film in the same stream: black, or of another size
"""

import struct
import sys
import threading
import time
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
DESCRIBED = "( appsrc name=src is-live=true format=time ! rtph264pay name=pay0 pt=96 config-interval=0 )"
SETS = (7, 8)


def read_units(path: str) -> list[bytes]:
    with open(path, "rb") as file:
        data = file.read()
    units, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("!I", data, at)
        units.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return units


def nals_of(unit: bytes) -> list[bytes]:
    return [nal for nal in unit.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if nal]


def described(units: list[bytes]) -> tuple[str, list[bytes]]:
    """The film with its parameter sets apart: caps that hold them, and each unit's NAL units after their sizes."""
    nals = [nals_of(unit) for unit in units]
    sps, pps = (next(nal for unit in nals for nal in unit if nal[0] & 31 == kind) for kind in SETS)
    head = b"\1" + sps[1:4] + b"\xff\xe1" + struct.pack("!H", len(sps)) + sps
    sets = (head + b"\1" + struct.pack("!H", len(pps)) + pps).hex()
    bare = [b"".join(struct.pack("!I", len(nal)) + nal for nal in unit if nal[0] & 31 not in SETS) for unit in nals]
    return f"video/x-h264,stream-format=avc,alignment=au,codec_data=(buffer){sets}", bare


class Film:
    """What is shown, and how it fails; the same for all who watch."""

    def __init__(self, units: list[bytes], is_described: bool) -> None:
        self.is_described = is_described
        self.caps = ""
        self.show(units)
        self.is_stalled = False
        self.slow_sec = 0.0

    def show(self, units: list[bytes]) -> None:
        self.units = units
        if self.is_described:
            self.caps, self.units = described(units)


class Pusher:
    """Feeds one media, which all clients share."""

    def __init__(self, media: Any, film: Film, fps: int) -> None:
        self.film = film
        self.step = Gst.SECOND // fps
        self.number = 0
        self.caps = ""
        self.source = media.get_element().get_child_by_name("src")
        self.timer = GLib.timeout_add(1000 // fps, self.push)
        media.connect("unprepared", self.stop)

    def push(self) -> bool:
        units = self.film.units
        if self.film.is_stalled:
            return True
        if self.film.caps != self.caps:
            self.caps = self.film.caps
            self.source.set_property("caps", Gst.Caps.from_string(self.caps))
        buffer = Gst.Buffer.new_wrapped(units[self.number % len(units)])
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


class Faults:
    """Does what the lines of the input say, in the main loop."""

    def __init__(self, server: Any, film: Film, login: tuple[str, str]) -> None:
        self.server = server
        self.film = film
        self.login = login

    def follow(self, loop: Any) -> None:
        """Until the input ends: whoever started this process holds it open."""
        for line in sys.stdin:
            if line.split() == ["go"]:
                # From this thread: the main loop may be held up by just that.
                self.film.slow_sec = 0.0
            GLib.idle_add(self.inflict, line.split())
        GLib.idle_add(loop.quit)

    def inflict(self, words: list[str]) -> bool:
        match words:
            case ["stall"]:
                self.film.is_stalled = True
            case ["go"]:
                self.film.is_stalled, self.film.slow_sec = False, 0.0
            case ["drop"]:
                for client in self.server.client_filter(None):
                    client.close()
            case ["refuse"]:
                self.server.set_auth(only_for(self.login[0], "nobody knows this one"))
            case ["accept"]:
                self.server.set_auth(only_for(*self.login))
            case ["slow", sec]:
                self.film.slow_sec = float(sec)
            case ["show", path]:
                self.film.show(read_units(path))
            case _:
                raise ValueError(words)
        print("ok", flush=True)
        return False

    def delay(self, _client: Any, _context: Any) -> Any:
        end_sec = time.monotonic() + self.film.slow_sec
        while self.film.slow_sec and time.monotonic() < end_sec:
            time.sleep(0.05)
        return GstRtsp.RTSPStatusCode.OK


def main() -> None:
    path, fps, user, password = sys.argv[1:5]
    Gst.init(None)
    film = Film(read_units(path), "described" in sys.argv[5:])
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    server.set_auth(only_for(user, password))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(DESCRIBED if film.is_described else PIPELINE)
    factory.set_shared(True)
    factory.add_role_from_structure(
        Gst.Structure.from_string("viewer,media.factory.access=(bool)true,media.factory.construct=(bool)true")[0]
    )
    factory.connect("media-configure", lambda _, media: Pusher(media, film, int(fps)))
    server.get_mount_points().add_factory("/cam", factory)
    faults = Faults(server, film, (user, password))
    server.connect("client-connected", lambda _, client: client.connect("pre-describe-request", faults.delay))
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    loop = GLib.MainLoop()
    threading.Thread(target=faults.follow, args=(loop,), daemon=True).start()
    loop.run()


if __name__ == "__main__":
    main()
