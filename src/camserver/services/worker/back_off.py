"""How long a camera that failed is left alone, and what the server is told about it.

The counts come with START and go back with every report, so that a camera that moves to another worker keeps its
pauses, and no account is locked out by moving it about (decision 37).
"""

from camserver.base.log import get_logger
from camserver.domain.leases import Fault, after_camera_fault
from camserver.media.packets import Miss
from camserver.services.worker.surroundings import Surroundings
from camserver.wire.worker import FaultPayload, Kinds, Start

log = get_logger(__name__)


class BackOff:
    """Of one camera."""

    def __init__(self, start: Start, given: Surroundings) -> None:
        self._start = start
        self._given = given
        self._failures = start.failures
        self._auth_failures = start.auth_failures
        self.next_attempt_at = start.next_attempt_at or 0  # 0: nothing is known to be wrong

    @property
    def is_locked_out(self) -> bool:
        """Whether another try could do harm: the password was refused a short while ago."""
        return self._auth_failures > 0 and self._given.clock.now_ms() < self.next_attempt_at

    def worked(self) -> None:
        self._failures = self._auth_failures = self.next_attempt_at = 0

    def carried(self) -> dict[str, int | None]:
        """What whoever goes on with the camera must know, as START has it."""
        return {
            "failures": self._failures,
            "auth_failures": self._auth_failures,
            "next_attempt_at": self.next_attempt_at or None,
        }

    def failed(self, miss: Miss) -> None:
        """Counts a failure, settles when the next try is, and reports both."""
        now_ms = self._given.clock.now_ms()
        after = after_camera_fault(
            miss.fault, self._failures, self._auth_failures, now_ms, self._given.leases, self._given.jitter()
        )
        self._failures, self._auth_failures = after.failures, after.auth_failures
        self.next_attempt_at = after.next_attempt_at
        message = miss.message
        if miss.fault is Fault.UNAUTHORIZED:
            pause_min = max(round((after.next_attempt_at - now_ms) / 60_000), 1)
            message = f"{message}; not tried again for {pause_min} min, lest the camera lock the account"
        kind = Kinds.PIPELINE_ERROR if after.reports_error else Kinds.CAMERA_FAULT
        log.warning(
            kind,
            fault=miss.fault.value,
            failures=after.failures,
            next_attempt_at=after.next_attempt_at,
            cause=message,
        )
        payload = FaultPayload(
            fault=miss.fault,
            failures=after.failures,
            auth_failures=after.auth_failures,
            next_attempt_at=after.next_attempt_at,
            credential_version=self._start.credential_version,
            message=message[:255],
            intent_id=self._start.intent_id,
        )
        start = self._start
        self._given.reports.add(kind, start.camera_id, start.generation, **payload.model_dump(mode="json"))
