"""The consumer for looks: keeps the newest keyframe, undecoded, until a look is due.

When keyframes are much rarer than looks, or it is not known yet, it also keeps what followed the newest one, so that
a look can decode forward to a picture of now. Where no keyframe ever comes but recovery points do (intra refresh), it
keeps what followed the newest of those that has become whole. It learns how far keyframes are apart, also from
waiting in vain.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from camserver.base.log import get_logger
from camserver.media.nal_units import recovery_points, split
from camserver.media.packets import Miss, Packet

log = get_logger(__name__)

# Some 15 s of a 4 Mbit/s camera; a group beyond it is left, and looks wait for the next keyframe.
GROUP_MAX_BYTES = 8_000_000
# The same over all cameras of the process: beyond it, looks at those whose groups grow wait for keyframes.
GROUPS_MAX_BYTES = 512_000_000
# Below this many intervals between keyframes a look rather waits for the next: decoding a group costs its length.
FORWARD_FROM_INTERVALS = 1.5
# A keyframe not older than this is new enough for somebody who wants the newest picture.
NEW_ENOUGH_MS = 500
# An encoder that claims to need more is not believed.
RECOVERY_MAX = 1000


def whole_after(packet: Packet) -> int | None:
    """How many packets after this one a decoder that begins here shows a whole picture; None: it can't begin here."""
    if packet.is_keyframe:
        return 0
    if not packet.is_recovery:
        return None
    counts = recovery_points(packet.stream.codec, split(packet.data))
    return min(max(counts, default=0), RECOVERY_MAX)


