"""The lean packet source: connects, has the camera send, and gives every picture as a packet.

Connecting waits in the hub's thread, so a name service or a handshake that hangs holds up nobody else. What follows
is read by the pump, for all cameras together.
"""

import errno
import socket
import time
from collections.abc import Callable
from fractions import Fraction

from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.media import tls
from camserver.media.addresses import Place
from camserver.media.packets import Miss, Packet, SoundShape, Stream
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_lean.describe import SoundTrack, Track
from camserver.media.rtsp_lean.messages import BrokenTalk, Unfit
from camserver.media.rtsp_lean.pump import Ended, shared_pump
from camserver.media.rtsp_lean.session import Refused, Session
from camserver.media.rtsp_lean.units import Unit

log = get_logger(__name__)

UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


class LeanPackets:
    """A `PacketSource` that raises `Unfit` when FFmpeg must read the camera."""

    def __init__(
        self,
        address: RtspAddress,
        connect_timeout_sec: float,
        stall_sec: float,
        boot_ms: Callable[[], int],
        tls_pin: str | None = None,
        transport: str = "tcp",
        with_sound: bool = False,
    ) -> None:
        self._address = address
        self._with_sound = with_sound
        # What is asked for over TLS is not sent openly beside it.
        self._transport = "tcp" if address.is_tls else transport
        self._connect_timeout_sec = connect_timeout_sec
        self._stall_sec = stall_sec
        self._boot_ms = boot_ms
        self._tls_pin = tls_pin
        self._asks_for_keyframes = True

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        deadline_sec = time.monotonic() + self._connect_timeout_sec
        what = f"{self._address} can't be opened"
        session: Session | None = None
        is_over = False  # because nobody wants it any more
        try:
            place = self._address.find()
            if isinstance(place, Miss):
                return place
            sock = connect(place, self._address, self._tls_pin, deadline_sec)
            shown = str(self._address)
            session = Session(
                sock,
                self._address.plain_url,
                shown,
                self._address.login,
                self._transport,
                self._with_sound,
                self._asks_for_keyframes,
            )
            track = session.open(deadline_sec)
            what = "the camera's video ended"
            try:
                ended = shared_pump().carry(Reading(session, track, sink, wanted, self._stall_sec, self._boot_ms))
                is_over = ended is None
                return ended
            except Unfit as reason:
                if session.suits_ffmpeg:
                    raise
                return Miss(Fault.NO_VIDEO, f"the camera's video can't be read: {reason}")
            finally:
                say_goodbye(session)
        except Refused as refused:
            return refused.miss
        except tls.UntrustedCertificate as untrusted:
            return untrusted_miss(untrusted, self._address, self._connect_timeout_sec)
        except BrokenTalk as broken:
            return Miss(Fault.NO_VIDEO, f"{what}: {broken}")
        except OSError as error:
            return explain(error, what)
        finally:
            if session is not None:
                # One that falls silent or hangs up when it is asked for sound is not asked again.
                self._with_sound = self._with_sound and not session.asks_for_sound
                if session.waits_for_keyframe and not is_over:
                    self._asks_for_keyframes = False  # nor for a keyframe
                session.close()


