"""Sequence numbers and times of uploaded looks (decisions T2 and 11).

Within a generation the looks of a camera are numbered from 1. A hole is recorded as a gap as soon as a later
look arrives, and shrinks when a missing one comes after all. Storing gaps is not done here.
"""

from dataclasses import dataclass

from camserver.base.errors import Bug

# A worker's clock is corrected by what it learned from replies; this much is left as an error.
FUTURE_TOLERANCE_MS = 1000
# An upload may have been on its way for so long, on a line that held it back; the worker gives it up sooner.
ON_ITS_WAY_MAX_MS = 180_000


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """Looks that never arrived, `first_seq` to `last_seq`, both included."""

    first_seq: int
    last_seq: int

    @property
    def count(self) -> int:
        return self.last_seq - self.first_seq + 1


def gap_before(last_seq: int, seq: int) -> Gap | None:
    """The gap that look `seq` leaves open after `last_seq`, the greatest known so far (0: none yet)."""
    return Gap(last_seq + 1, seq - 1) if seq > last_seq + 1 else None


def without_seq(gap: Gap, seq: int) -> tuple[Gap, ...]:
    """What is left of a gap after look `seq` arrived: nothing, one gap or two."""
    if not gap.first_seq <= seq <= gap.last_seq:
        raise Bug(f"Look {seq} is not in the gap {gap.first_seq}..{gap.last_seq}. Report this.")
    before = (Gap(gap.first_seq, seq - 1),) if seq > gap.first_seq else ()
    after = (Gap(seq + 1, gap.last_seq),) if seq < gap.last_seq else ()
    return before + after


def settled_captured_at(captured_at: int, received_at: int) -> int:
    """A frame's time as it is kept: what the worker says, but not from the future."""
    return min(captured_at, received_at + FUTURE_TOLERANCE_MS)


def captured_at_by_age(boot_ms: int, sent_boot_ms: int, received_at: int, claimed_at: int) -> int:
    """A look's time from its age at sending, when both were stamped by the clock of one boot.

    So the worker's idea of the date does not matter, unless the upload itself was held back on its way: then its age
    is more than at sending, and by as much `claimed_at` is earlier. It also stands when the stamps contradict each
    other.
    """
    age_ms = sent_boot_ms - boot_ms
    if age_ms < 0:
        return claimed_at
    by_age = received_at - age_ms
    was_held_back = FUTURE_TOLERANCE_MS < by_age - claimed_at <= ON_ITS_WAY_MAX_MS
    return claimed_at if was_held_back else by_age
