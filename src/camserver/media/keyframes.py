"""The consumer for looks: keeps the newest keyframe, undecoded, until a look is due.

When keyframes are much rarer than looks, it also keeps what followed the newest one, so that a look can decode
forward to a picture of now. It learns how far keyframes are apart, also from waiting in vain.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from camserver.base.log import get_logger
from camserver.media.packets import Miss, Packet

log = get_logger(__name__)

# Some 15 s of a 4 Mbit/s camera; a group beyond it is left, and looks wait for the next keyframe.
GROUP_MAX_BYTES = 8_000_000
# Below this many intervals between keyframes a look rather waits for the next: decoding a group costs its length.
FORWARD_FROM_INTERVALS = 1.5


class Keyframes:
    def __init__(self, interval_ms: int, boot_ms: Callable[[], int]) -> None:
        self._interval_ms = interval_ms
        self._boot_ms = boot_ms
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._news = asyncio.Event()
        self._group: list[Packet] = []  # the newest keyframe and, if wanted, what followed
        self._group_bytes = 0
        self._taken = 0  # packets of the group that the last look saw
        self._miss: Miss | None = None
        self._first_boot_ms: int | None = None  # of the first packet since the last keyframe or `begin`
        self._gop_ms: int | None = None

    @property
    def gop_ms(self) -> int | None:
        """Learned time between keyframes. Video in vain counts too: the next wait must be longer."""
        with self._lock:
            if self._group or self._first_boot_ms is None:
                return self._gop_ms
            return max(self._gop_ms or 0, self._boot_ms() - self._first_boot_ms)

    @property
    def has_video(self) -> bool:
        """Whether packets came since `begin`, and nothing ended them."""
        with self._lock:
            return self._first_boot_ms is not None and self._miss is None

    def begin(self) -> None:
        """Before it is added to a hub: nothing of an earlier connection counts."""
        self._loop = asyncio.get_running_loop()
        with self._lock:
            self._forget()
            self._miss = None
            self._first_boot_ms = None

    def let_go(self) -> None:
        """After it was removed from its hub: keeps no picture, but what was learned."""
        self._gop_ms = self.gop_ms
        with self._lock:
            self._first_boot_ms = None
            self._forget()

    async def take(self) -> tuple[Packet, ...] | Miss:
        """A keyframe that no look has seen, or it and what followed; waits for one, or for the end."""
        while True:
            self._news.clear()
            with self._lock:
                if self._taken == 0 and self._group:
                    self._taken = 1
                    return (self._group[0],)
                if 0 < self._taken < len(self._group):
                    self._taken = len(self._group)
                    return tuple(self._group)
                if self._miss is not None:
                    return self._miss
            await self._news.wait()

    def offer(self, packet: Packet) -> None:
        with self._lock:
            if packet.is_keyframe:
                self._begin_group(packet)
            elif not self._follow(packet):
                return
        self._tell()

    def ended(self, miss: Miss) -> None:
        log.warning("connection to the camera ended", fault=miss.fault.value, cause=miss.message)
        with self._lock:
            self._miss = miss
        self._tell()

    def _begin_group(self, packet: Packet) -> None:
        if self._group and self._first_boot_ms is not None:
            self._gop_ms = packet.boot_ms - self._first_boot_ms
        self._first_boot_ms = packet.boot_ms
        self._group = [packet]
        self._group_bytes = len(packet.data)
        self._taken = 0

    def _follow(self, packet: Packet) -> bool:
        """Whether a packet between keyframes was kept."""
        if not self._group:
            if self._first_boot_ms is None:
                self._first_boot_ms = packet.boot_ms
            return False
        if self._gop_ms is None or self._gop_ms <= FORWARD_FROM_INTERVALS * self._interval_ms:
            return False
        size = self._group_bytes + len(packet.data)
        if self._group_bytes <= GROUP_MAX_BYTES < size:
            log.warning("group of pictures is too large to be kept: looks wait for keyframes", size_bytes=size)
        self._group_bytes = size
        if size > GROUP_MAX_BYTES:
            # A group with a hole in it shows wrong pictures; its keyframe alone stays good.
            del self._group[1:]
            self._taken = min(self._taken, 1)
            return False
        self._group.append(packet)
        return True

    def _forget(self) -> None:
        self._group = []
        self._group_bytes = 0
        self._taken = 0

    def _tell(self) -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._news.set)
