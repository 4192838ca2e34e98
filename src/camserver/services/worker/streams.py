"""The streams of one camera: the main one, and the small one (sub) where the camera has it.

The sub stream is for the gate and the infer picture, the main stream for the full picture of a look that passed.
When one of them fails, or sends what nobody can decode, the other does the work of both, which is reported once, and
the one that failed is tried again after growing pauses. Each stream goes through its door (doors.py), so that a
device is never asked for more than it bears. Whether a whole look failed, and what follows, is the camera's affair.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.leases import Fault, LeasePolicy, pause_after
from camserver.domain.looks import keyframe_wait_ms
from camserver.media.packets import Consumer, Miss
from camserver.media.rtsp_source import RtspSource
from camserver.media.shots import Shot
from camserver.media.sources import Source
from camserver.services.worker.doors import Door
from camserver.services.worker.waiting import within

log = get_logger(__name__)

StreamName: TypeAlias = Literal["main", "sub"]
# A connection that hangs is waited for in such steps; it ends by its own time-out.
CLOSING_SEC = 60.0
# So long after a look that passed, the main stream stays connected: the next look is likely to pass too.
MAIN_KEPT_MS = 30_000
# So many pictures in a row that can't be decoded, and the connection is begun anew: the camera may have changed what
# it sends without saying so, and says it when it is asked again. One alone may be a damaged packet.
UNDECODABLE_MAX = 2

PREEMPTED = Miss(
    Fault.REFUSED,
    "the device bears no more streams, and somebody watches live; looks wait until then",
    is_preempted=True,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a look is to be made."""

    hold: bool = False  # stay connected afterwards
    newest: bool = False  # the last picture that came, not the last keyframe
    is_urgent: bool = False  # a person waits for it
    is_covered: Callable[[], bool] = lambda: True  # whether the camera is still ours to look at


