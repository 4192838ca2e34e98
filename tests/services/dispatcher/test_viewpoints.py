"""The test viewpoints of the dispatcher's specification (section 10), each at the specification's values."""

import json

import pytest

from camserver.domain.vocabulary import SHIPPED_VERSION
from tests.fakes.analyzer import Fault, Rule, Seen
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import NOW_MS

SEC = 1000
HUMAN = Seen("human", ("count.single", "top_color.red"), confidence=0.8, count_hint=1)
ANIMAL = Seen("animal", ("animal.dog",), confidence=0.8)
NOTHING = Seen()


# 10.1 In order


async def test_10_1_a_job_is_claimed(stage: Stage) -> None:
    stage.analyzer.add_fault(Fault.hold())
    uuids = [await stage.look(camera, HUMAN) for camera in range(3)]
    async with stage.dispatcher():
        await stage.until_status(running=3)
        jobs = await stage.jobs()
        assert [job["attempt"] for job in jobs] == [1, 1, 1]
        assert {job["locked_until"] for job in jobs} == {NOW_MS + 60 * SEC}
        assert len({job["locked_by"] for job in jobs}) == 1
        await stage.analyzer.until_received(4)  # and the vocabulary
        stage.analyzer.heal()
        await stage.until_status(done=3)
    assert {record.request_id for record in stage.analyzer.analyses()} == set(uuids), (
        "each frame was asked about once"
    )
    assert len(stage.analyzer.analyses()) == 3
    assert {job["locked_by"] for job in await stage.jobs()} == {None}


async def test_10_1_the_result_is_written_to_the_frame(stage: Stage) -> None:
    uuid = await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(done=1)
    (frame,) = await stage.rows("SELECT * FROM frames")
    assert frame["frame_uuid"] == uuid
    assert (frame["analyzed"], frame["detected"], frame["primary_event"]) == (1, 1, "human")
    assert (frame["severity"], frame["unknown_flag"], frame["count_hint"]) == (0, 0, 1)
    assert frame["confidence"] == pytest.approx(0.8)
    assert frame["retention_class"] == "normal"
    assert json.loads(frame["tags_json"]) == ["count.single", "top_color.red"]
    assert json.loads(frame["result_json"])["model_info"] == {"name": "fake", "version": "1"}
    tags = await stage.rows("SELECT tag_id, tag_group FROM frame_tags ORDER BY tag_id")
    assert [(tag["tag_id"], tag["tag_group"]) for tag in tags] == [
        ("count.single", "notify_safe"),
        ("top_color.red", "notify_safe"),
    ]
    (job,) = await stage.jobs()
    assert (job["attempt"], job["last_error"], job["finished_at"]) == (1, None, NOW_MS)
    assert await stage.rows("SELECT tag_id FROM event_tags ORDER BY tag_id") == [
        {"tag_id": "count.single"},
        {"tag_id": "top_color.red"},
    ]


async def test_10_1_a_frame_that_shows_nothing_is_analyzed_and_opens_no_event(stage: Stage) -> None:
    await stage.look(0, NOTHING)
    async with stage.dispatcher():
        await stage.until_status(done=1)
    (frame,) = await stage.rows("SELECT * FROM frames")
    assert (frame["analyzed"], frame["detected"], frame["event_id"]) == (1, 0, None)
    assert await stage.events() == []


async def test_10_1_an_event_opens_merges_and_closes(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS))
        (opened,) = await stage.events()
        assert (opened["state"], opened["start_at"], opened["last_seen_at"]) == ("open", NOW_MS, NOW_MS)
        assert opened["end_at"] is None
        await stage.clock.advance(60 * SEC)
        await stage.analyzed((0, HUMAN, NOW_MS + 60 * SEC))
        (merged,) = await stage.events()
        assert (merged["event_id"], merged["state"]) == (opened["event_id"], "open")
        assert (merged["last_seen_at"], merged["frame_count"]) == (NOW_MS + 60 * SEC, 2)
        await stage.clock.advance(200 * SEC)
        await until_events(stage, ["closed"])
    (closed,) = await stage.events()
    assert closed["end_at"] == NOW_MS + 60 * SEC, "it ended when it was last seen, not when that was noticed"
    kinds = [row["kind"] for row in await stage.rows("SELECT kind FROM changes ORDER BY seq")]
    # Its clip is told about too: when it is asked for, and what became of it.
    clips = await stage.rows("SELECT state FROM clips")
    about_clips = sum(1 if clip["state"] == "asked" else 2 for clip in clips)
    assert kinds.count("event") - about_clips == 3, "opened, merged, closed"


async def test_10_1_the_best_frame_is_chosen(stage: Stage) -> None:
    """severity * 1000 + confidence * 100 - blur_score * 0.1, replaced only by a higher one."""
    plain = Seen("human", ("count.single",), confidence=0.8)
    sharper = 10.0
    async with stage.dispatcher():
        first = await stage.look(0, plain, NOW_MS, blur_score=20.0)
        await stage.until_nothing_waits()
        assert [event["best_uuid"] for event in await stage.events()] == [first]

        await stage.look(0, plain, NOW_MS + 10 * SEC, blur_score=20.0)  # equal: the first stays
        await stage.until_nothing_waits()
        assert [event["best_uuid"] for event in await stage.events()] == [first]

        sharp = await stage.look(0, plain, NOW_MS + 20 * SEC, blur_score=sharper)
        await stage.until_nothing_waits()
        assert [event["best_uuid"] for event in await stage.events()] == [sharp]

        severe = await stage.look(
            0, Seen("human", ("behavior.loitering",), confidence=0.5), NOW_MS + 30 * SEC, blur_score=100.0
        )
        await stage.until_nothing_waits()
        await stage.look(0, Seen("human", ("count.single",), confidence=1.0), NOW_MS + 40 * SEC, blur_score=0.0)
        await stage.until_nothing_waits()
    (event,) = await stage.events()
    assert event["best_uuid"] == severe
    assert event["best_score"] == pytest.approx(2 * 1000 + 0.5 * 100 - 100.0 * 0.1)
    assert (event["severity_max"], event["confidence_max"]) == (2, pytest.approx(1.0))
    assert event["retention_class"] == "quarantine", "the strongest of its frames"


