"""What an assignment is decided on, and what a decision is. The rule is in `assignment`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from camserver.domain.policy import setting

# (tenant_id, site_id)
Site = tuple[int, int]
# What a worker has, or a camera asks of it: (name, value) pairs.
Labels = frozenset[tuple[str, str]]
NO_LABELS: Labels = frozenset()


@dataclass(frozen=True, slots=True)
class AssignmentPolicy:
    """How cameras are given to workers and moved between them."""

    margin: float = setting(
        0.25,
        "A running camera moves for the load's sake only when its worker is fuller than another by more than this "
        "share of its capacity.",
        min=0.05,
        max=1,
    )
    moves_max: int = setting(
        4, "Most running cameras of a server's sites that move at the same time.", min=1, max=100
    )
    rest_sec: int = setting(
        120, "A camera that just came to a worker is not moved for the load's sake for so long.", min=0, max=86_400
    )


class Load(NamedTuple):
    """What a camera costs or a worker has, besides slots. As a capacity 0 means that the worker did not say."""

    cpu: float = 0.0  # cores
    gpu: float = 0.0
    mem: float = 0.0  # bytes


NO_LOAD = Load()


@dataclass(frozen=True, slots=True)
class WorkerOffer:
    worker_key: int
    tenant_id: int
    site_id: int
    slots: int  # cameras at once
    used: int  # cameras it holds, those in the snapshot included
    capacity: Load = NO_LOAD
    load: Load = NO_LOAD  # of the cameras it holds
    labels: Labels = NO_LABELS
    is_present: bool = True  # connected, heard of lately, not on its way out
    is_draining: bool = False  # people want it emptied

    @property
    def site(self) -> Site:
        return self.tenant_id, self.site_id

    @property
    def takes_cameras(self) -> bool:
        return self.is_present and not self.is_draining


@dataclass(frozen=True, slots=True)
class CameraNeed:
    """A camera that is switched on. Without a holder it is free."""

    camera_key: int
    tenant_id: int
    site_id: int
    generation: int  # what the take expects to find
    next_attempt_at: int | None = None  # ms; not before
    avoid_worker_key: int | None = None  # where it just failed; taken again only when no other has room
    pinned_worker_key: int | None = None  # nowhere else
    wanted_worker_key: int | None = None  # asked for by a person or a move; elsewhere when it can't be
    labels: Labels = NO_LABELS
    load: Load = NO_LOAD
    device: str | None = None  # that it shares with other cameras of its site, and that bears few connections
    holder_key: int | None = None
    held_since: int | None = None  # ms
    is_stopping: bool = False  # its holder was told to let go
    is_active: bool = False  # it is going; one in trouble is not moved for the load's sake

    @property
    def site(self) -> Site:
        return self.tenant_id, self.site_id


@dataclass(frozen=True, slots=True)
class Quota:
    """How many cameras of a tenant may run at once."""

    tenant_id: int
    running: int
    most: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sites to decide for. Held cameras need to be in it only if they might move."""

    now_ms: int
    workers: tuple[WorkerOffer, ...]
    cameras: tuple[CameraNeed, ...]
    quotas: tuple[Quota, ...] = ()
    # Who holds cameras of a device now; of several the one with the lowest key.
    homes: Mapping[tuple[Site, str], int] = field(default_factory=dict)


class Kind(StrEnum):
    TAKE = "take"  # a free camera goes to a worker
    MOVE = "move"  # a held one is to go to another: stop, release, then take
    KEEP = "keep"  # it stays where it is
    WAIT = "wait"  # nobody can take it now


class Why(StrEnum):
    # Taken
    LEAST_LOADED = "least_loaded"
    FULLEST = "fullest"
    PINNED = "pinned"
    ASKED = "asked"
    SAME_DEVICE = "same_device"
    # Kept
    HELD = "held"
    STOPPING = "stopping"
    DRAIN_NO_ROOM = "drain_no_room"
    MOVES_LATER = "moves_later"
    # Moved
    DRAINED = "drained"
    REBALANCED = "rebalanced"
    # Waits
    BACKING_OFF = "backing_off"
    QUOTA = "quota"
    NO_WORKER = "no_worker"
    ALL_AWAY = "all_away"
    ALL_DRAINING = "all_draining"
    LABELS = "labels"
    ALL_FULL = "all_full"
    TOO_BIG = "too_big"
    PIN_AWAY = "pin_away"
    PIN_ELSEWHERE = "pin_elsewhere"
    PIN_DRAINING = "pin_draining"
    PIN_LABELS = "pin_labels"
    PIN_FULL = "pin_full"


class Reason(NamedTuple):
    """Why, with the facts that the words for it name (`assignment_words`)."""

    why: Why
    worker_key: int | None = None
    at_ms: int | None = None
    workers: int = 0
    used: int = 0
    slots: int = 0


class Decision(NamedTuple):
    camera_key: int
    worker_key: int | None  # who gets or keeps it; None: nobody
    expected_generation: int
    kind: Kind
    reason: Reason


@dataclass(frozen=True, slots=True)
class Plan:
    decisions: tuple[Decision, ...]  # in the order of the cameras

    def of_kind(self, kind: Kind) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.kind is kind)

    def counts(self) -> dict[str, int]:
        """How many decisions there are for each reason."""
        return dict(Counter(decision.reason.why.value for decision in self.decisions))
