"""The checker itself: it finds nothing in a sound world, and each violation planted in one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from camserver.objects.keys import Kind, frame_key
from tests.chaos import checker
from tests.chaos.checker import RULES, SHOWN_MAX, Evidence, violations
from tests.chaos.ledger import Acknowledged
from tests.chaos.records import Records

T0 = 1_750_000_000_000
TAGS = '["count.single"]'


def frame(frame_id: int, generation: int, seq: int, **changes: Any) -> dict[str, Any]:
    """A look that passed, was analyzed and belongs to event 1."""
    return {
        "frame_id": frame_id,
        "frame_uuid": f"uuid-{frame_id}",
        "tenant_id": 1,
        "camera_key": 7,
        "generation": generation,
        "seq": seq,
        "captured_at": T0 + frame_id * 1000,
        "received_at": T0 + frame_id * 1000 + 5,
        "late": 0,
        "verdict": "analyze",
        "analyzed": 1,
        "event_id": 1,
        "tags_json": TAGS,
        "epoch_id": 1,
        "infer_bytes": 100,
        "full_bytes": 200,
        **changes,
    }


def acknowledged(row: dict[str, Any]) -> Acknowledged:
    standing = "late" if row["late"] else "live"
    return Acknowledged("cam", row["generation"], row["seq"], row["frame_uuid"], standing)


def objects_of(row: dict[str, Any]) -> dict[str, int]:
    place = (row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"])
    return {frame_key(*place, Kind.INFER): 100, frame_key(*place, Kind.FULL): 200}


def sound() -> Evidence:
    """One camera, two generations, a hole that a killed worker left, a quiet look, a late one, two events."""
    frames = [
        frame(1, 1, 1),
        frame(2, 1, 2),
        frame(3, 1, 4, verdict="skip", analyzed=0, event_id=None, tags_json=None, full_bytes=None),
        frame(4, 2, 1),
        frame(5, 1, 5, late=1, captured_at=T0 + 3500),
        frame(6, 2, 2, event_id=2),
    ]
    quiet = frames[2]
    objects = {key: size for row in frames for key, size in objects_of(row).items()}
    objects = {key: size for key, size in objects.items() if not (quiet["frame_uuid"] in key and size == 200)}
    records = Records(
        cameras=[{"camera_key": 7, "camera_id": "cam"}],
        frames=list(frames),
        tags=[{"frame_id": row["frame_id"], "tags": 1} for row in frames if row["tags_json"]],
        gaps=[{"camera_key": 7, "generation": 1, "first_seq": 3, "last_seq": 3}],
        leases=[
            {"camera_key": 7, "generation": 1, "worker_key": 1, "granted_at": T0, "ended_at": T0 + 3600,
             "last_seq": 5},
            {"camera_key": 7, "generation": 2, "worker_key": 2, "granted_at": T0 + 3600, "ended_at": None,
             "last_seq": 2},
        ],
        jobs=[
            {"job_id": row["frame_id"] + 10, "frame_id": row["frame_id"], "camera_key": 7, "status": "done",
             "attempt": 1, "last_error": None}
            for row in frames if row["analyzed"]
        ],
        events=[
            {"event_id": 1, "event_uuid": "event-1", "camera_key": 7, "incident_id": 1, "state": "closed",
             "start_at": T0 + 1000, "last_seen_at": T0 + 4000, "best_frame_id": 2, "frame_count": 4},
            {"event_id": 2, "event_uuid": "event-2", "camera_key": 7, "incident_id": 1, "state": "open",
             "start_at": T0 + 6000, "last_seen_at": T0 + 6000, "best_frame_id": 6, "frame_count": 1},
        ],
        incidents=[{"incident_id": 1, "camera_key": 7, "event_count": 2}],
        states=[{"camera_key": 7, "open_event_id": 2}, {"camera_key": 8, "open_event_id": None}],
        deliveries=[
            {"delivery_id": 1, "kind": "notify", "frame_id": 1, "site_id": 1, "request": None},
            {"delivery_id": 3, "kind": "summary", "frame_id": None, "site_id": 1, "request": '{"day": "1"}'},
            {"delivery_id": 4, "kind": "summary", "frame_id": None, "site_id": 2, "request": '{"day": "1"}'},
        ],
        changes=[{"seq": seq, "kind": "frame", "created_at": T0 + seq} for seq in (1, 2, 3)],
        counters=[{"last_seq": 3}],
        epochs=[{"epoch_id": 1, "swept_at": T0 + 9000}, {"epoch_id": 2, "swept_at": None}],
        # Of an epoch that nobody has swept yet an orphan is nothing wrong.
        objects={**objects, "e2/t1/c7/d1/uuid-99.infer.jpg": 1},
    )  # fmt: skip
    feed = {1: ("frame", T0 + 1), 2: ("frame", T0 + 2)}
    return Evidence(records, [acknowledged(row) for row in frames], feed, frozenset({"event-1"}), worker_kills=1)


def test_a_sound_world_has_no_violation() -> None:
    assert violations(sound()) == []


def change(table: str, at: int, **values: Any) -> Callable[[Evidence], Evidence]:
    def plant(evidence: Evidence) -> Evidence:
        rows = getattr(evidence.records, table)
        rows[at] = {**rows[at], **values}
        return evidence

    return plant


def lose(table: str, at: int) -> Callable[[Evidence], Evidence]:
    def plant(evidence: Evidence) -> Evidence:
        del getattr(evidence.records, table)[at]
        return evidence

    return plant


def double(table: str, at: int, **values: Any) -> Callable[[Evidence], Evidence]:
    def plant(evidence: Evidence) -> Evidence:
        rows = getattr(evidence.records, table)
        rows.append({**rows[at], **values})
        return evidence

    return plant


def lose_object(part: str) -> Callable[[Evidence], Evidence]:
    def plant(evidence: Evidence) -> Evidence:
        objects = evidence.records.objects
        del objects[next(key for key in objects if part in key)]
        return evidence

    return plant


def add_object(key: str) -> Callable[[Evidence], Evidence]:
    def plant(evidence: Evidence) -> Evidence:
        evidence.records.objects[key] = 100
        return evidence

    return plant


def retell(**values: Any) -> Callable[[Evidence], Evidence]:
    return lambda evidence: replace(evidence, **values)


PLANTED: list[tuple[str, Callable[[Evidence], Evidence], str]] = [
    ("acknowledged_looks_are_rows", lose("frames", 1), r"look \('cam', 1, 2\) has 0 rows"),
    ("acknowledged_looks_are_rows", change("frames", 1, frame_uuid="other"), "is frame other, not uuid-2"),
    ("acknowledged_looks_are_rows", change("frames", 4, late=0), "was said to be late"),
    ("acknowledged_looks_are_rows", lose("cameras", 0), "has 0 rows"),
    ("looks_are_counted_once", double("frames", 0, frame_id=9, frame_uuid="uuid-9"), r"2 frames of look \(7, 1, 1\)"),
    ("looks_are_counted_once", double("frames", 0, seq=9), "2 frames with frame_uuid uuid-1"),
    ("pictures_are_there", lose_object("uuid-3.infer"), "uuid-3.infer.jpg has None bytes, its row says 100"),
    ("pictures_are_there", change("frames", 0, full_bytes=201), "has 200 bytes, its row says 201"),
    ("swept_epochs_hold_no_orphans", add_object("e1/t1/c7/d1/uuid-99.full.jpg"), "uuid-99.full.jpg has no row"),
    ("swept_epochs_hold_no_orphans", add_object("e1/t1/c7/d1/uuid-1.draft-5"), "uuid-1.draft-5 has no row"),
    ("holes_are_recorded", lose("gaps", 0), r"lacks looks \[3\], the gaps recorded are \[\]"),
    ("holes_are_recorded", double("gaps", 0, first_seq=2, last_seq=2), r"the gaps recorded are \[2, 3\]"),
    ("holes_are_recorded", double("gaps", 0, generation=2), r"lacks looks \[\], the gaps recorded are \[3\]"),
    ("holes_are_recorded", retell(worker_kills=0), "lost 1 looks in 0 kills"),
    ("leases_do_not_overlap", change("leases", 0, ended_at=T0 + 3601), "generation 1 ended at"),
    ("leases_do_not_overlap", change("leases", 0, ended_at=None), "generation 1 ended at None"),
    ("leases_do_not_overlap", lose("leases", 0), r"has generations \[2\]"),
    ("frames_are_of_their_lease", lose("leases", 1), r"is of \(7, 2\), which nobody ever held"),
    ("frames_are_of_their_lease", change("frames", 0, captured_at=T0 - 1001), "its lease"),
    ("frames_are_of_their_lease", change("frames", 1, captured_at=T0 + 4601), "its lease"),
    ("frames_are_of_their_lease", change("leases", 1, last_seq=3), "says last_seq 3, its newest frame is 2"),
    ("owners_never_interleave", change("frames", 4, late=0), "generation 1 is live after one of generation 2"),
    ("frames_that_passed_have_one_job", lose("jobs", 0), r"frame 1 \(analyze\) has not 1 job"),
    ("frames_that_passed_have_one_job", double("jobs", 0, job_id=99), r"frame 1 \(analyze\) has not 1 job"),
    ("frames_that_passed_have_one_job", double("jobs", 0, frame_id=3), r"frame 3 \(skip\) has not 0 job"),
    ("frames_that_passed_have_one_job", double("jobs", 0, frame_id=99), "of frame 99, which does not exist"),
    ("jobs_are_done", change("jobs", 0, status="dead", last_error="why"), "job 11 is dead after 1 attempts: why"),
    ("jobs_are_done", change("frames", 0, analyzed=0), "job 11 is done, its frame says analyzed = 0"),
    ("jobs_are_done", change("frames", 2, analyzed=1), "frame 3 is analyzed and has no job"),
    ("tags_are_written_once", lose("tags", 0), "frame 1 has 0 tag rows"),
    ("tags_are_written_once", change("tags", 0, tags=2), "frame 1 has 2 tag rows"),
    ("events_count_their_frames", change("events", 0, frame_count=5), "event 1 counts 5 frames and has 4"),
    ("events_count_their_frames", change("events", 0, best_frame_id=6), "best frame 6, which is none of its own"),
    ("events_count_their_frames", change("events", 0, camera_key=8), "holds frames of another camera"),
    ("events_count_their_frames", change("events", 0, last_seen_at=T0), "event 1 does not span its frames"),
    ("events_count_their_frames", lose("events", 0), "frames belong to event 1, which does not exist"),
    ("incidents_count_their_events", change("incidents", 0, event_count=3), "incident 1 counts 3 events and has 2"),
    ("incidents_count_their_events", change("incidents", 0, camera_key=8), "holds events of another camera"),
    ("incidents_count_their_events", lose("incidents", 0), "events belong to incident 1, which does not exist"),
    ("a_camera_has_one_open_event", change("events", 0, state="open"), r"has open events \[1, 2\]"),
    ("a_camera_has_one_open_event", change("events", 1, state="closed"), r"open events \[\], its state says \[2\]"),
    ("a_camera_has_one_open_event", lose("states", 0), r"open events \[2\], its state says \[\]"),
    ("deliveries_are_made_once", double("deliveries", 0, delivery_id=2), r"2 deliveries of \('notify', 1\)"),
    ("deliveries_are_made_once", double("deliveries", 1, delivery_id=5), r"2 deliveries of \('summary', 1,"),
    ("events_people_saw_are_there", retell(events_seen=frozenset({"gone"})), "event gone was in the feed"),
    ("the_feed_has_no_hole", lose("changes", 1), r"counts to 3; missing \[2\]"),
    ("the_feed_has_no_hole", change("counters", 0, last_seq=2), r"beyond it \[3\]"),
    ("the_feed_has_no_hole", double("changes", 0), "2 changes with seq 1"),
    ("the_feed_reader_missed_nothing", retell(feed={1: ("frame", T0 + 1), 3: ("frame", T0 + 3)}), r"shown \[2\]"),
    ("the_feed_reader_missed_nothing", retell(feed={1: ("event", T0 + 1)}), "change 1 was"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "plant", "said"), PLANTED, ids=[f"{rule}-{said}" for rule, _, said in PLANTED])
def test_a_planted_violation_is_found(rule: str, plant: Callable[[Evidence], Evidence], said: str) -> None:
    found = list(getattr(checker, rule)(plant(sound())))
    assert found
    with pytest.raises(AssertionError, match=said):
        raise AssertionError("\n".join(found))


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in PLANTED}


def test_a_flood_of_violations_is_cut_short() -> None:
    evidence = sound()
    many = [replace(acknowledged(frame(1, 1, 1)), seq=seq) for seq in range(100, 100 + SHOWN_MAX + 5)]
    found = violations(replace(evidence, acknowledged=many))
    assert found[-1] == "… and 5 more of acknowledged_looks_are_rows"
    assert len(found) == SHOWN_MAX + 1
