"""Packets of a camera's video, and the hub that hands them to whoever wants them.

One hub a camera, so there is one connection to the camera however many consumers there are: looks, the ring buffer
and live view. The connection is open exactly as long as somebody consumes. A `PacketSource` opens and closes in the
hub's thread; packets come from that thread or from one that reads many cameras. So consumers bound what they keep,
return at once, never wait for anything and never raise. How often a camera that failed is tried again is the
consumers' affair.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from camserver.base.log import get_logger
from camserver.domain.leases import Fault

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Miss:
    """No picture, and why. `message` goes to logs and to the server, so it never holds a secret."""

    fault: Fault
    message: str
    timed_out: bool = False
    is_stalled: bool = False  # an open connection that fell silent: down at once (domain/health.py)
    is_crowded: bool = False  # the device says, or seems to say, that it bears no more streams
    is_preempted: bool = False  # nothing is wrong with the camera: a live view came first
    certificate_sha256: str = ""  # what the camera showed, where it was not trusted


@dataclass(frozen=True, slots=True)
class RawShape:
    """How to read pictures that are not compressed, as webcams may send them."""

    width: int
    height: int
    pixels: str  # as FFmpeg names the format


@dataclass(frozen=True, slots=True)
class SoundShape:
    """How sound is to be played."""

    rate: int  # samples a second
    channels: int


@dataclass(frozen=True, slots=True)
class Stream:
    """What a decoder or muxer must know before the first packet.

    A stream that changes on its way (another size, another codec) gives packets with another one.
    """

    codec: str  # as FFmpeg names it: h264, hevc, mjpeg, rawvideo
    extradata: bytes
    time_base: Fraction  # seconds a unit of pts and dts
    raw: RawShape | None = None  # of rawvideo only
    fps: float | None = None  # as the source says it, where it does
    sound: SoundShape | None = None  # of sound only: aac, opus, pcm_mulaw, pcm_alaw


@dataclass(slots=True)
class Packet:
    """One access unit, or a piece of sound: without data it only says which sound may follow.

    Never changed; frozen ones take several times as long to make.
    """

    stream: Stream
    pts: int | None
    dts: int | None
    is_keyframe: bool
    data: bytes
    boot_ms: int  # when it arrived, by the boot-time clock
    # Not a whole picture itself, but decoding may begin here: some pictures later all of it is new (intra refresh).
    is_recovery: bool = False
    # Where its NAL units begin, behind their start codes of four bytes; empty where that is not known. Looking for
    # them takes a hundred times as long as copying it.
    starts: tuple[int, ...] = ()


class PacketSource(Protocol):
    """A camera's video over one connection."""

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        """Opens, gives every packet to `sink` and closes again; waits for all that in the calling thread.

        `sink` may be called from another thread, but never two times at once nor after this has returned.
        Returns None soon after `wanted` says no, or why the video ended. Raises nothing that a camera can cause.
        """


class Consumer(Protocol):
    def offer(self, packet: Packet) -> None:
        """A packet; called from a thread that others wait for too."""

    def ended(self, miss: Miss) -> None:
        """The connection is gone and this consumer is let go; called from the hub's thread."""


class Hub:
    def __init__(self, source: PacketSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        # Replaced, never changed: the thread goes through it without the lock.
        self._consumers: tuple[Consumer, ...] = ()
        self._hearing: tuple[Consumer, ...] = ()  # those of them that want sound, too
        self._sound: Packet | None = None  # which sound the connection brings
        self._running: concurrent.futures.Future[None] | None = None

    def add(self, consumer: Consumer, hears: bool = False) -> None:
        """Gives `consumer` every packet from now on; opens the camera if nobody had it open.

        Sound is for those who `hear` alone. They are told first which sound there is.
        """
        with self._lock:
            if consumer not in self._consumers:
                self._consumers = (*self._consumers, consumer)
            if hears and consumer not in self._hearing:
                self._hearing = (*self._hearing, consumer)
                if self._sound is not None:
                    consumer.offer(self._sound)
            if self._running is None:
                self._running = concurrent.futures.Future()
                threading.Thread(target=self._run, args=(self._running,), name="packets", daemon=True).start()

    def remove(self, consumer: Consumer) -> None:
        """Nothing more for `consumer`; the last one that goes has the camera closed soon after."""
        with self._lock:
            self._consumers = tuple(one for one in self._consumers if one is not consumer)
            self._hearing = tuple(one for one in self._hearing if one is not consumer)

    def has(self, consumer: Consumer) -> bool:
        return consumer in self._consumers

    async def until_closed(self, patience_sec: float) -> bool:
        """Whether the camera was let go in time; one that hangs is let go when its read time-out is over."""
        running = self._running
        if running is None:
            return True
        done, _ = await asyncio.wait([asyncio.wrap_future(running)], timeout=patience_sec)
        return bool(done)

    def _run(self, running: "concurrent.futures.Future[None]") -> None:
        while self._go_on():
            try:
                miss = self._source.read(self._hand_out, self._is_wanted)
            except Exception as error:
                log.exception("packet source crashed")
                miss = Miss(Fault.CRASH, f"the packet source crashed: {type(error).__name__}")
            with self._lock:
                self._sound = None
            if miss is not None:
                with self._lock:
                    left, self._consumers, self._hearing = self._consumers, (), ()
                for consumer in left:
                    consumer.ended(miss)
        running.set_result(None)

    def _go_on(self) -> bool:
        """Whether somebody came while the last connection was closed; else the thread ends."""
        with self._lock:
            if not self._consumers:
                self._running = None
            return bool(self._consumers)

    def _is_wanted(self) -> bool:
        return bool(self._consumers)

    def _hand_out(self, packet: Packet) -> None:
        if packet.stream.sound is not None:
            self._hand_out_sound(packet)
            return
        for consumer in self._consumers:
            consumer.offer(packet)

    def _hand_out_sound(self, packet: Packet) -> None:
        if not packet.data:
            with self._lock:
                self._sound = packet
                for consumer in self._hearing:
                    consumer.offer(packet)
            return
        for consumer in self._hearing:
            consumer.offer(packet)
