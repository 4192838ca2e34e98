"""The worker's state machine (domain.workers) at work: moves it, and reports each move that is refused."""

from camserver.base.log import get_logger
from camserver.domain.workers import WorkerMachine, WorkerState
from camserver.services.worker.reports import Reports
from camserver.wire.worker import Kinds

log = get_logger(__name__)


class States:
    def __init__(self, reports: Reports) -> None:
        self._machine = WorkerMachine()
        self._reports = reports

    @property
    def state(self) -> WorkerState:
        return self._machine.state

    def move(self, target: WorkerState) -> bool:
        """Takes the edge. A move that is none is refused and reported, and the worker stays where it is."""
        origin = self._machine.state
        refusal = self._machine.move(target)
        if refusal is None:
            log.info("worker state", origin=origin.value, target=target.value)
            return True
        log.warning("worker state refused", origin=origin.value, target=target.value, cause=refusal.message)
        self._reports.add(Kinds.FSM_REFUSED, origin=origin.value, target=target.value, message=refusal.message)
        return False

    def registered(self, cameras: int) -> None:
        """The server answered REGISTER, and so many cameras are still held."""
        if self.state is WorkerState.DRAINING:
            return  # it only came back to flush
        if self.state is WorkerState.RECONNECTING and cameras:
            self.move(WorkerState.RUNNING)
        elif self.move(WorkerState.REGISTERED):
            self.move(WorkerState.IDLE)
            self.follow(cameras)

    def disconnected(self) -> None:
        """The socket is gone. A worker that never got in, or is on its way out, has nothing to come back to."""
        if self.state in (WorkerState.REGISTERED, WorkerState.IDLE, WorkerState.RUNNING):
            self.move(WorkerState.RECONNECTING)

    def follow(self, cameras: int) -> None:
        """RUNNING means at least one camera."""
        if self.state is WorkerState.RUNNING and not cameras:
            self.move(WorkerState.IDLE)
        elif self.state is WorkerState.IDLE and cameras:
            self.move(WorkerState.RUNNING)
