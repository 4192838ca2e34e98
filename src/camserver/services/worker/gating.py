"""The gate of one camera: keeps what `media` compares with and what `domain.gate` remembers from look to look.

Its state, without the pictures, is small enough to travel: a camera that moves to another worker, or a worker that
starts again, need not learn what is usual before the camera. It also remembers the last looks, for whoever asks why.
"""

import base64
import binascii
import struct
from collections import deque
from dataclasses import astuple, dataclass, replace

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.gate import GateMemory, GatePolicy, Measured, Reason, Verdict, hear, judge
from camserver.media.change import Gray, Reference
from camserver.media.contrast import Compared, Scene
from camserver.media.watched import Watch
from camserver.wire.worker import LookParams

log = get_logger(__name__)

STATE_MAX_BYTES = 16_000
# Looks that are remembered for explaining.
REMEMBERED_LOOKS = 20
# Version and the memory in the order of its fields; the scene follows.
_HEAD = struct.Struct("<BIIIqq")
_VERSION = 3
# As it was before: version, looks since the last analyzed one.
_HEAD_2 = struct.Struct("<BI")


@dataclass(frozen=True, slots=True)
class Passage:
    """What the gate made of a look."""

    captured_at: int
    verdict: Verdict
    reason: Reason
    measured: Measured
    compared: "CellsSeen | None"  # None with the threshold rule, and when there was nothing to compare with


@dataclass(frozen=True, slots=True)
class CellsSeen:
    """The numbers of the contrast rule beside z_max."""

    row: int  # of the cell that stands out most
    column: int
    spread: float
    has_moved: bool


@dataclass(frozen=True, slots=True)
class Sight:
    """A look with its picture."""

    passage: Passage
    gray: Gray
    compared: Compared | None


class Gate:
    def __init__(self, policy: GatePolicy, params: LookParams, state: str | None = None) -> None:
        """`state` is what `state()` gave earlier, base64 as it travels; one that is not understood is left."""
        self.policy = replace(
            policy,
            force_infer_every_n=params.force_infer_every_n,
            detect_every_n_frames=params.detect_every_n_frames,
        )
        self.watch = Watch(params.ignore_masks, tuple(zone.points for zone in params.zones), params.mask_clock)
        self.reference = Reference(watch=self.watch)
        self.passages: deque[Passage] = deque(maxlen=REMEMBERED_LOOKS)
        self._newest: Sight | None = None
        self._changed: Sight | None = None
        self._memory = GateMemory()
        if state is not None:
            try:
                self._restore(base64.b64decode(state, validate=True))
            except (BadInput, binascii.Error) as error:
                log.warning("state of the gate is not understood: it learns again", cause=str(error))

    @property
    def with_contrast(self) -> bool:
        """Whether the rule needs the contrast's measurements."""
        return self.policy.rule == "contrast"

    @property
    def sight(self) -> Sight | None:
        """The newest look that passed because something changed, else the newest one."""
        return self._changed or self._newest

    def judge(self, measured: Measured, reference: Reference, captured_at: int) -> Verdict:
        """The verdict on a look, which the next one is compared with."""
        verdict, self._memory, reason = judge(measured, captured_at, self._memory, self.policy)
        self.reference = reference
        self._remember(Passage(captured_at, verdict, reason, measured, _seen(reference.compared)), reference)
        return verdict

    def hear(self, captured_at: int, detected: bool) -> None:
        """What the analyzer said about an earlier look."""
        self._memory = hear(self._memory, captured_at, detected, self.policy)

    def state(self) -> bytes | None:
        """What is worth keeping beyond this process; None as long as nothing was learned."""
        if self.reference.scene is None:
            return None
        return _HEAD.pack(_VERSION, *astuple(self._memory)) + self.reference.scene.to_bytes()

    def _restore(self, data: bytes) -> None:
        head = _HEAD_2 if data[:1] == b"\x02" else _HEAD
        if not head.size < len(data) <= STATE_MAX_BYTES or data[0] not in (2, _VERSION):
            raise BadInput(f"a state of {len(data)} bytes is not one of this version")
        _, *memory = head.unpack_from(data)
        self.reference = Reference(scene=Scene.from_bytes(data[head.size :]), watch=self.watch)
        self._memory = GateMemory(*memory)

    def _remember(self, passage: Passage, reference: Reference) -> None:
        self.passages.append(passage)
        if reference.gray is None:
            return
        self._newest = Sight(passage, reference.gray, reference.compared)
        if passage.reason in (Reason.CHANGE, Reason.WHOLE):
            self._changed = self._newest


def _seen(compared: Compared | None) -> CellsSeen | None:
    if compared is None or compared.cell is None:
        return None
    row, column = compared.cell
    return CellsSeen(row, column, compared.spread, compared.has_moved)
