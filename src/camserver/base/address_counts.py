"""How many connections each address has open, where that has a bound; counted as they come and go."""

import ipaddress
from collections import Counter
from collections.abc import Iterable

from camserver.base.addresses import peer_network


class AddressCounts:
    """`most` 0: any number, and nothing is counted. Nor are addresses that are spared."""

    def __init__(self, most: int, spares_loopback: bool, spares: Iterable[str]) -> None:
        self._most = most
        self._spares_loopback = spares_loopback
        self._spared = tuple(peer_network(one) for one in spares)
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> str | None:
        """A connection has come. What `leave` is to be told when it is gone."""
        if not self._most or self._is_spared(address):
            return None
        self._open[address] += 1
        return address

    def leave(self, entered: str | None) -> None:
        if entered is None:
            return
        self._open[entered] -= 1
        if not self._open[entered]:
            del self._open[entered]

    def are_too_many(self, entered: str | None) -> bool:
        return entered is not None and self._open[entered] > self._most

    def _is_spared(self, address: str) -> bool:
        try:
            own = ipaddress.ip_address(address)
        except ValueError:
            return self._spares_loopback  # a socket of this machine
        if self._spares_loopback and own.is_loopback:
            return True
        return any(own in network for network in self._spared)
