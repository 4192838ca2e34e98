"""What every camera of a worker gets: its clock, its disk, its threads and the rules that hold for all."""

import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from camserver.base.clock import Clock
from camserver.domain.gate import GatePolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.media.addresses import AddressPolicy
from camserver.media.ring import Rings
from camserver.services.worker.look_traces import LookTraces
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool

RATES_OVER_MS = 60_000
# A worker of 400 cameras at a look a second has so many in half that time; then the rate is of so long.
RECENT_MAX = 8_192


@dataclass(slots=True)
class LookCounts:
    """Counted over all cameras, for the heartbeat's metrics."""

    ok: int = 0
    failed: int = 0
    given_up: int = 0  # grabbed, but the hold had run out by then
    # Of the newest looks: when each was kept, how long after its moment, and whether it goes to an analyzer.
    recent: deque[tuple[int, int, bool]] = field(default_factory=lambda: deque(maxlen=RECENT_MAX))

    def kept(self, boot_ms: int, latency_ms: int, is_passed: bool) -> None:
        self.ok += 1
        self.recent.append((boot_ms, latency_ms, is_passed))

    def rates(self, boot_ms: int) -> dict[str, float]:
        """Figures of the last minute, by the seeds' names: pictures decoded and passed on a second, and how long
        after its moment a look was kept."""
        since = boot_ms - RATES_OVER_MS
        if len(self.recent) == RECENT_MAX:
            since = max(since, self.recent[0][0])
        within = [one for one in self.recent if one[0] >= since]
        span_sec = max(boot_ms - since, 1) / 1000
        latencies = sorted(latency_ms for _, latency_ms, _ in within)
        return {
            "decode_fps": len(within) / span_sec,
            "detect_fps": sum(is_passed for _, _, is_passed in within) / span_sec,
            "latency_ms_p50": _at(latencies, 0.5),
            "latency_ms_p95": _at(latencies, 0.95),
        }


def _at(ordered: list[int], share: float) -> float:
    return float(ordered[min(int(len(ordered) * share), len(ordered) - 1)]) if ordered else 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every camera of a worker gets."""

    clock: Clock
    boot_id: str
    spool: Spool
    reports: Reports
    pictures: Executor  # threads for picture work
    gate: GatePolicy
    leases: LeasePolicy
    counts: LookCounts
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    jitter: Callable[[], float] = random.random
    looks: LookPolicy = field(default_factory=LookPolicy)
    rings: Rings | None = None  # memory for clips; None: no clips
    traces: LookTraces = field(default_factory=LookTraces)
    live_sound: bool = False  # whether those who watch live may hear, too
