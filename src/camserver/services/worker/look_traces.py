"""The worker's steps of a look, kept until the server has said what the look is called there.

A trace has the id of its frame, which the acknowledgement names. Until then the moments of a look are kept here, of a
bounded number of looks and in memory only: what a worker that started again finds in its spool is told without them.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from camserver.base import traces
from camserver.base.traces import Step
from camserver.services.worker.spool_files import LookName
from camserver.wire.looks import LookHeader, Recorded

KEPT_MAX: Final = 4_096


@dataclass(slots=True)
class Moments:
    """Of one look, by `traces.now_ns`; 0: not come to."""

    started_ns: int
    caught_ns: int = 0
    judged_ns: int = 0

    def caught(self) -> None:
        self.caught_ns = traces.now_ns()

    def judged(self) -> None:
        self.judged_ns = traces.now_ns()


@dataclass(frozen=True, slots=True)
class _Kept:
    moments: Moments
    kept_ns: int
    intent_id: str
    verdict: str
    status: str


class LookTraces:
    def __init__(self, worker_id: str = "", site: str = "") -> None:
        self._worker_id = worker_id
        self._site = site or None
        self._kept: OrderedDict[tuple[str, int, int], _Kept] = OrderedDict()

    @staticmethod
    def begin() -> Moments:
        return Moments(traces.now_ns())

    def keep(self, header: LookHeader, intent_id: str, moments: Moments) -> None:
        """The look is in the spool."""
        if not traces.is_on():
            return
        key = (header.camera_id, header.generation, header.seq)
        self._kept[key] = _Kept(moments, traces.now_ns(), intent_id, header.verdict, header.status)
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    def recorded(self, name: LookName, answer: Recorded, sent_ns: int, attempts: int) -> None:
        """The server has it: its steps are told, if it is one that is traced."""
        if not traces.is_on():
            return
        kept = self._kept.pop((name.camera_id, name.generation, name.seq), None)
        frame_uuid = answer.frame_uuid
        if not traces.is_traced(frame_uuid):
            return
        ids: dict[str, traces.Value | None] = {
            "worker_id": self._worker_id,
            "site_id": self._site,
            "camera_id": name.camera_id,
            "generation": name.generation,
            "seq": name.seq,
        }
        if kept is not None:
            ids["intent_id"] = kept.intent_id
            moments = kept.moments
            failed = None if kept.status == "ok" else kept.status
            traces.add(Step.LOOK, frame_uuid, moments.started_ns, kept.kept_ns, failed=failed, ids=ids)
            if moments.judged_ns:
                traces.add(
                    Step.GATE, frame_uuid, moments.caught_ns, moments.judged_ns, ids={**ids, "verdict": kept.verdict}
                )
        ids = {**ids, "attempts": attempts + 1, "standing": answer.standing}
        traces.add(Step.SEND, frame_uuid, sent_ns, ids=ids)
