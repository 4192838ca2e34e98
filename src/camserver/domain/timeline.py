"""A camera's hours in cells of five minutes: whether it looked, how grave what it saw was, how many events began.

An hour is kept as text: three letters for each cell. People read it in buckets of one or more cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from camserver.domain.statistics import HOUR_MS

CELL_MS: Final = 300_000
CELLS: Final = HOUR_MS // CELL_MS
_LETTERS: Final = 3
HOUR_CHARS: Final = CELLS * _LETTERS
# What one letter can count to; more events than that in five minutes are shown as so many.
EVENTS_MAX: Final = 9
# Figures are made every few minutes. What is older than this is counted, if there was anything.
COUNTED_AFTER_MS: Final = 600_000


class Looked(StrEnum):
    """What became of the looks of a cell or bucket."""

    NONE = "."  # there was none
    PAUSED = "w"  # there was none, because somebody watched live what bears one stream only
    OK = "o"
    FAILED = "x"  # all failed
    SOME = "m"  # some failed
    UNCOUNTED = "?"  # not counted yet, or not over


@dataclass(frozen=True, slots=True)
class Cell:
    ok: int = 0
    failed: int = 0
    severity: int = 0
    events: int = 0  # that began


@dataclass(frozen=True, slots=True)
class Strip:
    """A camera's time in buckets: a letter of `looked` and a digit of `severity` for each, and events by bucket."""

    looked: str
    severity: str
    events: Sequence[tuple[int, int]]  # buckets and how many began there, where there are any, in order


def write_hour(cells: Mapping[int, Cell]) -> str:
    """An hour's text from its cells, by their number 0..11."""
    return "".join([_written(cells[number]) if number in cells else ".00" for number in range(CELLS)])


def _written(cell: Cell) -> str:
    return f"{_looked(cell.ok > 0, cell.failed > 0).value}{min(cell.severity, 9)}{min(cell.events, EVENTS_MAX)}"


def _looked(ok: bool, failed: bool) -> Looked:
    if ok:
        return Looked.SOME if failed else Looked.OK
    return Looked.FAILED if failed else Looked.NONE


def coarse_hour(looks: int, failed: int, severity: int, events: int) -> str:
    """An hour of which only the whole was counted: each of its cells is as the hour was, the first has its events."""
    looked = _looked(looks > failed, failed > 0).value
    rest = f"{looked}{min(severity, 9)}0" * (CELLS - 1)
    return f"{looked}{min(severity, 9)}{min(events, EVENTS_MAX)}{rest}"


_EMPTY_HOUR: Final = ".00" * CELLS


# Most hours of a camera are written alike, and a day of many cameras has thousands of them.
@lru_cache(maxsize=16_384)
def _in_buckets(hour: str, step: int, first: int) -> tuple[str, str, tuple[tuple[int, int], ...]]:
    """An hour's looks, severities and events in buckets of `step` cells, of which it begins with this one."""
    parts = [hour[place : place + step * _LETTERS] for place in range(0, HOUR_CHARS, step * _LETTERS)]
    looked = "".join([_together(part[0::_LETTERS]).value for part in parts])
    severity = "".join([max(part[1::_LETTERS]) for part in parts])
    events = [(number, sum(map(int, part[2::_LETTERS]))) for number, part in enumerate(parts, first)]
    return looked, severity, tuple([(number, count) for number, count in events if count])


def _together(letters: str) -> Looked:
    """What became of looks in several cells."""
    ok = Looked.OK in letters or Looked.SOME in letters
    failed = Looked.FAILED in letters or Looked.SOME in letters
    return _looked(ok, failed)


