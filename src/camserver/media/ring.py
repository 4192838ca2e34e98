"""The last seconds of a camera's video, compressed, in memory: what an event's clip is cut from.

A `Ring` is a consumer of the camera's hub while its connection is held. It keeps whole groups of pictures, so that
every cut begins where decoding may begin: with a keyframe, or where there are none (intra refresh) with a recovery
point. It keeps as many as its time and its share of the worker's memory allow. `Rings` is that memory: the more
cameras have video in it, the less each of them keeps. Nothing here touches a disk.
"""

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from camserver.base.log import get_logger
from camserver.media.packets import Miss, Packet

log = get_logger(__name__)

# More than a group of 30 s at 8 Mbit/s; a camera that sends more keeps less time.
CAMERA_MAX_BYTES = 32_000_000
PRUNE_EVERY_MS = 1_000


@dataclass(slots=True)
class _Group:
    """A keyframe, or a recovery point, and what follows until the next one."""

    packets: list[Packet]
    size_bytes: int
    follows: bool  # directly on the group before: the same connection and the same stream

    @property
    def end_boot_ms(self) -> int:
        return self.packets[-1].boot_ms


@dataclass(slots=True)
class Rings:
    """The memory of all rings of a worker."""

    max_bytes: int
    seconds: float
    boot_ms: Callable[[], int]
    _rings: "weakref.WeakSet[Ring]" = field(default_factory=weakref.WeakSet)
    _pruned_boot_ms: int = 0

    def new(self) -> "Ring":
        ring = Ring(self)
        self._rings.add(ring)
        return ring

    @property
    def share_bytes(self) -> int:
        """What one ring may keep: cameras that are not held have one too, but nothing in it."""
        filled = sum(not ring.is_empty for ring in tuple(self._rings))
        return min(CAMERA_MAX_BYTES, self.max_bytes // max(filled, 1))

    @property
    def used_bytes(self) -> int:
        return sum(ring.size_bytes for ring in tuple(self._rings))

    @property
    def shortest_sec(self) -> float:
        """How far back the ring goes that goes back least, of those that hold anything; 0: none does."""
        return min((ring.held_sec for ring in tuple(self._rings) if not ring.is_empty), default=0.0)

    def prune(self) -> None:
        """Forgets what is too old, also of cameras that send nothing any more.

        Every camera's keyframes ask for it, so with many cameras it is done now and then only.
        """
        if self.boot_ms() - self._pruned_boot_ms >= PRUNE_EVERY_MS:
            self.prune_now()

    def prune_now(self) -> None:
        """The same at once: there is one more that wants its share."""
        self._pruned_boot_ms = self.boot_ms()
        share_bytes = self.share_bytes
        for ring in tuple(self._rings):
            ring.prune(share_bytes)


class Ring:
    """A `Consumer`."""

    def __init__(self, rings: Rings) -> None:
        self._rings = rings
        self._lock = threading.Lock()
        self._groups: deque[_Group] = deque()
        self._is_broken = True  # the next group follows on nothing
        self._is_small = False
        self._keep_ms = round(rings.seconds * 1000)
        self._share_bytes = 0  # as of the last time there was made room
        self.size_bytes = 0
        # The last group of pictures was larger than all there is for this camera, so none of it was kept.
        self.is_too_large = False

    @property
    def is_empty(self) -> bool:
        return not self._groups

    @property
    def held_sec(self) -> float:
        """How much it holds now, about: what is being added to meanwhile is seen or not."""
        with self._lock:
            if not self._groups:
                return 0.0
            return max(self._groups[-1].end_boot_ms - self._groups[0].packets[0].boot_ms, 0) / 1000

    @property
    def seconds(self) -> float:
        """How much it keeps at most."""
        return self._rings.seconds

    def offer(self, packet: Packet) -> None:
        begins = packet.is_keyframe or packet.is_recovery
        was_empty = not self._groups
        with self._lock:
            if begins:
                if not self._is_broken:
                    self.is_too_large = False
                follows = not self._is_broken and self._groups[-1].packets[0].stream == packet.stream
                self._groups.append(_Group([packet], len(packet.data), follows))
                self._is_broken = False
            elif self._is_broken:
                return
            else:
                self._groups[-1].packets.append(packet)
                self._groups[-1].size_bytes += len(packet.data)
            self.size_bytes += len(packet.data)
            if self.size_bytes > self._share_bytes or self._groups[0].end_boot_ms < packet.boot_ms - self._keep_ms:
                self._make_room(self._rings.share_bytes)
        if was_empty and self._groups:
            self._rings.prune_now()
        elif begins:
            self._rings.prune()

    def ended(self, miss: Miss) -> None:
        with self._lock:
            self._is_broken = True

    def cut(self, from_boot_ms: int, to_boot_ms: int) -> tuple[Packet, ...]:
        """The video of that time as far as it is there, from where decoding may begin before it; of one piece, and if
        the time has several, of the one that shows most of it."""
        best: tuple[Packet, ...] = ()
        for piece in self._pieces():
            first = max((n for n, group in enumerate(piece) if group.packets[0].boot_ms <= from_boot_ms), default=0)
            packets = [packet for group in piece[first:] for packet in tuple(group.packets)]
            wanted = tuple(packet for packet in packets if packet.boot_ms <= to_boot_ms)
            if wanted and wanted[-1].boot_ms >= from_boot_ms and len(wanted) > len(best):
                best = wanted
        return best

    def prune(self, share_bytes: int) -> None:
        with self._lock:
            self._make_room(share_bytes)

    def clear(self) -> None:
        with self._lock:
            self._groups.clear()
            self.size_bytes = 0
            self._is_broken = True

    def _pieces(self) -> list[list[_Group]]:
        """What came without a break, oldest first."""
        pieces: list[list[_Group]] = []
        with self._lock:
            for group in self._groups:
                if not group.follows or not pieces:
                    pieces.append([])
                pieces[-1].append(group)
        return pieces

    def _make_room(self, share_bytes: int) -> None:
        oldest_boot_ms = self._rings.boot_ms() - self._keep_ms
        while self._groups and self._groups[0].end_boot_ms < oldest_boot_ms:
            self._drop_oldest()
        self._share_bytes = share_bytes
        while self._groups and self.size_bytes > share_bytes:
            if not self._is_small:
                log.warning("the ring buffer is full: clips of this camera are shorter", max_bytes=share_bytes)
                self._is_small = True
            self.is_too_large = len(self._groups) == 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self.size_bytes -= self._groups.popleft().size_bytes
        if not self._groups:
            self._is_broken = True
