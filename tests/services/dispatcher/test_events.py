"""Events through the whole dispatcher, where time and memory matter; single rules are in tests/domain."""

from tests.fakes.analyzer import Seen
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import NOW_MS

SEC = 1000
HUMAN = Seen("human", ("count.single",), confidence=0.8, count_hint=1)
VEHICLE = Seen("vehicle", confidence=0.8)


async def test_who_stays_three_minutes_loiters_though_the_dispatcher_was_restarted(stage: Stage) -> None:
    for number in range(4):
        async with stage.dispatcher():
            await stage.analyzed((0, HUMAN, NOW_MS + number * 60 * SEC))
        (event,) = await stage.events()
        assert event["severity_max"] == (2 if number == 3 else 0)
    assert event["retention_class"] == "quarantine"
    tags = await stage.rows("SELECT tag_id FROM event_tags ORDER BY tag_id")
    assert [tag["tag_id"] for tag in tags] == ["behavior.loitering", "count.single"]
    assert {tag["tag_id"] for tag in await stage.rows("SELECT tag_id FROM frame_tags")} == {"count.single"}


async def test_looks_that_come_from_behind_join_the_events_of_their_kinds(stage: Stage) -> None:
    """A worker was cut off for ten minutes and sends what it saw, newest first."""
    kinds = [HUMAN, HUMAN, VEHICLE, HUMAN, VEHICLE, VEHICLE]
    looks = [(0, seen, NOW_MS + number * 30 * SEC) for number, seen in enumerate(kinds)]
    await stage.clock.advance(600 * SEC)
    async with stage.dispatcher():
        await stage.analyzed(*reversed(looks))
    spans = {
        (event["primary_event"], event["start_at"], event["last_seen_at"], event["frame_count"])
        for event in await stage.events()
    }
    assert spans == {
        ("human", NOW_MS, NOW_MS + 90 * SEC, 3),
        ("vehicle", NOW_MS + 60 * SEC, NOW_MS + 150 * SEC, 3),
    }
    assert len({event["incident_id"] for event in await stage.events()}) == 1
