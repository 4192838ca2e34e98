"""The dialogue with a camera over one connection: OPTIONS, DESCRIBE, SETUP, PLAY, and signs of life.

Packets that arrive while a reply is waited for are not lost.
"""

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Mapping

from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.media.digest import SHA256_STRENGTH, Challenge, Login, challenges, login_refused, strongest
from camserver.media.packets import Miss
from camserver.media.rtsp_lean.describe import SoundTrack, Track, parse_description, parse_sound
from camserver.media.rtsp_lean.keyframes import KeyframeWish
from camserver.media.rtsp_lean.messages import BrokenTalk, Reply, Unfit, request
from camserver.media.rtsp_lean.sounds import Heard, Sounds
from camserver.media.rtsp_lean.udp import UdpPair
from camserver.media.rtsp_lean.units import Unit, Units
from camserver.media.rtsp_lean.wire import Wire

log = get_logger(__name__)

SESSION_TIMEOUT_SEC = 60.0  # where a camera names none (RFC 2326)
ALIVE_MAX_SEC = 30.0
# Of one camera before the next has its turn.
READS_MAX = 16
_INTERLEAVED = re.compile(r"interleaved=(\d{1,3})", re.IGNORECASE)
_SERVER_PORTS = re.compile(r"server_port=(\d{1,5})", re.IGNORECASE)
_TIMEOUT = re.compile(r"timeout=(\d{1,6})", re.IGNORECASE)
# An empty receiver report: some cameras hang up without.
_RECEIVER_REPORT = bytes((0x80, 201, 0, 1, 0, 0, 0, 0))


class Refused(Exception):
    """The camera said no; `miss` says what that means."""

    def __init__(self, miss: Miss) -> None:
        super().__init__(miss.message)
        self.miss = miss


