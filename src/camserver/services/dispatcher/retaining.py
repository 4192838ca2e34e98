"""Deletes what is past its time, and the oldest ordinary media when room is short (decisions 7, 20, 27, 28).

One dispatcher does it at a time; two at once would only share the work. What goes is decided by domain/keeping.py,
twice: here over a page that was read, and in the transaction that deletes (store/retention.py). A round goes over all
cameras, some pages at a time with pauses between; free space is looked at far more often. Whatever was deleted is
logged and reported to people.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.domain.audit import SealKey
from camserver.domain.duties import RENEW_EVERY_MS
from camserver.domain.keeping import (
    DAY_MS,
    THIN_AFTER_MS,
    Fate,
    KeptFrame,
    Why,
    beyond_bytes,
    clip_is_over,
    clip_may_go,
    event_is_over,
    frame_fate,
    freed_bytes,
    short_bytes,
    thin_out,
)
from camserver.domain.people import Principal, Role
from camserver.domain.retention import RetentionPolicy
from camserver.domain.tenants import kept_bytes_max
from camserver.objects.interface import Objects
from camserver.services.dispatcher.erasing import Eraser
from camserver.services.dispatcher.pruning import Tally, prune_records
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, case_items, duties, garbage, look_pauses, retention, tenant_quotas, upkeep
from camserver.store.retention import Place, Swept
from camserver.store.upkeep import CameraRef

log = get_logger(__name__)

DUTY = "retention"
EVERY_MS = 10_000
# Between two transactions, so that a long round leaves the database to others.
PAUSE_SEC = 0.02
# Everything is looked at anew so often; in between, a round goes on where the one before ended.
WHOLE_EVERY_MS = DAY_MS
# Oldest first over all cameras, by slices of this length.
SLICE_MS = 6 * 3_600_000
GARBAGE_ROUNDS_MAX = 200
# How often people are told that there is nothing left to give.
NOTHING_LEFT_EVERY_MS = 3_600_000


@dataclass(slots=True)
class _Progress:
    """How far a camera's sweeps came."""

    aged: Place = field(default_factory=Place)
    thinned: Place = field(default_factory=Place)
    quiet_at: int | None = None


