"""What was found out about a provider, for the next process that asks it with the same key."""

from dataclasses import dataclass, replace
from typing import Final

# What was found out longer ago is found out anew.
KEPT_MS: Final = 3_600_000
# A difference of less is not worth a write.
NEWS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Found:
    places: float  # that may be taken at once
    too_many: float | None  # so many were refused
    pace: float | None  # questions a second; None: as many as fit
    latency_sec: float

    def scaled(self, factor: float) -> "Found":
        """Of all who use a key, from the share of one."""
        return replace(
            self,
            places=self.places * factor,
            too_many=None if self.too_many is None else self.too_many * factor,
            pace=None if self.pace is None else self.pace * factor,
        )

    def is_news(self, before: "Found | None") -> bool:
        """Whether it differs from what is known already."""
        return before is None or any(
            _differ(mine, other)
            for mine, other in (
                (self.places, before.places),
                (self.too_many, before.too_many),
                (self.pace, before.pace),
            )
        )


def _differ(mine: float | None, other: float | None) -> bool:
    if mine is None or other is None:
        return mine is not other
    return abs(mine - other) > NEWS * max(mine, other)
