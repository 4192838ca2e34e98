"""Copies of pictures and clips to archives, and their removal when their time has come (decision 27).

`archive` fans out into one copy for each archive, and one more for each case that holds the picture or clip; `copy`
takes the full picture, or the small one where there is no other, or the clip, to one archive. What an archive keeps
for a later attempt may open an upload, so it is sealed like a password.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from camserver.base.clock import Clock
from camserver.base.credentials import Keys, Sealed, open_sealed, seal
from camserver.base.errors import BadInput, DataUnusable, NotFound, Retry
from camserver.base.log import get_logger
from camserver.base.zones import zone_of
from camserver.domain.archive import (
    CLIP_SUFFIX,
    DAY_MS,
    OVER_QUOTA,
    Archive,
    ArchivePolicy,
    Copy,
    Picture,
    clip_once_key,
    copy_path,
    day_of,
    fits,
    kept_until,
    once_key,
)
from camserver.domain.deliveries import (
    ARCHIVES,
    Along,
    Child,
    Claimed,
    DeliveryError,
    Done,
    Ending,
    FanOut,
    JsonObject,
    Receiver,
    ReceiverKind,
    Suppressed,
    Trouble,
)
from camserver.domain.facts import DeliveryKind
from camserver.domain.retention import Retention
from camserver.objects.interface import Objects
from camserver.objects.keys import Kind, frame_key
from camserver.services.dispatcher.duty import on_duty
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, archive, archive_clips, deliveries, upkeep
from camserver.store.archive import ArchivedPicture, Case, DueCopy, LeftOut, NewCopy
from camserver.store.cameras import PicturePlace
from camserver.store.receivers import TRIAL

log = get_logger(__name__)

CLIP_GONE: Final = "the clip is past its retention"
FRAME_GONE: Final = "the picture is past its retention"
CASE_CLOSED: Final = "the case was closed"
TRIAL_PATH: Final = "camserver-trial"
# Removals under way at once at one archive.
REMOVALS: Final = 4
ROUNDS_MAX: Final = 20
SWEEP_EVERY_MS: Final = 60_000
DUTY: Final = "archive"
# How long a copy that could not be removed is left alone.
NOT_REMOVED_PAUSE_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class _Thing:
    """What is copied: a picture, or a clip with the best frame of its event."""

    picture: Picture
    tenant_id: int
    camera_key: int
    frame_id: int | None
    retention: Retention
    timezone: str


@dataclass(frozen=True, slots=True)
class Archiver:
    """Handlers of `archive` and `copy`."""

    store: Store
    objects: Objects
    clock: Clock
    book: ReceiverBook
    archives: Mapping[ReceiverKind, Archive]
    policy: ArchivePolicy
    credential_key: Keys

    async def archive(self, claimed: Claimed) -> Ending:
        """One copy for each archive of the tenant."""
        receivers = self.book.of(claimed.tenant_id, ARCHIVES)
        clip_id = claimed.request.get("clip_id")
        if isinstance(clip_id, int):
            clip = await self.store.read(archive_clips.clip, clip_id)
            if clip is None:
                return Suppressed(CLIP_GONE)
            cases = (None, *clip.cases)
            return FanOut(tuple(_clip_child(clip_id, receiver, case) for receiver in receivers for case in cases))
        if claimed.frame_id is None:
            raise DeliveryError(Trouble.REFUSED, "there is no picture to archive")
        found = await self.store.read(archive.picture, claimed.frame_id)
        if found is None or found.place is None:
            return Suppressed(FRAME_GONE)
        return FanOut(
            tuple(_child(claimed.frame_id, receiver, case) for receiver in receivers for case in (None, *found.cases))
        )

    async def copy(self, claimed: Claimed) -> Ending:
        receiver = await self.book.receiver_of(claimed)
        if receiver is None or receiver.kind not in self.archives:
            raise DeliveryError(Trouble.REFUSED, "the archive was removed")
        if claimed.reason == TRIAL:
            return await self._tried(claimed, receiver)
        case = _case_of(claimed.request)
        if case is not None and not await self.store.read(archive.case_holds, case.case_id):
            return Suppressed(CASE_CLOSED)
        clip_id = claimed.request.get("clip_id")
        if isinstance(clip_id, int):
            thing, data = await self._clip(clip_id)
        elif claimed.frame_id is not None:
            thing, data = await self._frame(claimed.frame_id)
        else:
            raise DeliveryError(Trouble.REFUSED, "there is no picture to archive")
        if thing is None or data is None:
            return Suppressed(FRAME_GONE if claimed.frame_id is not None else CLIP_GONE)
        return await self._stored(claimed, receiver, thing, case, data)

    async def _frame(self, frame_id: int) -> tuple["_Thing | None", bytes | None]:
        found = await self.store.read(archive.picture, frame_id)
        if found is None or found.place is None:
            return None, None
        place = found.place
        made = Picture(found.camera_id, place.frame_uuid, place.captured_at)
        thing = _Thing(made, place.tenant_id, place.camera_key, frame_id, found.retention, found.timezone)
        return thing, await self._data(found, place)

    async def _clip(self, clip_id: int) -> tuple["_Thing | None", bytes | None]:
        found = await self.store.read(archive_clips.clip, clip_id)
        if found is None:
            return None, None
        made = Picture(found.camera_id, found.event_uuid, found.begin_at, CLIP_SUFFIX)
        thing = _Thing(made, found.tenant_id, found.camera_key, found.best_frame_id, found.retention, found.timezone)
        try:
            return thing, await self.objects.get(found.object_key)
        except (NotFound, BadInput) as error:
            log.warning("clip_to_archive_missing", why=error.message)
            return thing, None

    async def _stored(
        self, claimed: Claimed, receiver: Receiver, thing: "_Thing", case: Case | None, data: bytes
    ) -> Ending:
        zone = zone_of(thing.timezone)
        day = day_of(thing.picture.captured_at, zone)
        if case is None:
            sent = await self.store.read(archive.sent_bytes, receiver.receiver_id, thing.camera_key, day)
            if not fits(sent, len(data), self.policy):
                return self._left_out(receiver, thing, day, len(data))
        path = copy_path(thing.picture, thing.retention, None if case is None else case.case_uuid, zone)
        sha256 = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        copy = Copy(claimed.delivery_uuid, path, data, sha256, claimed.attempt, self._progress(claimed))
        external_id, result = await self._send(claimed, receiver, copy)
        now_ms = self.clock.now_ms()
        row = NewCopy(
            tenant_id=claimed.tenant_id,
            receiver_id=receiver.receiver_id,
            frame_id=thing.frame_id,
            camera_key=thing.camera_key,
            case_id=None if case is None else case.case_id,
            external_id=external_id,
            path=path,
            bytes=len(data),
            sha256=sha256,
            retention=thing.retention,
            day=day,
            expires_at=kept_until(thing.retention, case is not None, now_ms, self.policy),
        )
        told = {**result, "path": path, "bytes": len(data), "sha256": sha256}
        return Done(told, (Along(archive.note_stored, (row, now_ms)),))

    async def _send(self, claimed: Claimed, receiver: Receiver, copy: Copy) -> tuple[str, JsonObject]:
        async def keep(progress: JsonObject) -> None:
            kept = self._sealed(claimed, progress)
            if not await self.store.write(deliveries.note, claimed.delivery_id, claimed.token, kept):
                raise DeliveryError(Trouble.RETRY, "another dispatcher has this copy now")

        try:
            stored = await self.archives[receiver.kind].store(receiver, copy, keep)
        except DeliveryError as error:
            if error.progress is not None:
                error.progress = self._sealed(claimed, error.progress)
            raise
        return stored.external_id, stored.result

    async def _tried(self, claimed: Claimed, receiver: Receiver) -> Done:
        """Tries an archive out: a small file is stored and removed again."""
        data = b"camserver tries this archive out and removes this file at once.\n"
        path = f"{TRIAL_PATH}/{claimed.delivery_uuid}.txt"
        sha256 = hashlib.sha256(data).hexdigest()
        copy = Copy(claimed.delivery_uuid, path, data, sha256, claimed.attempt, self._progress(claimed))
        external_id, result = await self._send(claimed, receiver, copy)
        await self.archives[receiver.kind].remove(receiver, external_id)
        return Done({**result, "path": path, "removed": True})

    def _left_out(self, receiver: Receiver, thing: "_Thing", day: str, size_bytes: int) -> Suppressed:
        allowed_mb = self.policy.camera_day_bytes // 1_000_000
        left_out = LeftOut(
            tenant_id=thing.tenant_id,
            receiver_id=receiver.receiver_id,
            camera_key=thing.camera_key,
            day=day,
            bytes=size_bytes,
            reason=f"{thing.picture.camera_id} sent its {allowed_mb} MB of {day} to {receiver.name}",
        )
        return Suppressed(OVER_QUOTA, (Along(archive.note_left_out, (left_out, self.clock.now_ms())),))

    async def _data(self, found: ArchivedPicture, place: PicturePlace) -> bytes | None:
        """The full picture if it is kept, else the small one; None when both are gone."""
        for kind in (Kind.FULL, Kind.INFER) if found.has_full else (Kind.INFER,):
            key = frame_key(
                place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, kind
            )
            try:
                return await self.objects.get(key)
            except (NotFound, BadInput) as error:
                log.warning("picture_to_archive_missing", why=error.message)
        return None

    # What is kept for a later attempt

    def _sealed(self, claimed: Claimed, progress: JsonObject) -> JsonObject:
        plain = json.dumps(dict(progress)).encode()
        made = seal(self.credential_key, claimed.tenant_id, _bound_to(claimed), plain)
        return {
            "sealed": {
                "key_id": made.key_id,
                "nonce": base64.b64encode(made.nonce).decode(),
                "text": base64.b64encode(made.ciphertext).decode(),
            }
        }

    def _progress(self, claimed: Claimed) -> JsonObject:
        """What an earlier attempt left; nothing when it can't be read, which costs only another upload."""
        kept = claimed.result.get("sealed")
        if not isinstance(kept, Mapping):
            return {}
        try:
            sealed = Sealed(str(kept["key_id"]), base64.b64decode(kept["nonce"]), base64.b64decode(kept["text"]))
            opened = open_sealed(self.credential_key, claimed.tenant_id, _bound_to(claimed), sealed)
            progress = json.loads(opened)
        except (KeyError, ValueError, DataUnusable) as error:
            log.warning("progress_unreadable", why=type(error).__name__)
            return {}
        return progress if isinstance(progress, dict) else {}