class GroupMemory:
    """What the groups of all cameras may take together, beside their first packets."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self._lock = threading.RLock()

    def take(self, size_bytes: int) -> bool:
        with self._lock:
            if self.used_bytes + size_bytes > self.max_bytes:
                return False
            self.used_bytes += size_bytes
            return True

    def give_back(self, size_bytes: int) -> None:
        with self._lock:
            self.used_bytes -= size_bytes


GROUP_MEMORY = GroupMemory(GROUPS_MAX_BYTES)


class Group:
    """Packets from a place where decoding may begin."""

    def __init__(self, first: Packet, whole_after: int, memory: GroupMemory = GROUP_MEMORY) -> None:
        self.packets = [first]
        self.size_bytes = len(first.data)
        self._memory = memory
        self._taken_bytes = 0
        self.whole_from = whole_after + 1  # so many packets show a picture
        self.taken = 0  # how many of them the last look saw

    @property
    def is_whole(self) -> bool:
        return len(self.packets) >= self.whole_from

    @property
    def begins_with_keyframe(self) -> bool:
        return self.whole_from == 1

    def add(self, packet: Packet) -> bool:
        """False when it, or all of them, would grow too large; then it keeps only what is good without the rest."""
        self.size_bytes += len(packet.data)
        if self.size_bytes > GROUP_MAX_BYTES or not self._memory.take(len(packet.data)):
            # A group with a hole in it shows wrong pictures; its keyframe alone stays good, and nothing follows it.
            self.size_bytes = GROUP_MAX_BYTES
            del self.packets[1:]
            self.taken = min(self.taken, 1)
            self._give_back()
            return False
        self._taken_bytes += len(packet.data)
        self.packets.append(packet)
        return True

    def __del__(self) -> None:
        self._give_back()

    def _give_back(self) -> None:
        self._memory.give_back(self._taken_bytes)
        self._taken_bytes = 0


class Keyframes:
    def __init__(self, interval_ms: int, boot_ms: Callable[[], int]) -> None:
        self._interval_ms = interval_ms
        self._boot_ms = boot_ms
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._news = asyncio.Event()
        self._is_awaited = False  # waking the loop for nobody costs more than keeping the picture
        self._group: Group | None = None  # the newest that shows a picture
        self._coming: Group | None = None  # one that will, when it has recovered
        self._miss: Miss | None = None
        self._begun_boot_ms: int | None = None
        self._first_boot_ms: int | None = None  # of the first packet since the last keyframe or `begin`
        self._last_boot_ms: int | None = None  # of the newest packet
        self._gop_ms: int | None = None
        self._first_picture_ms: int | None = None
        self._told_too_large = False
        # Called in the loop when the connection is gone, unless it was let go.
        self.on_ended: Callable[[], None] = lambda: None
        # Somebody is watching: whatever follows a keyframe is kept, however close they are.
        self.keep_following = False

    @property
    def gop_ms(self) -> int | None:
        """Learned time between keyframes. Video in vain counts too: the next wait must be longer."""
        with self._lock:
            if self._group is not None or self._first_boot_ms is None:
                return self._gop_ms
            return max(self._gop_ms or 0, self._boot_ms() - self._first_boot_ms)

    @property
    def first_picture_ms(self) -> int | None:
        """How long the last connection took from `begin` to its first picture."""
        return self._first_picture_ms

    @property
    def has_video(self) -> bool:
        """Whether packets came since `begin`, and nothing ended them."""
        with self._lock:
            return self._first_boot_ms is not None and self._miss is None

    @property
    def heard_boot_ms(self) -> int | None:
        """When the newest packet came; None when none did since `begin`."""
        return self._last_boot_ms

    def begin(self) -> None:
        """Before it is added to a hub: nothing of an earlier connection counts."""
        self._loop = asyncio.get_running_loop()
        with self._lock:
            self._forget()
            self._miss = None
            self._begun_boot_ms = self._boot_ms()

    def let_go(self) -> None:
        """After it was removed from its hub: keeps no picture, but what was learned."""
        self._gop_ms = self.gop_ms
        with self._lock:
            self._forget()

    def spoil(self, first: Packet) -> None:
        """The group that begins with this packet can't be decoded: looks wait for the next one."""
        with self._lock:
            if self._group is not None and self._group.packets[0] is first:
                self._group = None

    async def first(self) -> Miss | None:
        """Until the first packet is there, or the end."""
        while True:
            self._news.clear()
            with self._lock:
                if self._miss is not None or self._last_boot_ms is not None:
                    return self._miss
                self._is_awaited = True
            await self._news.wait()

    async def take(self, newest: bool = False) -> tuple[Packet, ...] | Miss:
        """A keyframe that no look has seen, or it and what followed; waits for one, or for the end.

        `newest`: all that is there, so that the picture is the last one that came.
        """
        while True:
            self._news.clear()
            with self._lock:
                if self._group is not None and (taken := self._take_of(self._group, newest)):
                    return taken
                if self._miss is not None:
                    return self._miss
                self._is_awaited = True
            await self._news.wait()

    def offer(self, packet: Packet) -> None:
        with self._lock:
            is_first = self._last_boot_ms is None
            self._last_boot_ms = packet.boot_ms
            is_news = (self._accept(packet) or is_first) and self._is_awaited
            if is_news:
                self._is_awaited = False
        if is_news:
            self._tell()

    def ended(self, miss: Miss) -> None:
        log.warning("connection to the camera ended", fault=miss.fault.value, cause=miss.message)
        with self._lock:
            self._miss = miss
        self._tell()
        self._call(self.on_ended)

    def _take_of(self, group: Group, newest: bool) -> tuple[Packet, ...]:
        """What a look gets, if there is anything that none has seen."""
        if group.taken == 0 and group.begins_with_keyframe:
            is_new = self._boot_ms() - group.packets[0].boot_ms <= NEW_ENOUGH_MS
            if is_new or not newest or len(group.packets) == 1:
                group.taken = 1
                return (group.packets[0],)
        if group.taken < len(group.packets):
            group.taken = len(group.packets)
            return tuple(group.packets)
        return ()

    def _accept(self, packet: Packet) -> bool:
        """Whether there is more for a look than before."""
        after = whole_after(packet)
        if self._first_boot_ms is None:
            self._first_boot_ms = packet.boot_ms
        if after == 0:
            self._coming = None
            self._begin_group(Group(packet, 0))
            return True
        was_kept = self._group is not None and self._keeps_following and self._follow(self._group, packet)
        if after is not None:
            self._coming = Group(packet, after)
        elif self._coming is not None and not self._follow(self._coming, packet):
            self._coming = None
        if self._coming is not None and self._coming.is_whole:
            self._begin_group(self._coming)
            self._coming = None
            return True
        return was_kept

    def _follow(self, group: Group, packet: Packet) -> bool:
        if group.add(packet):
            return True
        if not self._told_too_large:
            self._told_too_large = True
            log.warning(
                "groups of pictures are too large to be kept: looks wait for keyframes",
                max=GROUP_MAX_BYTES,
                used_by_all=GROUP_MEMORY.used_bytes,
            )
        if group is self._group and not group.begins_with_keyframe:
            self._group = None
        return False

    @property
    def _keeps_following(self) -> bool:
        if self.keep_following or self._gop_ms is None:
            return True
        if self._group is not None and not self._group.begins_with_keyframe:
            return True  # every look of such a video decodes forward
        return self._gop_ms > FORWARD_FROM_INTERVALS * self._interval_ms

    def _begin_group(self, group: Group) -> None:
        begins_boot_ms = group.packets[0].boot_ms
        if self._group is not None:
            self._gop_ms = begins_boot_ms - self._group.packets[0].boot_ms
        elif self._begun_boot_ms is not None:
            self._first_picture_ms = max(group.packets[-1].boot_ms - self._begun_boot_ms, 0)
        self._first_boot_ms = begins_boot_ms
        self._group = group

    def _forget(self) -> None:
        self._group = self._coming = None
        self._first_boot_ms = self._last_boot_ms = None

    def _tell(self) -> None:
        self._call(self._news.set)

    def _call(self, what: Callable[[], None]) -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(what)
