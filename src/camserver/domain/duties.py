"""Duties: work that one dispatcher of many does at a time, such as holding the connection to a broker.

A duty is held until a moment and renewed before it. Whoever finds it past that moment may take it, and gets a new
token: the fence under which the holder writes. Between the end of one hold and the next taking nobody has it.
"""

from dataclasses import dataclass
from typing import Final

# A holder that died is replaced this long after its last renewal.
HOLD_MS: Final = 30_000
RENEW_EVERY_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Duty:
    """Who has it, under which fence, and until when (ms)."""

    name: str
    owner: str
    token: str
    until: int

    def is_held_by(self, token: str, now_ms: int) -> bool:
        return self.token == token and now_ms < self.until


def taken(found: Duty | None, name: str, owner: str, token: str, now_ms: int, hold_ms: int = HOLD_MS) -> Duty | None:
    """The duty as `owner` has it after asking for it; None while somebody else holds it.

    Asking again under the same token renews. The same owner with another token is another holder: its former self may
    still be at work.
    """
    if found is not None and found.token != token and now_ms < found.until:
        return None
    if found is not None and found.token == token and now_ms >= found.until:
        # It ran out in between, so another one may have had it: what was begun under this token is void.
        return None
    return Duty(name, owner, token, now_ms + hold_ms)