class Session:
    """One camera that is connected. `open` it, which waits; from then on nothing waits."""

    def __init__(
        self,
        sock: socket.socket,
        url: str,
        shown: str,
        login: Login | None,
        transport: str = "tcp",
        with_sound: bool = False,
        asks_for_keyframes: bool = True,
    ) -> None:
        self._sock = sock
        self._over_udp = transport == "udp"
        self._udp: UdpPair | None = None
        self._url = url
        self._shown = shown  # the address as it may stand in messages
        self._login = login
        self._wire = Wire()
        self._cseq = 0
        self._challenge: Challenge | None = None
        self._is_proven = False  # the camera took the login once
        self._wants_sha256 = False  # and knows no other login: FFmpeg can't read it
        self._session = ""
        self._alive_every_sec = SESSION_TIMEOUT_SEC / 2
        self._alive_at_sec = 0.0
        self._alive_method = "OPTIONS"
        self._may_repeat_alive = False
        self._channel = 0
        self._track: Track | None = None
        self._units: Units | None = None
        self._with_sound = with_sound and not self._over_udp
        self.asks_for_sound = False  # the camera has not said yet whether it gives it
        self.sound: SoundTrack | None = None  # what comes beside the pictures
        self._sounds: Sounds | None = None
        self._sound_channel = -1
        self._has_received = False
        self._wish = KeyframeWish() if asks_for_keyframes else None

    def open(self, deadline_sec: float) -> Track:
        """Until the camera has agreed to send, by time.monotonic."""
        options = self._ask("OPTIONS", self._url, {}, deadline_sec, accepts_any=True)
        if "GET_PARAMETER" in options.header("public").upper():
            self._alive_method = "GET_PARAMETER"
        described = self._ask("DESCRIBE", self._url, {"Accept": "application/sdp"}, deadline_sec)
        base = described.header("content-base") or described.header("content-location") or self._url
        if not base.lower().startswith(("rtsp://", "rtsps://")):
            base = self._url
        try:
            track = parse_description(described.body, base)
        except Unfit as reason:
            if not self._wants_sha256:
                raise
            raise Refused(
                Miss(
                    Fault.NO_VIDEO,
                    f"{self._shown} can't be read: {reason}, and its login is SHA-256; allow MD5 there",
                )
            ) from None
        if track is None:
            raise Refused(Miss(Fault.NO_VIDEO, f"{self._shown} has no video"))
        self._track = track
        self._units = Units(track.codec, track.payload_type)
        transport = "RTP/AVP/TCP;unicast;interleaved=0-1"
        if self._over_udp:
            self._udp = UdpPair(self._sock, self._units.push)
            transport = "RTP/AVP;unicast;client_port={}-{}".format(*self._udp.ports)
        self._note_session(self._ask("SETUP", track.control, {"Transport": transport}, deadline_sec))
        if self._with_sound:
            self._set_up_sound(parse_sound(described.body, base), deadline_sec)
        self._ask("PLAY", track.aggregate, self._with_session({"Range": "npt=0.000-"}), deadline_sec)
        self._alive_at_sec = time.monotonic() + self._alive_every_sec
        self._sock.setblocking(False)
        return track

    def _set_up_sound(self, track: SoundTrack | None, deadline_sec: float) -> None:
        """Sound beside the pictures, if the camera has it and gives it."""
        if track is None:
            return
        self.asks_for_sound = True
        headers = self._with_session({"Transport": "RTP/AVP/TCP;unicast;interleaved=2-3"})
        try:
            reply = self._ask("SETUP", track.control, headers, deadline_sec)
        except Refused as refused:
            log.info("the camera gives no sound", cause=refused.miss.message)
        else:
            found = _INTERLEAVED.search(reply.header("transport"))
            channel = min(int(found[1]), 254) if found else 2
            # One that gives both the same channel means neither.
            if channel != self._channel:
                self.sound, self._sound_channel, self._sounds = track, channel, Sounds(track)
        self.asks_for_sound = False

    def take_sounds(self) -> list[Heard]:
        """What was heard since the last time."""
        if self._sounds is None or not self._sounds.done:
            return []
        done = self._sounds.done
        return [done.popleft() for _ in range(len(done))]

    @property
    def is_over_udp(self) -> bool:
        return self._udp is not None

    @property
    def suits_ffmpeg(self) -> bool:
        """Whether another reader may try it: FFmpeg knows no login with SHA-256 and reads over TCP only."""
        return not self._wants_sha256 and not self.is_over_udp

    def filenos(self) -> tuple[int, ...]:
        return (self._sock.fileno(), *(self._udp.filenos() if self._udp else ()))

    def receive(self) -> list[Unit]:
        """Pictures that are complete by what has arrived; never waits."""
        assert self._units is not None
        if self._udp is not None:
            self._udp.receive()
        done = self._units.done
        if not self._has_received:
            # Behind the reply to PLAY there may be packets already.
            self._has_received = True
            self._go_through(0)
        for _ in range(READS_MAX):
            room = self._room()
            try:
                count = self._sock.recv_into(room)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if count == 0:
                if done:
                    break
                raise ConnectionResetError("the camera ended the connection")
            self._go_through(count)
            # A secured socket holds back what it has decrypted, and nothing tells of that.
            is_secure = isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0
            if count < len(room) and not is_secure:
                break
        if self._wish is not None:
            self._ask_for_keyframe(self._wish, self._units)
        return [done.popleft() for _ in range(len(done))]

    @property
    def waits_for_keyframe(self) -> bool:
        """Whether the camera was asked for one and none came."""
        return self._wish is not None and self._wish.is_open

    def _ask_for_keyframe(self, wish: KeyframeWish, units: Units) -> None:
        if wish.is_due(units.misses_keyframe, time.monotonic()) and units.ssrc is not None:
            log.debug("camera is asked for a keyframe")
            self._report(wish.message(units.ssrc))

    def _report(self, report: bytes) -> None:
        """Beside the video. What can't be sent now is not worth waiting for."""
        if self._udp is not None:
            self._udp.report(report)
            return
        message = bytes((0x24, self._channel + 1, 0, len(report))) + report
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if self._sock.send(message) != len(message):
                raise ConnectionResetError("the camera takes no reports any more")

    def give_sign_of_life(self) -> None:
        """When one is due: else the camera thinks that nobody is there any more. Never waits."""
        if time.monotonic() < self._alive_at_sec or self._track is None:
            return
        self._alive_at_sec = time.monotonic() + self._alive_every_sec
        self._may_repeat_alive = True
        self._report(_RECEIVER_REPORT)
        self._send_alive()

    def _send_alive(self) -> None:
        assert self._track is not None
        self._send(self._alive_method, self._track.aggregate, self._with_session({}))

    def end(self) -> None:
        """Tells the camera, without waiting for what it says."""
        if self._session and self._track is not None:
            self._send("TEARDOWN", self._track.aggregate, self._with_session({}))

    def close(self) -> None:
        if self._udp is not None:
            self._udp.close()
        self._sock.close()

    def _room(self) -> memoryview:
        if self._units is not None:
            self._units.detach()
        return self._wire.room()

    def _go_through(self, count: int) -> None:
        """Replies to signs of life only matter when they refuse."""
        reply = self._wire.read(count, self._take)
        while reply is not None:
            self._hear(reply)
            reply = self._wire.read(0, self._take)

    def _take(self, buffer: bytearray, channel: int, start: int, stop: int, end: int) -> int:
        if channel != self._channel or self._units is None:
            if channel == self._sound_channel and self._sounds is not None:
                self._sounds.push(buffer, start, stop)
            return stop
        self._units.push(buffer, start, stop)
        return self._units.push_more(buffer, channel, stop, end)

    def _hear(self, reply: Reply) -> None:
        """A reply to a sign of life."""
        if reply.status == 401:
            self._challenge = strongest(reply.headers.get("www-authenticate", ())) or self._challenge
            if self._may_repeat_alive and self._login is not None:
                # Its nonce was too old. The next sign of life would come too late where the session is short.
                self._may_repeat_alive = False
                self._send_alive()
        elif reply.status == 454:
            raise Refused(Miss(Fault.NO_VIDEO, "the camera forgot the session"))
        elif reply.status in (405, 501) and self._alive_method != "OPTIONS":
            self._alive_method = "OPTIONS"

    def _ask(
        self, method: str, uri: str, headers: Mapping[str, str], deadline_sec: float, accepts_any: bool = False
    ) -> Reply:
        """The reply to a request, which is made once more when the camera asks for a login."""
        self._send(method, uri, headers)
        reply = self._reply(deadline_sec)
        if reply.status == 401 and self._login is not None:
            offered = challenges(reply.headers.get("www-authenticate", ()))
            self._wants_sha256 = bool(offered) and all(one.strength >= SHA256_STRENGTH for one in offered)
            before, self._challenge = self._challenge, max(offered, key=lambda one: one.strength, default=None)
            if self._challenge is None:
                raise Refused(Miss(Fault.UNAUTHORIZED, f"{self._shown} wants a kind of login that is not known here"))
            # A right password is asked for again only because its nonce is over; not all cameras say so.
            is_renewed = before is not None and self._is_proven and self._challenge.is_new(before)
            if before is None or self._challenge.is_stale or is_renewed:
                self._send(method, uri, headers)
                reply = self._reply(deadline_sec)
        if reply.status == 200 and self._challenge is not None and method != "OPTIONS":
            self._is_proven = True
        if reply.status == 200 or (accepts_any and reply.status != 401):
            return reply
        raise Refused(self._explain(method, reply.status))

    def _send(self, method: str, uri: str, headers: Mapping[str, str]) -> None:
        self._cseq += 1
        all_headers = dict(headers)
        if self._challenge is not None and self._login is not None:
            all_headers["Authorization"] = self._challenge.authorization(self._login, method, uri)
        message = request(method, uri, self._cseq, all_headers)
        # So few bytes are taken at once, or the camera has not read for long.
        if self._sock.send(message) != len(message):
            raise ConnectionResetError("the camera takes no requests any more")

    def _reply(self, deadline_sec: float) -> Reply:
        count = 0
        while True:
            reply = self._wire.read(count, self._take)
            # One that answers an earlier request may come late.
            if reply is not None and reply.header("cseq") in ("", str(self._cseq)):
                return reply
            if reply is not None:
                count = 0
                continue
            left_sec = deadline_sec - time.monotonic()
            if left_sec <= 0:
                raise TimeoutError
            self._sock.settimeout(left_sec)
            count = self._sock.recv_into(self._room())
            if count == 0:
                raise ConnectionResetError("the camera ended the connection")

    def _note_session(self, reply: Reply) -> None:
        given = reply.header("session")
        self._session = given.partition(";")[0].strip()
        if not self._session:
            raise BrokenTalk("the camera gave no session")
        timeout = _TIMEOUT.search(given)
        timeout_sec = max(float(timeout[1]), 2.0) if timeout else SESSION_TIMEOUT_SEC
        self._alive_every_sec = min(timeout_sec / 2, ALIVE_MAX_SEC)
        transport_given = reply.header("transport")
        if self._udp is not None:
            ports = _SERVER_PORTS.search(transport_given)
            if "tcp" in transport_given.lower() or ports is None:
                raise Refused(Miss(Fault.NO_VIDEO, f"{self._shown} does not send over UDP; set its transport to tcp"))
            first = min(int(ports[1]), 65_534)
            self._udp.aim((first, first + 1))
        channel = _INTERLEAVED.search(transport_given)
        self._channel = min(int(channel[1]), 254) if channel else 0

    def _with_session(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"Session": self._session, **headers}

    def _explain(self, method: str, status: int) -> Miss:
        what = f"{self._shown} can't be opened"
        if status in (401, 403):
            return Miss(Fault.UNAUTHORIZED, f"{what}: {login_refused(status, self._login)}")
        if status == 404:
            return Miss(Fault.NOT_FOUND, f"{what}: the camera has no such path")
        if status in (301, 302, 303, 305, 307, 308):
            return Miss(Fault.NO_VIDEO, f"{what}: the camera sends elsewhere, which is not followed")
        if status == 453 or (status == 503 and method != "OPTIONS"):
            busy = f"{what}: the camera says it is busy ({status}); it may bear fewer streams"
            return Miss(Fault.NO_VIDEO, busy, is_crowded=True)
        if status == 461:
            wrong, right = ("UDP", "tcp") if self._over_udp else ("TCP", "udp")
            return Miss(
                Fault.NO_VIDEO, f"{what}: the camera does not send over {wrong}; set its transport to {right}"
            )
        return Miss(Fault.NO_VIDEO, f"{what}: the camera answered {method} with {status}")
