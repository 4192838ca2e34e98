"""Which of the workers that have room gets a camera: two styles behind one interface.

*spread* gives it to the least loaded, so that the loss of one worker costs few cameras; *pack* to the fullest that
still has room, so that whole machines stay free and can be switched off.
"""

from dataclasses import dataclass
from typing import Protocol

from camserver.domain.assignment_types import Why


class Style(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def why(self) -> Why: ...

    @property
    def rebalances(self) -> bool:
        """Whether running cameras are moved for the sake of the load."""

    def rank(self, share: float) -> float:
        """The worker with the least takes the next camera; `share` is how full it is."""


@dataclass(frozen=True, slots=True)
class _Spread:
    name: str = "spread"
    why: Why = Why.LEAST_LOADED
    rebalances: bool = True

    def rank(self, share: float) -> float:
        return share


@dataclass(frozen=True, slots=True)
class _Pack:
    name: str = "pack"
    why: Why = Why.FULLEST
    rebalances: bool = False

    def rank(self, share: float) -> float:
        return -share


SPREAD: Style = _Spread()
PACK: Style = _Pack()
STYLES: dict[str, Style] = {style.name: style for style in (SPREAD, PACK)}
