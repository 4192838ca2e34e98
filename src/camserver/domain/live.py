"""When a worker lets live view go so that its looks get through (decision 34)."""

from dataclasses import dataclass

RTT_MAX_MS = 2_000
# So many looks more than a while ago wait in the spool, and at least so many.
SPOOL_GROWTH_LOOKS = 10
SPOOL_LEAST_LOOKS = 20
# It stays so for a while, lest viewers come and go.
SHED_MS = 15_000


@dataclass(frozen=True, slots=True)
class Line:
    """How a worker's line to its server is."""

    renew_rtt_ms: int
    spool_looks: int
    spool_looks_before: int  # a while ago


def is_short(line: Line) -> bool:
    """Whether the line bears less than what must go over it."""
    grown = line.spool_looks - line.spool_looks_before
    is_growing = line.spool_looks >= SPOOL_LEAST_LOOKS and grown >= SPOOL_GROWTH_LOOKS
    return line.renew_rtt_ms > RTT_MAX_MS or is_growing


def shed_until(line: Line, until_ms: int, now_ms: int) -> int:
    """Until when nothing is sent live; a moment that is over: it may be."""
    return now_ms + SHED_MS if is_short(line) else until_ms
