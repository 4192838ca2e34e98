"""Looks coming in: checked, their pictures made durable, recorded, and only then acknowledged (decisions 11–13)."""

import asyncio
import base64
from dataclasses import dataclass, replace
from typing import Literal

import uuid_utils

from camserver.base import figures, traces
from camserver.base.clock import Clock
from camserver.base.errors import CamError, EpochEnded, Unavailable
from camserver.base.log import get_logger
from camserver.base.traces import Step
from camserver.domain.leases import FrameStanding
from camserver.domain.uploads import captured_at_by_age, settled_captured_at
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import Objects
from camserver.services.control.epoch import Epoch
from camserver.services.control.guard import Sender
from camserver.services.control.recorder import Recorder
from camserver.services.control.senders import Key, Senders
from camserver.store import Store
from camserver.store.frames import Look, find_recorded
from camserver.store.frames import Recorded as Row
from camserver.store.workers import Uploader
from camserver.wire.looks import GATE_STATE_MAX_BYTES, LookAnswer, LookHeader, LookRefused, LookUpload, Recorded

log = get_logger(__name__)

# An epoch ends when this process was thought dead; twice in one upload means that something is wrong with time.
EPOCH_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Uploads:
    store: Store
    objects: Objects
    clock: Clock
    epoch: Epoch
    recorder: Recorder
    senders: Senders
    default_priority: int

    async def take(self, sender: Sender, upload: LookUpload, received_at: int) -> LookAnswer:
        """Records a look. Whatever is raised, nothing was acknowledged and the worker sends it again."""
        started_ns = traces.now_ns()
        header = upload.header
        lease = (sender.tenant_id, sender.worker_id, header.camera_id, header.generation)
        answer = await self._take(lease, upload, received_at)
        if isinstance(answer, LookRefused) and self.senders.forget(*lease):
            # A refusal is for good, so it is never given on the strength of what was remembered.
            answer = await self._take(lease, upload, received_at)
        if isinstance(answer, LookRefused):
            log.warning(
                "look_refused",
                camera_id=header.camera_id,
                generation=header.generation,
                seq=header.seq,
                cause=answer.reason,
            )
        elif not answer.repeat:
            _trace(sender, header, answer, started_ns)
        return answer

    async def _take(self, lease: Key, upload: LookUpload, received_at: int) -> LookAnswer:
        header = upload.header
        sender = await self.senders.find(*lease)
        if sender.camera_key is None or sender.site_id is None:
            return self._refused(f"there is no camera {header.camera_id}")
        if not sender.is_holder:
            return self._refused(f"generation {header.generation} of {header.camera_id} was never this worker's")
        if self.senders.may_be_known(*lease, header.seq):
            known = await self.store.read(find_recorded, sender.camera_key, header.generation, header.seq)
            if known is not None:
                return self._answer(known)
        look = self._look(sender, sender.camera_key, sender.site_id, header, received_at)
        recorded = await self._store_and_record(look, upload)
        if recorded.standing is not FrameStanding.REFUSED:
            self.senders.recorded(*lease, header.seq)
        return self._answer(recorded)

    async def _store_and_record(self, look: Look, upload: LookUpload) -> Row:
        for _ in range(EPOCH_ATTEMPTS):
            epoch_id = self.epoch.current
            placed = _placed(look, epoch_id if upload.infer or upload.full else None)
            keys = await self._put(placed, upload)
            try:
                recorded = await self.recorder.record(placed)
            except EpochEnded:
                await self.epoch.replace(epoch_id)
                continue
            if recorded.frame_uuid != look.frame_uuid or recorded.standing is FrameStanding.REFUSED:
                await self._drop(keys)
            return recorded
        raise Unavailable("the server's epoch was ended again and again while a look was stored; try again")

    async def _put(self, look: Look, upload: LookUpload) -> list[str]:
        if look.epoch_id is None:
            return []
        pictures = [
            (_key(look, look.epoch_id, kind), data)
            for kind, data in ((Kind.INFER, upload.infer), (Kind.FULL, upload.full))
            if data
        ]
        await asyncio.gather(*(self.objects.put(key, data) for key, data in pictures))
        return [key for key, _ in pictures]

    async def _drop(self, keys: list[str]) -> None:
        """The row is another one's, or there is none: these objects would only wait for the sweep."""
        for key in keys:
            try:
                await self.objects.delete(key)
            except (CamError, OSError) as error:
                log.warning("an object without a row is left to the sweep", key=key, cause=str(error))

    def _look(self, sender: Uploader, camera_key: int, site_id: int, header: LookHeader, received_at: int) -> Look:
        captured_at = header.captured_at
        if header.boot_id == sender.boot_id:
            captured_at = captured_at_by_age(header.boot_ms, header.sent_boot_ms, received_at, header.captured_at)
        return Look(
            worker_key=sender.worker_key,
            tenant_id=sender.tenant_id,
            site_id=site_id,
            camera_key=camera_key,
            generation=header.generation,
            seq=header.seq,
            frame_uuid=str(uuid_utils.uuid7()),
            captured_at=settled_captured_at(captured_at, received_at),
            worker_at=header.captured_at,
            received_at=received_at,
            collector_status=header.status,
            verdict=header.verdict,
            priority=self.default_priority if sender.job_priority is None else sender.job_priority,
            error_code=header.error_code,
            error_message=header.error_message,
            diff_ratio=header.diff_ratio,
            luma_delta=header.luma_delta,
            blur_score=header.blur_score,
            full_w=header.full_w,
            full_h=header.full_h,
            infer_w=header.infer_w,
            infer_h=header.infer_h,
            letterbox=int(header.letterbox),
            letterbox_top=header.letterbox_top,
            letterbox_left=header.letterbox_left,
            letterbox_bottom=header.letterbox_bottom,
            letterbox_right=header.letterbox_right,
            infer_hash64_hex=header.infer_hash64_hex,
            structure=header.structure,
            view_hex=header.view_hex,
            gate_state=_gate_state(header),
            infer_bytes=header.infer_bytes or None,
            full_bytes=header.full_bytes or None,
        )

    def _answer(self, recorded: Row) -> LookAnswer:
        if recorded.standing is FrameStanding.REFUSED:
            return self._refused(recorded.reason)
        standing: Literal["live", "late"] = "live" if recorded.standing is FrameStanding.LIVE else "late"
        if not recorded.repeat:
            figures.frames_recorded.labels(standing).inc()
        return Recorded(
            standing=standing,
            frame_uuid=recorded.frame_uuid,
            repeat=recorded.repeat,
            server_time=self.clock.now_ms(),
        )

    def _refused(self, reason: str) -> LookRefused:
        return LookRefused(reason=reason[:255], server_time=self.clock.now_ms())


def _trace(sender: Sender, header: LookHeader, answer: Recorded, started_ns: int) -> None:
    traces.add(
        Step.RECORD,
        answer.frame_uuid,
        started_ns,
        ids={
            "tenant_id": sender.tenant_id,
            "worker_id": sender.worker_id,
            "camera_id": header.camera_id,
            "generation": header.generation,
            "seq": header.seq,
            "standing": answer.standing,
            "verdict": header.verdict,
        },
    )


def _gate_state(header: LookHeader) -> bytes | None:
    """The look counts also when its gate's state is unusable: that is only a head start for another worker."""
    if header.gate_state is None:
        return None
    try:
        state = base64.b64decode(header.gate_state, validate=True)
    except ValueError:
        state = b""
    if 0 < len(state) <= GATE_STATE_MAX_BYTES:
        return state
    log.warning("gate state not kept", camera_id=header.camera_id, size_bytes=len(state))
    return None


def _key(look: Look, epoch_id: int, kind: Kind) -> str:
    return frame_key(epoch_id, look.tenant_id, look.camera_key, look.captured_at, look.frame_uuid, kind)


def _placed(look: Look, epoch_id: int | None) -> Look:
    return replace(look, epoch_id=epoch_id)