class Stream:
    def __init__(
        self, name: StreamName, source: Source, door: Door, clock: Clock, connect_timeout_sec: float
    ) -> None:
        self.name = name
        self.source = source
        # Only video can stay connected between looks.
        self.video = source if isinstance(source, RtspSource) else None
        self._door = door
        self._clock = clock
        self._connect_timeout_sec = connect_timeout_sec
        self._is_busy = False
        self._entering = asyncio.Lock()
        self._lives: set[Consumer] = set()  # those for whom it is watched live
        self._closing: asyncio.Task[None] | None = None
        door.on_asked = self._give_way
        if self.video is not None:
            self.video.on_ended(self._has_ended)
        # Its own back-off, where the camera's other stream goes on without it.
        self.failures = 0
        self.auth_failures = 0
        self.retry_boot_ms = 0
        self.is_reported = False
        self.undecodable = 0  # pictures in a row

    @property
    def is_open(self) -> bool:
        return self.video is not None and self.video.is_open

    @property
    def may_try(self) -> bool:
        return self._clock.boot_ms() >= self.retry_boot_ms

    async def grab(self, wanted: Wanted) -> Shot | Miss:
        """A picture, or that there is none in time. Waiting at the door is not part of that time."""
        was_open = self.is_open
        caught = await self._grab_once(wanted)
        may_be_crowded = not was_open and isinstance(caught, Miss) and caught.is_crowded
        if not may_be_crowded or not wanted.is_covered() or not self._door.suspect():
            return caught
        log.info("stream is tried again with another one of its device closed", stream=self.name)
        again = await self._grab_once(wanted)
        self._door.settle(has_helped=not isinstance(again, Miss))
        return again

    async def _grab_once(self, wanted: Wanted) -> Shot | Miss:
        self._has_ended()
        if self._closing is not None:
            await asyncio.wait({self._closing})
        if self._door.is_taken_by_live and not wanted.is_urgent:
            return PREEMPTED
        self._is_busy = True
        try:
            if not await self._enter(wanted.is_urgent):
                return PREEMPTED
            if not wanted.is_covered():
                return Miss(Fault.NO_VIDEO, "the lease ran out before the camera could be connected")
            return await self._grab_in_time(wanted)
        finally:
            self._is_busy = False
            self._door.opened()
            if not self.is_open or self._door.is_asked_to_leave or not wanted.hold:
                self._begin_closing()

    async def _enter(self, is_urgent: bool) -> bool:
        """Whether through the door; a look and somebody who watches may come at the same time."""
        async with self._entering:
            return await self._door.enter(is_urgent)

    async def join_live(self, consumer: Consumer) -> None:
        """Gives `consumer` the packets of this stream's one connection, which is opened if it is not.

        It comes before looks that wait for the same device, and does not give way to them. `leave_live` must follow.
        """
        assert self.video is not None
        while self._closing is not None:
            await asyncio.wait({self._closing})
        await self._enter(is_urgent=True)
        self._lives.add(consumer)
        self._door.watched()
        self.video.join_live(consumer)

    def opened_live(self) -> None:
        """The first packet is there, or it failed: others may open theirs."""
        self._door.opened()

    def leave_live(self, consumer: Consumer) -> None:
        """Nothing more for `consumer`; the connection ends unless it is kept for looks."""
        self._lives.discard(consumer)
        if self.video is not None:
            self.video.leave_live(consumer)
        if not self._lives:
            self._door.unwatched()
            if not self._is_busy and self._door.is_inside and (not self.is_open or self._door.is_asked_to_leave):
                self._begin_closing()

    def silent_since_boot_ms(self) -> int | None:
        """Since when a connection that is kept open has been silent; None when there is none."""
        return None if self.video is None or self._is_busy else self.video.heard_boot_ms

    def let_go(self) -> None:
        """Closes the connection if one is kept; it is gone soon after."""
        if self.is_open and not self._is_busy:
            self._begin_closing()

    async def rest(self) -> None:
        """Holds nothing open; a later look opens it again."""
        if self.video is None:
            await self.source.close()
        self.let_go()

    async def close(self) -> None:
        """For good."""
        await self.source.close()
        if self._closing is None and self._door.is_inside:
            self._begin_closing()
        if self._closing is None:
            self._door.remove()
        else:
            self._closing.add_done_callback(lambda _: self._door.remove())

    async def _grab_in_time(self, wanted: Wanted) -> Shot | Miss:
        wait_ms = keyframe_wait_ms(self.source.learned_gop_ms)
        timeout_sec = self._connect_timeout_sec + wait_ms / 1000
        try:
            return await within(self._clock, timeout_sec, self._open_and_grab(wanted))
        except TimeoutError:
            return Miss(Fault.NO_VIDEO, f"no picture within {timeout_sec:g} s", timed_out=True)
        except Exception as error:
            log.exception("source crashed")
            return Miss(Fault.CRASH, f"the source crashed: {type(error).__name__}")

    async def _open_and_grab(self, wanted: Wanted) -> Shot | Miss:
        if self.video is None:
            return await self.source.grab()
        self.video.hold = wanted.hold
        if not self.video.is_open:
            miss = await self.video.open()
            self._door.opened()
            if miss is not None:
                return miss
        return await self.video.grab(wanted.newest)

    def _give_way(self) -> None:
        """Another stream of the device waits. A look under way is finished first; who watches stays."""
        if not self._is_busy and not self._lives:
            log.info("stream gives way to another one of its device", stream=self.name)
            self._begin_closing()

    def _has_ended(self) -> None:
        """The connection is gone by itself. Its place is free for others, and the next look opens it like any."""
        if not self._is_busy and not self.is_open and self._door.is_inside:
            self._begin_closing()

    def _begin_closing(self) -> None:
        if self.video is None:
            self._door.leave()
        elif self._lives:
            self.video.let_go()
        elif self._closing is None:
            self.video.let_go()
            self._closing = asyncio.ensure_future(self._leave_when_closed(self.video))

    async def _leave_when_closed(self, video: RtspSource) -> None:
        while not await video.until_closed(CLOSING_SEC):
            log.warning("a connection to a camera can't be closed and is waited for", stream=self.name)
        self._closing = None
        self._door.leave()


@dataclass(frozen=True, slots=True)
class Caught:
    shot: Shot
    stream: StreamName


