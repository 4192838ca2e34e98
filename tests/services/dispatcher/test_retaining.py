"""Rounds of retention: what goes by age, by quota and below the floor; what stays; that it is told."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from camserver.base.errors import Unavailable
from camserver.domain.audit import SealKey
from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.keeping import DAY_MS
from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.retention import RetentionPolicy
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher.pruning import Tally
from camserver.services.dispatcher.retaining import Retainer
from camserver.services.dispatcher.sealing import Sealer
from camserver.store import Store, Tx, cases, check, retention, upkeep
from camserver.store.cases import CaseChange
from camserver.store.retention import Swept
from camserver.store.upkeep import CameraRef
from tests.rig.clock import ManualClock
from tests.store.casework import Evidence, run, select
from tests.store.people_rows import admin_of
from tests.store.scenery import NOW_MS

POLICY = RetentionPolicy(free_min_bytes=0)
MIN = 60_000
AUDIT_KEY = SealKey(b"k" * 32)


class Disk(LocalObjects):
    """Objects on a disk of a size that the test sets; what was deleted is free again."""

    def __init__(self, root: Path, free: int | None = None) -> None:
        super().__init__(root)
        self.free = free
        self.broken: set[str] = set()

    async def free_bytes(self) -> int | None:
        return self.free

    async def delete(self, key: str) -> None:
        if key in self.broken:
            raise Unavailable("the disk does not answer")
        path = self.root / key
        size = path.stat().st_size if path.exists() else 0
        await super().delete(key)
        if self.free is not None:
            self.free += size


class House:
    """A retainer and the evidence it looks after, with real objects."""

    def __init__(self, store: Store, evidence: Evidence, disk: Disk) -> None:
        self.store = store
        self.evidence = evidence
        self.disk = disk
        self.clock = ManualClock(NOW_MS)
        self.retainer = self.retainer_with(POLICY)

    def retainer_with(self, policy: RetentionPolicy, owner: str = "one") -> Retainer:
        return Retainer(self.store, self.disk, self.clock, policy, owner, AUDIT_KEY, pause_sec=0)

    async def put_objects(self) -> None:
        """An object of the right size for everything that has a row."""
        for row in await self.evidence.rows("SELECT * FROM frames WHERE epoch_id IS NOT NULL"):
            for kind in Kind:
                if (size := row[f"{kind.value}_bytes"]) is not None:
                    await self.disk.put(_key(row, kind), b"x" * size)
        for row in await self.evidence.rows("SELECT * FROM clips WHERE object_key IS NOT NULL"):
            await self.disk.put(row["object_key"], b"x" * row["object_bytes"])

    async def missing(self) -> list[str]:
        """Objects that a row names and that are not there."""
        there = set(await self.disk.list(f"e{self.evidence.scene.epoch_id}/", 100_000))
        return sorted(await self.named() - there)

    async def orphans(self) -> list[str]:
        there = set(await self.disk.list(f"e{self.evidence.scene.epoch_id}/", 100_000))
        return sorted(there - await self.named())

    async def named(self) -> set[str]:
        frames = await self.evidence.rows("SELECT * FROM frames WHERE epoch_id IS NOT NULL")
        clips = await self.evidence.rows("SELECT object_key FROM clips WHERE object_key IS NOT NULL")
        keys = {_key(row, kind) for row in frames for kind in Kind if row[f"{kind.value}_bytes"] is not None}
        return keys | {row["object_key"] for row in clips}

    async def frames(self) -> list[int]:
        return [row["frame_id"] for row in await self.evidence.rows("SELECT frame_id FROM frames ORDER BY frame_id")]

    async def pictures(self) -> list[int]:
        """Frames with any picture."""
        rows = await self.evidence.rows("SELECT frame_id FROM frames WHERE epoch_id IS NOT NULL ORDER BY frame_id")
        return [row["frame_id"] for row in rows]

    async def reports(self) -> list[tuple[str, int, int, str]]:
        rows = await self.evidence.rows("SELECT what, count, bytes, reason FROM sweep_reports ORDER BY what, reason")
        return [(row["what"], row["count"], row["bytes"], row["reason"]) for row in rows]


def _key(row: dict[str, Any], kind: Kind) -> str:
    return frame_key(
        row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind
    )


@pytest.fixture
async def house(store: Store, tmp_path: Path) -> House:
    return House(store, await Evidence.gather(store), Disk(tmp_path / "objects"))


def days_ago(days: float) -> int:
    return NOW_MS - round(days * DAY_MS)


async def test_everything_goes_when_its_days_are_over(house: House) -> None:
    evidence = house.evidence
    nothing_old = await evidence.frame(days_ago(14))
    nothing = await evidence.frame(days_ago(13.9))
    detected_old = await evidence.frame(days_ago(30), detected=1)
    detected = await evidence.frame(days_ago(29.9), detected=1)
    quarantine_old = await evidence.frame(days_ago(60), retention_class="quarantine")
    quarantine = await evidence.frame(days_ago(59.9), retention_class="quarantine")
    newest = await evidence.frame(NOW_MS)
    newest_elsewhere = await evidence.frame(days_ago(300), camera=1)
    await house.put_objects()
    await house.retainer.round()
    assert await house.frames() == [nothing, detected, quarantine, newest, newest_elsewhere]
    assert not {nothing_old, detected_old, quarantine_old} & set(await house.frames())
    assert (await house.missing(), await house.orphans(), await evidence.garbage()) == ([], [], [])
    assert await house.reports() == [("frames", 3, 1800, "age")]
    assert await evidence.rows("SELECT kind FROM changes WHERE kind = 'retention'") == [{"kind": "retention"}]


async def test_an_event_keeps_the_small_picture_of_its_best_frame_for_180_days(house: House) -> None:
    evidence = house.evidence
    old = await evidence.event(days_ago(180.1), frames=2)
    event = await evidence.event(days_ago(179.9), frames=3)
    await evidence.clip(old, days_ago(180.1))
    young = await evidence.event(days_ago(20))
    await evidence.clip(young, days_ago(20))
    await evidence.frame(NOW_MS)
    await house.put_objects()
    await house.retainer.round()
    events = await evidence.rows("SELECT event_id, best_frame_id FROM events ORDER BY event_id")
    assert [row["event_id"] for row in events] == [event, young]
    best = await evidence.rows(
        "SELECT infer_bytes, full_bytes FROM frames WHERE frame_id = :key", key=events[0]["best_frame_id"]
    )
    assert best == [{"infer_bytes": 100, "full_bytes": None}]
    assert len(await house.frames()) == 3
    assert len(await evidence.rows("SELECT clip_id FROM clips WHERE state = 'ready'")) == 1
    assert len(await evidence.rows("SELECT incident_id FROM incidents")) == 2
    assert len(await evidence.rows("SELECT event_id FROM event_tags")) == 2
    assert (await house.missing(), await house.orphans()) == ([], [])


async def test_a_clip_goes_with_its_class_and_says_so(house: House) -> None:
    event = await house.evidence.event(days_ago(31))
    await house.evidence.clip(event, days_ago(31))
    await house.evidence.frame(NOW_MS)
    await house.put_objects()
    await house.retainer.round()
    [clip] = await house.evidence.rows("SELECT state, reason, object_key, epoch_id FROM clips")
    assert clip == {"state": "none", "reason": "expired", "object_key": None, "epoch_id": None}
    assert (await house.missing(), await house.orphans()) == ([], [])


async def test_of_quiet_pictures_one_a_minute_stays_and_every_look_is_remembered(house: House) -> None:
    looks = [
        await house.evidence.frame(NOW_MS - 30 * MIN + number * 10_000, verdict="skip", full_bytes=None)
        for number in range(180)
    ]
    await house.put_objects()
    await house.retainer.round()
    assert await house.frames() == looks
    kept = await house.pictures()
    old = [frame for frame in kept if frame < looks[120]]
    assert old == looks[:120:6]
    assert kept[len(old) :] == looks[120:], "of the last minutes everything stays"
    assert (await house.missing(), await house.orphans()) == ([], [])
    await house.retainer_with(POLICY).round()
    assert await house.pictures() == kept


async def test_a_camera_beyond_its_quota_gives_its_oldest_ordinary_pictures(house: House) -> None:
    evidence = house.evidence
    case_frame = await evidence.frame(days_ago(13.5), verdict="analyze")
    quarantine = await evidence.frame(days_ago(13), retention_class="quarantine")
    ordinary = [await evidence.frame(days_ago(12) + number * MIN) for number in range(10)]
    elsewhere = await evidence.frame(days_ago(13), camera=1)
    await evidence.case((ItemKind.FRAME, case_frame))
    await house.put_objects()
    await house.retainer_with(replace(POLICY, camera_max_bytes=5000)).round()
    # 7200 bytes are there: 2200 and a little must go.
    assert await house.pictures() == [case_frame, quarantine, *ordinary[4:], elsewhere]
    assert len(await house.frames()) == 13
    assert await house.reports() == [("pictures", 8, 2400, "camera_quota")]
    usage = await evidence.rows("SELECT sum(bytes) AS bytes FROM camera_usage")
    assert int(usage[0]["bytes"]) == 4800 + 600


async def _bound_tenants(tx: Tx, kept_bytes_max: int) -> None:
    await tx.run("UPDATE tenants SET kept_bytes_max = :most", most=kept_bytes_max)


async def test_a_tenant_beyond_its_quota_gives_the_oldest_of_all_its_cameras(house: House) -> None:
    first = [await house.evidence.frame(days_ago(10) + number * DAY_MS, camera=0) for number in range(5)]
    second = [await house.evidence.frame(days_ago(9.4) + number * DAY_MS, camera=1) for number in range(5)]
    await house.put_objects()
    # Of the setting and the tenant's own quota the lesser holds.
    await house.store.write(_bound_tenants, 4200)
    await house.retainer_with(replace(POLICY, tenant_max_bytes=5000)).round()
    # 6000 bytes are there: 1800 and a little, four frames, the oldest of both cameras.
    assert await house.pictures() == [*first[2:], *second[2:]]
    assert await house.reports() == [("pictures", 8, 2400, "tenant_quota")]


async def test_below_the_floor_the_oldest_ordinary_media_goes_until_there_is_room(house: House) -> None:
    evidence = house.evidence
    event = await evidence.event(days_ago(10))
    await evidence.clip(event, days_ago(10))
    ordinary = [await evidence.frame(days_ago(9) + number * MIN) for number in range(4)]
    await house.put_objects()
    house.disk.free = 5000
    await house.retainer_with(replace(POLICY, free_min_bytes=9000)).keep_floor()
    assert house.disk.free >= 9000
    # The clip (4000) and the event's full picture (500) did.
    assert set(ordinary) <= set(await house.pictures())
    house.disk.free = 8900
    await house.retainer_with(replace(POLICY, free_min_bytes=9000)).keep_floor()
    assert ordinary[0] not in await house.pictures()
    assert set(ordinary[1:]) <= set(await house.pictures())
    assert (await house.missing(), await house.orphans()) == ([], [])
    assert {row[3] for row in await house.reports()} == {"floor"}


async def test_when_nothing_is_left_to_give_people_are_told_and_evidence_stays(house: House) -> None:
    evidence = house.evidence
    held = await evidence.frame(days_ago(5))
    quarantine = await evidence.frame(days_ago(5), retention_class="quarantine")
    await evidence.event(days_ago(4))
    newest = await evidence.frame(NOW_MS)
    await evidence.case((ItemKind.FRAME, held))
    await house.put_objects()
    house.disk.free = 0
    retainer = house.retainer_with(replace(POLICY, free_min_bytes=1_000_000))
    await retainer.keep_floor()
    assert await house.pictures() == [held, quarantine, newest]
    told = await house.reports()
    assert [row[0] for row in told] == ["nothing_left", "pictures", "pictures"]
    assert "close cases" in told[0][3]
    await retainer.keep_floor()
    assert len(await house.reports()) == 3, "once an hour is enough"
    house.disk.free = None
    await retainer.keep_floor()


async def test_a_picture_that_a_job_waits_for_stays(house: House) -> None:
    evidence = house.evidence
    waiting = await evidence.frame(days_ago(20))
    done = await evidence.frame(days_ago(20))
    await evidence.frame(NOW_MS)
    for frame, status in ((waiting, "queued"), (done, "done")):
        await house.store.write(
            run, _JOB, {"frame": frame, "camera": evidence.scene.camera_keys[0], "status": status}
        )
    await house.retainer.round()
    assert waiting in await house.frames()
    assert done not in await house.frames()
    assert [row["frame_id"] for row in await evidence.rows("SELECT frame_id FROM inference_jobs")] == [waiting]


_JOB = """
INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority, available_at, created_at,
  finished_at)
