"""The gate of one camera: keeps what `media` compares with and what `domain.gate` remembers from look to look.

Its state, without the pictures, is small enough to travel: a camera that moves to another worker, or a worker that
starts again, need not learn what is usual before the camera.
"""

import base64
import binascii
import struct
from dataclasses import replace

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.gate import GateMemory, GatePolicy, Measured, Verdict, hear, judge
from camserver.media.change import Reference
from camserver.media.contrast import Noise, Scene
from camserver.wire.worker import LookParams

log = get_logger(__name__)

STATE_MAX_BYTES = 16_000
# Version, looks since the last analyzed one; the noise follows.
_HEAD = struct.Struct("<BI")
_VERSION = 1


class Gate:
    def __init__(self, policy: GatePolicy, params: LookParams, state: str | None = None) -> None:
        """`state` is what `state()` gave earlier, base64 as it travels; one that is not understood is left."""
        self.policy = replace(
            policy,
            force_infer_every_n=params.force_infer_every_n,
            detect_every_n_frames=params.detect_every_n_frames,
        )
        self.reference = Reference()
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

    def judge(self, measured: Measured, reference: Reference, captured_at: int) -> Verdict:
        """The verdict on a look, which the next one is compared with."""
        verdict, self._memory = judge(measured, captured_at, self._memory, self.policy)
        self.reference = reference
        return verdict

    def hear(self, captured_at: int, detected: bool) -> None:
        """What the analyzer said about an earlier look."""
        self._memory = hear(self._memory, captured_at, detected, self.policy)

    def state(self) -> bytes | None:
        """What is worth keeping beyond this process; None as long as nothing was learned."""
        if self.reference.scene is None:
            return None
        return _HEAD.pack(_VERSION, self._memory.since_analyzed) + self.reference.scene.noise.to_bytes()

    def _restore(self, data: bytes) -> None:
        if not _HEAD.size < len(data) <= STATE_MAX_BYTES or data[0] != _VERSION:
            raise BadInput(f"a state of {len(data)} bytes is not one of this version")
        _, since_analyzed = _HEAD.unpack_from(data)
        self.reference = Reference(scene=Scene(Noise.from_bytes(data[_HEAD.size :])))
        self._memory = GateMemory(since_analyzed=since_analyzed)