class Reading:
    """A camera that sends, carried by the pump."""

    def __init__(
        self,
        session: Session,
        track: Track,
        sink: Callable[[Packet], None],
        wanted: Callable[[], bool],
        stall_sec: float,
        boot_ms: Callable[[], int],
    ) -> None:
        self._session = session
        self._stream = Stream(track.codec, track.sets, Fraction(1, track.clock_hz))
        self._sink = sink
        self._wanted = wanted
        self._stall_sec = stall_sec
        self._boot_ms = boot_ms
        self._heard_sec = time.monotonic()
        self._sound = None if session.sound is None else sound_stream(session.sound)
        log.debug("camera is open", codec=track.codec, reader="lean", has_sound=self._sound is not None)
        if self._sound is not None:
            sink(Packet(self._sound, None, None, False, b"", boot_ms()))

    @property
    def can_wait(self) -> bool:
        return not self._session.is_over_udp

    def filenos(self) -> tuple[int, ...]:
        return self._session.filenos()

    def ready(self) -> Ended | None:
        units = self._session.receive()
        if units:
            self._heard_sec = time.monotonic()
            boot_ms = self._boot_ms()
            for unit in units:
                self._stream = following(self._stream, unit)
                self._sink(as_packet(self._stream, unit, boot_ms))
        if self._sound is not None:
            self._hear(self._sound)
        return None if self._wanted() else Ended(None)

    def _hear(self, stream: Stream) -> None:
        for heard in self._session.take_sounds():
            self._sink(Packet(stream, heard.time, heard.time, False, heard.data, self._boot_ms()))

    def tick(self) -> Ended | None:
        if not self._wanted():
            return Ended(None)
        if time.monotonic() - self._heard_sec > self._stall_sec:
            return Ended(Miss(Fault.NO_VIDEO, "the camera's video stopped coming", timed_out=True))
        self._session.give_sign_of_life()
        return None


def connect(place: Place, address: RtspAddress, tls_pin: str | None, deadline_sec: float) -> socket.socket:
    """A connection to the address that was checked, with TLS where that is asked for."""
    sock = socket.create_connection((place.address, place.port), max(deadline_sec - time.monotonic(), 0.01))
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not address.is_tls:
            return sock
        sock.settimeout(max(deadline_sec - time.monotonic(), 0.01))
        return tls.secure(sock, address.host, tls_pin)
    except BaseException:
        sock.close()
        raise


def untrusted_miss(untrusted: tls.UntrustedCertificate, address: RtspAddress, timeout_sec: float) -> Miss:
    """With what the camera showed, so that whoever knows its certificate can pin it."""
    sha256 = untrusted.sha256 or shown_certificate(address, timeout_sec)
    pin = f"; if you know it, pin it: {sha256}" if sha256 else ""
    message = f"{address} can't be opened: {untrusted.message}{pin}"
    return Miss(Fault.REFUSED, message, certificate_sha256=sha256)


def shown_certificate(address: RtspAddress, timeout_sec: float) -> str:
    """The SHA-256 of the certificate that a camera shows, whoever made it; empty when there is none."""
    place = address.find()
    if isinstance(place, Miss):
        return ""
    try:
        with socket.create_connection((place.address, place.port), timeout_sec) as sock:
            return tls.shown_certificate(sock, address.host)
    except OSError:
        return ""


def explain(error: OSError, what: str) -> Miss:
    """Which fault an error of the network is."""
    if isinstance(error, TimeoutError):
        return Miss(Fault.NO_VIDEO, f"{what}: the camera does not answer in time", timed_out=True)
    if isinstance(error, ConnectionRefusedError):
        return Miss(Fault.REFUSED, f"{what}: the connection was refused", is_crowded=True)
    if error.errno in UNREACHABLE:
        return Miss(Fault.NO_ROUTE, f"{what}: there is no route to the camera")
    return Miss(Fault.NO_VIDEO, f"{what} ({type(error).__name__})")


def say_goodbye(session: Session) -> None:
    try:
        session.end()
    except OSError as error:
        log.debug("camera was gone before it was told", cause=type(error).__name__)


def sound_stream(track: SoundTrack) -> Stream:
    shape = SoundShape(track.clock_hz, track.channels)
    return Stream(track.codec, track.config, Fraction(1, track.clock_hz), sound=shape)


def following(stream: Stream, unit: Unit) -> Stream:
    """The stream as it is from this picture on: new parameter sets may mean another size."""
    if not unit.sets or unit.sets == stream.extradata:
        return stream
    return Stream(stream.codec, unit.sets, stream.time_base)


def as_packet(stream: Stream, unit: Unit, boot_ms: int) -> Packet:
    # When a picture is to be decoded is not sent; where they are shown in another order, it is not known here.
    decoded_at = unit.time if unit.is_in_order else None
    return Packet(stream, unit.time, decoded_at, unit.is_keyframe, unit.data, boot_ms, unit.is_recovery, unit.starts)
