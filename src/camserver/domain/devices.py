"""Which connections to cameras may be opened now, so that no device and no network gets more than it bears.

A *device* is what takes connections: a camera, or a recorder behind which many cameras stand. It bears only so many
streams at once. *Opening* one is the dear part, so only a few are opened at the same time, in a subnet and
altogether: cameras that come back together after a power cut do not start a stampede. Rules only; who waits and is
woken is the worker's. Workers do not know of each other's connections, so cameras of one device that bears few go to
one worker (`shared_device`, `assignment`).
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from camserver.domain.looks import LookPolicy

SUBNET_BITS = {4: 24, 6: 64}
# The kernel's names go by the order of plugging in; the others stay with the device, or with the socket it is in.
_WEBCAM = re.compile(r"/dev/video[0-9]{1,3}|/dev/v4l/by-(id|path)/[A-Za-z0-9][A-Za-z0-9._:+@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream comes from. Empty where nothing is connected to: files and generated pictures."""

    device: str = ""
    subnet: str = ""

    @property
    def is_limited(self) -> bool:
        return bool(self.device)


@dataclass(frozen=True, slots=True)
class Wish:
    """Somebody wants to open a stream; they stand in the order they came."""

    place: Place
    is_urgent: bool = False  # a person waits


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is connected now."""

    open_streams: Mapping[str, int]  # by device, those being opened or closed included
    opening: Mapping[str, int]  # by subnet


def place_at(host: str, port: int, device: str = "") -> Place:
    """Where a camera of the network is. `device` is the name somebody gave what takes the connections there."""
    return Place(device or f"{host}:{port}", subnet_of(host))


def shared_device(device: str | None, streams_max: int | None, host: str, port: int) -> str | None:
    """What a camera shares with others, if people said something of it: its name for it, or its address.

    None: nobody bounded the device or gave it a name, so its cameras may be anywhere.
    """
    if device:
        return device
    return f"{host}:{port}" if host and streams_max is not None else None


def subnet_of(host: str) -> str:
    """The network of an address, /24 or /64. A name is a network of its own: resolving it is not for a rule."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(ipaddress.ip_network((address, SUBNET_BITS[address.version]), strict=False))


def to_open(
    wishes: Sequence[Wish], traffic: Traffic, streams_max: Mapping[str, int], policy: LookPolicy
) -> list[int]:
    """Which wishes may go ahead now, as their places in the row: the urgent ones first, then those that came first.

    One that has to wait for its device or subnet holds up nobody else.
    """
    open_streams, opening = Counter(traffic.open_streams), Counter(traffic.opening)
    total = sum(opening.values())
    chosen = []
    for number in sorted(range(len(wishes)), key=lambda number: (not wishes[number].is_urgent, number)):
        place = wishes[number].place
        if total >= policy.opening_max:
            break
        if open_streams[place.device] >= streams_max.get(place.device, policy.device_streams_max):
            continue
        if opening[place.subnet] >= policy.opening_subnet_max:
            continue
        open_streams[place.device] += 1
        opening[place.subnet] += 1
        total += 1
        chosen.append(number)
    return chosen


def crowded(
    wishes: Sequence[Wish], traffic: Traffic, streams_max: Mapping[str, int], policy: LookPolicy
) -> dict[str, int]:
    """By device, how many streams that are only kept open must give way, so that those who wait get their turn."""
    waiting = Counter(wish.place.device for wish in wishes if wish.place.is_limited)
    missing = {
        device: min(count, traffic.open_streams.get(device, 0))
        for device, count in waiting.items()
        if traffic.open_streams.get(device, 0) >= streams_max.get(device, policy.device_streams_max)
    }
    return {device: count for device, count in missing.items() if count}


def is_webcam(path: str) -> bool:
    """Whether a path names a webcam of the machine, and nothing else that could be opened."""
    return _WEBCAM.fullmatch(path) is not None
