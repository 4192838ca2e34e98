"""Probes a camera: opens it once, shows a picture, says what it sends, or what is wrong in words for people.

Everything is done once and nothing is tried that was not asked for: cameras lock accounts after a few wrong tries. A
probe is short and bounded in time and memory. It is no look: nothing is gated, kept or sent to the analyzer.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from camserver.base.clock import boot_time_ms
from camserver.base.errors import BadInput
from camserver.domain.diagnosis import Cause, explain
from camserver.domain.leases import Fault
from camserver.domain.phrases import Phrase
from camserver.domain.polygons import Polygon
from camserver.media import probe_talk as talk
from camserver.media.addresses import AddressPolicy
from camserver.media.masks import blacken
from camserver.media.packets import Miss, Packet, Stream
from camserver.media.probe_talk import Described, Step, Steps, Stopped
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.shots import JpegShot, Shot, VideoShot
from camserver.media.sources import SourceWanted, open_source
from camserver.media.waiting_threads import PROBES

# How long a camera may take until its first keyframe, as for a look (decision 6).
KEYFRAME_SEC = 25.0
MEASURE_SEC = 4.0
# Where pictures are refreshed bit by bit there is no keyframe; then this much is decoded at most.
GROUP_MAX_BYTES = 8_000_000
# A probe's picture is looked at by a person.
PICTURE_WIDTH_MAX = 1920
PICTURE_MAX_BYTES = 8_000_000
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProbeWanted:
    """A source that need not be a camera yet."""

    kind: str
    url: str = field(repr=False)
    login: Login | None = None
    transport: str = "tcp"
    tls_pin: str | None = None
    connect_timeout_sec: float = 5.0
    measure_sec: float = MEASURE_SEC  # how long rate and keyframes are counted; 0: one picture is enough
    keyframe_sec: float = KEYFRAME_SEC
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    rotation: int = 0  # of the picture, clockwise
    masks: tuple[Polygon, ...] = ()  # what nobody may see of it


@dataclass(frozen=True, slots=True)
class Caps:
    """What a stream is. What was not seen long enough is None."""

    codec: str
    width: int
    height: int
    fps: float | None = None
    gop_sec: float | None = None
    kbit_per_sec: int | None = None
    has_audio: bool | None = None


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of it. `server` is what the device calls itself."""

    cause: Cause
    said: Phrase
    steps: tuple[Step, ...]
    caps: Caps | None = None
    jpeg: bytes = field(default=b"", repr=False)
    server: str = ""

    @property
    def ok(self) -> bool:
        return self.cause is Cause.NONE


async def probe(wanted: ProbeWanted) -> Probed:
    """May be cancelled at any moment; a connection then ends soon after."""
    steps = Steps()
    facts = _place_facts(wanted.url)
    try:
        if wanted.kind == "rtsp":
            return await _rtsp(wanted, steps, facts)
        return await _other(wanted, steps, facts)
    except Stopped as stopped:
        facts.update(stopped.facts)
        return Probed(stopped.cause, explain(stopped.cause, facts), tuple(steps.taken))
    except BadInput:
        return Probed(Cause.BAD_ADDRESS, explain(Cause.BAD_ADDRESS, facts), tuple(steps.taken))


def _place_facts(url: str) -> dict[str, str]:
    try:
        parts = urlsplit(url)
        default = {"rtsp": 554, "rtsps": 322, **DEFAULT_PORTS}.get(parts.scheme, 0)
        return {"host": parts.hostname or "?", "port": str(parts.port or default)}
    except ValueError:
        return {}


async def _rtsp(wanted: ProbeWanted, steps: Steps, facts: dict[str, str]) -> Probed:
    address = RtspAddress(wanted.url, wanted.login, wanted.addresses)
    described = await PROBES.run(_first_words, wanted, address, steps)
    facts |= {"said": described.server, "transport": wanted.transport, "codec": described.codec}
    seen = await _watch(wanted, address)
    steps.taken += seen.steps
    if not seen.group:
        raise _why_no_picture(wanted, seen)
    shot = VideoShot(tuple(seen.group))
    width, height, jpeg = await _decoded(wanted, shot, steps)
    caps = Caps(
        described.codec,
        width,
        height,
        seen.fps,
        seen.gop_sec,
        seen.kbit_per_sec,
        described.has_audio,
    )
    return Probed(Cause.NONE, explain(Cause.NONE, facts), tuple(steps.taken), caps, jpeg, described.server)


