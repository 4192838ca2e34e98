"""The detectors that look at pictures now: one for each seat (a thread), for each profile of the contract.

A crew is exchanged as a whole, while requests run: each keeps the crew it began with, and the old one's memory goes
with the last of them. A seat is one thread's at a time, so a detector is, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from camserver.base.errors import Bug
from camserver.services.analyzer.detector import Detector, Forwarder

Profile = Literal["fast", "standard"]


@dataclass(frozen=True, slots=True)
class Crew:
    """`fast` holds detectors of a smaller model; without them a fast request gets the standard one."""

    standard: Sequence[Detector]
    fast: Sequence[Detector] = ()

    def __post_init__(self) -> None:
        if not self.standard or (self.fast and len(self.fast) != len(self.standard)):
            raise Bug(f"a crew of {len(self.standard)} standard and {len(self.fast)} fast detectors is not whole")

    @property
    def seats(self) -> int:
        return len(self.standard)

    def detector(self, profile: Profile, seat: int) -> Detector:
        return self._of(profile)[seat]

    def one(self, profile: Profile) -> Detector:
        """Any of them, for what their model has in common."""
        return self._of(profile)[0]

    def forwards(self, profile: Profile) -> bool:
        """Whether the request itself is passed on, so that nothing of it has to be decoded here."""
        return isinstance(self.one(profile), Forwarder)

    def _of(self, profile: Profile) -> Sequence[Detector]:
        return self.fast if profile == "fast" and self.fast else self.standard
