"""Copies at archives as rows: counted, kept as long as they should be, and never removed under a case."""

import json
from typing import Any

import pytest
import uuid_utils

from camserver.domain.archive import DAY_MS
from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.retention import Retention
from camserver.store import Store, archive, archive_clips
from camserver.store.archive import Case, LeftOut, NewCopy
from tests.store.casework import Evidence, insert
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY = "2027-01-15"


async def receiver(evidence: Evidence, kind: str = "folder", enabled: int = 1) -> int:
    uuid = str(uuid_utils.uuid7())
    values: dict[str, object] = {
        "receiver_uuid": uuid,
        "tenant_id": evidence.scene.tenant_id,
        "name": uuid,
        "kind": kind,
        "enabled": enabled,
        "config": "{}",
        "created_at": NOW_MS,
        "updated_at": NOW_MS,
    }
    return await evidence.store.write(insert, "receivers", "receiver_id", values)


async def stored(evidence: Evidence, receiver_id: int, frame_id: int, **changes: Any) -> None:
    values: dict[str, Any] = {
        "tenant_id": evidence.scene.tenant_id,
        "receiver_id": receiver_id,
        "frame_id": frame_id,
        "camera_key": evidence.scene.camera_keys[0],
        "case_id": None,
        "external_id": f"file-{frame_id}",
        "path": "p",
        "bytes": 500,
        "sha256": "0" * 64,
        "retention": Retention.NORMAL,
        "day": DAY,
        "expires_at": NOW_MS + 14 * DAY_MS,
    }
    await evidence.store.write(archive.note_stored, NewCopy(**{**values, **changes}), NOW_MS)


async def copies(evidence: Evidence) -> list[tuple[Any, ...]]:
    rows = await evidence.rows("SELECT frame_id, expires_at, deleted_at FROM drive_objects ORDER BY object_id")
    return [(row["frame_id"], row["expires_at"], row["deleted_at"]) for row in rows]


async def due_frames(evidence: Evidence, receiver_id: int, now_ms: int) -> list[str]:
    return [one.external_id for one in await evidence.store.write(archive.due, receiver_id, now_ms)]


