"""What can go wrong with one request to the fake Drive."""

import asyncio
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answer:
    """Nothing is done; this is answered instead."""

    status: int
    reason: str = ""
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """So much of the body is taken, then the connection is gone."""

    after_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Unheard:
    """Everything is done, and the answer never arrives."""


@dataclass(frozen=True, slots=True)
class Lie:
    """A 308 that tells this range, whatever arrived; None tells none."""

    range: str | None


@dataclass(frozen=True, slots=True)
class Lost:
    """What arrived so far is forgotten; the session goes on."""


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session is forgotten."""


@dataclass(frozen=True, slots=True)
class Corrupted:
    """Other bytes are stored than were sent."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The upload's address is somebody else's."""

    url: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Waits until it is let go; `begun` says that the request is there."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Terse:
    """Only an id is answered. The file is there, in the bin, or nowhere."""

    left: str = "there"


Fault = Terse | Answer | Cut | Unheard | Lie | Lost | SessionGone | Corrupted | Elsewhere | Wait