def make_strip(
    hours: Mapping[int, str], from_ms: int, to_ms: int, bucket_ms: int, counted_until_ms: int, born_ms: int = 0
) -> Strip:
    """`hours` are texts by when they began. Nothing is said of looks later than what is counted, nor of those before
    the camera was there. `from_ms` and `to_ms` are bounds of hours, and a bucket is a whole part of one."""
    step = bucket_ms // CELL_MS
    looked: list[str] = []
    severity: list[str] = []
    events: list[tuple[int, int]] = []
    for number, hour_at in enumerate(range(from_ms, to_ms, HOUR_MS)):
        hour_looked, hour_severity, hour_events = _in_buckets(
            hours.get(hour_at, _EMPTY_HOUR), step, number * (CELLS // step)
        )
        looked.append(hour_looked)
        severity.append(hour_severity)
        events += hour_events
    known = _unknown("".join(looked), from_ms, bucket_ms, counted_until_ms, born_ms)
    return Strip(known, "".join(severity), events)


def _unknown(looked: str, from_ms: int, bucket_ms: int, counted_until_ms: int, born_ms: int) -> str:
    """Nothing is said of time in which nobody can have looked, or of which it is not known yet."""
    late = max(0, (counted_until_ms - from_ms) // bucket_ms)
    early = max(0, (born_ms - from_ms) // bucket_ms)
    tail = looked[late:].replace(Looked.NONE, Looked.UNCOUNTED)
    looked = looked[:late] + tail
    return looked[:early].replace(Looked.NONE, Looked.UNCOUNTED) + looked[early:]


@dataclass(frozen=True, slots=True)
class Pause:
    """Time in which a camera's looks were put off, exactly."""

    start_at: int
    end_at: int  # not included
    cause: str


def with_pauses(strip: Strip, pauses: Sequence[Pause], from_ms: int, bucket_ms: int) -> Strip:
    """The same, and buckets without a look told apart for most of which looks were put off."""
    if not pauses:
        return strip
    letters = list(strip.looked)
    for number, letter in enumerate(letters):
        begin_ms = from_ms + number * bucket_ms
        if letter == Looked.NONE and cause_of(begin_ms, begin_ms + bucket_ms, pauses):
            letters[number] = Looked.PAUSED
    return replace(strip, looked="".join(letters))


def cause_of(start_ms: int, end_ms: int, pauses: Sequence[Pause]) -> str:
    """For what looks were put off during at least half of a time; '' where they were not."""
    paused_ms: dict[str, int] = {}
    for one in pauses:
        within_ms = min(one.end_at, end_ms) - max(one.start_at, start_ms)
        paused_ms[one.cause] = paused_ms.get(one.cause, 0) + max(within_ms, 0)
    cause, longest_ms = max(paused_ms.items(), key=lambda item: item[1], default=("", 0))
    return cause if longest_ms * 2 >= end_ms - start_ms else ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time in which a camera was not looked at, to five minutes."""

    start_at: int
    end_at: int  # not included
    cause: str = ""  # why, where most of it was a pause


def gaps(strip: Strip, from_ms: int, shortest_ms: int, pauses: Sequence[Pause] = ()) -> tuple[Gap, ...]:
    """Runs of cells without a look that are at least so long, and why. The strip's buckets are single cells."""
    found: list[Gap] = []
    place = 0
    for run in _runs(strip.looked):
        start = from_ms + place * CELL_MS
        place += len(run)
        if run[0] == Looked.NONE and len(run) * CELL_MS >= shortest_ms:
            end = start + len(run) * CELL_MS
            found.append(Gap(start, end, cause_of(start, end, pauses)))
    return tuple(found)


def _runs(letters: str) -> Sequence[str]:
    runs: list[str] = []
    for letter in letters:
        if runs and runs[-1][0] == letter:
            runs[-1] += letter
        else:
            runs.append(letter)
    return runs


def shortest_gap_ms(interval_ms: int) -> int:
    """Shorter ones are what lies between two looks anyway."""
    return max(CELL_MS, 2 * interval_ms)


def counted_until(newest_cell_end_ms: int, now_ms: int) -> int:
    """Up to when a cell without a look is one in which nobody looked."""
    return max(newest_cell_end_ms, now_ms - COUNTED_AFTER_MS)
