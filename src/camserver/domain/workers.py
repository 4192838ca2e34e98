"""The worker's own state machine (decision 39); each camera has its session state beside it (see leases).

    INIT ──> REGISTERED ──> IDLE <──> RUNNING ──> DRAINING ──> STOPPED
    REGISTERED | IDLE | RUNNING ──> RECONNECTING ──> REGISTERED | RUNNING
    IDLE ──> DRAINING      each of them ──> STOPPED

RUNNING means at least one camera. What a state does to cameras and buffers is the worker's business, not this
module's.
"""

from dataclasses import dataclass
from enum import StrEnum


class WorkerState(StrEnum):
    INIT = "INIT"
    REGISTERED = "REGISTERED"
    IDLE = "IDLE"
    RUNNING = "RUNNING"
    RECONNECTING = "RECONNECTING"
    DRAINING = "DRAINING"
    STOPPED = "STOPPED"


EDGES: dict[WorkerState, frozenset[WorkerState]] = {
    WorkerState.INIT: frozenset({WorkerState.REGISTERED, WorkerState.STOPPED}),
    WorkerState.REGISTERED: frozenset({WorkerState.IDLE, WorkerState.RECONNECTING, WorkerState.STOPPED}),
    WorkerState.IDLE: frozenset(
        {WorkerState.RUNNING, WorkerState.DRAINING, WorkerState.RECONNECTING, WorkerState.STOPPED}
    ),
    WorkerState.RUNNING: frozenset(
        {WorkerState.IDLE, WorkerState.RECONNECTING, WorkerState.DRAINING, WorkerState.STOPPED}
    ),
    WorkerState.RECONNECTING: frozenset({WorkerState.REGISTERED, WorkerState.RUNNING, WorkerState.STOPPED}),
    WorkerState.DRAINING: frozenset({WorkerState.STOPPED}),
    WorkerState.STOPPED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A move that is not an edge; the worker stays where it is and reports this."""

    origin: WorkerState
    target: WorkerState

    @property
    def message(self) -> str:
        allowed = ", ".join(sorted(EDGES[self.origin])) or "nothing"
        return f"A worker can't go from {self.origin} to {self.target}; from there it may go to {allowed}."


class WorkerMachine:
    """Where a worker is. `move` takes an edge and answers None, or refuses and says so."""

    def __init__(self, state: WorkerState = WorkerState.INIT) -> None:
        self._state = state

    @property
    def state(self) -> WorkerState:
        return self._state

    def may(self, target: WorkerState) -> bool:
        return target in EDGES[self._state]

    def move(self, target: WorkerState) -> Refusal | None:
        if not self.may(target):
            return Refusal(self._state, target)
        self._state = target
        return None
