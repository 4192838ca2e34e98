"""Figures by hour and day: which hours are counted anew, and how hours add up to days of a site's own time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Final

HOUR_MS: Final = 3_600_000
# How much later than its beginning an event may have begun before late frames moved it.
_START_MOVES_MS: Final = 2 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened in an hour or a day. `bytes` are those of pictures that were kept."""

    looks: int = 0
    looks_failed: int = 0
    analyzed: int = 0
    detected: int = 0
    unknown: int = 0
    events: int = 0
    severity_max: int = 0
    bytes: int = 0
    by_event: Mapping[str, int] = field(default_factory=dict)  # events by primary event

    def __add__(self, other: "Counts") -> "Counts":
        by_event = dict(self.by_event)
        for name, count in other.by_event.items():
            by_event[name] = by_event.get(name, 0) + count
        return Counts(
            looks=self.looks + other.looks,
            looks_failed=self.looks_failed + other.looks_failed,
            analyzed=self.analyzed + other.analyzed,
            detected=self.detected + other.detected,
            unknown=self.unknown + other.unknown,
            events=self.events + other.events,
            severity_max=max(self.severity_max, other.severity_max),
            bytes=self.bytes + other.bytes,
            by_event=by_event,
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """An hour, or a day by the sites' own time (`day`); `start_at` is when its first counted hour began."""

    start_at: int
    counts: Counts
    day: str | None = None


def hour_of(at_ms: int) -> int:
    """When the hour of a moment began. Hours are those of UTC: the same for every site."""
    return at_ms // HOUR_MS * HOUR_MS


def hours_of_event(start_at: int, last_seen_at: int) -> range:
    """The hours in which an event may have been counted: that of its beginning, and of its former beginning."""
    last = max(start_at, min(last_seen_at, start_at + _START_MOVES_MS))
    return range(hour_of(start_at), last + 1, HOUR_MS)


def by_hour(hours: Iterable[tuple[int, tzinfo, Counts]]) -> tuple[Bucket, ...]:
    found: dict[int, Bucket] = {}
    for hour_at, _, counts in hours:
        known = found.get(hour_at)
        found[hour_at] = Bucket(hour_at, counts if known is None else known.counts + counts)
    return tuple(found[hour_at] for hour_at in sorted(found))


def by_day(hours: Iterable[tuple[int, tzinfo, Counts]]) -> tuple[Bucket, ...]:
    """Days as the sites' clocks show them. In zones of half an hour, an hour belongs to the day it begins in."""
    found: dict[str, Bucket] = {}
    for hour_at, zone, counts in hours:
        day = datetime.fromtimestamp(hour_at / 1000, zone).strftime("%Y-%m-%d")
        known = found.get(day)
        if known is None:
            found[day] = Bucket(hour_at, counts, day)
        else:
            found[day] = replace(known, start_at=min(known.start_at, hour_at), counts=known.counts + counts)
    return tuple(found[day] for day in sorted(found))