def _first_words(wanted: ProbeWanted, address: RtspAddress, steps: Steps) -> Described:
    place = talk.find(steps, wanted.addresses, address.host, address.port)
    sock = talk.connect(steps, place, wanted.connect_timeout_sec)
    try:
        if address.is_tls:
            sock = talk.secure(steps, sock, place, address.host, wanted.tls_pin)
        return talk.describe(steps, sock, address.plain_url, wanted.login, wanted.connect_timeout_sec)
    finally:
        sock.close()


async def _watch(wanted: ProbeWanted, address: RtspAddress) -> "_Seen":
    """Has the camera send for a while, in a thread that ends soon after nobody waits for it."""
    packets = RtspPackets(address, wanted.connect_timeout_sec, boot_time_ms, wanted.transport, wanted.tls_pin)
    seen = _Seen(wanted.measure_sec, wanted.keyframe_sec, time.monotonic)
    left = threading.Event()

    def read() -> None:
        seen.miss = packets.read(seen.take, lambda: not left.is_set() and seen.goes_on)

    try:
        await PROBES.run(read)
    finally:
        left.set()
    return seen


def _why_no_picture(wanted: ProbeWanted, seen: "_Seen") -> Stopped:
    if seen.count:
        return Stopped(Cause.NO_KEYFRAME, waited_sec=f"{wanted.keyframe_sec:g}")
    miss = seen.miss or Miss(Fault.NO_VIDEO, "")
    cause = _CAUSES.get(miss.fault, Cause.NO_VIDEO)
    if cause is Cause.NO_VIDEO and wanted.transport == "udp":
        cause = Cause.NO_VIDEO_BY_TRANSPORT
    return Stopped(cause)


# After the camera has described itself, so the port is open and the login was right.
_CAUSES = {
    Fault.UNAUTHORIZED: Cause.WRONG_PASSWORD,
    Fault.NOT_FOUND: Cause.NO_SUCH_PATH,
    Fault.REFUSED: Cause.TOO_MANY_STREAMS,
}


class _Seen:
    """What came: counted, not kept, but for the packets of one picture. Called from the reading thread."""

    def __init__(self, measure_sec: float, keyframe_sec: float, now_sec: Callable[[], float]) -> None:
        self._measure_sec = measure_sec
        self._keyframe_sec = keyframe_sec
        self._now_sec = now_sec
        self._began_sec = now_sec()
        self._first_sec: float | None = None
        self._last_sec = 0.0
        self._key_secs: list[float] = []
        self._bytes = 0
        self._group_bytes = 0
        self.count = 0
        self.group: list[Packet] = []
        self.miss: Miss | None = None

    @property
    def goes_on(self) -> bool:
        now_sec = self._now_sec()
        if not self.group:
            return now_sec - self._began_sec < self._keyframe_sec
        if not self.group[0].is_keyframe and len(self.group) < 2:
            return True
        return self._first_sec is None or now_sec - self._first_sec < self._measure_sec

    def take(self, packet: Packet) -> None:
        now_sec = self._now_sec()
        self.count += 1
        self._bytes += len(packet.data)
        self._last_sec = now_sec
        if self._first_sec is None:
            self._first_sec = now_sec
        if packet.is_keyframe:
            self._key_secs.append(now_sec)
            if not self.group or not self.group[0].is_keyframe:
                self.group = [packet]
        elif packet.is_recovery and not self.group:
            self.group = [packet]
            self._group_bytes = len(packet.data)
        elif self.group and not self.group[0].is_keyframe and self._group_bytes < GROUP_MAX_BYTES:
            self.group.append(packet)
            self._group_bytes += len(packet.data)

    @property
    def steps(self) -> Sequence[Step]:
        if self._first_sec is None:
            return [Step("open", _ms(self._now_sec() - self._began_sec))]
        opened = Step("open", _ms(self._first_sec - self._began_sec))
        until_sec = self._key_secs[0] if self._key_secs else self._last_sec
        return [opened, Step("keyframe", _ms(until_sec - self._first_sec))]

    @property
    def fps(self) -> float | None:
        took_sec = self._took_sec
        return round((self.count - 1) / took_sec, 1) if took_sec is not None and self.count > 2 else None

    @property
    def kbit_per_sec(self) -> int | None:
        took_sec = self._took_sec
        return None if took_sec is None else round(self._bytes * 8 / 1000 / took_sec)

    @property
    def gop_sec(self) -> float | None:
        """Only from whole groups: the first may have begun before."""
        if len(self._key_secs) < 2:
            return None
        return round((self._key_secs[-1] - self._key_secs[0]) / (len(self._key_secs) - 1), 2)

    @property
    def _took_sec(self) -> float | None:
        took_sec = 0.0 if self._first_sec is None else self._last_sec - self._first_sec
        return took_sec if took_sec >= min(1.0, self._measure_sec / 2) > 0 else None