async def test_a_picture_is_told_with_its_own_class_and_its_cases(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event_id = await evidence.event(NOW_MS, frames=2, retention_class="quarantine")
    frame_id = (await evidence.rows("SELECT min(frame_id) AS first FROM frames"))[0]["first"]
    found = await fresh_store.read(archive.picture, frame_id)
    assert found is not None
    assert found.place is not None
    assert (found.camera_id, found.timezone, found.retention, found.cases) == (
        "cam_0",
        "UTC",
        Retention.QUARANTINE,
        (),
    )
    of_event = await evidence.case((ItemKind.EVENT, event_id))
    of_frame = await evidence.case((ItemKind.FRAME, frame_id))
    held = await fresh_store.read(archive.picture, frame_id)
    assert held is not None
    assert held.retention is Retention.QUARANTINE
    assert {case.case_uuid for case in held.cases} == {of_event, of_frame}
    assert all(isinstance(case, Case) for case in held.cases)
    await evidence.change(of_event, CaseState.CLOSED)
    released = await fresh_store.read(archive.picture, frame_id)
    assert released is not None
    assert [case.case_uuid for case in released.cases] == [of_frame]
    assert await fresh_store.read(archive.picture, 4711) is None


async def test_what_a_camera_sends_is_counted_by_archive_and_day(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    camera = evidence.scene.camera_keys[0]
    for _ in range(3):
        await stored(evidence, 1, 1)
    await stored(evidence, 1, 1, day="2027-01-16")
    await stored(evidence, 1, 1, case_id=9)
    await stored(evidence, 2, 1)
    assert await fresh_store.read(archive.sent_bytes, 1, camera, DAY) == 1500
    assert await fresh_store.read(archive.sent_bytes, 2, camera, DAY) == 500
    assert await fresh_store.read(archive.sent_bytes, 3, camera, DAY) == 0
    assert await fresh_store.read(archive.archives) == (1, 2)
    assert await fresh_store.read(archive.holds_copies, 2)
    assert not await fresh_store.read(archive.holds_copies, 3)


async def test_pictures_that_are_left_out_are_told_once_a_day_with_their_number(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    tenant, camera = evidence.scene.tenant_id, evidence.scene.camera_keys[0]
    for day in (DAY, DAY, DAY, "2027-01-16"):
        left_out = LeftOut(tenant, 1, camera, day, 700, f"cam_0 sent its 2000 MB of {day} to nas")
        await fresh_store.write(archive.note_left_out, left_out, NOW_MS)
    reports = await evidence.rows("SELECT what, count, bytes, reason FROM sweep_reports ORDER BY report_id")
    assert [(row["what"], row["count"], row["bytes"]) for row in reports] == [
        ("archive_quota", 3, 2100),
        ("archive_quota", 1, 700),
    ]
    days = await evidence.rows("SELECT day, bytes, suppressed FROM archive_days ORDER BY day")
    assert [(row["day"], row["bytes"], row["suppressed"]) for row in days] == [(DAY, 0, 3), ("2027-01-16", 0, 1)]


async def test_a_case_queues_one_copy_for_each_archive_and_frame(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    folder, bucket = await receiver(evidence), await receiver(evidence, "s3")
    for kind, enabled in (("webhook", 1), ("drive", 0)):
        await receiver(evidence, kind, enabled)
    event_id = await evidence.event(NOW_MS, frames=3)
    case_uuid = await evidence.case((ItemKind.EVENT, event_id))
    first = (await evidence.rows("SELECT min(frame_id) AS first FROM frames"))[0]["first"]
    await evidence.add(case_uuid, ItemKind.FRAME, first)
    rows = await evidence.rows("SELECT * FROM deliveries ORDER BY delivery_id")
    assert len(rows) == 6
    assert {(row["frame_id"], row["receiver_id"]) for row in rows} == {
        (first + number, to) for number in range(3) for to in (folder, bucket)
    }
    assert {(row["kind"], row["reason"], row["status"], row["event_id"]) for row in rows} == {
        ("copy", "case", "queued", event_id)
    }
    asked = json.loads(rows[0]["request"]) if isinstance(rows[0]["request"], str) else rows[0]["request"]
    assert asked["case_uuid"] == case_uuid
    assert await fresh_store.read(archive.case_holds, asked["case_id"])
    await evidence.change(case_uuid, CaseState.CLOSED)
    assert not await fresh_store.read(archive.case_holds, asked["case_id"])
    other = await evidence.case((ItemKind.FRAME, first))
    assert len(await evidence.rows("SELECT delivery_id FROM deliveries")) == 8
    assert other != case_uuid


async def test_without_an_archive_a_case_queues_nothing(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    await receiver(evidence, "slack")
    await evidence.case((ItemKind.FRAME, await evidence.frame(NOW_MS)))
    assert await evidence.rows("SELECT delivery_id FROM deliveries") == []


async def test_copies_are_due_at_their_time_and_forgotten_a_month_after_they_went(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    for frame_id, days in ((1, 14), (2, 60), (3, 14)):
        await stored(evidence, 1 if frame_id < 3 else 2, frame_id, expires_at=NOW_MS + days * DAY_MS)
    assert await due_frames(evidence, 1, NOW_MS + 14 * DAY_MS - 1) == []
    over = NOW_MS + 14 * DAY_MS
    [one] = await fresh_store.write(archive.due, 1, over)
    assert (one.external_id, one.bytes) == ("file-1", 500)
    await fresh_store.write(archive.note_removed, (one.object_id,), over)
    assert await due_frames(evidence, 1, over) == []
    assert (await copies(evidence))[0][2] == over
    assert await due_frames(evidence, 1, over + 31 * DAY_MS) == []
    assert [row[0] for row in await copies(evidence)] == [2, 3]


async def test_a_copy_is_not_removed_while_a_case_holds_its_picture(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame_id = await evidence.frame(NOW_MS)
    await stored(evidence, 1, frame_id, expires_at=NOW_MS)
    case_uuid = await evidence.case((ItemKind.FRAME, frame_id))
    assert await due_frames(evidence, 1, NOW_MS) == []
    assert (await copies(evidence))[0][1] == NOW_MS + DAY_MS
    await evidence.change(case_uuid, hold=True)
    await evidence.change(case_uuid, CaseState.CLOSED)
    assert await due_frames(evidence, 1, NOW_MS + 2 * DAY_MS) == []
    await evidence.change(case_uuid, hold=False)
    assert await due_frames(evidence, 1, NOW_MS + 4 * DAY_MS) == [f"file-{frame_id}"]


async def test_a_cases_own_copies_stay_until_it_is_closed_and_come_back_with_it(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame_id = await evidence.frame(NOW_MS)
    case_uuid = await evidence.case((ItemKind.FRAME, frame_id))
    [case] = await evidence.rows("SELECT case_id FROM cases")
    await stored(evidence, 1, frame_id, case_id=case["case_id"], expires_at=None)
    week = NOW_MS + 7 * DAY_MS
    assert await fresh_store.write(archive.release_closed, week) == 0
    await evidence.change(case_uuid, CaseState.CLOSED)
    assert await fresh_store.write(archive.release_closed, week) == 1
    assert await fresh_store.write(archive.release_closed, week) == 0
    assert await due_frames(evidence, 1, week - 1) == []
    await evidence.change(case_uuid, CaseState.OPEN)
    assert await due_frames(evidence, 1, week) == []
    assert (await copies(evidence))[0][1] is None
    await evidence.change(case_uuid, CaseState.CLOSED)
    await fresh_store.write(archive.release_closed, week)
    assert await due_frames(evidence, 1, week) == [f"file-{frame_id}"]


async def test_copies_of_an_archive_that_was_removed_are_forgotten_at_their_time(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    await stored(evidence, 1, 1, expires_at=NOW_MS)
    await stored(evidence, 1, 2, expires_at=NOW_MS + 1)
    assert await fresh_store.write(archive.forget_unreachable, 1, NOW_MS) == 1
    assert [row[0] for row in await copies(evidence)] == [2]
    await fresh_store.write(archive.put_off, (1, 2, 3), NOW_MS + DAY_MS)


async def test_an_event_takes_its_clip_into_the_cases_archive(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store, 1)
    place = await receiver(evidence)
    event = await evidence.event(NOW_MS)
    clip = await evidence.clip(event, NOW_MS)
    case = await evidence.case((ItemKind.EVENT, event))
    rows = await evidence.rows("SELECT * FROM deliveries WHERE frame_id IS NULL")
    [queued] = [row for row in rows if json.loads(row["request"])["clip_id"] == clip]
    assert (queued["kind"], queued["receiver_id"], queued["event_id"]) == ("copy", place, event)
    assert json.loads(queued["request"])["case_uuid"] == case
    found = await fresh_store.read(archive_clips.clip, clip)
    assert found is not None
    assert [one.case_uuid for one in found.cases] == [case]
    assert found.retention is Retention.NORMAL, "its own, though the case holds it"


async def test_a_clip_that_becomes_ready_is_queued_once_where_there_is_an_archive(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store, 1)
    clip = await evidence.clip(await evidence.event(NOW_MS), NOW_MS)
    await fresh_store.write(archive_clips.queue, (clip,), NOW_MS)
    assert await evidence.rows("SELECT * FROM deliveries") == []
    await receiver(evidence)
    for _ in range(2):
        await fresh_store.write(archive_clips.queue, (clip,), NOW_MS)
    [queued] = await evidence.rows("SELECT kind, reason, request FROM deliveries")
    assert (queued["kind"], queued["reason"], json.loads(queued["request"])) == ("archive", "clip", {"clip_id": clip})
    assert await fresh_store.read(archive_clips.clip, clip + 1) is None
