"""The headers of one camera's looks: numbers them and stamps them with both clocks."""

from camserver.base.clock import Clock
from camserver.domain.health import STALLED
from camserver.media.packets import Miss
from camserver.services.worker.darkroom import Full, Print
from camserver.wire.looks import LookHeader
from camserver.wire.worker import Start

TIMEOUT_CODE = "timeout"


class LookHeaders:
    def __init__(self, start: Start, next_seq: int, boot_id: str, clock: Clock) -> None:
        self._start = start
        self._boot_id = boot_id
        self._clock = clock
        self.next_seq = next_seq

    def ok(self, made: Print, full: Full | None, full_bytes: int, boot_ms: int, gate_state: str | None) -> LookHeader:
        """Of a picture taken at `boot_ms`. `full` may have been made without being sent."""
        developed = made.developed
        full_w, full_h = developed.full_size if full is None else full.size
        return LookHeader(
            camera_id=self._start.camera_id,
            generation=self._start.generation,
            seq=self._take_seq(),
            boot_id=self._boot_id,
            boot_ms=boot_ms,
            captured_at=self.now_ms_at(boot_ms),
            sent_boot_ms=self._clock.boot_ms(),
            status="ok",
            verdict=made.verdict.value,
            diff_ratio=developed.measured.diff_ratio,
            luma_delta=developed.measured.luma_delta,
            blur_score=developed.blur_score,
            full_w=full_w,
            full_h=full_h,
            infer_w=developed.infer_size[0],
            infer_h=developed.infer_size[1],
            letterbox=developed.infer_margins.any,
            letterbox_top=developed.infer_margins.top,
            letterbox_left=developed.infer_margins.left,
            letterbox_bottom=developed.infer_margins.bottom,
            letterbox_right=developed.infer_margins.right,
            infer_hash64_hex=developed.infer_hash64_hex,
            structure=None if developed.view is None else developed.view.structure,
            view_hex=None if developed.view is None else developed.view.view_hex,
            gate_state=gate_state,
            infer_bytes=len(developed.infer_jpeg),
            full_bytes=full_bytes,
        )

    def failed(self, miss: Miss, boot_ms: int) -> LookHeader:
        return LookHeader(
            camera_id=self._start.camera_id,
            generation=self._start.generation,
            seq=self._take_seq(),
            boot_id=self._boot_id,
            boot_ms=boot_ms,
            captured_at=self.now_ms_at(boot_ms),
            sent_boot_ms=self._clock.boot_ms(),
            status="timeout" if miss.timed_out else "error",
            error_code=_code(miss),
            error_message=miss.message[:255],
        )

    def now_ms_at(self, boot_ms: int) -> int:
        """What the service's clock called that moment of the boot-time clock."""
        return max(self._clock.now_ms() - (self._clock.boot_ms() - boot_ms), 0)

    def _take_seq(self) -> int:
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        return seq


def _code(miss: Miss) -> str:
    if miss.is_stalled:
        return STALLED
    return TIMEOUT_CODE if miss.timed_out else miss.fault.value
