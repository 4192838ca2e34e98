"""Applying outcomes: one transaction under fence and version; test_outcomes_machine.py tries every order."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from camserver.domain.dwelling import parted
from camserver.domain.jobs import Delay
from camserver.store import Store
from camserver.store.jobs import Failure, claim, claimed, fail
from camserver.store.outcomes import Applied
from tests.domain.build import analysis, box, nothing
from tests.store.analyzing import TERMS, VOCABULARY, Held, everything, hold, rows, settle
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEC = 1000
HUMAN = analysis("human", tags=("animal.deer", "hazard.fire"), severity=2, confidence=0.75, count_hint=3)


async def table(store: Store, name: str, order: str) -> list[dict[str, Any]]:
    return await store.read(rows, name, order)


async def feed(store: Store) -> list[tuple[str, int | None]]:
    return [(row["kind"], row["object_id"]) for row in await table(store, "changes", "seq") if row["kind"] != "look"]


async def again(store: Store, held: Held) -> Held:
    """The job with its camera's state as it is now. A job that is not held any more stays as it was."""
    found = await store.read(claimed, (held.job.job_id,), (held.job.token,), TERMS)
    return Held(found[0], held.analysis) if found else held


async def settled(store: Store, scene: Scene, seq: int, at_ms: int, said: Any, now_ms: int | None = None) -> Held:
    """A look of the first camera, recorded, analyzed and applied."""
    now_ms = at_ms if now_ms is None else now_ms
    held = await hold(store, scene, 0, seq, at_ms, said, now_ms)
    assert await settle(store, held, now_ms=now_ms) == (Applied.DONE,)
    return held


