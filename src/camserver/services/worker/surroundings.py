"""What every camera of a worker gets: its clock, its disk, its threads and the rules that hold for all."""

import random
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from camserver.base.clock import Clock
from camserver.domain.gate import GatePolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.media.addresses import AddressPolicy
from camserver.media.ring import Rings
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool


@dataclass(slots=True)
class LookCounts:
    """Counted over all cameras, for the heartbeat's metrics."""

    ok: int = 0
    failed: int = 0
    given_up: int = 0  # grabbed, but the hold had run out by then


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
    live_sound: bool = False  # whether those who watch live may hear, too