VALUES (1, :frame, :camera, 1, :status, 1, 1, 1, 1)"""


async def test_a_removed_camera_goes_when_nothing_is_left_of_it(house: House) -> None:
    evidence = house.evidence
    removed, other = evidence.scene.camera_keys
    frame = await evidence.frame(days_ago(50), retention_class="quarantine")
    gone = {"key": removed, "at": days_ago(40)}
    await house.store.write(run, "UPDATE cameras SET deleted_at = :at WHERE camera_key = :key", gone)
    await house.store.write(run, "DELETE FROM camera_sessions WHERE camera_key = :key", {"key": removed})
    await house.put_objects()
    case = await evidence.case((ItemKind.FRAME, frame))
    await house.clock.advance(100 * DAY_MS)
    await house.retainer.round()
    assert len(await evidence.rows("SELECT camera_key FROM cameras")) == 2, "a case holds something of it"
    await evidence.take_out(case, ItemKind.FRAME, frame, house.clock.now_ms())
    await house.clock.advance(8 * DAY_MS)
    # Its only picture is its newest, which stays of a camera that is there.
    await house.retainer.round()
    left = [row["camera_key"] for row in await evidence.rows("SELECT camera_key FROM cameras")]
    assert left == [other]
    assert await house.frames() == []
    assert await evidence.rows("SELECT camera_key FROM camera_leases WHERE camera_key = :key", key=removed) == []


async def test_a_case_that_was_closed_by_somebody_who_died_is_settled(house: House) -> None:
    frame = await house.evidence.frame(NOW_MS)
    case = await house.evidence.case((ItemKind.FRAME, frame))
    scoped = house.store.as_(house.evidence.somebody)
    await scoped.write(cases.change, case, CaseChange(state=CaseState.CLOSED), "", NOW_MS)
    assert await house.evidence.classes() == {frame: "case"}
    await house.retainer.settle_cases()
    assert await house.evidence.classes() == {frame: "normal"}
    assert await house.evidence.rows("SELECT settled FROM cases") == [{"settled": 1}]


async def test_old_records_of_other_kinds_go(house: House, tmp_path: Path) -> None:
    tenant = house.evidence.scene.tenant_id
    for at in (days_ago(31), days_ago(29)):
        values = {"tenant": tenant, "at": at, "uuid": str(at)}
        await house.store.write(run, _DELIVERY, {**values, "status": "done"})
        await house.store.write(run, _DELIVERY, {**values, "status": "queued", "uuid": f"q{at}"})
        await house.store.write(run, _NOTIFICATION, values)
    for at in (days_ago(3), days_ago(1)):
        held_back = {"tenant": tenant, "at": at, "uuid": f"s{at}", "status": "suppressed"}
        await house.store.write(run, _DELIVERY, held_back)
    sealer = Sealer(house.store, house.clock, AUDIT_KEY, tmp_path, "one")
    for at in (days_ago(731), days_ago(729)):
        await house.store.write(run, _AUDIT, {"tenant": tenant, "at": at})
        await sealer.turn()
    await house.retainer.round()
    count = {
        table: len(await house.evidence.rows(f"SELECT tenant_id FROM {table}"))
        for table in ("deliveries", "notifications", "audit_log")
    }
    assert count == {"deliveries": 4, "notifications": 1, "audit_log": 2}
    assert await house.evidence.rows("SELECT action, object_id FROM audit_log ORDER BY at") == [
        {"action": "x", "object_id": ""},
        {"action": "audit_pruned", "object_id": "1"},
    ]


_DELIVERY = """
INSERT INTO deliveries (delivery_uuid, tenant_id, kind, reason, status, available_at, created_at, finished_at)
VALUES (:uuid, :tenant, 'message', 'x', :status, :at, :at, :at)"""
_NOTIFICATION = """
INSERT INTO notifications (tenant_id, delivery_id, channel, body, sent_at) VALUES (:tenant, 0, 'x', 'x', :at)"""
_AUDIT = "INSERT INTO audit_log (tenant_id, at, actor_kind, actor_id, action) VALUES (:tenant, :at, 'user', '1', 'x')"


async def test_an_object_that_can_not_be_deleted_waits_in_the_bin(house: House) -> None:
    await house.evidence.frame(days_ago(20), full_bytes=None)
    await house.evidence.frame(NOW_MS)
    await house.put_objects()
    [row] = await house.evidence.rows("SELECT * FROM frames WHERE captured_at = :at", at=days_ago(20))
    house.disk.broken = {_key(row, Kind.INFER)}
    await house.retainer.round()
    assert await house.evidence.garbage() == [_key(row, Kind.INFER)]
    house.disk.broken = set()
    await house.retainer.round()
    assert (await house.evidence.garbage(), await house.orphans()) == ([], [])


async def test_what_is_wrong_with_one_camera_keeps_no_other_from_being_swept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for camera in range(2):
        await house.evidence.frame(days_ago(20), camera=camera, full_bytes=None)
        await house.evidence.frame(NOW_MS, camera=camera, full_bytes=None)
    await house.put_objects()
    broken = house.evidence.scene.camera_keys[0]
    real = Retainer._age_frames

    async def fails_for_one(self: Retainer, camera: CameraRef, now_ms: int) -> Swept:
        if camera.camera_key == broken:
            raise ValueError("a row that makes no sense")
        return await real(self, camera, now_ms)

    monkeypatch.setattr(Retainer, "_age_frames", fails_for_one)
    await house.retainer.round()
    left = await house.evidence.rows("SELECT camera_key FROM frames WHERE captured_at < :now", now=NOW_MS)
    assert [row["camera_key"] for row in left] == [broken]
    (failed,) = [one for one in await house.reports() if one[0] == "failed"]
    assert failed == ("failed", 1, 0, f"camera {broken}: ValueError: a row that makes no sense")
    assert await house.store.read(upkeep.round_ended_at) == NOW_MS, "the round is over, not begun again and again"


async def test_below_the_floor_one_broken_camera_leaves_it_to_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for camera in range(2):
        await house.evidence.frame(days_ago(2), camera=camera, full_bytes=None)
        await house.evidence.frame(NOW_MS, camera=camera, full_bytes=None)
    await house.put_objects()
    house.disk.free = 8950
    broken, sound = house.evidence.scene.camera_keys[:2]
    real = Retainer._sweep_clips

    async def fails_for_one(self: Retainer, camera: CameraRef, *rest: Any) -> Swept:
        if camera.camera_key == broken:
            raise ValueError("a row that makes no sense")
        return await real(self, camera, *rest)

    monkeypatch.setattr(Retainer, "_sweep_clips", fails_for_one)
    await house.retainer_with(replace(POLICY, free_min_bytes=9000)).keep_floor()
    rows = await house.evidence.rows(
        "SELECT camera_key FROM frames WHERE captured_at < :now AND epoch_id IS NULL", now=NOW_MS
    )
    assert [row["camera_key"] for row in rows] == [sound]


async def test_one_dispatcher_at_a_time_has_the_duty_and_rounds_come_when_due(house: House) -> None:
    one, other = house.retainer, house.retainer_with(POLICY, "other")
    old = await house.evidence.frame(days_ago(13.99))
    await house.evidence.frame(NOW_MS)
    await one.turn()
    await other.turn()
    assert await house.store.read(upkeep.round_ended_at) == NOW_MS
    await house.clock.advance(20 * MIN)
    await one.turn()
    assert old in await house.frames(), "a round an hour"
    await house.store.write(upkeep.ask_round, admin_of(house.evidence.scene.tenant_id), "", house.clock.now_ms())
    await one.turn()
    assert old not in await house.frames(), "unless somebody asks"
    await house.clock.advance(20 * 1000)
    await other.turn()
    [duty] = await house.evidence.rows("SELECT owner FROM duties")
    assert duty == {"owner": "one"}
    await house.clock.advance(20 * 1000)
    await other.turn()
    [duty] = await house.evidence.rows("SELECT owner FROM duties")
    assert duty == {"owner": "other"}, "whoever had it is gone"


async def test_two_rounds_at_once_do_no_harm(house: House) -> None:
    for number in range(60):
        await house.evidence.frame(days_ago(20) + number * MIN)
    await house.evidence.frame(NOW_MS)
    await house.put_objects()
    retainers = [house.retainer_with(POLICY, name) for name in ("one", "other")]
    cameras = await house.store.read(upkeep.cameras, 0)
    tallies = [Tally(), Tally()]
    await asyncio.gather(
        *(one.sweep_camera(cameras[0], tally) for one, tally in zip(retainers, tallies, strict=True))
    )
    counts = [report.count for tally in tallies for report in tally.reports() if report.what == "frames"]
    assert sum(counts) == 60
    await house.clock.advance(MIN)  # whoever has the duty now is gone
    await house.retainer.round()
    assert (await house.missing(), await house.orphans(), await house.evidence.garbage()) == ([], [], [])


@pytest.mark.parametrize("db_kind", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_many_frames_are_found_by_an_index(store: Store, db_kind: str) -> None:
    evidence = await Evidence.gather(store)
    await store.write(many_frames, evidence.scene.tenant_id, evidence.scene.camera_keys[0], evidence.scene.epoch_id)
    plan = await explain(store, db_kind, f"{retention._FRAMES} {_PAGE}", evidence.scene.camera_keys[0])
    assert "ix_frames_camera_key_captured_at" in plan, plan
    assert "ix_events_best_frame_id" in plan or db_kind == "postgres", plan
    newest = await explain(store, db_kind, retention._NEWEST, evidence.scene.camera_keys[0])
    assert "ix_frames_camera_key_captured_at" in newest, newest


_PAGE = """WHERE f.camera_key = :camera_key AND f.captured_at >= 5 AND f.captured_at < 900
AND (f.captured_at > 5 OR f.frame_id > 5) ORDER BY f.captured_at, f.frame_id LIMIT 500"""
_MANY = """
INSERT INTO frames (frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, worker_at, received_at,
  collector_status, epoch_id, infer_bytes)
