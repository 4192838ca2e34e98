"""What a round of retention would delete now, by kind and reason, without deleting anything.

The same pages and the same rules as the round's (services/dispatcher/retaining.py), taken in this order: age, quiet
pictures, the quota of each camera, that of the tenant, and the floor of free space by what is short after all that. A
round may come to the floor first; then the same media is named `floor` instead of by its age. Frames are read up to a
bound; beyond it the forecast says that it is not whole.
"""

import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

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
    suppressed_days,
    thin_out,
)
from camserver.domain.retention import RetentionPolicy
from camserver.store import audit_seals, retention, upkeep
from camserver.store.retention import Place
from camserver.store.upkeep_pages import OwnCamera

# Frames are read in pages of 500: 200,000 of them are some seconds.
PAGES_MAX = 400

Read = Callable[..., Awaitable[Any]]


@dataclass(slots=True)
class Going:
    count: int = 0
    bytes: int = 0

    def add(self, count: int, taken: int) -> None:
        self.count += count
        self.bytes += taken


@dataclass(frozen=True, slots=True)
class _Item:
    """A picture or a clip that may go when room is short."""

    at_ms: int
    what: str
    count: int
    bytes: int


@dataclass(slots=True)
class Forecast:
    """`read` reads without narrowing by sites, so `cameras` are those in the caller's reach."""

    read: Read
    policy: RetentionPolicy
    cameras: Sequence[OwnCamera]
    now_ms: int
    pages_left: int = PAGES_MAX
    going: dict[tuple[str, Why], Going] = field(default_factory=dict)
    by_camera: dict[int, Going] = field(default_factory=dict)
    _gone_clips: set[int] = field(default_factory=set)
    _left: dict[int, AsyncIterator[_Item]] = field(default_factory=dict)
    _next: dict[int, _Item] = field(default_factory=dict)  # taken from an iterator, but not used

    @property
    def is_whole(self) -> bool:
        return self.pages_left > 0

    @property
    def freed_bytes(self) -> int:
        return sum(one.bytes for one in self.going.values())

    async def make(self, tenant_id: int, free_bytes: int | None) -> None:
        used: dict[int, int] = {}
        for camera in self.cameras:
            await self._age_events(camera)
            await self._age_clips(camera)
            await self._age_frames(camera)
            await self._thin(camera)
            usages = await self.read(upkeep.count_usage, camera.camera_key, self.now_ms)
            used[camera.camera_key] = sum(usage.bytes for usage in usages) - self._of(camera).bytes
        for camera in self.cameras:
            need = beyond_bytes(used[camera.camera_key], self.policy.camera_max_bytes)
            used[camera.camera_key] -= await self._give([camera], need, Why.CAMERA_QUOTA)
        await self._give(
            self.cameras, beyond_bytes(sum(used.values()), self.policy.tenant_max_bytes), Why.TENANT_QUOTA
        )
        await self._keep_floor(free_bytes)
        await self._prune(tenant_id)

    def _of(self, camera: OwnCamera) -> Going:
        return self.by_camera.setdefault(camera.camera_key, Going())

    def _add(self, camera: OwnCamera, what: str, why: Why, number: int, taken: int) -> None:
        if number or taken:
            self.going.setdefault((what, why), Going()).add(number, taken)
            self._of(camera).add(number, taken)

    # -----------------------------------------------------------------------------------------------------------
    # By age
    # -----------------------------------------------------------------------------------------------------------

    async def _age_events(self, camera: OwnCamera) -> None:
        before_ms = self.now_ms - self.policy.events_days * DAY_MS + 1
        after = (-1, -1)
        while page := await self.read(retention.event_page, camera.camera_key, after, before_ms):
            after = (page[-1][0], page[-1][1].event_id)
            over = [event.event_id for _, event in page if event_is_over(event, self.policy, self.now_ms)]
            clips = await self.read(retention.clips_of, tuple(over)) if over else ()
            self._gone_clips.update(clip.clip_id for clip in clips)
            self._add(camera, "events", Why.AGE, len(over), sum(clip.bytes for clip in clips))
            if len(page) < retention.PAGE:
                return

    async def _age_clips(self, camera: OwnCamera) -> None:
        async for _, clip in self._clips(camera):
            if clip.clip_id not in self._gone_clips and clip_is_over(clip, self.policy, self.now_ms):
                self._gone_clips.add(clip.clip_id)
                self._add(camera, "clips", Why.AGE, 1, clip.bytes)

    async def _clips(self, camera: OwnCamera) -> AsyncIterator[tuple[int, Any]]:
        after_at = -1
        while page := await self.read(retention.clip_page, camera.camera_key, after_at, self.now_ms):
            for one in page:
                yield one
            after_at = page[-1][0]
            if len(page) < retention.PAGE:
                return

    async def _age_frames(self, camera: OwnCamera) -> None:
        policy = self.policy
        days = min(policy.frames_days, policy.detected_days, policy.quarantine_days)
        async for frames, newest_id in self._frames(camera, self.now_ms - days * DAY_MS + 1):
            for frame in frames:
                fate = self._fate(Why.AGE, frame, newest_id)
                # A best frame that only loses its large picture keeps its row.
                what = "frames" if fate is Fate.DELETE else "pictures"
                self._add(camera, what, Why.AGE, int(fate is not Fate.KEEP), freed_bytes(frame, fate))

    async def _thin(self, camera: OwnCamera) -> None:
        if self.policy.quiet_picture_sec == 0:
            return
        async for frames, thinned, newest_id in self._unaged(camera):
            for frame in frames:
                fate = self._fate(Why.QUIET, frame, newest_id) if frame.frame_id in thinned else Fate.KEEP
                self._add(camera, "pictures", Why.QUIET, _pictures(frame, fate), freed_bytes(frame, fate))

    def _fate(self, why: Why, frame: KeptFrame, newest_id: int | None) -> Fate:
        return frame_fate(why, frame, frame.frame_id == newest_id, self.policy, self.now_ms)

    async def _frames(
        self, camera: OwnCamera, before_ms: int
    ) -> AsyncIterator[tuple[tuple[KeptFrame, ...], int | None]]:
        """Pages of a camera's frames, oldest first, as far as the bound goes."""
        after: Place | None = Place()
        while after is not None and self.pages_left > 0:
            self.pages_left -= 1
            page = await self.read(retention.frame_page, camera.camera_key, after, before_ms)
            yield page.frames, page.newest_frame_id
            after = page.end

    async def _unaged(self, camera: OwnCamera) -> AsyncIterator[tuple[list[KeptFrame], set[int], int | None]]:
        """Pages of frames that age leaves, and which of their pictures are too many of a quiet camera."""
        quiet_at: int | None = None
        async for frames, newest_id in self._frames(camera, self.now_ms):
            left = [frame for frame in frames if self._fate(Why.AGE, frame, newest_id) is not Fate.DELETE]
            settled = [frame for frame in left if frame.captured_at < self.now_ms - THIN_AFTER_MS]
            thinned: set[int] = set()
            if self.policy.quiet_picture_sec:
                found = thin_out(settled, quiet_at, self.policy.quiet_picture_sec)
                thinned, quiet_at = set(found.frame_ids), found.kept_at
            yield left, thinned, newest_id

    # -----------------------------------------------------------------------------------------------------------
    # When room is short
    # -----------------------------------------------------------------------------------------------------------

    async def _keep_floor(self, free_bytes: int | None) -> None:
        if free_bytes is None:
            return
        if need := short_bytes(free_bytes + self.freed_bytes, self.policy):
            await self._give(self.cameras, need, Why.FLOOR)
        if need := short_bytes(free_bytes + self.freed_bytes, self.policy):
            await self._give_best(need)

    async def _give(self, cameras: Sequence[OwnCamera], need: int, why: Why) -> int:
        """The oldest ordinary media of these cameras, until enough would be free; how many bytes that makes."""
        freed = 0
        if not need:
            return freed
        turns = count()
        waiting = [(item.at_ms, next(turns), camera) for camera in cameras if (item := await self._peek(camera))]
        heapq.heapify(waiting)
        while waiting and freed < need:
            _, _, camera = heapq.heappop(waiting)
            item = self._next.pop(camera.camera_key)
            self._add(camera, item.what, why, item.count, item.bytes)
            freed += item.bytes
            if following := await self._peek(camera):
                heapq.heappush(waiting, (following.at_ms, next(turns), camera))
        return freed

    async def _peek(self, camera: OwnCamera) -> _Item | None:
        """The camera's oldest item that nothing took yet."""
        if camera.camera_key not in self._next:
            left = self._left.setdefault(camera.camera_key, self._ordinary(camera))
            item = await anext(left, None)
            if item is None:
                return None
            self._next[camera.camera_key] = item
        return self._next[camera.camera_key]

    async def _ordinary(self, camera: OwnCamera) -> AsyncIterator[_Item]:
        """What may go before its time, in the order of time; each clip before the pictures of its moment."""
        clips = aiter(self._clips(camera))
        clip = await self._next_clip(clips)
        async for frames, thinned, newest_id in self._unaged(camera):
            for frame in frames:
                while clip is not None and clip.at_ms <= frame.captured_at:
                    yield clip
                    clip = await self._next_clip(clips)
                fate = self._fate(Why.FLOOR, frame, newest_id)
                if self._fate(Why.AGE, frame, newest_id) is Fate.SHRINK or frame.frame_id in thinned:
                    continue
                if fate is not Fate.KEEP:
                    yield _Item(frame.captured_at, "pictures", _pictures(frame, fate), freed_bytes(frame, fate))
        while clip is not None:
            yield clip
            clip = await self._next_clip(clips)

    async def _next_clip(self, clips: AsyncIterator[tuple[int, Any]]) -> _Item | None:
        async for at_ms, clip in clips:
            if clip.clip_id not in self._gone_clips and clip_may_go(clip, self.now_ms):
                return _Item(at_ms, "clips", 1, clip.bytes)
        return None

    async def _give_best(self, need: int) -> None:
        """The small pictures of events, when nothing else is left."""
        for camera in self.cameras:
            async for frames, _, newest_id in self._unaged(camera):
                for frame in frames:
                    if need <= 0:
                        return
                    if frame.is_best and self._fate(Why.FLOOR_BEST, frame, newest_id) is Fate.STRIP:
                        self._add(camera, "pictures", Why.FLOOR_BEST, 1, frame.infer_bytes or 0)
                        need -= frame.infer_bytes or 0

    # -----------------------------------------------------------------------------------------------------------
    # Records
    # -----------------------------------------------------------------------------------------------------------

    async def _prune(self, tenant_id: int) -> None:
        """Records take no room worth telling; how many they are is counted up to a bound."""
        for what in upkeep.AGED:
            cutoff = self.now_ms - upkeep.days_of(what, self.policy) * DAY_MS
            self._note(what, await self.read(upkeep.count_aged, what, tenant_id, cutoff))
        audit_cutoff = self.now_ms - self.policy.audit_days * DAY_MS
        self._note("audit", await self.read(audit_seals.count_old, tenant_id, audit_cutoff))
        deliveries = 0
        for status in upkeep.OVER:
            days = suppressed_days(self.policy) if status == "suppressed" else self.policy.deliveries_days
            deliveries += await self.read(upkeep.count_old_deliveries, tenant_id, status, self.now_ms - days * DAY_MS)
        self._note("deliveries", deliveries)

    def _note(self, what: str, number: int) -> None:
        if number:
            self.going.setdefault((what, Why.AGE), Going()).add(number, 0)


def _pictures(frame: KeptFrame, fate: Fate) -> int:
    """How many pictures go: the small one, the full one, or both."""
    if fate is Fate.KEEP:
        return 0
    return 1 if fate is Fate.SHRINK else (frame.infer_bytes is not None) + (frame.full_bytes is not None)
