"""How often somebody may try: a few tries are free, then each costs a longer wait.

Tries are counted per login and address, and per address over all logins; never per login alone, so that nobody can
lock another person out from elsewhere. A browser that signed in before carries a signed device cookie and is counted
by it alone: somebody who hammers from the same address (or through the same proxy) does not slow it down. Waits are
short and capped, a wait is forgotten after a while, and counts live in this process only: they slow guessing down,
they are no record. The record is the audit log.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from camserver.base.addresses import peer_host
from camserver.base.errors import TooManyTries
from camserver.base.log import get_logger
from camserver.base.secrets import Secret

log = get_logger(__name__)

FREE_TRIES = 5
FREE_TRIES_OF_ADDRESS = 30
WAIT_MAX_MS = 60_000
FORGET_AFTER_MS = 15 * 60_000
KEYS_MAX = 10_000
# Links and shares that open nothing, by address; what is right is never held up by what was wrong before it.
FREE_WRONG_LINKS = 100
# What is tried: the reason that is told, and what people read.
SIGN_IN = "too_many_tries"
LINKS = "too_many_links"
_MESSAGES = {
    SIGN_IN: "too many tries to sign in; wait {seconds} s and try again",
    LINKS: "too many links were asked for or did not work; wait {seconds} s and try again",
}


def _too_many(what: str, seconds: int) -> TooManyTries:
    return TooManyTries(_MESSAGES[what].format(seconds=seconds), reason=what, retry_after_sec=seconds)


@dataclass(slots=True)
class _Tries:
    count: int
    last_ms: int


class Throttle:
    """Counts tries by key. Times are of the boot-time clock."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _Tries] = OrderedDict()

    def count_try(self, keys: dict[str, int], now_ms: int, what: str = SIGN_IN) -> None:
        """Counts a try before it is made, so that many at once don't slip through; `keys` says how many are free.

        Raises TooManyTries, which counts nothing, while a wait lasts.
        """
        waits = [self._wait_ms(key, free, now_ms) for key, free in keys.items()]
        if max(waits, default=0) > 0:
            seconds = -(-max(waits) // 1000)
            raise _too_many(what, seconds)
        for key in keys:
            tries = self._tries.setdefault(key, _Tries(0, now_ms))
            tries.count += 1
            tries.last_ms = now_ms
            self._tries.move_to_end(key)
        while len(self._tries) > KEYS_MAX:
            self._tries.popitem(last=False)
            log.warning("tries come from very many places; the oldest count was dropped", keys=KEYS_MAX)

    def forgive(self, keys: dict[str, int]) -> None:
        """Takes back tries that turned out right: they say nothing about guessing. Nor do those before them that were
        about the same login."""
        self.take_back(keys)
        for key, free in keys.items():
            if free == FREE_TRIES:
                self._tries.pop(key, None)

    def take_back(self, keys: dict[str, int]) -> None:
        """Takes back tries of which nobody learned whether they were right. Those before them stay counted."""
        for key in keys:
            tries = self._tries.get(key)
            if tries is None:
                continue
            tries.count -= 1
            if tries.count <= 0:
                del self._tries[key]

    def _wait_ms(self, key: str, free: int, now_ms: int) -> int:
        tries = self._tries.get(key)
        if tries is None:
            return 0
        if now_ms - tries.last_ms >= FORGET_AFTER_MS:
            del self._tries[key]
            return 0
        if tries.count < free:
            return 0
        wait_ms = min(1000 << min(tries.count - free, 16), WAIT_MAX_MS)
        return tries.last_ms + wait_ms - now_ms


class Rate:
    """So many in a span of time by each key; then none until it is over. Times are of the boot-time clock."""

    def __init__(self, most: int, span_ms: int) -> None:
        self._most = most
        self._span_ms = span_ms
        self._counts: OrderedDict[str, _Tries] = OrderedDict()  # `last_ms` is the span's beginning

    def count(self, key: str, now_ms: int, what: str) -> None:
        """Raises TooManyTries when there were too many in this span."""
        spent = self._counts.get(key)
        if spent is None or now_ms - spent.last_ms >= self._span_ms:
            spent = self._counts[key] = _Tries(0, now_ms)
            self._counts.move_to_end(key)
            while len(self._counts) > KEYS_MAX:
                self._counts.popitem(last=False)
        if spent.count >= self._most:
            raise _too_many(what, -(-(spent.last_ms + self._span_ms - now_ms) // 1000))
        spent.count += 1


class Devices:
    """Signed cookies of browsers that have signed in as somebody before. They sign nobody in."""

    def __init__(self, key: Secret) -> None:
        self._key = key.reveal().encode()

    def make(self, login: str) -> str:
        device = secrets.token_urlsafe(12)
        return f"{device}.{self._signature(device, login)}"

    def knows(self, cookie: str | None, login: str) -> str | None:
        """The device's name when its cookie was made for this login."""
        device, _, signature = (cookie or "").partition(".")
        if not device or not hmac.compare_digest(signature.encode(), self._signature(device, login).encode()):
            return None
        return device

    def _signature(self, device: str, login: str) -> str:
        return hmac.new(self._key, f"device|{device}|{login}".encode(), hashlib.sha256).hexdigest()


def keys_of(login: str, address: str, device: str | None) -> dict[str, int]:
    """What a try is counted under, and how many are free there."""
    if device is not None:
        return {f"device {device}": FREE_TRIES}
    # A key's length must not be the sender's choice.
    name = hashlib.sha256(login.encode()).hexdigest()[:32]
    place = _network(address)
    return {f"login {name} {place}": FREE_TRIES, f"address {place}": FREE_TRIES_OF_ADDRESS}


def keys_of_address(address: str) -> dict[str, int]:
    """The same for a try that names no login."""
    return {f"address {_network(address)}": FREE_TRIES_OF_ADDRESS}


def wrong_links_of(address: str) -> dict[str, int]:
    """What an address that opens nothing is counted under: a page of a share asks for many pictures at once."""
    return {f"link {_network(address)}": FREE_WRONG_LINKS}


def _network(address: str) -> str:
    """An IPv6 host has a whole /64 to itself and could use a new address for each try."""
    try:
        parsed = ipaddress.ip_address(peer_host(address))
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