def _bound_to(claimed: Claimed) -> str:
    return f"delivery:{claimed.delivery_uuid}"


def _child(frame_id: int, receiver: Receiver, case: Case | None) -> Child:
    case_id = None if case is None else case.case_id
    request = {} if case is None else {"case_id": case.case_id, "case_uuid": case.case_uuid}
    key = once_key(frame_id, receiver.receiver_id, case_id)
    return Child(DeliveryKind.COPY, receiver.receiver_id, request, once_key=key)


def _clip_child(clip_id: int, receiver: Receiver, case: Case | None) -> Child:
    of_case = {} if case is None else {"case_id": case.case_id, "case_uuid": case.case_uuid}
    key = clip_once_key(clip_id, receiver.receiver_id, None if case is None else case.case_id)
    return Child(DeliveryKind.COPY, receiver.receiver_id, {"clip_id": clip_id, **of_case}, once_key=key)


def _case_of(request: JsonObject) -> Case | None:
    case_id, case_uuid = request.get("case_id"), request.get("case_uuid")
    return Case(case_id, case_uuid) if isinstance(case_id, int) and isinstance(case_uuid, str) else None


# ---------------------------------------------------------------------------------------------------------------
# Removing what is over
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArchiveSweeper:
    """Removes copies when their time has come. One dispatcher does it at a time; two would do no harm."""

    name: str
    store: Store
    clock: Clock
    book: ReceiverBook
    archives: Mapping[ReceiverKind, Archive]
    policy: ArchivePolicy

    async def run(self) -> None:
        await take_turns(self.clock, SWEEP_EVERY_MS, "archive_sweep", self.turn)

    async def turn(self) -> None:
        async with on_duty(self.store, self.clock, DUTY, self.name, 5 * SWEEP_EVERY_MS) as is_ours:
            if is_ours:
                await self._sweep_all()

    async def _sweep_all(self) -> None:
        # Before anything is thought removed for good, because its archive is.
        await self.book.refresh()
        days_ms = self.policy.closed_case_days * DAY_MS
        await self.store.write(archive.release_closed, self.clock.now_ms() + days_ms)
        known = {one.receiver_id: one for one in self.book.everywhere}
        for receiver_id in await self.store.read(archive.archives):
            receiver = known.get(receiver_id)
            if receiver is None or receiver.kind not in self.archives:
                await self.store.write(archive.forget_unreachable, receiver_id, self.clock.now_ms())
            else:
                await self._sweep(receiver)

    async def _sweep(self, receiver: Receiver) -> None:
        removed: list[DueCopy] = []
        for _ in range(ROUNDS_MAX):
            due = await self.store.write(archive.due, receiver.receiver_id, self.clock.now_ms())
            gone = await self._remove(receiver, due)
            removed += gone
            left = tuple(one.object_id for one in due if one not in gone)
            if left:
                await self.store.write(archive.put_off, left, self.clock.now_ms() + NOT_REMOVED_PAUSE_MS)
            if left or not due:
                break
        if removed:
            await self._report(receiver, removed)

    async def _remove(self, receiver: Receiver, due: tuple[DueCopy, ...]) -> list[DueCopy]:
        """Removes copies, some at a time; the first that fails ends it, because the others would fail alike."""
        gone: list[DueCopy] = []
        for begin in range(0, len(due), REMOVALS):
            part = due[begin : begin + REMOVALS]
            results = await asyncio.gather(
                *(self.archives[receiver.kind].remove(receiver, one.external_id) for one in part),
                return_exceptions=True,
            )
            done = [one for one, result in zip(part, results, strict=True) if result is None]
            if done:
                await self.store.write(
                    archive.note_removed, tuple(one.object_id for one in done), self.clock.now_ms()
                )
                gone += done
            failed = next((result for result in results if result is not None), None)
            if failed is not None:
                if not isinstance(failed, DeliveryError | Retry):
                    raise failed
                log.warning("copies_not_removed", receiver=receiver.name, why=failed.message)
                self.book.note_error(receiver.receiver_id, failed.message)
                break
        return gone

    async def _report(self, receiver: Receiver, removed: list[DueCopy]) -> None:
        total = sum(one.bytes for one in removed)
        log.info("copies_removed", receiver=receiver.name, count=len(removed), bytes=total)
        report = upkeep.Report(receiver.tenant_id, "archive_copies", len(removed), total, f"age, at {receiver.name}")
        await self.store.write(upkeep.report, (report,), self.clock.now_ms())