async def _other(wanted: ProbeWanted, steps: Steps, facts: dict[str, str]) -> Probed:
    """Snapshots, MJPEG, webcams, files and the test source: one picture by the source that looks would use."""
    if wanted.kind == "http":
        await PROBES.run(_reach, wanted, steps)
    source = open_source(
        SourceWanted(
            wanted.kind,
            wanted.url,
            wanted.login,
            connect_timeout_sec=wanted.connect_timeout_sec,
            transport=wanted.transport,
            tls_pin=wanted.tls_pin,
            addresses=wanted.addresses,
        )
    )
    try:
        with steps.step("picture"):
            async with asyncio.timeout(wanted.keyframe_sec):
                shot = await source.grab()
    except TimeoutError:
        raise Stopped(Cause.NO_VIDEO) from None
    finally:
        await source.close()
    if isinstance(shot, Miss):
        raise _why_missed(wanted, shot)
    codec, fps = ("jpeg", None) if isinstance(shot, JpegShot) else _said_by(shot.packets[0].stream)
    facts["codec"] = codec
    width, height, jpeg = await _decoded(wanted, shot, steps)
    caps = Caps(codec, width, height, fps)
    return Probed(Cause.NONE, explain(Cause.NONE, facts), tuple(steps.taken), caps, jpeg)


def _said_by(stream: Stream) -> tuple[str, float | None]:
    return stream.codec, stream.fps


def _reach(wanted: ProbeWanted, steps: Steps) -> None:
    parts = urlsplit(wanted.url)
    host = parts.hostname or ""
    place = talk.find(steps, wanted.addresses, host, parts.port or DEFAULT_PORTS[parts.scheme])
    sock = talk.connect(steps, place, wanted.connect_timeout_sec)
    try:
        if parts.scheme == "https":
            sock = talk.secure(steps, sock, place, host, wanted.tls_pin)
    finally:
        sock.close()


def _why_missed(wanted: ProbeWanted, miss: Miss) -> Stopped:
    if wanted.kind in ("file", "webcam"):
        return Stopped(Cause.NO_VIDEO if miss.fault is Fault.NO_VIDEO else Cause.NO_FILE)
    if miss.fault is Fault.UNAUTHORIZED:
        return Stopped(Cause.NEEDS_LOGIN if wanted.login is None else Cause.WRONG_PASSWORD)
    causes = {
        Fault.NOT_FOUND: Cause.NO_SUCH_PATH,
        Fault.REFUSED: Cause.PORT_CLOSED,
        Fault.NO_ROUTE: Cause.NO_ROUTE,
        Fault.NO_VIDEO: Cause.NO_VIDEO,
    }
    return Stopped(causes.get(miss.fault, Cause.OTHER), detail=miss.fault.value)


async def _decoded(wanted: ProbeWanted, shot: Shot, steps: Steps) -> tuple[int, int, bytes]:
    """Width and height as it came, and a JPEG that a person may look at."""

    def work() -> tuple[int, int, bytes]:
        picture = shot.decode(PICTURE_WIDTH_MAX)
        width, height = picture.size
        jpeg = blacken(picture.turned(wanted.rotation), wanted.masks).small(PICTURE_WIDTH_MAX)[1]
        return width, height, jpeg if len(jpeg) <= PICTURE_MAX_BYTES else b""

    try:
        with steps.step("decode"):
            return await asyncio.to_thread(work)
    except BadInput:
        raise Stopped(Cause.BAD_PICTURE) from None


def _ms(seconds: float) -> int:
    return max(round(seconds * 1000), 0)
