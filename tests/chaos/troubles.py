"""What befalls a fleet, when and for how long: made from a seed, so that a run can be repeated.

A first turn in a fixed order has every kind of trouble once; after it chance decides.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.fakes.analyzer.faults import BREAKS, Fault

SITES: Mapping[str, tuple[str, ...]] = {"north": ("worker-a", "worker-b"), "south": ("worker-c",)}
WORKERS = tuple(name for site in SITES.values() for name in site)
CONTROLS = ("control-a", "control-b")
DISPATCHERS = ("dispatcher-a", "dispatcher-b")
SERVICES = (*CONTROLS, "web", *DISPATCHERS)
ANALYZERS = ("analyzer-a", "analyzer-b")
# Those that reach the database over a network that can be bad.
REMOTE = ("control-b", "dispatcher-b")
DATABASE = "database"
DISK = "disk"


class Kind(StrEnum):
    KILL = "kill -9"
    STOP = "orderly restart"
    FREEZE = "SIGSTOP"
    CUT = "link cut"
    SLOW = "link slow"
    FAR = "database link lost"
    DATABASE = "database restart"
    FULL = "disk full"
    CLOCK = "clock jump"
    LIE = "analyzer lies"
    FORGET = "analyzer forgets"


TARGETS: Mapping[Kind, tuple[str, ...]] = {
    Kind.KILL: (*WORKERS, *SERVICES, *ANALYZERS),
    Kind.STOP: (*WORKERS, *SERVICES),
    Kind.FREEZE: (*WORKERS, *SERVICES, *ANALYZERS),
    Kind.CUT: WORKERS,
    Kind.SLOW: WORKERS,
    Kind.FAR: REMOTE,
    Kind.DATABASE: (DATABASE,),
    Kind.FULL: (DISK,),
    Kind.CLOCK: (*WORKERS, *SERVICES),
    Kind.LIE: ANALYZERS,
    Kind.FORGET: ANALYZERS,
}
# Shortest and longest, in seconds. A lease lasts 10 s: some cuts and freezes outlive it.
LASTS: Mapping[Kind, tuple[float, float]] = {
    Kind.KILL: (0.0, 4.0),
    Kind.STOP: (0.0, 0.5),
    Kind.FREEZE: (1.0, 16.0),
    Kind.CUT: (1.0, 20.0),
    Kind.SLOW: (3.0, 10.0),
    Kind.FAR: (1.0, 8.0),
    Kind.DATABASE: (0.0, 3.0),
    Kind.FULL: (2.0, 8.0),
    Kind.CLOCK: (2.0, 8.0),
    Kind.LIE: (2.0, 8.0),
    Kind.FORGET: (0.0, 0.0),
}
HOUR_SEC = 3600
JUMPS_SEC = (HOUR_SEC, -HOUR_SEC, 40 * 24 * HOUR_SEC, -40 * 24 * HOUR_SEC)
LIES: Mapping[str, Fault] = {
    "500": Fault.answer_status(500),
    "503": Fault.answer_status(503, "1"),
    "429": Fault.answer_status(429, "1"),
    "no JSON": Fault.malformed(),
    "of another camera": Fault.wrong_camera(),
    "breaks off": Fault.cut_off(),
    "resets": Fault.reset(),
    "huge": Fault.huge(),
    "slow": Fault.slow(2.0),
    **{breach: Fault.break_contract(breach) for breach in BREAKS},
}
# One after the other in the first turn: each kind once, on something that matters for it.
SCRIPT: tuple[tuple[Kind, str], ...] = (
    (Kind.KILL, "worker-a"),
    (Kind.LIE, "analyzer-a"),
    (Kind.FREEZE, "worker-c"),
    (Kind.KILL, "control-a"),
    (Kind.FULL, DISK),
    (Kind.CUT, "worker-b"),
    (Kind.KILL, "dispatcher-a"),
    (Kind.DATABASE, DATABASE),
    (Kind.CLOCK, "control-b"),
    (Kind.FREEZE, "dispatcher-b"),
    (Kind.SLOW, "worker-a"),
    (Kind.FAR, "dispatcher-b"),
    (Kind.FORGET, "analyzer-b"),
    (Kind.STOP, "control-b"),
    (Kind.KILL, "analyzer-a"),
    (Kind.CLOCK, "worker-b"),
)


@dataclass(frozen=True, slots=True)
class Trouble:
    number: int
    kind: Kind
    target: str
    seconds: float
    lie: str = ""
    jump_sec: int = 0
    held: bool = True  # of a database link: nothing passes; otherwise connections are reset

    @property
    def group(self) -> str:
        """Of one group, one at most is in trouble at a time: somebody is left who can do its work."""
        if self.kind in (Kind.FAR, Kind.DATABASE):
            return DATABASE
        return self.target.partition("-")[0]

    def __str__(self) -> str:
        more = self.lie or (f"{self.jump_sec:+d} s" if self.jump_sec else "")
        return f"{self.number}: {self.kind} of {self.target}{f' ({more})' if more else ''}, {self.seconds:.1f} s"


def troubles(seed: int) -> Iterator[Trouble]:
    """Without end."""
    chance = random.Random(seed)
    number = 0
    for kind, target in SCRIPT:
        number += 1
        yield _trouble(number, kind, target, chance)
    while True:
        kinds = list(Kind)
        chance.shuffle(kinds)
        for kind in kinds:
            number += 1
            yield _trouble(number, kind, chance.choice(TARGETS[kind]), chance)


def _trouble(number: int, kind: Kind, target: str, chance: random.Random) -> Trouble:
    shortest, longest = LASTS[kind]
    return Trouble(
        number,
        kind,
        target,
        seconds=chance.uniform(shortest, longest),
        lie=chance.choice(sorted(LIES)) if kind is Kind.LIE else "",
        jump_sec=chance.choice(JUMPS_SEC) if kind is Kind.CLOCK else 0,
        held=chance.random() < 0.5,
    )
