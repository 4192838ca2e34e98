"""The way of FFmpeg to a camera over TCP: it can't be trusted to check certificates, nor to stay with one host.

The camera is connected to and its certificate checked here; then bytes go to and fro between that connection and one
port of this machine, which takes exactly one connection. A camera that sends its reader elsewhere, which FFmpeg would
follow wherever that is, is cut off (decision 45).
"""

import contextlib
import re
import selectors
import socket
import ssl
import threading
import time
from types import TracebackType
from typing import Self

from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.media import tls
from camserver.media.addresses import Place
from camserver.media.packets import Miss
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_lean.reader import connect, explain, untrusted_miss

log = get_logger(__name__)

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65_536
# A side that takes nothing for so long is gone.
SEND_TIMEOUT_SEC = 10.0
# What may come before it is known what a reply says.
FIRST_LINE_MAX_BYTES = 1_024
_REQUEST_END = b"\r\n\r\n"
_REPLY = re.compile(rb"R\r*+T\r*+S\r*+P\r*+/")
# The beginning of that, where what came ends.
_BEGUN = re.compile(rb"R\r*+(?:T\r*+(?:S\r*+(?:P\r*+)?)?)?\Z")
# A status that is no redirect; or no number, as in the name of a server.
_STAYS = re.compile(rb"RTSP/[^ \t\n]*+(?:\n|[ \t]++(?:\n|[1245][0-9]{2}[^0-9]|[^-+0-9 \t\n\v\f]))")
_MAY_STAY = re.compile(rb"RTSP/[^ \t\n]*+(?:[ \t]++(?:[1245][0-9]{0,2})?)?")


class RtspPipe:
    """Open within `with`. `miss` says why there is none, else `place` is where to connect to."""

    def __init__(self, address: RtspAddress, place: Place, pin: str | None, timeout_sec: float) -> None:
        self._address = address
        self._camera = place
        self._pin = pin
        self._timeout_sec = timeout_sec
        self._stack = contextlib.ExitStack()
        self.miss: Miss | None = None
        self.place = Place(socket.AF_INET, LOOPBACK, 0)

    def __enter__(self) -> Self:
        what = f"{self._address} can't be opened"
        try:
            camera = connect(self._camera, self._address, self._pin, time.monotonic() + self._timeout_sec)
        except tls.UntrustedCertificate as untrusted:
            self.miss = untrusted_miss(untrusted, self._address, self._timeout_sec)
            return self
        except OSError as error:
            self.miss = explain(error, what)
            return self
        self._stack.enter_context(camera)
        try:
            listener = socket.create_server((LOOPBACK, 0), backlog=1)
        except OSError:
            self.miss = Miss(Fault.CRASH, f"{what}: there is no free port on this machine")
            return self
        self._stack.enter_context(listener)
        self.place = Place(socket.AF_INET, LOOPBACK, listener.getsockname()[1])
        threading.Thread(target=self._serve, args=(listener, camera), name="rtsp-pipe", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _serve(self, listener: socket.socket, camera: socket.socket) -> None:
        """Until either side ends; closing the pipe ends the camera's side."""
        try:
            listener.settimeout(self._timeout_sec)
            reader, _ = listener.accept()
            listener.close()
            with reader:
                _exchange(camera, reader)
        except (OSError, ValueError) as error:
            # ValueError: closed from the other thread, which is how a pipe ends.
            log.debug("pipe to a camera ended", cause=type(error).__name__)


def _exchange(camera: socket.socket, reader: socket.socket) -> None:
    """Bytes to and fro, in one thread: a secured socket must not be used by two."""
    guard = RedirectGuard()
    with selectors.DefaultSelector() as selector:
        for one in (camera, reader):
            one.settimeout(SEND_TIMEOUT_SEC)
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is reader:
                    data = reader.recv(CHUNK_BYTES)
                    guard.asked(data)
                    camera.sendall(data)
                else:
                    data = _arrived(camera)
                    if guard.forbids(data):
                        log.warning("camera sends elsewhere, which is not followed")
                        return
                    reader.sendall(data)
                if not data:
                    return


def _arrived(camera: socket.socket) -> bytes:
    data = camera.recv(CHUNK_BYTES)
    # What is decrypted already, no selector sees.
    while data and isinstance(camera, ssl.SSLSocket) and camera.pending():
        data += camera.recv(CHUNK_BYTES)
    return data


class RedirectGuard:
    """Sees a reply that sends elsewhere, until the video comes: then a reader follows none any more.

    FFmpeg takes any line for a reply that begins with "RTSP/", whatever version follows, and whatever C takes for a
    number from 300 to 399 for a redirect: "+302" and "0302" too, wherever a carriage return is put in. So every
    "RTSP/" is looked at, wherever it stands, and what follows must be one of the few things that are known to be
    none. Nothing is held back: a reader follows nothing before it has the end of the line, and that always decides.
    """

    def __init__(self) -> None:
        self._is_playing = False
        self._asked_end = _REQUEST_END
        self._last = b""  # what may become a reply: it may be cut anywhere

    def asked(self, data: bytes) -> None:
        begins = self._asked_end == _REQUEST_END
        self._is_playing = self._is_playing or (begins and data.startswith(b"PLAY "))
        self._asked_end = (self._asked_end + data)[-len(_REQUEST_END) :]

    def forbids(self, data: bytes) -> bool:
        if self._is_playing:
            return False
        seen = self._last + data
        self._last = b""
        for found in _REPLY.finditer(seen):
            line = seen[found.start() : found.start() + FIRST_LINE_MAX_BYTES].replace(b"\r", b"")
            if _STAYS.match(line):
                continue
            is_cut = len(seen) - found.start() < FIRST_LINE_MAX_BYTES
            if not is_cut or not _MAY_STAY.fullmatch(line):
                return True
            self._last = seen[found.start() :]
            return False
        begun = _BEGUN.search(seen, max(len(seen) - FIRST_LINE_MAX_BYTES, 0))
        if begun is not None:
            self._last = begun[0]
        return len(self._last) >= FIRST_LINE_MAX_BYTES
