"""The first words with a camera, step by step, so that whatever is wrong can be named.

Finds the host, connects, secures, and over RTSP asks for a description, each step with its time. It has the camera
send nothing and keeps nothing open; how a camera is read is the packet sources' business. Blocks.
"""

import errno
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from camserver.domain.diagnosis import Cause
from camserver.domain.leases import Fault
from camserver.media import tls
from camserver.media.addresses import AddressPolicy, Place
from camserver.media.digest import Challenge, Login, strongest
from camserver.media.packets import Miss
from camserver.media.rtsp_lean.messages import (
    BODY_MAX_BYTES,
    HEAD_MAX_BYTES,
    BrokenTalk,
    Reply,
    parse_message,
    request,
)

# As descriptions name them (RFC 3551, 6184, 7798), and as they are called here.
CODECS = {"H264": "h264", "H265": "hevc", "JPEG": "mjpeg"}
_JPEG_PAYLOAD = "26"
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
_RTPMAP = re.compile(r"^a=rtpmap:(\d{1,3})\s+([\w.-]{1,32})/", re.MULTILINE)
_VIDEO = re.compile(r"^m=video\s+\S+\s+\S+\s+(\d{1,3})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done, and how long it took."""

    name: str  # resolve, connect, tls, describe, open, keyframe, decode, picture
    took_ms: int


class Stopped(Exception):
    """What stopped a probe."""

    def __init__(self, cause: Cause, **facts: str) -> None:
        super().__init__(cause.value)
        self.cause = cause
        self.facts = facts


@dataclass(slots=True)
class Steps:
    """The steps so far. The one that failed is among them."""

    taken: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began_sec = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - began_sec)

    def add(self, name: str, took_sec: float) -> None:
        self.taken.append(Step(name, max(round(took_sec * 1000), 0)))


@dataclass(frozen=True, slots=True)
class Described:
    """What a camera says before it sends. `server` is its own name for itself."""

    codec: str
    server: str
    has_audio: bool


def find(steps: Steps, policy: AddressPolicy, host: str, port: int) -> Place:
    with steps.step("resolve"):
        place = policy.resolve(host, port)
    if isinstance(place, Miss):
        raise Stopped(Cause.NOT_ALLOWED if place.fault is Fault.REFUSED else Cause.UNKNOWN_HOST)
    return place


def connect(steps: Steps, place: Place, timeout_sec: float) -> socket.socket:
    with steps.step("connect"):
        try:
            return socket.create_connection((place.address, place.port), timeout_sec)
        except OSError as error:
            raise Stopped(why(error)) from None


def secure(steps: Steps, sock: socket.socket, place: Place, host: str, pin: str | None) -> socket.socket:
    """TLS over a connection; when its certificate is not trusted, its fingerprint is told."""
    with steps.step("tls"):
        try:
            return tls.secure(sock, host, pin)
        except tls.UntrustedCertificate as untrusted:
            fingerprint = untrusted.sha256 or _shown_certificate(place, host, sock.gettimeout())
            cause = Cause.TLS_NOT_TRUSTED if pin is None else Cause.TLS_PIN_DIFFERS
            raise Stopped(cause, fingerprint=fingerprint) from None
        except (ssl.SSLError, OSError) as error:
            raise Stopped(Cause.NO_ANSWER if isinstance(error, TimeoutError) else Cause.NO_TLS) from None


def describe(steps: Steps, sock: socket.socket, url: str, login: Login | None, timeout_sec: float) -> Described:
    """What the camera says it has. `url` holds no login."""
    with steps.step("describe"):
        deadline_sec = time.monotonic() + timeout_sec
        try:
            reply = _describe(sock, url, login, deadline_sec)
        except BrokenTalk:
            raise Stopped(Cause.NOT_RTSP) from None
        except OSError as error:
            # It took the connection, and then it had nothing to say to RTSP.
            raise Stopped(Cause.NO_ANSWER if isinstance(error, TimeoutError) else Cause.NOT_RTSP) from None
    return _judge(reply, login)


def why(error: OSError) -> Cause:
    """What an error of the network means."""
    if isinstance(error, TimeoutError):
        return Cause.NO_ANSWER
    if isinstance(error, ConnectionRefusedError):
        return Cause.PORT_CLOSED
    return Cause.NO_ROUTE if error.errno in _UNREACHABLE else Cause.NO_ANSWER


def _shown_certificate(place: Place, host: str, timeout_sec: float | None) -> str:
    try:
        with socket.create_connection((place.address, place.port), timeout_sec) as sock:
            return tls.shown_certificate(sock, host)
    except OSError:
        return ""


def _describe(sock: socket.socket, url: str, login: Login | None, deadline_sec: float) -> Reply:
    headers = {"Accept": "application/sdp"}
    sock.sendall(request("DESCRIBE", url, 1, headers))
    reply = _reply(sock, deadline_sec)
    challenge = _challenge(reply)
    if challenge is None or login is None:
        return reply
    headers["Authorization"] = challenge.authorization(login, "DESCRIBE", url)
    sock.sendall(request("DESCRIBE", url, 2, headers))
    return _reply(sock, deadline_sec)


def _challenge(reply: Reply) -> Challenge | None:
    return strongest(reply.headers.get("www-authenticate", ())) if reply.status == 401 else None


def _reply(sock: socket.socket, deadline_sec: float) -> Reply:
    data = bytearray()
    while len(data) <= HEAD_MAX_BYTES + BODY_MAX_BYTES:
        left_sec = deadline_sec - time.monotonic()
        if left_sec <= 0:
            raise TimeoutError
        sock.settimeout(left_sec)
        came = sock.recv(65_536)
        if not came:
            raise ConnectionResetError("the camera ended the connection")
        data += came
        if not data.startswith(b"RTSP/"[: len(data)]):
            raise BrokenTalk("what came is no RTSP")
        message = parse_message(data)
        if message is not None and message[0] is not None:
            return message[0]
        if message is not None:
            raise BrokenTalk("what came is no reply")
    raise BrokenTalk("the reply does not end")


def _judge(reply: Reply, login: Login | None) -> Described:
    server = "".join(one for one in reply.header("server") if one.isprintable())[:128]
    if reply.status in (401, 403):
        raise Stopped(Cause.NEEDS_LOGIN if login is None else Cause.WRONG_PASSWORD)
    if reply.status in (400, 404, 454, 455):
        raise Stopped(Cause.NO_SUCH_PATH, said=server)
    if reply.status in (453, 503):
        raise Stopped(Cause.TOO_MANY_STREAMS)
    if reply.status != 200:
        raise Stopped(Cause.OTHER, detail=f"RTSP {reply.status}")
    text = reply.body.decode("utf-8", "replace").replace("\r", "")
    video = _VIDEO.search(text)
    if video is None:
        raise Stopped(Cause.NO_VIDEO)
    names = dict(_RTPMAP.findall(text))
    name = names.get(video[1], "JPEG" if video[1] == _JPEG_PAYLOAD else f"RTP {video[1]}").upper()
    if name not in CODECS:
        raise Stopped(Cause.CODEC_NOT_SUPPORTED, codec=name)
    return Described(CODECS[name], server, "\nm=audio " in text)