# 10.2 Out of order


async def test_10_2_a_refused_connection_queues_the_job_again(stage: Stage) -> None:
    await stage.analyzer.refuse()
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        (job,) = await stage.jobs()
        assert job["attempt"] == 0, "the attempt is given back"
        assert "connection" in job["last_error"]
        assert NOW_MS + 1 * SEC <= job["available_at"] <= NOW_MS + 2 * SEC
        await stage.analyzer.accept()
        await stage.clock.advance(3 * SEC)
        await stage.until_status(done=1)
    assert (await stage.jobs())[0]["attempt"] == 1


async def test_10_2_a_vocabulary_mismatch_sends_the_vocabulary_again(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzer.until_received(1)
        stage.analyzer.forget_vocabulary()
        await stage.look(0, HUMAN)
        await stage.until_status(done=1)
    calls = [(record.method, record.status) for record in stage.analyzer.requests]
    assert calls == [("PUT", 200), ("POST", 409), ("PUT", 200), ("POST", 200)]
    assert stage.analyzer.schema_version == SHIPPED_VERSION
    assert (await stage.jobs())[0]["attempt"] == 1, "all in one attempt"


async def test_10_2_an_overloaded_analyzer_is_left_in_peace(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.answer_status(429), times=1))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        (job,) = await stage.jobs()
        assert job["attempt"] == 0
        assert "overloaded" in job["last_error"]
        assert NOW_MS + 1 * SEC <= job["available_at"] <= NOW_MS + 2 * SEC
        await stage.clock.some_turns()
        assert len(stage.analyzer.analyses()) == 1, "not before its time"
        await stage.clock.advance(3 * SEC)
        await stage.until_status(done=1)


async def test_10_2_the_fifth_failed_attempt_is_the_last(stage: Stage) -> None:
    stage.analyzer.add_fault(Fault.answer_status(500))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        for attempt in range(1, 5):
            await stage.until_status(delayed=1)
            (job,) = await stage.jobs()
            assert job["attempt"] == attempt
            pause_ms = job["available_at"] - stage.clock.now_ms()
            assert 2**attempt * SEC // 2 <= pause_ms <= 2**attempt * SEC, "2, 4, 8, 16 s, less up to a half"
            await stage.clock.advance(pause_ms + 2 * SEC)
            await stage.analyzer.until_received(1 + attempt + 1)
        await stage.until_status(dead=1)
        await stage.clock.advance(600 * SEC)
        await stage.clock.some_turns()
    (job,) = await stage.jobs()
    assert (job["status"], job["attempt"]) == ("dead", 5)
    assert "server_error in attempt 5 of 5" in job["last_error"]
    assert len(stage.analyzer.analyses()) == 5


# 10.3 Events


async def test_10_3_the_same_primary_event_merges(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (0, HUMAN, NOW_MS + 90 * SEC))
    (event,) = await stage.events()
    assert (event["frame_count"], event["start_at"], event["last_seen_at"]) == (2, NOW_MS, NOW_MS + 90 * SEC)


async def test_10_3_another_primary_event_is_another_event(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (0, ANIMAL, NOW_MS + 10 * SEC))
    human, animal = await stage.events()
    assert (human["primary_event"], human["state"], human["end_at"]) == ("human", "closed", NOW_MS)
    assert (animal["primary_event"], animal["state"], animal["start_at"]) == ("animal", "open", NOW_MS + 10 * SEC)
    assert human["incident_id"] == animal["incident_id"], "people review the two as one incident"


async def test_10_3_another_camera_is_another_event(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (1, HUMAN, NOW_MS))
    first, second = await stage.events()
    assert first["camera_key"] != second["camera_key"]
    assert first["incident_id"] != second["incident_id"]


async def test_10_3_a_gap_of_more_than_90_seconds_is_another_event(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (0, HUMAN, NOW_MS + 90 * SEC + 1))
    first, second = await stage.events()
    assert (first["state"], first["end_at"]) == ("closed", NOW_MS)
    assert (second["state"], second["start_at"]) == ("open", NOW_MS + 90 * SEC + 1)


async def test_10_3_120_seconds_without_detection_close_the_event(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS))
        await stage.clock.advance(119 * SEC)
        await stage.clock.some_turns()
        await stage.analyzed((0, NOTHING, NOW_MS + 119 * SEC))
        assert [event["state"] for event in await stage.events()] == ["open"], "nothing seen keeps nothing open"
        await stage.clock.advance(1 * SEC)
        await stage.clock.some_turns()
        assert [event["state"] for event in await stage.events()] == ["open"]
        await stage.clock.advance(11 * SEC)  # the sweep comes every ten seconds
        await until_events(stage, ["closed"])
    (event,) = await stage.events()
    assert event["end_at"] == NOW_MS


async def until_events(stage: Stage, states: list[str]) -> None:
    async def reached() -> bool:
        return [event["state"] for event in await stage.events()] == states

    await stage.until(reached, f"events {states}")