@dataclass(slots=True)
class Retainer:
    store: Store
    objects: Objects
    clock: Clock
    policy: RetentionPolicy
    owner: str
    key: SealKey  # signs what goes of the audit log
    pause_sec: float = PAUSE_SEC
    _token: str = field(default_factory=lambda: str(uuid.uuid4()))
    _progress: dict[int, _Progress] = field(default_factory=dict)
    _whole_due_at: int = 0
    _nothing_left_at: int = 0
    _renew_due_boot_ms: int = 0

    async def run(self) -> None:
        """Until cancelled; then the duty is given back, so that nobody waits for it to run out."""
        try:
            await take_turns(self.clock, EVERY_MS, "retention", self.turn)
        finally:
            try:
                await self.store.write(duties.release, DUTY, self._token)
            except Retry as error:
                log.warning("retention_duty_not_given_back", why=error.message)

    async def turn(self) -> None:
        if not await self._on_duty():
            return
        await self.settle_cases()
        await self.keep_floor()
        await Eraser(self.store, self.clock, self._pause).turn()
        now_ms = self.clock.now_ms()
        ended_at = await self.store.read(upkeep.round_ended_at)
        wanted_at = await self.store.read(upkeep.round_wanted_at)
        if wanted_at > ended_at or now_ms >= ended_at + self.policy.sweep_minutes * 60_000:
            await self.round()

    async def _on_duty(self) -> bool:
        self._renew_due_boot_ms = self.clock.boot_ms() + RENEW_EVERY_MS
        if await self._take_duty():
            return True
        # A hold that ran out is not taken up again under its old token: somebody else may have been on duty since.
        self._token = str(uuid.uuid4())
        self._progress.clear()
        return await self._take_duty()

    async def _take_duty(self) -> bool:
        held = await self.store.write(duties.take, DUTY, self.owner, self._token, self.clock.now_ms())
        return held is not None

    async def _pause(self) -> None:
        """Leaves the database to others, and keeps the duty meanwhile: a camera may take long."""
        await self.clock.sleep(self.pause_sec)
        if self.clock.boot_ms() >= self._renew_due_boot_ms:
            await self._on_duty()

    # -----------------------------------------------------------------------------------------------------------

    async def round(self) -> None:
        """Goes over everything once."""
        tally = Tally()
        started_ms = self.clock.now_ms()
        if started_ms >= self._whole_due_at:
            self._progress.clear()
            self._whole_due_at = started_ms + WHOLE_EVERY_MS
        cameras = await self._cameras()
        taken: dict[int, int] = {}
        try:
            for camera in cameras:
                if not await self._on_duty():
                    return
                used_bytes = 0
                with self._apart(camera, tally):
                    used_bytes = await self.sweep_camera(camera, tally)
                taken[camera.tenant_id] = taken.get(camera.tenant_id, 0) + used_bytes
            quotas = await self.store.read(tenant_quotas.kept_bytes)
            for tenant_id, used_bytes in taken.items():
                most = kept_bytes_max(self.policy.tenant_max_bytes, quotas.get(tenant_id))
                need = beyond_bytes(used_bytes, most)
                if need:
                    own = [camera for camera in cameras if camera.tenant_id == tenant_id]
                    await self._give(own, need, Why.TENANT_QUOTA, tally)
            await prune_records(self.store, self.policy, self.key, self.clock.now_ms(), tally, self._pause)
            await self.store.write(upkeep.note_round, self.clock.now_ms())
        finally:
            await self._tell(tally)
        await self._unlink_garbage()

    @contextmanager
    def _apart(self, camera: CameraRef, tally: Tally) -> Iterator[None]:
        """What is wrong with one camera's evidence is reported, and keeps no other's from being swept."""
        try:
            yield
        except Retry:
            raise
        except Exception as error:
            log.exception("retention_camera_failed", camera_key=camera.camera_key, tenant_id=camera.tenant_id)
            tally.failed(camera.tenant_id, f"camera {camera.camera_key}: {type(error).__name__}: {error}")
            go_on_unless_cancelled()

    async def _cameras(self) -> list[CameraRef]:
        found: list[CameraRef] = []
        while page := await self.store.read(upkeep.cameras, found[-1].camera_key if found else 0):
            found += page
        return found

    async def sweep_camera(self, camera: CameraRef, tally: Tally) -> int:
        """All that time and the camera's quota do to what it left; how many bytes it takes afterwards."""
        now_ms = self.clock.now_ms()
        tenant_id, policy = camera.tenant_id, self.policy
        tally.add(tenant_id, "events", Why.AGE, await self._age_events(camera, now_ms))
        tally.add(tenant_id, "clips", Why.AGE, await self._sweep_clips(camera, Why.AGE, now_ms, None))
        tally.add(tenant_id, "frames", Why.AGE, await self._age_frames(camera, now_ms))
        tally.add(tenant_id, "pictures", Why.QUIET, await self._thin(camera, now_ms))
        figures_before_ms = now_ms - policy.statistics_days * DAY_MS
        gaps = await self.store.write(upkeep.forget_gaps, camera.camera_key, figures_before_ms)
        gaps += await self.store.write(look_pauses.forget, camera.camera_key, figures_before_ms)
        tally.add(tenant_id, "gaps", Why.AGE, Swept(gaps))
        usages = await self.store.read(upkeep.count_usage, camera.camera_key, now_ms)
        used_bytes = sum(usage.bytes for usage in usages)
        if need := beyond_bytes(used_bytes, policy.camera_max_bytes):
            used_bytes -= await self._give([camera], need, Why.CAMERA_QUOTA, tally)
            usages = await self.store.read(upkeep.count_usage, camera.camera_key, now_ms)
        await self.store.write(upkeep.note_usage, camera, usages, now_ms)
        if camera.removed_at is not None and await self.store.write(upkeep.forget_camera, camera.camera_key, now_ms):
            tally.add(tenant_id, "cameras", Why.AGE, Swept(1))
        return used_bytes

    async def _age_frames(self, camera: CameraRef, now_ms: int) -> Swept:
        policy = self.policy
        progress = self._progress.setdefault(camera.camera_key, _Progress())
        days = min(policy.frames_days, policy.detected_days, policy.quarantine_days)
        swept, progress.aged = await self._sweep_frames(
            camera, Why.AGE, progress.aged, now_ms - days * DAY_MS + 1, now_ms
        )
        return swept

    async def _thin(self, camera: CameraRef, now_ms: int) -> Swept:
        """Of quiet pictures one a minute stays (decision 7)."""
        if self.policy.quiet_picture_sec == 0:
            return Swept()
        progress = self._progress.setdefault(camera.camera_key, _Progress())
        total = Swept()
        while True:
            page = await self.store.read(
                retention.frame_page, camera.camera_key, progress.thinned, now_ms - THIN_AFTER_MS
            )
            thinned = thin_out(page.frames, progress.quiet_at, self.policy.quiet_picture_sec)
            if thinned.frame_ids:
                total += await self._delete(camera, thinned.frame_ids, Why.QUIET, now_ms)
            progress.quiet_at = thinned.kept_at
            progress.thinned = page.end or _behind(page.frames, progress.thinned)
            if page.end is None:
                return total

    async def _sweep_frames(
        self, camera: CameraRef, why: Why, after: Place, before_ms: int, now_ms: int, need: int | None = None
    ) -> tuple[Swept, Place]:
        """Frames before a time, as many as the need asks for; what went, and where to go on."""
        total = Swept()
        while True:
            page = await self.store.read(retention.frame_page, camera.camera_key, after, before_ms)
            going, freed = [], total.bytes
            for frame in page.frames:
                if need is not None and freed >= need:
                    break
                fate = frame_fate(why, frame, frame.frame_id == page.newest_frame_id, self.policy, now_ms)
                if fate is not Fate.KEEP:
                    going.append(frame.frame_id)
                    freed += freed_bytes(frame, fate)
            if going:
                total += await self._delete(camera, going, why, now_ms)
            if why is Why.AGE:
                await self._drop_jobs(page.frames, set(going), now_ms)
            after = page.end or _behind(page.frames, after)
            if page.end is None or (need is not None and total.bytes >= need):
                return total, after

    async def _delete(self, camera: CameraRef, frame_ids: Sequence[int], why: Why, now_ms: int) -> Swept:
        swept = await self.store.write(
            retention.sweep_frames, camera.camera_key, tuple(frame_ids), why, self.policy, now_ms
        )
        await self._pause()
        return swept

    async def _drop_jobs(self, frames: Sequence[KeptFrame], gone: set[int], now_ms: int) -> None:
        """Jobs of frames that live longer than records of jobs do."""
        finished_before = now_ms - self.policy.deliveries_days * DAY_MS
        left = [
            frame.frame_id
            for frame in frames
            if frame.frame_id not in gone and frame.captured_at < finished_before and not frame.is_quiet
        ]
        if left:
            await self.store.write(retention.drop_jobs, tuple(left), finished_before)

    async def _sweep_clips(self, camera: CameraRef, why: Why, before_ms: int, need: int | None) -> Swept:
        total, after_at, now_ms = Swept(), -1, self.clock.now_ms()
        while page := await self.store.read(retention.clip_page, camera.camera_key, after_at, before_ms):
            after_at = page[-1][0]
            going, freed = [], total.bytes
            for _, clip in page:
                if need is not None and freed >= need:
                    break
                if clip_is_over(clip, self.policy, now_ms) if why is Why.AGE else clip_may_go(clip, now_ms):
                    going.append(clip.clip_id)
                    freed += clip.bytes
            if going:
                total += await self.store.write(
                    retention.sweep_clips, camera.camera_key, tuple(going), why, self.policy, now_ms
                )
                await self._pause()
            if len(page) < retention.PAGE or (need is not None and total.bytes >= need):
                break
        return total

    async def _age_events(self, camera: CameraRef, now_ms: int) -> Swept:
        before_ms = now_ms - self.policy.events_days * DAY_MS + 1
        total, after = Swept(), (-1, -1)
        while page := await self.store.read(retention.event_page, camera.camera_key, after, before_ms):
            after = (page[-1][0], page[-1][1].event_id)
            over = [event.event_id for _, event in page if event_is_over(event, self.policy, now_ms)]
            if over:
                total += await self.store.write(
                    retention.sweep_events, camera.camera_key, tuple(over), self.policy, now_ms
                )
                await self._pause()
            if len(page) < retention.PAGE:
                break
        return total

    # -----------------------------------------------------------------------------------------------------------

    async def _give(self, cameras: Sequence[CameraRef], need: int, why: Why, tally: Tally) -> int:
        """Deletes the oldest ordinary media of these cameras until enough is free; how many bytes that made."""
        now_ms = self.clock.now_ms()
        oldest = await self.store.read(retention.oldest_ordinary, tuple([one.camera_key for one in cameras]))
        places = {camera_key: Place() for camera_key in oldest}
        freed = 0
        until_ms = min(oldest.values(), default=now_ms)
        while freed < need and until_ms < now_ms:
            until_ms = min(until_ms + SLICE_MS, now_ms)
            for camera in cameras:
                if freed >= need or camera.camera_key not in places or oldest[camera.camera_key] >= until_ms:
                    continue
                place = places.pop(camera.camera_key)
                with self._apart(camera, tally):
                    clips = await self._sweep_clips(camera, why, until_ms, need - freed)
                    tally.add(camera.tenant_id, "clips", why, clips)
                    freed += clips.bytes
                    if freed >= need:
                        break
                    # One that fails is left out from here on.
                    pictures, places[camera.camera_key] = await self._sweep_frames(
                        camera, why, place, until_ms, now_ms, need - freed
                    )
                    tally.add(camera.tenant_id, "pictures", why, pictures)
                    freed += pictures.bytes
        return freed

    async def keep_floor(self) -> None:
        """Below the floor of free space the oldest ordinary media goes; says so when nothing is left to give."""
        if not short_bytes(await self.objects.free_bytes(), self.policy):
            return
        await self._unlink_garbage()
        tally = Tally()
        try:
            for why in (Why.FLOOR, Why.FLOOR_BEST):
                need = short_bytes(await self.objects.free_bytes(), self.policy)
                if not need:
                    return
                log.warning("free_space_short", need_bytes=need, floor_bytes=self.policy.free_min_bytes)
                await self._give(await self._cameras(), need, why, tally)
                await self._unlink_garbage()
            if short_bytes(await self.objects.free_bytes(), self.policy):
                await self._say_nothing_left()
        finally:
            await self._tell(tally)

    async def _say_nothing_left(self) -> None:
        now_ms = self.clock.now_ms()
        if now_ms < self._nothing_left_at + NOTHING_LEFT_EVERY_MS:
            return
        self._nothing_left_at = now_ms
        reason = (
            "free space is below retention.free_min_bytes, and no ordinary picture or clip is left to delete; "
            "free space on the disk, or close cases"
        )
        log.error("free_space_short_nothing_left", floor_bytes=self.policy.free_min_bytes, cause=reason)
        tenants = await self.store.read(upkeep.tenants)
        reports = tuple([upkeep.Report(tenant_id, "nothing_left", 0, 0, reason) for tenant_id in tenants])
        await self.store.write(upkeep.report, reports, now_ms)

    # -----------------------------------------------------------------------------------------------------------

    async def settle_cases(self) -> None:
        """Finishes what closing or opening a case began, should whoever began it have died."""
        for case in await self.store.read(case_items.unsettled):
            scoped = self.store.as_(Principal(case.tenant_id, None, Role.SYSTEM_ADMIN))
            after: int | None = 0
            while after is not None:
                after = await scoped.write(
                    case_items.settle, case.case_id, after, self.policy.case_grace_days, self.clock.now_ms()
                )
                await self._pause()

    async def _tell(self, tally: Tally) -> None:
        reports = tally.reports()
        for one in reports:
            log.info("retention_swept", what=one.what, count=one.count, bytes=one.bytes, why=one.reason)
        if reports:
            await self.store.write(upkeep.report, reports, self.clock.now_ms())

    async def _unlink_garbage(self) -> None:
        after = 0
        for _ in range(GARBAGE_ROUNDS_MAX):
            trash = await self.store.read(garbage.oldest, after)
            gone = tuple([item.garbage_id for item in trash if await self._is_deleted(item.object_key)])
            if gone:
                await self.store.write(garbage.forget, gone)
            if len(trash) < garbage.BATCH:
                return
            after = trash[-1].garbage_id
            await self._pause()

    async def _is_deleted(self, key: str) -> bool:
        try:
            await self.objects.delete(key)
        except (CamError, OSError) as error:
            log.warning("object_not_deleted", key=key, why=str(error))
            return False
        return True


def _behind(frames: Sequence[KeptFrame], otherwise: Place) -> Place:
    return Place(frames[-1].captured_at, frames[-1].frame_id) if frames else otherwise
