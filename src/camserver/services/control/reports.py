"""What a worker's reports (EVENT) change. Those that change nothing are logged, for people to read."""

import base64
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.leases import LeasePolicy
from camserver.services.control.connections import Connections
from camserver.services.control.entries import Entries
from camserver.store import Store
from camserver.store.leases import Claim, release
from camserver.store.starts import FaultCounts, camera_fault
from camserver.store.worker_news import MESSAGE_MAX_CHARS, stream_back, stream_failed
from camserver.store.workers import Registered
from camserver.wire.looks import GATE_STATE_MAX_BYTES
from camserver.wire.worker import Kinds, Report, parse_fault

log = get_logger(__name__)

# In the payload of pipeline_stopped; too long for a log.
GATE_STATE = "gate_state"
INTENT_ID = "intent_id"
NOT_SHOWN = frozenset({GATE_STATE, INTENT_ID})


@dataclass(frozen=True, slots=True)
class Reports:
    store: Store
    clock: Clock
    connections: Connections
    entries: Entries
    policy: LeasePolicy

    async def take(self, worker: Registered, report: Report) -> None:
        """Applies a report; repeating it changes nothing further."""
        held = True
        if report.camera_id is not None and report.generation is not None:
            claim = Claim(worker.tenant_id, worker.worker_key, report.camera_id, report.generation)
            held = await self._apply(claim, report)
        expected = (Kinds.PIPELINE_READY, Kinds.PIPELINE_STOPPED, Kinds.STREAM_READY)
        level = log.info if report.event_type in expected else log.warning
        level(
            report.event_type,
            camera_id=report.camera_id,
            generation=report.generation,
            intent_id=_intent_id(report),
            seq=report.seq,
            payload={name: value for name, value in report.payload.items() if name not in NOT_SHOWN},
            # False: it came from a generation that is over and changed nothing.
            is_holder=held,
        )

    async def _apply(self, claim: Claim, report: Report) -> bool:
        now_ms = self.clock.now_ms()
        match report.event_type:
            case Kinds.PIPELINE_READY:
                return await self.entries.ready(claim)
            case Kinds.PIPELINE_STOPPED:
                held = await self.store.write(release, claim, "stopped", now_ms, _gate_state(report))
                self.connections.wake.set()
                return held
            case Kinds.CAMERA_FAULT | Kinds.PIPELINE_ERROR:
                fault = parse_fault(report.payload)
                counts = FaultCounts(fault.fault, fault.failures, fault.auth_failures, fault.next_attempt_at)
                return await self.store.write(camera_fault, claim, counts, fault.message, self.policy, now_ms)
            case Kinds.STREAM_FAULT:
                stream, why = _text(report, "stream", 16), _text(report, "fault", 32)
                message = _text(report, "message", MESSAGE_MAX_CHARS)
                return await self.store.write(stream_failed, claim, stream, why, message, now_ms)
            case Kinds.STREAM_READY:
                return await self.store.write(stream_back, claim, _text(report, "stream", 16), now_ms)
        return True


def _intent_id(report: Report) -> str | None:
    """The START that the report follows from, as the worker says: for those who read the log, and nothing else."""
    said = report.payload.get(INTENT_ID)
    return said[:36] if isinstance(said, str) and said else None


def _text(report: Report, name: str, chars_max: int) -> str:
    value = report.payload.get(name)
    return value[:chars_max] if isinstance(value, str) else ""


def _gate_state(report: Report) -> bytes | None:
    """What the camera's gate had learned, if it is usable: it is only a head start for the next holder."""
    text = report.payload.get(GATE_STATE)
    try:
        state = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        state = b""
    return state if 0 < len(state) <= GATE_STATE_MAX_BYTES else None