async def test_everything_a_job_changes_is_changed_at_once(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await hold(fresh_store, scene, 0, 1, NOW_MS, HUMAN, NOW_MS)
    assert await settle(fresh_store, held, now_ms=NOW_MS + 5) == (Applied.DONE,)
    (frame,) = await table(fresh_store, "frames", "frame_id")
    (event,) = await table(fresh_store, "events", "event_id")
    (incident,) = await table(fresh_store, "incidents", "incident_id")
    (job,) = await table(fresh_store, "inference_jobs", "job_id")
    state = (await table(fresh_store, "camera_state", "camera_key"))[0]
    assert (frame["analyzed"], frame["detected"], frame["primary_event"], frame["severity"]) == (1, 1, "human", 2)
    assert (frame["confidence"], frame["count_hint"], frame["retention_class"]) == (0.75, 3, "quarantine")
    assert json.loads(frame["tags_json"]) == ["animal.deer", "hazard.fire"]
    assert json.loads(frame["result_json"]) == {"ok": True}
    assert frame["event_id"] == event["event_id"]
    assert (event["state"], event["open_key"], event["incident_id"]) == (
        "open",
        scene.camera_keys[0],
        incident["incident_id"],
    )
    assert (event["best_frame_id"], event["created_at"]) == (frame["frame_id"], NOW_MS + 5)
    assert (incident["event_count"], incident["last_event_id"]) == (1, event["event_id"])
    assert (job["status"], job["finished_at"], job["locked_token"]) == ("done", NOW_MS + 5, None)
    assert (state["version"], state["open_event_id"], state["incident_id"]) == (
        1,
        event["event_id"],
        incident["incident_id"],
    )
    assert (state["last_detected"], state["last_analyzed_at"]) == (1, NOW_MS)
    tags = [(row["tag_id"], row["tag_group"]) for row in await table(fresh_store, "frame_tags", "tag_id")]
    assert tags == [(tag, VOCABULARY.group_of(tag)) for tag in HUMAN.tags]
    assert [row["start_at"] for row in await table(fresh_store, "event_tags", "tag_id")] == [NOW_MS, NOW_MS]
    assert await feed(fresh_store) == [
        ("frame", frame["frame_id"]),
        ("event", event["event_id"]),
        ("incident", incident["incident_id"]),
    ]


async def test_deliveries_are_made_in_the_same_transaction(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await settled(fresh_store, scene, 1, NOW_MS, HUMAN)
    found = await table(fresh_store, "deliveries", "delivery_id")
    due = [(each.kind.value, each.reason) for each in held.decided(NOW_MS).deliveries]
    assert {"archive", "notify"} <= {kind for kind, _ in due}
    assert [(row["kind"], row["reason"]) for row in found] == due
    for row in found:
        assert (row["status"], row["attempt"], row["available_at"]) == ("queued", 0, NOW_MS)
        assert (row["frame_id"], row["camera_key"]) == (held.job.frame.frame_id, scene.camera_keys[0])
        assert row["event_id"] is not None
    assert len({row["delivery_uuid"] for row in found}) == len(found)


async def test_nothing_seen_changes_the_state_and_no_event(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await settled(fresh_store, scene, 1, NOW_MS, nothing())
    state = (await table(fresh_store, "camera_state", "camera_key"))[0]
    assert (state["version"], state["open_event_id"], state["last_detected"]) == (1, None, 0)
    assert await table(fresh_store, "events", "event_id") == []
    assert await feed(fresh_store) == [("frame", held.job.frame.frame_id)]


async def test_what_stays_is_remembered_exactly(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    said = analysis("vehicle", boxes=(box(0.123456789, 0.3),))
    held = await settled(fresh_store, scene, 1, NOW_MS, said)
    following = await hold(fresh_store, scene, 0, 2, NOW_MS + 60 * SEC, said, NOW_MS + 60 * SEC)
    assert following.job.view.stills == held.decided(NOW_MS).stills != ()


# Under fence and version


async def test_a_lost_fence_writes_nothing(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await hold(fresh_store, scene, 0, 1, NOW_MS, HUMAN, NOW_MS)
    lost = Failure(held.job.job_id, held.job.token, Delay(NOW_MS, refund=False), "x")
    await fresh_store.write(fail, (lost,), NOW_MS)
    before = await fresh_store.read(everything)
    assert await settle(fresh_store, held, now_ms=NOW_MS) == (Applied.FENCE_LOST,)
    assert await fresh_store.read(everything) == before


async def test_a_finished_job_is_not_finished_again(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await settled(fresh_store, scene, 1, NOW_MS, HUMAN)
    before = await fresh_store.read(everything)
    assert await settle(fresh_store, held, now_ms=NOW_MS) == (Applied.FENCE_LOST,)
    assert await fresh_store.read(everything) == before


async def test_a_moved_state_writes_nothing_and_is_decided_again(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    first = await hold(fresh_store, scene, 0, 1, NOW_MS, HUMAN, NOW_MS)
    second = await hold(fresh_store, scene, 0, 2, NOW_MS + SEC, HUMAN, NOW_MS + SEC)
    assert await settle(fresh_store, first, now_ms=NOW_MS + SEC) == (Applied.DONE,)
    before = await fresh_store.read(everything)
    assert await settle(fresh_store, second, now_ms=NOW_MS + SEC) == (Applied.STATE_MOVED,)
    assert await fresh_store.read(everything) == before
    assert await settle(fresh_store, await again(fresh_store, second), now_ms=NOW_MS + SEC) == (Applied.DONE,)
    (event,) = await table(fresh_store, "events", "event_id")
    assert (event["frame_count"], event["last_seen_at"]) == (2, NOW_MS + SEC)


async def test_a_batch_with_conflicts_applies_the_rest(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=4)
    helds = [await hold(fresh_store, scene, camera, 1, NOW_MS, HUMAN, NOW_MS) for camera in range(4)]
    twin = await hold(fresh_store, scene, 3, 2, NOW_MS + SEC, HUMAN, NOW_MS + SEC)
    lost = Failure(helds[1].job.job_id, helds[1].job.token, Delay(NOW_MS, refund=False), "x")
    await fresh_store.write(fail, (lost,), NOW_MS)
    stale = Held(replace(helds[2].job, view=replace(helds[2].job.view, version=7)), HUMAN)
    # Not in the order of the cameras: answers come in the order of the question.
    answers = await settle(fresh_store, helds[3], stale, twin, helds[0], helds[1], now_ms=NOW_MS)
    assert answers == (
        Applied.DONE,
        Applied.STATE_MOVED,
        Applied.STATE_MOVED,
        Applied.DONE,
        Applied.FENCE_LOST,
    )
    events = await table(fresh_store, "events", "event_id")
    assert {event["camera_key"] for event in events} == {scene.camera_keys[0], scene.camera_keys[3]}


async def test_racing_dispatchers_apply_each_job_once(fresh_pair: tuple[Store, Store]) -> None:
    scene = await furnish(fresh_pair[0], cameras=3)
    helds = [
        await hold(fresh_pair[0], scene, camera, seq, NOW_MS + seq * SEC, HUMAN, NOW_MS + seq * SEC)
        for seq in range(1, 6)
        for camera in range(3)
    ]
    done: list[int] = []

    async def work(store: Store, held: Held) -> None:
        for _ in range(100):
            (answer,) = await settle(store, held, now_ms=NOW_MS + 10 * SEC)
            if answer is Applied.STATE_MOVED:
                held = await again(store, held)
                continue
            if answer is Applied.DONE:
                done.append(held.job.job_id)
            return
        raise AssertionError("it never came through")

    # Each job by two dispatchers at once, as after a lock that seemed lost.
    await asyncio.gather(*(work(store, held) for held in helds for store in fresh_pair))
    assert sorted(done) == sorted(held.job.job_id for held in helds)
    events = await table(fresh_pair[0], "events", "event_id")
    assert [event["frame_count"] for event in events] == [5, 5, 5]
    states = await table(fresh_pair[0], "camera_state", "camera_key")
    assert [state["version"] for state in states] == [5, 5, 5]


# Events


async def test_a_frame_that_can_not_merge_closes_the_open_event_and_opens_another(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await settled(fresh_store, scene, 1, NOW_MS, HUMAN)
    await settled(fresh_store, scene, 2, NOW_MS + 60 * SEC, analysis("vehicle"))
    first, second = await table(fresh_store, "events", "event_id")
    assert (first["state"], first["end_at"], first["open_key"]) == ("closed", NOW_MS, None)
    assert (second["state"], second["primary_event"]) == ("open", "vehicle")
    # One incident holds the two together.
    assert first["incident_id"] == second["incident_id"]
    (incident,) = await table(fresh_store, "incidents", "incident_id")
    assert (incident["event_count"], incident["last_event_id"]) == (2, second["event_id"])
    told = (await feed(fresh_store))[3:]
    assert ("event", first["event_id"]) in told
    assert ("incident", incident["incident_id"]) in told, "whoever reviewed it has another event to look at"


async def test_a_late_frame_joins_what_covers_it_and_moves_its_start(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    at = NOW_MS + 600 * SEC
    await settled(fresh_store, scene, 1, at, HUMAN)
    state = (await table(fresh_store, "camera_state", "camera_key"))[0]
    late = await settled(fresh_store, scene, 2, at - 60 * SEC, HUMAN, now_ms=at + 100 * SEC)
    assert late.job.frame.late
    (event,) = await table(fresh_store, "events", "event_id")
    assert (event["start_at"], event["last_seen_at"], event["state"]) == (at - 60 * SEC, at, "open")
    assert {row["start_at"] for row in await table(fresh_store, "event_tags", "tag_id")} == {at - 60 * SEC}
    moved = (await table(fresh_store, "camera_state", "camera_key"))[0]
    # The version moves, since a decision made on the old start would put it back; nothing else does.
    assert moved["version"] == state["version"] + 1
    for name in ("open_event_id", "stills", "last_detected", "last_analyzed_at"):
        assert moved[name] == state[name]


async def test_frames_from_behind_that_are_claimed_together_find_their_own_cameras_events(
    fresh_store: Store,
) -> None:
    cameras = 20
    scene = await furnish(fresh_store, cameras)
    at = NOW_MS + 600 * SEC
    said = (HUMAN, analysis("animal", tags=("animal.deer",)))
    # Of each camera an event of people, then one of animals; the last camera has nothing.
    for number, seen in enumerate(said):
        helds = [
            await hold(fresh_store, scene, camera, 1 + number, at + number * 10 * SEC, seen, at)
            for camera in range(cameras - 1)
        ]
        assert set(await settle(fresh_store, *helds, now_ms=at)) == {Applied.DONE}
    for camera in range(cameras):
        await recorded(fresh_store, look(scene, camera, 3, at - 30 * SEC, received_at=at + 200 * SEC))
    jobs = await fresh_store.write(claim, "d", "all", cameras, at + 200 * SEC, TERMS)
    assert {job.frame.camera_key for job in jobs} == set(scene.camera_keys)
    events = await table(fresh_store, "events", "event_id")
    for job in jobs:
        own = {row["event_id"] for row in events if row["camera_key"] == job.frame.camera_key}
        assert {event.event_id for event in job.view.covering} == own
        assert [event.primary_event for event in job.view.covering] == (["animal", "human"] if own else [])
        assert {event.incident_id for event in job.view.covering} <= {
            incident.incident_id for incident in (*job.view.incidents, job.view.incident) if incident is not None
        }
    assert sum(len(job.view.covering) for job in jobs) == 2 * (cameras - 1)


async def test_a_late_frame_far_from_everything_makes_a_closed_event(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    at = NOW_MS + 3600 * SEC
    await settled(fresh_store, scene, 1, at, HUMAN)
    await settled(fresh_store, scene, 2, at - 1800 * SEC, HUMAN, now_ms=at)
    current, past = await table(fresh_store, "events", "event_id")
    assert (past["state"], past["end_at"], past["open_key"]) == ("closed", at - 1800 * SEC, None)
    assert current["state"] == "open"
    state = (await table(fresh_store, "camera_state", "camera_key"))[0]
    assert (state["open_event_id"], state["incident_id"]) == (current["event_id"], current["incident_id"])


async def test_the_next_event_continues_an_incident_that_a_late_frame_began(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    late_at = NOW_MS + 300 * SEC
    await settled(fresh_store, scene, 1, late_at, HUMAN, now_ms=late_at + 121 * SEC)
    await settled(fresh_store, scene, 2, late_at + 60 * SEC, HUMAN, now_ms=late_at + 130 * SEC)
    (incident,) = await table(fresh_store, "incidents", "incident_id")
    assert incident["event_count"] == len(await table(fresh_store, "events", "event_id")) == 2


async def test_a_late_frame_joins_the_event_of_its_own_kind(fresh_store: Store) -> None:
    """A newer event of another kind lies nearer, and one of its kind further away: neither takes it."""
    scene = await furnish(fresh_store)
    vehicle = analysis("vehicle")
    for seq, (at_sec, said) in enumerate(
        [(0, vehicle), (600, HUMAN), (660, HUMAN), (690, vehicle), (720, vehicle), (900, vehicle)], start=1
    ):
        await settled(fresh_store, scene, seq, NOW_MS + at_sec * SEC, said)
    before = await table(fresh_store, "events", "event_id")
    assert [event["primary_event"] for event in before] == ["vehicle", "human", "vehicle", "vehicle"]
    now_ms = NOW_MS + 1200 * SEC
    joined = await settled(fresh_store, scene, 7, NOW_MS + 695 * SEC, HUMAN, now_ms=now_ms)
    assert joined.job.frame.late
    assert {event.primary_event for event in joined.job.view.covering} == {"human", "vehicle"}
    other = await settled(fresh_store, scene, 8, NOW_MS + 650 * SEC, vehicle, now_ms=now_ms)
    new = await settled(fresh_store, scene, 9, NOW_MS + 700 * SEC, analysis("animal"), now_ms=now_ms)
    frames = {row["frame_id"]: row["event_id"] for row in await table(fresh_store, "frames", "frame_id")}
    events = {row["event_id"]: row for row in await table(fresh_store, "events", "event_id")}
    assert frames[joined.job.frame.frame_id] == before[1]["event_id"]
    assert events[before[1]["event_id"]]["last_seen_at"] == NOW_MS + 695 * SEC
    assert events[before[1]["event_id"]]["end_at"] == NOW_MS + 695 * SEC
    assert frames[other.job.frame.frame_id] == before[2]["event_id"]
    past = events[frames[new.job.frame.frame_id]]
    assert (past["primary_event"], past["state"], past["incident_id"]) == (
        "animal",
        "closed",
        before[1]["incident_id"],
    )
    assert len(events) == 5


async def test_a_late_frame_finds_a_long_event_behind_many_short_ones(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    for seq in range(1, 31):
        await settled(fresh_store, scene, seq, NOW_MS + seq * 60 * SEC, analysis("human"))
    at = NOW_MS + 30 * 60 * SEC
    for seq in range(31, 61):
        # Two kinds in turn, a second apart: each is an event of its own.
        said = analysis("vehicle" if seq % 2 else "animal")
        await settled(fresh_store, scene, seq, at + seq * SEC, said)
    assert len(await table(fresh_store, "events", "event_id")) == 31
    late = await settled(fresh_store, scene, 61, at + 30 * SEC, analysis("human"), now_ms=at + 600 * SEC)
    (first, *_) = await table(fresh_store, "events", "event_id")
    assert (first["frame_count"], first["last_seen_at"]) == (31, at + 30 * SEC)
    assert late.job.view.covering[-1].primary_event == "vehicle"


async def test_who_stays_loiters_and_it_is_written_at_once(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    somebody = analysis("human", severity=1, tags=("count.single",))
    for minute in range(5):
        await settled(fresh_store, scene, minute + 1, NOW_MS + minute * 60 * SEC, somebody)
    (event,) = await table(fresh_store, "events", "event_id")
    (incident,) = await table(fresh_store, "incidents", "incident_id")
    assert (event["severity_max"], event["retention_class"], incident["severity_max"]) == (2, "quarantine", 2)
    tags = await table(fresh_store, "event_tags", "tag_id")
    assert [(row["tag_id"], row["tag_group"]) for row in tags] == [
        ("behavior.loitering", "notify_safe"),
        ("count.single", "notify_safe"),
    ]
    assert {row["tag_id"] for row in await table(fresh_store, "frame_tags", "frame_id")} == {"count.single"}
    frames = await table(fresh_store, "frames", "frame_id")
    assert [frame["retention_class"] for frame in frames] == ["normal"] * 3 + ["quarantine"] * 2
    assert [frame["severity"] for frame in frames] == [1] * 5
    notices = [row for row in await table(fresh_store, "deliveries", "delivery_id") if row["kind"] == "notify"]
    assert [row["reason"] for row in notices] == ["severity_rose", "continues"]
    assert ("incident", incident["incident_id"]) in (await feed(fresh_store))[3:]


async def test_a_car_that_was_told_is_remembered_as_told(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    car = analysis("vehicle", boxes=(box(),))
    await settled(fresh_store, scene, 1, NOW_MS, car)
    await settled(fresh_store, scene, 2, NOW_MS + 60 * SEC, analysis("human", boxes=(box(), box(0.6, 0.5, "person"))))
    alone = await settled(fresh_store, scene, 3, NOW_MS + 120 * SEC, car)
    things, dwellers = parted(alone.job.view.stills)
    assert ([still.told for still in things], len(dwellers)) == (["vehicle"], 1)
    assert len(await table(fresh_store, "events", "event_id")) == 2
    frame = (await table(fresh_store, "frames", "frame_id"))[-1]
    assert (frame["detected"], frame["primary_event"], frame["event_id"]) == (1, "vehicle", None)


async def test_a_better_frame_is_the_best_and_an_equal_one_is_not(fresh_store: Store) -> None:
    """A score read back must equal the one written, to the last digit."""
    scene = await furnish(fresh_store)
    said = analysis("human", severity=3, confidence=0.876543219876)
    first = await settled(fresh_store, scene, 1, NOW_MS, said)
    await settled(fresh_store, scene, 2, NOW_MS + SEC, said)
    (event,) = await table(fresh_store, "events", "event_id")
    assert event["best_frame_id"] == first.job.frame.frame_id
    better = await settled(fresh_store, scene, 3, NOW_MS + 2 * SEC, replace(said, confidence=0.876543219877))
    (event,) = await table(fresh_store, "events", "event_id")
    assert event["best_frame_id"] == better.job.frame.frame_id


async def test_an_older_frame_does_not_take_back_the_verdict(fresh_store: Store) -> None:
    """Decided out of order, the newest analyzed frame still tells the gate whether somebody is there."""
    scene = await furnish(fresh_store)
    await settled(fresh_store, scene, 1, NOW_MS + 30 * SEC, HUMAN)
    await settled(fresh_store, scene, 2, NOW_MS, nothing(), now_ms=NOW_MS + 30 * SEC)
    state = (await table(fresh_store, "camera_state", "camera_key"))[0]
    assert (state["last_detected"], state["last_analyzed_at"]) == (1, NOW_MS + 30 * SEC)


async def test_a_frame_analyzed_again_loses_its_former_tags(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    held = await settled(fresh_store, scene, 1, NOW_MS, HUMAN)
    await fresh_store.write(queue_again, held.job.job_id)
    fresh = await again(fresh_store, held)
    changed = Held(fresh.job, replace(HUMAN, tags=("animal.boar",)))
    assert await settle(fresh_store, changed, now_ms=NOW_MS + SEC) == (Applied.DONE,)
    assert [row["tag_id"] for row in await table(fresh_store, "frame_tags", "tag_id")] == ["animal.boar"]


async def queue_again(tx: Any, job_id: int) -> None:
    await tx.run(
        "UPDATE inference_jobs SET status = 'running', locked_token = :token WHERE job_id = :job_id",
        token="0.1",
        job_id=job_id,
    )


async def test_an_event_is_unknown_once_one_of_its_frames_is(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    flags = []
    for seq, unknown in enumerate((False, True, False), 1):
        at_ms = NOW_MS + seq * 1000
        held = await hold(fresh_store, scene, 0, seq, at_ms, analysis(unknown_flag=unknown), at_ms)
        await settle(fresh_store, held, now_ms=at_ms)
        (event,) = await fresh_store.read(rows, "events", "event_id")
        flags.append(event["unknown_flag"])
    assert flags == [0, 1, 1]
