"""RTSP cameras made of any GStreamer pipelines. Run by the system's Python; imports nothing of camserver.

    python3 pipelines.py JSON

JSON: {"mounts": {"/path": "( pipeline with pay0 )", …}, "user": "", "password": "", "certificate": ""}. With a user,
digest is asked for; with a certificate (a PEM file with its key), everything goes over TLS. Prints the port it
listens on, then serves until its input ends. An `appsrc` called `clock` is fed with pictures of the time (clock.py).
"""

import json
import sys
import threading
from typing import Any

import clock  # type: ignore[import-not-found]  # beside this file, which is run as a script
import gi  # type: ignore[import-not-found]  # only the system's Python has it

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtsp, GstRtspServer  # type: ignore[import-not-found]  # noqa: E402

ROLE = "viewer,media.factory.access=(bool)true,media.factory.construct=(bool)true"


def auth_of(asked: dict[str, Any]) -> Any:
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    if asked["user"]:
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        auth.add_digest(asked["user"], asked["password"], token)
    else:
        auth.set_default_token(token)
    if asked["certificate"]:
        auth.set_tls_certificate(Gio.TlsCertificate.new_from_file(asked["certificate"]))
    return auth


def quit_at_end(loop: Any) -> None:
    sys.stdin.read()
    GLib.idle_add(loop.quit)


def main() -> None:
    asked = json.loads(sys.argv[1])
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    server.set_auth(auth_of(asked))
    for path, pipeline in asked["mounts"].items():
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(pipeline)
        if f"name={clock.SOURCE} " in pipeline:
            factory.set_shared(True)
            factory.connect("media-configure", lambda _, media: clock.Pusher(media, Gst, GLib))
        factory.add_role_from_structure(Gst.Structure.from_string(ROLE)[0])
        server.get_mount_points().add_factory(path, factory)
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    loop = GLib.MainLoop()
    # Whoever started it holds its input open.
    threading.Thread(target=quit_at_end, args=(loop,), daemon=True).start()
    loop.run()


if __name__ == "__main__":
    main()
