from camserver.domain.workers import WorkerState
from camserver.services.worker.reports import Reports
from camserver.services.worker.states import States
from tests.services.worker.build import FollowingClock, reported


def made(clock: FollowingClock) -> tuple[States, Reports]:
    reports = Reports(clock)
    return States(reports), reports


def is_now(states: States) -> WorkerState:
    return states.state


def test_a_working_life_needs_no_refusal(moved: FollowingClock) -> None:
    states, reports = made(moved)
    states.disconnected()
    assert is_now(states) is WorkerState.INIT  # it never got in
    states.registered(0)
    assert is_now(states) is WorkerState.IDLE
    states.follow(2)
    assert is_now(states) is WorkerState.RUNNING
    states.disconnected()
    states.disconnected()
    assert is_now(states) is WorkerState.RECONNECTING
    states.follow(0)
    assert is_now(states) is WorkerState.RECONNECTING
    states.registered(2)
    assert is_now(states) is WorkerState.RUNNING
    states.disconnected()
    states.registered(0)
    assert is_now(states) is WorkerState.IDLE
    states.move(WorkerState.DRAINING)
    states.disconnected()
    states.registered(0)
    states.follow(1)
    assert is_now(states) is WorkerState.DRAINING  # it came back to flush and takes nothing new
    states.move(WorkerState.STOPPED)
    assert reported(reports) == []


def test_refused_move_is_reported_and_changes_nothing(moved: FollowingClock) -> None:
    states, reports = made(moved)
    assert not states.move(WorkerState.RUNNING)
    assert states.state is WorkerState.INIT
    (report,) = reported(reports)
    assert report.event_type == "fsm_refused"
    assert report.payload["origin"] == "INIT"
    assert report.payload["target"] == "RUNNING"