VALUES (:uuid, :tenant, 1, :camera, 1, :seq, :seq, 1, 1, 'ok', :epoch, 100)"""


async def many_frames(tx: Any, tenant: int, camera: int, epoch: int) -> None:
    for start in range(0, 100_000 if tx.dialect == "sqlite" else 20_000, 10_000):
        await tx.many(
            _MANY,
            [
                {"uuid": f"f{seq}", "tenant": tenant, "camera": camera + seq % 2 * 1000, "seq": seq, "epoch": epoch}
                for seq in range(start, start + 10_000)
            ],
        )


async def explain(store: Store, db_kind: str, sql: str, camera_key: int) -> str:
    if db_kind != "sqlite":
        await store.write(run, "ANALYZE frames" if db_kind == "postgres" else "ANALYZE TABLE frames", {})
    words = {"sqlite": "EXPLAIN QUERY PLAN", "postgres": "EXPLAIN", "mariadb": "EXPLAIN"}[db_kind]
    rows = await store.read(select, f"{words} {sql}", {"camera_key": camera_key})
    return " ".join(str(value) for row in rows for value in row.values())


async def test_the_database_is_sound_after_a_round(house: House) -> None:
    event = await house.evidence.event(days_ago(181), frames=3)
    await house.evidence.clip(event, days_ago(181))
    await house.evidence.event(days_ago(100), frames=3, retention_class="quarantine")
    await house.evidence.frame(NOW_MS)
    await house.retainer.round()
    findings = await house.store.read(check._run_checks)
    assert [found.kind for found in findings if "orphan" in found.kind] == []


PLANS = [
    ("events", f"{retention._EVENTS} WHERE e.camera_key = 1 AND e.start_at >= 5 AND e.start_at < 9 LIMIT 500"),
    ("clips", f"{retention._CLIPS} WHERE k.camera_key = 1 AND k.begin_at > 5 AND k.begin_at < 9 LIMIT 500"),
    ("oldest picture", retention._OLDEST_PICTURE.replace(":camera_key", "1")),
    ("oldest clip", retention._OLDEST_CLIP.replace(":camera_key", "1")),
    ("frame usage", upkeep._FRAME_USAGE.replace(":camera_key", "1").replace(":since", "5")),
    ("clip usage", upkeep._CLIP_USAGE.replace(":camera_key", "1").replace(":since", "5")),
    *((name, aged.find.replace(":tenant_id", "1").replace(":cutoff", "5")) for name, aged in upkeep.AGED.items()),
    (
        "deliveries",
        upkeep.OLD_DELIVERIES.replace(":status", "'done'").replace(":cutoff", "5").replace(":finished_before", "6"),
    ),
    ("jobs", "DELETE FROM inference_jobs WHERE frame_id IN (1, 2) AND status IN ('done') AND finished_at < 5"),
    ("tags", "DELETE FROM frame_tags WHERE frame_id IN (1, 2)"),
]


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("sql", [plan[1] for plan in PLANS], ids=[plan[0] for plan in PLANS])
async def test_no_step_of_a_round_reads_a_whole_table(store: Store, sql: str) -> None:
    rows = await store.read(select, f"EXPLAIN QUERY PLAN {sql}", {})
    assert rows
    assert [row["detail"] for row in rows if row["detail"].startswith("SCAN")] == []
