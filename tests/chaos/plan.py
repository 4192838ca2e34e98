"""Which process dies in which round, and what the network does meanwhile: made from a seed, so a run can be repeated.

Moments are counted in acknowledged looks, not in seconds, so a slow machine sees the same storm more slowly.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.rig.cutter import Way

DATABASE = "database"
WRITER = "writer"

# What is killed: each once in the first turn, then as often as it stands here before it comes round again.
TARGETS: Mapping[str, Sequence[str]] = {
    "sqlite": ("server", "server", WRITER, "worker-a", "worker-b"),
    "postgres": ("control", "control", "dispatcher-a", "dispatcher-b", "worker-a", "worker-b", "control", "web",
                 "dispatcher-a", DATABASE),
    "mariadb": ("control", "control", "dispatcher-a", "dispatcher-b", "worker-a", "worker-b", "control", "web",
                "dispatcher-a", DATABASE),
}  # fmt: skip
WORKERS = ("worker-a", "worker-b")
# A worker is cut off, or told to stop, in every so-many-th round.
CUT_OFF_EVERY = 7
STOP_EVERY = 5
LOOKS_MAX = 24
AWAY_MAX_SEC = 1.0
SNAP_MAX_BYTES = 6_000


class Loss(StrEnum):
    """How a network fails for longer than a lease."""

    HELD = "held"  # nothing arrives, nothing is lost: it all comes when the network is back
    SWALLOWED = "swallowed"  # what is sent is lost, connections stay open
    REFUSED = "refused"  # connections are reset and new ones refused


@dataclass(frozen=True, slots=True)
class Snap:
    """A worker's connections break once, in the middle of what comes this way."""

    worker: str
    way: Way
    after_bytes: int


@dataclass(frozen=True, slots=True)
class CutOff:
    """A worker is cut off until somebody else was acknowledged for its cameras."""

    worker: str
    loss: Loss


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    after_looks: int  # acknowledged since the round before
    settle_sec: float  # and then so long, so that the kill falls anywhere between two looks
    kill: str
    away_sec: float
    snap: Snap | None = None
    cut_off: CutOff | None = None
    stop: str | None = None  # a worker that is told to stop, flushes and gives its cameras to the other


def rounds(kind: str, seed: int) -> Iterator[Round]:
    """Rounds without end for this kind of database. Each target of `TARGETS` is killed in each turn of its list."""
    chance = random.Random(f"{kind} {seed}")
    number = 0
    turn = sorted(set(TARGETS[kind]))
    while True:
        chance.shuffle(turn)
        for target in turn:
            number += 1
            yield _round(number, target, chance)
        turn = list(TARGETS[kind])


def rounds_of_each_kind(kind: str) -> int:
    """After so many rounds, everything was killed once, a worker cut off and one told to stop."""
    return max(len(set(TARGETS[kind])), STOP_EVERY)


def _round(number: int, target: str, chance: random.Random) -> Round:
    snap, cut_off, stop = None, None, None
    if chance.random() < 0.6:
        snap = Snap(chance.choice(WORKERS), chance.choice(list(Way)), chance.randrange(SNAP_MAX_BYTES))
    if number % CUT_OFF_EVERY == 2:
        cut_off = CutOff(chance.choice(WORKERS), chance.choice(list(Loss)))
    elif number % STOP_EVERY == 0:
        # The one that is not killed in this round.
        stop = chance.choice([worker for worker in WORKERS if worker != target])
    return Round(
        number=number,
        after_looks=chance.randint(1, LOOKS_MAX),
        settle_sec=chance.random() * 0.3,
        kill=target,
        away_sec=chance.random() * AWAY_MAX_SEC,
        snap=snap,
        cut_off=cut_off,
        stop=stop,
    )
