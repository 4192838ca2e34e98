"""How much a worker transcodes at once: cameras that are watched live, and films that somebody waits for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TranscodeLimits:
    """What a worker does at most for those who can't be shown a camera as it sends."""

    most: int = 4  # cameras at once
    width_max: int = 1280
    fps_max: int = 15


class Transcodes:
    """Who transcodes now. Live view counts its own (`live`), films are counted here."""

    def __init__(self, limits: TranscodeLimits = TranscodeLimits()) -> None:  # noqa: B008 - frozen
        self.limits = limits
        self.live: Callable[[], int] = lambda: 0
        self.films = 0

    @contextmanager
    def film(self) -> Iterator[bool]:
        """One place while a film is made; False: there is none."""
        if self.live() + self.films >= self.limits.most:
            yield False
            return
        self.films += 1
        try:
            yield True
        finally:
            self.films -= 1
