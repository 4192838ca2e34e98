import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.workers import WorkerMachine, WorkerState

# Decision 39, word for word.
DECIDED = """
INIT → REGISTERED|STOPPED; REGISTERED → IDLE|RECONNECTING|STOPPED; IDLE → RUNNING|DRAINING|RECONNECTING|STOPPED;
RUNNING → IDLE|RECONNECTING|DRAINING|STOPPED; RECONNECTING → REGISTERED|RUNNING|STOPPED; DRAINING → STOPPED
"""
EDGES = {
    (WorkerState(origin.strip()), WorkerState(target.strip()))
    for line in DECIDED.split(";")
    for origin, targets in [line.split("→")]
    for target in targets.split("|")
}


@pytest.mark.parametrize(("origin", "target"), list(itertools.product(WorkerState, WorkerState)))
def test_exactly_the_decided_edges_are_taken(origin: WorkerState, target: WorkerState) -> None:
    machine = WorkerMachine(origin)
    refusal = machine.move(target)
    if (origin, target) in EDGES:
        assert refusal is None
        assert machine.state is target
    else:
        assert refusal is not None
        assert (refusal.origin, refusal.target) == (origin, target)
        assert origin.value in refusal.message
        assert target.value in refusal.message
        assert machine.state is origin


def test_a_worker_begins_at_init() -> None:
    assert WorkerMachine().state is WorkerState.INIT


@given(st.lists(st.sampled_from(WorkerState), max_size=50))
def test_once_stopped_it_stays_stopped_and_draining_only_stops(moves: list[WorkerState]) -> None:
    machine = WorkerMachine()
    visited = [machine.state]
    for target in moves:
        machine.move(target)
        visited.append(machine.state)
    for before, after in itertools.pairwise(visited):
        assert before is after or (before, after) in EDGES
        if before is WorkerState.STOPPED:
            assert after is WorkerState.STOPPED
        if before is WorkerState.DRAINING:
            assert after in (WorkerState.DRAINING, WorkerState.STOPPED)
