"""How available cameras were in business hours, held against an objective (seed 004, section 10: 99 %).

A camera was available in a cell of five minutes when at least one of its looks succeeded. Cells without any look
count against it, whoever was at fault: camera, network, worker or server. Only hours that are over and counted are
judged.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

from camserver.domain.policy import setting
from camserver.domain.statistics import HOUR_MS
from camserver.domain.timeline import CELLS, HOUR_CHARS, Looked

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEEN: Final = frozenset((Looked.OK.value, Looked.SOME.value))


@dataclass(frozen=True, slots=True)
class AvailabilityPolicy:
    """How available cameras shall be, and when it counts."""

    objective: float = setting(0.99, "Share of business hours in which a camera shall be available.", min=0, max=1)
    from_hour: int = setting(9, "Hour of the site's day at which business begins.", min=0, max=23)
    until_hour: int = setting(18, "Hour at which it ends; not above from_hour: in the next night.", min=1, max=24)
    days: tuple[str, ...] = setting(DAY_NAMES[:5], "Days of business: mon, tue, wed, thu, fri, sat, sun.")
    window_days: int = setting(7, "Over how many of the last days it is judged.", min=1, max=90)

    def __post_init__(self) -> None:
        unknown = [day for day in self.days if day not in DAY_NAMES]
        if unknown:
            raise ValueError(f"days: {unknown[0]!r} is none of {', '.join(DAY_NAMES)}")


@dataclass(frozen=True, slots=True)
class Share:
    """Cells in which cameras were available, of those in which they should have been."""

    seen: int = 0
    wanted: int = 0

    @property
    def ratio(self) -> float | None:
        return self.seen / self.wanted if self.wanted else None

    def plus(self, other: "Share") -> "Share":
        return Share(self.seen + other.seen, self.wanted + other.wanted)


def is_business(hour_at: int, zone: tzinfo, policy: AvailabilityPolicy) -> bool:
    """Whether the hour that begins then is one of business at the site. Nights belong to the day they begin on."""
    local = datetime.fromtimestamp(hour_at / 1000, zone)
    if policy.from_hour < policy.until_hour:
        return policy.from_hour <= local.hour < policy.until_hour and DAY_NAMES[local.weekday()] in policy.days
    if local.hour >= policy.from_hour:
        return DAY_NAMES[local.weekday()] in policy.days
    day_before = (local - timedelta(days=1)).weekday()
    return local.hour < policy.until_hour and DAY_NAMES[day_before] in policy.days


def business_hours(from_ms: int, to_ms: int, zone: tzinfo, policy: AvailabilityPolicy) -> tuple[int, ...]:
    """When the hours of business begin that lie within, each a whole one."""
    first = -(-from_ms // HOUR_MS) * HOUR_MS
    return tuple(at for at in range(first, to_ms - HOUR_MS + 1, HOUR_MS) if is_business(at, zone, policy))


def share_of(hours: Iterable[str | None]) -> Share:
    """Of a camera's hours of business as they are written in the hourly figures; None: nothing was counted in one."""
    seen = wanted = 0
    for hour in hours:
        wanted += CELLS
        if hour is not None:
            seen += sum(letter in _SEEN for letter in hour[0 : HOUR_CHARS : HOUR_CHARS // CELLS])
    return Share(seen, wanted)
