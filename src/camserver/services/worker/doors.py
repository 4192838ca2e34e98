"""Lets a worker's cameras connect, a few at a time: who may open a stream now, who waits, and who has to give way.

The rules are in `domain.devices`. A *door* stands before each stream of a camera. It is entered before connecting,
opened when the first packet is there (then the next may open theirs), and left when the connection is really gone.
A stream that is only kept open between looks gives way when its device bears no more and another one waits: it is
closed first, and opened again when it is its turn.

How much a device bears is said by its cameras, or found out: when a stream can't be opened while others of its device
are open, it is tried once more after one of them was closed. If that works, the device gets no more than that for a
while.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from camserver.base.addresses import address_in
from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.devices import Place, Traffic, Wish, crowded, place_at, to_open
from camserver.domain.looks import LookPolicy

log = get_logger(__name__)

# How long it is believed what a device bears by what it refused, and how seldom that is tried.
LEARNED_MS = 3_600_000
TRIED_EVERY_MS = 600_000
# Whoever waits longer than this is worth a line in the log.
LONG_WAIT_MS = 10_000


def place_of(kind: str, url: str, device: str = "") -> Place:
    """Where a source of this kind and address is. `device` is the name somebody gave it."""
    if kind == "webcam":
        return Place(device or url)
    if kind not in ("rtsp", "http"):
        return Place()
    return place_at(*address_in(url), device)


@dataclass(slots=True, eq=False)
class _Waiting:
    door: "Door"
    wish: Wish
    admitted: "asyncio.Future[bool]"  # False: it was turned away


@dataclass(frozen=True, slots=True)
class _Learned:
    """What a device seems to bear."""

    streams_max: int | None  # None: it was tried, and that was not it
    at_boot_ms: int


class Doors:
    """All doors of a worker."""

    def __init__(self, clock: Clock, policy: LookPolicy) -> None:
        self.policy = policy
        self._clock = clock
        self._doors: list[Door] = []
        self._waiting: list[_Waiting] = []
        self._learned: dict[str, _Learned] = {}
        self.long_waits = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def door(self, place: Place, streams_max: int | None = None) -> "Door":
        """A door that stands until `Door.remove`."""
        door = Door(self, place, streams_max)
        self._doors.append(door)
        return door

    async def enter(self, door: "Door", is_urgent: bool) -> bool:
        """Whether it was let in; not if all that the device bears came to be watched live meanwhile."""
        if not door.place.is_limited:
            return True
        waiting = _Waiting(door, Wish(door.place, is_urgent), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        began_boot_ms = self._clock.boot_ms()
        self._admit()
        try:
            is_in = await waiting.admitted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:
                door.leave()  # it was let in at the same moment
            raise
        waited_ms = self._clock.boot_ms() - began_boot_ms
        if waited_ms > LONG_WAIT_MS:
            self.long_waits += 1
            log.warning("camera had to wait for its device or network", device=door.place.device, waited_ms=waited_ms)
        return is_in

    def changed(self) -> None:
        """Something was opened or left, so others may go."""
        self._admit()

    def forget(self, door: "Door") -> None:
        if door in self._doors:
            self._doors.remove(door)
        if all(other.place.device != door.place.device for other in self._doors):
            self._learned.pop(door.place.device, None)
        self._admit()

    def suspect(self, door: "Door") -> bool:
        """Whether a stream that could not be opened is worth a try with one less open at its device."""
        device, now_boot_ms = door.place.device, self._clock.boot_ms()
        others = sum(other.is_inside for other in self._doors if other.place.device == device and other is not door)
        known = self._learned.get(device)
        if not others or (known is not None and now_boot_ms - known.at_boot_ms < TRIED_EVERY_MS):
            return False
        self._learned[device] = _Learned(others, now_boot_ms)
        return True

    def settle(self, door: "Door", has_helped: bool) -> None:
        """What came of that try."""
        device = door.place.device
        known = self._learned.get(device)
        if known is not None and has_helped:
            log.warning("device bears fewer streams than it has", device=device, streams_max=known.streams_max)
        elif known is not None:
            self._learned[device] = _Learned(None, known.at_boot_ms)
            self._admit()

    def is_taken_by_live(self, door: "Door") -> bool:
        """Whether all that the device bears is watched live, so that waiting may take minutes."""
        if not door.place.is_limited or door.is_inside:
            return False
        device = door.place.device
        live = sum(other.is_inside and other.is_live for other in self._doors if other.place.device == device)
        return live >= self._streams_max().get(device, self.policy.device_streams_max)

    def turn_away(self) -> None:
        """Looks that wait for what is now watched live, perhaps for minutes, are told so instead."""
        for waiting in [one for one in self._waiting if not one.wish.is_urgent and self.is_taken_by_live(one.door)]:
            self._waiting.remove(waiting)
            if not waiting.admitted.done():
                waiting.admitted.set_result(False)

    def _admit(self) -> None:
        wishes = [waiting.wish for waiting in self._waiting]
        if not wishes:
            return
        limits = self._streams_max()
        chosen = [self._waiting[number] for number in to_open(wishes, self._traffic(), limits, self.policy)]
        for waiting in chosen:
            self._waiting.remove(waiting)
            waiting.door.is_inside = waiting.door.is_opening = True
            # One that was cancelled meanwhile leaves by itself.
            if not waiting.admitted.done():
                waiting.admitted.set_result(True)
        self._make_way(limits)

    def _make_way(self, limits: dict[str, int]) -> None:
        """Asks streams that are only kept open to close, where others wait for them."""
        wishes = [waiting.wish for waiting in self._waiting]
        for device, count in crowded(wishes, self._traffic(), limits, self.policy).items():
            inside = [
                door for door in self._doors if door.place.device == device and door.is_inside and not door.is_live
            ]
            leaving = sum(door.is_asked_to_leave for door in inside)
            for door in [door for door in inside if not door.is_asked_to_leave][: max(count - leaving, 0)]:
                door.ask_to_leave()

    def _traffic(self) -> Traffic:
        inside = [door for door in self._doors if door.is_inside]
        return Traffic(
            Counter(door.place.device for door in inside),
            Counter(door.place.subnet for door in inside if door.is_opening),
        )

    def _streams_max(self) -> dict[str, int]:
        """What the cameras of a device say that it bears, and what was learned; the most careful counts."""
        since_boot_ms = self._clock.boot_ms() - LEARNED_MS
        limits = {
            device: known.streams_max
            for device, known in self._learned.items()
            if known.streams_max is not None and known.at_boot_ms > since_boot_ms
        }
        for door in self._doors:
            if door.streams_max is not None:
                known = limits.get(door.place.device, door.streams_max)
                limits[door.place.device] = min(known, door.streams_max)
        return limits


class Door:
    """Before one stream of a camera."""

    def __init__(self, doors: Doors, place: Place, streams_max: int | None) -> None:
        self.place = place
        self.streams_max = streams_max
        self.is_inside = False
        self.is_opening = False
        self.is_asked_to_leave = False
        self.is_live = False  # somebody watches it: it does not give way
        # Called when another stream of the device waits; it then closes as soon as it can, and leaves.
        self.on_asked: Callable[[], None] = lambda: None
        self._doors = doors

    async def enter(self, is_urgent: bool = False) -> bool:
        """Waits until it may be connected; it must be left again, whatever happens then. False: it may not, since all
        that its device bears is watched live."""
        return self.is_inside or await self._doors.enter(self, is_urgent)

    def opened(self) -> None:
        """It is connected, or it failed to: the next may open theirs."""
        if self.is_opening:
            self.is_opening = False
            self._doors.changed()

    def watched(self) -> None:
        """Somebody watches what is behind it."""
        self.is_live = True
        self._doors.turn_away()

    def unwatched(self) -> None:
        """Nobody watches it any more: kept open for looks alone, it gives way like any other."""
        self.is_live = self.is_opening = False
        self._doors.changed()

    def leave(self) -> None:
        """The connection is gone."""
        was_inside = self.is_inside
        self.is_inside = self.is_opening = self.is_asked_to_leave = False
        if was_inside:
            self._doors.changed()

    def ask_to_leave(self) -> None:
        self.is_asked_to_leave = True
        self.on_asked()

    @property
    def is_taken_by_live(self) -> bool:
        return self._doors.is_taken_by_live(self)

    def suspect(self) -> bool:
        """After it could not be connected: whether it is worth another try, with another stream closed first."""
        return self.place.is_limited and self._doors.suspect(self)

    def settle(self, has_helped: bool) -> None:
        """After that try."""
        self._doors.settle(self, has_helped)

    def remove(self) -> None:
        """The camera is gone."""
        self.is_inside = self.is_opening = False
        self._doors.forget(self)
