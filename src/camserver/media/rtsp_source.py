"""Looks at a camera that sends video: its newest keyframe, decoded when a look is due.

Cameras that are looked at often are kept connected, where a look costs one decode; others are opened, looked at and
closed, which is cheaper from about five seconds on and lets the camera rest. Which of the two is said by `hold`.
"""

from collections.abc import Callable

from camserver.base.clock import boot_time_ms
from camserver.base.log import get_logger
from camserver.media.forward import ForwardDecoder, ForwardShot
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Consumer, Hub, Miss, Packet
from camserver.media.shots import VideoShot

log = get_logger(__name__)

HELD_INTERVAL_MAX_MS = 5_000
# A camera that sends is let go within one packet; one that hangs, when its time-out is over.
CLOSE_SEC = 2.0
# A look that got nothing, and no packet for so long either: the connection hangs and is better begun anew.
SILENT_MS = 3_000
# So many looks without a picture though packets come.
IN_VAIN_MAX = 2


class RtspSource:
    """A `Source`. The hub is the camera's; others may consume from it too."""

    def __init__(
        self, hub: Hub, keyframes: Keyframes, interval_ms: int, boot_ms: Callable[[], int] = boot_time_ms
    ) -> None:
        self.hub = hub
        # Whether the connection stays open after a look.
        self.hold = interval_ms <= HELD_INTERVAL_MAX_MS
        self._keyframes = keyframes
        self._interval_ms = interval_ms
        self._boot_ms = boot_ms
        self._decoder = ForwardDecoder()
        self._companions: tuple[Consumer, ...] = ()
        self._lives: tuple[Consumer, ...] = ()
        self._in_vain = 0  # looks in a row that got no picture of this connection in time

    @property
    def learned_gop_ms(self) -> int | None:
        return self._keyframes.gop_ms

    @property
    def first_picture_ms(self) -> int | None:
        """How long it took to a picture when the camera was last opened."""
        return self._keyframes.first_picture_ms

    @property
    def is_open(self) -> bool:
        """Whether it is connected, or being connected, for looks."""
        return self.hub.has(self._keyframes)

    @property
    def heard_boot_ms(self) -> int | None:
        """When the newest packet came; None when it is not open or none came yet."""
        return self._keyframes.heard_boot_ms if self.is_open else None

    def on_ended(self, call: Callable[[], None]) -> None:
        """Has `call` called in the loop when the camera or the network ends the connection."""
        self._keyframes.on_ended = call

    def accompany(self, consumer: Consumer) -> None:
        """Has another consumer get the packets as long as this one stays connected between looks."""
        self._companions = (*self._companions, consumer)
        if self.hold and self.is_open:
            self.hub.add(consumer)

    def accompanies(self, consumer: Consumer) -> bool:
        """Whether it is one of those that get the packets beside looks."""
        return consumer in self._companions

    def join_live(self, consumer: Consumer) -> None:
        """Has `consumer` get the packets until `leave_live`, whatever looks do, and sound if there is any.

        Companions get the packets as well.
        """
        self._lives = (*self._lives, consumer)
        self.hub.add(consumer, hears=True)
        for one in self._companions:
            self.hub.add(one)

    def leave_live(self, consumer: Consumer) -> None:
        self._lives = tuple(one for one in self._lives if one is not consumer)
        self.hub.remove(consumer)
        if not self._lives and not (self.hold and self.is_open):
            for companion in self._companions:
                self.hub.remove(companion)

    def watch(self, is_watched: bool) -> None:
        """While somebody is watching, the newest picture can be had at any moment, at the cost of memory."""
        self._keyframes.keep_following = is_watched

    async def open(self) -> Miss | None:
        """Connects, if it is not; until the camera's first packet."""
        if not self.is_open:
            self._keyframes.begin()
            self.hub.add(self._keyframes)
        try:
            miss = await self._keyframes.first()
        except BaseException:
            self.let_go()
            raise
        if miss is not None:
            self.let_go()
        elif self.hold:
            for companion in self._companions:
                self.hub.add(companion)
        return miss

    async def grab(self, newest: bool = False) -> VideoShot | Miss:
        if not self.is_open:
            miss = await self.open()
            if miss is not None:
                return miss
        if (broken := self._decoder.take_broken()) is not None:
            self._keyframes.spoil(broken)
        taken: tuple[Packet, ...] | Miss | None = None
        try:
            taken = await self._keyframes.take(newest)
        finally:
            # Also when the look timed out: a hanging connection is better begun anew than waited for again, and so is
            # one whose video shows no picture time and again. Rare keyframes alone get more time.
            self._in_vain = self._in_vain + 1 if taken is None else 0
            hangs = taken is None and (self._is_silent or self._in_vain >= IN_VAIN_MAX)
            if not self.hold or not self._keyframes.has_video or hangs:
                self.let_go()
        if isinstance(taken, Miss):
            return taken
        if len(taken) > 1 and self._goes_on:
            return ForwardShot(taken, self._decoder)
        self._decoder.forget()
        return VideoShot(taken)

    async def close(self) -> None:
        self.let_go()
        if not await self.until_closed():
            log.warning("the camera hangs; its connection ends by its time-out")

    async def until_closed(self, patience_sec: float = CLOSE_SEC) -> bool:
        """Whether nothing is connected any more. Others who still consume keep it open."""
        return await self.hub.until_closed(patience_sec)

    def let_go(self) -> None:
        """Stops consuming; the connection ends soon after."""
        for consumer in (self._keyframes, *(() if self._lives else self._companions)):
            self.hub.remove(consumer)
        self._in_vain = 0
        self._keyframes.let_go()
        self._decoder.forget()

    @property
    def _goes_on(self) -> bool:
        """Whether several looks decode forward from one keyframe, so that a kept decoder is worth its memory."""
        gop_ms = self.learned_gop_ms
        return gop_ms is None or gop_ms > 2 * self._interval_ms

    @property
    def _is_silent(self) -> bool:
        heard_boot_ms = self._keyframes.heard_boot_ms
        return heard_boot_ms is None or self._boot_ms() - heard_boot_ms > SILENT_MS