class Streams:
    def __init__(
        self,
        main: Stream,
        sub: Stream | None,
        one_login: bool,
        clock: Clock,
        leases: LeasePolicy,
        jitter: Callable[[], float],
    ) -> None:
        """`one_login`: both use the same user and password."""
        self.main = main
        self.sub = sub
        self._one_login = one_login
        self._clock = clock
        self._leases = leases
        self._jitter = jitter
        # Told when one of two streams fails, with the cause, and when it is back.
        self.report: Callable[[StreamName, Miss | None], None] = lambda name, miss: None
        self._keep_main_until_boot_ms = 0

    @property
    def first_picture_ms(self) -> int | None:
        """How long the stream of the looks took to its first picture, when it was last opened."""
        video = (self.sub or self.main).video
        return None if video is None else video.first_picture_ms

    @property
    def is_open(self) -> bool:
        """Whether a connection is kept open for looks."""
        return self.main.is_open or (self.sub is not None and self.sub.is_open)

    @property
    def can_be_held(self) -> bool:
        return (self.sub or self.main).video is not None

    def silent_since_boot_ms(self) -> int | None:
        """Since when the connection of the looks has been silent; None when none is kept open."""
        for stream in (self.sub, self.main):
            if stream is not None and stream.is_open:
                return stream.silent_since_boot_ms()
        return None

    async def look(self, wanted: Wanted) -> Caught | Miss:
        """The picture for gate and analyzer: of the sub stream, else of the main one.

        Whoever decodes it says whether it is one: `decoded` or `undecodable`.
        """
        trouble: Miss | None = None
        if self.sub is not None and self.sub.may_try:
            caught = await self.sub.grab(wanted)
            if not isinstance(caught, Miss):
                return Caught(caught, "sub")
            trouble = caught
            if self._is_of_the_camera(caught):
                return caught
        caught = await self.main.grab(wanted)
        if isinstance(caught, Miss):
            return caught
        if self.sub is not None and trouble is not None:
            self._failed(self.sub, trouble)
        return Caught(caught, "main")

    def decoded(self, name: StreamName, wanted: Wanted) -> None:
        """There was a picture in what this stream gave for a look."""
        if name == "main" or self.sub is None:
            self._worked(self.main)
            return
        self._worked(self.sub)
        self._tend_main(wanted)

    async def undecodable(self, name: StreamName, miss: Miss, wanted: Wanted) -> Caught | Miss:
        """There was none: the main stream's instead of the sub stream's, if that can be had, else the miss."""
        if name == "main" or self.sub is None:
            self._spoiled(self.main)
            return miss
        if self._spoiled(self.sub):
            self._failed(self.sub, miss)
        caught = await self.main.grab(wanted)
        return caught if isinstance(caught, Miss) else Caught(caught, "main")

    def preempted(self, miss: Miss) -> None:
        """No look was made, for who watches live: said once, and over with the next picture."""
        stream = self.sub or self.main
        if not stream.is_reported:
            stream.is_reported = True
            self.report(stream.name, miss)

    async def full(self, wanted: Wanted) -> Shot | None:
        """The picture to keep: of the main stream. None when it can't be had; then the sub stream's must do."""
        if not self.main.may_try:
            return None
        self._keep_main_until_boot_ms = self._clock.boot_ms() + MAIN_KEPT_MS if wanted.hold else 0
        caught = await self.main.grab(wanted)
        if isinstance(caught, Miss):
            self._failed(self.main, caught)
            return None
        return caught

    def full_decoded(self, miss: Miss | None) -> None:
        """Whether there was a picture in what `full` gave: None, or why not."""
        if miss is None:
            self._worked(self.main)
        elif self._spoiled(self.main):
            self._failed(self.main, miss)

    def watch(self, is_watched: bool) -> None:
        for stream in (self.main, self.sub):
            if stream is not None and stream.video is not None:
                stream.video.watch(is_watched)

    def let_go(self) -> None:
        """Closes what is kept open; the next look opens it again."""
        for stream in (self.main, self.sub):
            if stream is not None:
                stream.let_go()

    async def rest(self) -> None:
        """The same, of whatever may be held."""
        await asyncio.gather(*(stream.rest() for stream in (self.main, self.sub) if stream is not None))

    async def close(self) -> None:
        await asyncio.gather(*(stream.close() for stream in (self.main, self.sub) if stream is not None))

    def _is_of_the_camera(self, miss: Miss) -> bool:
        """Whether the other stream can't do better: the same password, the same host."""
        return miss.fault is Fault.NO_ROUTE or (miss.fault is Fault.UNAUTHORIZED and self._one_login)

    def _tend_main(self, wanted: Wanted) -> None:
        """The main stream is not kept connected for longer than looks pass."""
        if not wanted.hold or self._clock.boot_ms() >= self._keep_main_until_boot_ms:
            self.main.let_go()

    def _failed(self, stream: Stream, miss: Miss) -> None:
        stream.failures += 1
        stream.auth_failures += miss.fault is Fault.UNAUTHORIZED
        pause_ms = pause_after(miss.fault, stream.failures, stream.auth_failures, self._leases, self._jitter())
        stream.retry_boot_ms = self._clock.boot_ms() + pause_ms
        log.warning("stream failed; the other one does its work", stream=stream.name, cause=miss.message)
        if not stream.is_reported:
            stream.is_reported = True
            self.report(stream.name, miss)

    def _spoiled(self, stream: Stream) -> bool:
        """Counts what can't be decoded; True, and its connection is begun anew, when that is no single one."""
        stream.undecodable += 1
        if stream.undecodable < UNDECODABLE_MAX:
            return False
        if stream.is_open:
            log.warning("video can't be decoded: its connection is begun anew", stream=stream.name)
            stream.let_go()
        return True

    def _worked(self, stream: Stream) -> None:
        stream.undecodable = 0
        stream.failures = stream.auth_failures = stream.retry_boot_ms = 0
        if stream.is_reported:
            stream.is_reported = False
            self.report(stream.name, None)
