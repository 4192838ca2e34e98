"""One camera: looks when it is due, judges, keeps the look, and reports what became of the camera.

Runs as one task, so looks never overlap; the grid of `domain.looks` keeps them from drifting. Nothing is captured
without a hold that covers the moment of the capture. Every try leaves a look: ok, timeout or error.
"""

import asyncio
import random
import zlib
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.gate import GatePolicy, Verdict
from camserver.domain.leases import Fault, LeasePolicy, after_camera_fault
from camserver.domain.looks import keyframe_wait_ms, next_due_ms
from camserver.media.packets import Miss
from camserver.media.pictures import Developed, Picture, develop
from camserver.media.shots import Shot
from camserver.media.sources import Source
from camserver.services.worker.gating import Gate
from camserver.services.worker.hold import Hold
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.services.worker.waiting import within
from camserver.wire.looks import LookHeader, LookUpload
from camserver.wire.worker import FaultPayload, Kinds, Start

log = get_logger(__name__)

TIMEOUT_CODE = "timeout"


@dataclass(slots=True)
class LookCounts:
    """Counted over all cameras, for the heartbeat's metrics."""

    ok: int = 0
    failed: int = 0
    given_up: int = 0  # grabbed, but the hold had run out by then


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every camera of a worker gets."""

    clock: Clock
    boot_id: str
    spool: Spool
    reports: Reports
    pictures: Executor  # threads for picture work
    gate: GatePolicy
    leases: LeasePolicy
    counts: LookCounts
    jitter: Callable[[], float] = random.random


class Camera:
    def __init__(self, start: Start, source: Source, hold: Hold, given: Surroundings) -> None:
        self.start = start
        self._params = start.params
        self._source = source
        self._hold = hold
        self._given = given
        self._clock = given.clock
        self._gate = Gate(given.gate, start.params, start.gate_state)
        self._interval_ms = max(round(start.params.polling_interval_sec * 1000), 1)
        self._next_seq = max(start.next_seq, given.spool.highest_seq(start.camera_id, start.generation) + 1)
        self._failures = start.failures
        self._auth_failures = start.auth_failures
        self._next_attempt_at = start.next_attempt_at or 0
        self._due_ms = 0  # the first look is due at once: it shows that the camera is going
        self._reported_ready = False

    @property
    def is_going(self) -> bool:
        """Whether its last look was good."""
        return self._reported_ready

    async def run(self) -> None:
        """Looks until cancelled."""
        log.info("pipeline_boot", source=self.start.source.type, next_seq=self._next_seq)
        try:
            if self._params.do_not_process:
                # Not even opened: nothing of such a camera is captured, kept or sent.
                self.report_ready()
                await asyncio.Event().wait()
            while True:
                await self._hold.until_covered()
                if await self._hold.sleep_until(self._due_boot_ms()):
                    await self._look()
                    self._due_ms = self._next_due_ms()
                elif not self._hold.is_covered:
                    log.warning("lease ran out: no look until it is renewed")
                    await self._source.close()
        finally:
            await self._source.close()

    def report_ready(self) -> None:
        """Tells that the camera is going; telling it again does no harm."""
        self._reported_ready = True
        start = self.start
        log.info("pipeline_ready", camera_id=start.camera_id, generation=start.generation)
        self._given.reports.add(Kinds.PIPELINE_READY, start.camera_id, start.generation)

    def hear(self, captured_at: int, detected: bool) -> None:
        """What the analyzer said about an earlier look."""
        self._gate.hear(captured_at, detected)

    def _due_boot_ms(self) -> int:
        """When to look next, by the clock that never jumps: a correction of the other must not make it wait."""
        pause_ms = max(self._due_ms, self._next_attempt_at) - self._clock.now_ms()
        return self._clock.boot_ms() + max(pause_ms, 0)

    def _next_due_ms(self) -> int:
        """The next moment of the camera's grid.

        A correction of the clock by a few milliseconds backwards must not bring the same moment again, a large
        one must not stop the camera until that time has come.
        """
        now_ms = self._clock.now_ms()
        after_ms = self._due_ms if 0 < self._due_ms - now_ms < self._interval_ms else now_ms
        # The worker knows no camera_key; any number that is always the same for a camera spreads as well.
        return next_due_ms(zlib.crc32(self.start.camera_id.encode()), self._interval_ms, after_ms)

    async def _look(self) -> None:
        try:
            await self._try_look()
        except Exception:
            # One camera's trouble must not take the others down; it is counted against this worker.
            log.exception("look crashed")
            self._back_off(Miss(Fault.CRASH, "the look crashed; the worker's log says where"))

    async def _try_look(self) -> None:
        caught = await self._grab()
        now_boot_ms = self._clock.boot_ms()
        if not self._hold.covers(now_boot_ms):
            # The process or its machine stood still, or the camera took its time. Somebody else may hold the
            # camera by now, so this is nobody's look.
            self._given.counts.given_up += 1
            log.warning("look given up: the lease ran out while it was made")
        elif isinstance(caught, Miss):
            await self._fail(caught, now_boot_ms)
        else:
            await self._succeed(caught, now_boot_ms if caught.boot_ms is None else caught.boot_ms)

    async def _grab(self) -> Shot | Miss:
        """What the source gave, or that it gave nothing in time."""
        wait_ms = keyframe_wait_ms(self._source.learned_gop_ms)
        timeout_sec = self._params.connect_timeout_sec + wait_ms / 1000
        try:
            return await within(self._clock, timeout_sec, self._source.grab())
        except TimeoutError:
            return Miss(Fault.NO_VIDEO, f"no picture within {timeout_sec:g} s", timed_out=True)
        except Exception as error:
            log.exception("source crashed")
            return Miss(Fault.CRASH, f"the source crashed: {type(error).__name__}")

    async def _succeed(self, shot: Shot, boot_ms: int) -> None:
        """Keeps a look of the moment `boot_ms`, which is the picture's own."""
        threads, loop = self._given.pictures, asyncio.get_running_loop()
        try:
            picture, developed = await loop.run_in_executor(threads, self._develop, shot)
        except BadInput as error:
            await self._fail(Miss(Fault.NO_VIDEO, error.message), boot_ms)
            return
        verdict = self._gate.judge(developed.measured, developed.reference, self._now_ms_at(boot_ms))
        full = b""
        if verdict is not Verdict.SKIP:
            full = await loop.run_in_executor(threads, picture.full)
        header = self._ok_header(developed, verdict, boot_ms, len(full))
        await self._given.spool.add(LookUpload(header, developed.infer_jpeg, full))
        self._given.counts.ok += 1
        self._failures = self._auth_failures = self._next_attempt_at = 0
        if not self._reported_ready:
            self.report_ready()

    def _develop(self, shot: Shot) -> tuple[Picture, Developed]:
        """Picture work, in a thread."""
        params, gate = self._params, self._gate
        picture = shot.decode(max(params.infer_width, params.diff_width))
        developed = develop(
            picture,
            infer_width=params.infer_width,
            diff_width=params.diff_width,
            before=gate.reference,
            pixel_delta=gate.policy.pixel_delta,
            with_contrast=gate.with_contrast,
        )
        return picture, developed

    def _ok_header(self, made: Developed, verdict: Verdict, boot_ms: int, full_bytes: int) -> LookHeader:
        return LookHeader(
            camera_id=self.start.camera_id,
            generation=self.start.generation,
            seq=self._take_seq(),
            boot_id=self._given.boot_id,
            boot_ms=boot_ms,
            captured_at=self._now_ms_at(boot_ms),
            sent_boot_ms=self._clock.boot_ms(),
            status="ok",
            verdict=verdict.value,
            diff_ratio=made.measured.diff_ratio,
            luma_delta=made.measured.luma_delta,
            blur_score=made.blur_score,
            full_w=made.full_size[0],
            full_h=made.full_size[1],
            infer_w=made.infer_size[0],
            infer_h=made.infer_size[1],
            letterbox=made.infer_margins.any,
            letterbox_top=made.infer_margins.top,
            letterbox_left=made.infer_margins.left,
            letterbox_bottom=made.infer_margins.bottom,
            letterbox_right=made.infer_margins.right,
            infer_hash64_hex=made.infer_hash64_hex,
            infer_bytes=len(made.infer_jpeg),
            full_bytes=full_bytes,
        )

    async def _fail(self, miss: Miss, boot_ms: int) -> None:
        """Leaves the failed look and the camera's back-off."""
        header = LookHeader(
            camera_id=self.start.camera_id,
            generation=self.start.generation,
            seq=self._take_seq(),
            boot_id=self._given.boot_id,
            boot_ms=boot_ms,
            captured_at=self._now_ms_at(boot_ms),
            sent_boot_ms=self._clock.boot_ms(),
            status="timeout" if miss.timed_out else "error",
            error_code=TIMEOUT_CODE if miss.timed_out else miss.fault.value,
            error_message=miss.message[:255],
        )
        self._given.counts.failed += 1
        await self._given.spool.add(LookUpload(header, b"", b""))
        self._back_off(miss)

    def _back_off(self, miss: Miss) -> None:
        after = after_camera_fault(
            miss.fault,
            self._failures,
            self._auth_failures,
            self._clock.now_ms(),
            self._given.leases,
            self._given.jitter(),
        )
        self._failures, self._auth_failures = after.failures, after.auth_failures
        self._next_attempt_at = after.next_attempt_at
        self._reported_ready = False
        kind = Kinds.PIPELINE_ERROR if after.reports_error else Kinds.CAMERA_FAULT
        log.warning(
            kind,
            fault=miss.fault.value,
            failures=after.failures,
            next_attempt_at=after.next_attempt_at,
            cause=miss.message,
        )
        payload = FaultPayload(
            fault=miss.fault,
            failures=after.failures,
            auth_failures=after.auth_failures,
            next_attempt_at=after.next_attempt_at,
            credential_version=self.start.credential_version,
            message=miss.message[:255],
        )
        self._given.reports.add(kind, self.start.camera_id, self.start.generation, **payload.model_dump(mode="json"))

    def _take_seq(self) -> int:
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        return seq

    def _now_ms_at(self, boot_ms: int) -> int:
        """What the service's clock called that moment of the boot-time clock."""
        return max(self._clock.now_ms() - (self._clock.boot_ms() - boot_ms), 0)
