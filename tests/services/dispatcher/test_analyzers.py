"""Several analyzers: shared by load, watched, each with the vocabulary; one that dies costs nobody anything."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.services.dispatcher.analyzers import REFUSED_PREVIOUS
from camserver.store import Store, analyzers
from camserver.store.analyzers import SeenBy
from tests.fakes.analyzer import FakeAnalyzer, Fault, Rule, Seen
from tests.rig.polling import until
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import NOW_MS
from tests.store.test_questions import say

SEC = 1000
HUMAN = Seen("human", ("count.single",))
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[list[FakeAnalyzer]]:
    async with AsyncExitStack() as stack:
        fakes = [FakeAnalyzer(tmp_path / f"vocabulary-{number}.json") for number in range(3)]
        yield [await stack.enter_async_context(fake) for fake in fakes]


@pytest.fixture
async def stage(store: Store, three: list[FakeAnalyzer], tmp_path: Path) -> Stage:
    made = await Stage.open(store, three[0], tmp_path, cameras=12)
    chosen = replace(made.settings.analyzer, urls=tuple(fake.url for fake in three))
    made.settings = replace(made.settings, analyzer=chosen)
    return made


async def some_looks(stage: Stage, count: int = 12, at_ms: int = NOW_MS) -> None:
    for number in range(count):
        await stage.look(number % 12, HUMAN, at_ms + number // 12)


async def rows(stage: Stage) -> tuple[SeenBy, ...]:
    return await stage.store.read(analyzers.seen, stage.clock.now_ms())


async def test_questions_go_to_the_least_loaded(stage: Stage, three: list[FakeAnalyzer]) -> None:
    for fake in three:
        fake.add_fault(Fault.hold())
    await some_looks(stage)
    async with stage.dispatcher():
        await until(lambda: sum(fake.in_flight for fake in three) == 12, "twelve questions asked")
        assert [fake.in_flight for fake in three] == [4, 4, 4]
        for fake in three:
            fake.heal()
        await stage.until_status(done=12)
    assert {fake.schema_version for fake in three} == {SHIPPED_VERSION}, "each has the vocabulary"


async def test_one_dead_of_three_costs_no_job_an_attempt(stage: Stage, three: list[FakeAnalyzer]) -> None:
    await three[1].refuse()
    await some_looks(stage, 36)
    async with stage.dispatcher():
        await stage.pass_time_until_nothing_waits(1)
        await stage.until_status(done=36)
        asked = [len(fake.analyses()) for fake in three]
        assert asked[1] == 0
        assert asked[0] + asked[2] == 36, "each was answered once"
        # It is looked after, but no further job is spent on it.
        await stage.pass_time(30, 5)
        await some_looks(stage, 12, NOW_MS + 60 * SEC)
        await stage.until_status(done=48)
        await three[1].accept()
        await stage.pass_time(10, 5)
        three[0].add_fault(Fault.hold())
        three[2].add_fault(Fault.hold())
        await some_looks(stage, 12, NOW_MS + 120 * SEC)
        await until(lambda: len(three[1].analyses()) > 0, "the one that came back is asked")
        three[0].heal()
        three[2].heal()
        await stage.until_status(done=60)
    assert {job["attempt"] for job in await stage.jobs()} == {1}


@on_one_database
async def test_one_that_hangs_does_not_hold_the_others_up(stage: Stage, three: list[FakeAnalyzer]) -> None:
    three[0].add_fault(Fault.hold())
    stage.with_jobs(batch=2)
    async with stage.dispatcher():
        await some_looks(stage, 24)
        await until(lambda: sum(len(fake.analyses()) for fake in three) == 24, "all are asked about")
        held = three[0].in_flight
        assert 1 <= held <= 2
        await stage.until_status(done=24 - held, running=held)
        three[0].heal()
        await stage.until_status(done=24)


@on_one_database
async def test_a_job_that_failed_at_one_goes_to_another(stage: Stage, three: list[FakeAnalyzer]) -> None:
    for fake in three:
        fake.add_fault(Rule(Fault.answer_status(500), times=1))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        (failed,) = [fake for fake in three if fake.analyses()]
        await stage.pass_time(4, 1)
        await until(lambda: sum(len(fake.analyses()) for fake in three) == 2, "the second attempt")
        assert len(failed.analyses()) == 1
        for fake in three:
            fake.heal()
        await stage.pass_time(30, 5)
        await stage.until_status(done=1)


@on_one_database
@pytest.mark.parametrize(
    "nonsense",
    [Fault.malformed(), Fault.answer_status(404), Fault.answer_status(401), Fault.answer_status(409)],
    ids=["malformed", "404", "401", "409"],
)
async def test_a_quick_one_that_talks_nonsense_kills_no_job(
    stage: Stage, three: list[FakeAnalyzer], nonsense: Fault
) -> None:
    """It is always free, so everything would go there. The honest ones are slow, and asked before a job dies."""
    three[0].add_fault(nonsense)
    for fake in three[1:]:
        fake.add_fault(Fault.hold())
    stage.with_jobs(batch=2, max_attempt=2)
    async with stage.dispatcher():
        await some_looks(stage, 36)
        await until(lambda: sum(fake.in_flight for fake in three[1:]) == 4, "the honest ones are full")
        await stage.pass_time(20, 1)
        assert "dead" not in await stage.counts()
        asked = len(three[0].analyses())
        for fake in three[1:]:
            fake.heal()
        await stage.pass_time_until_nothing_waits(1)
        assert await stage.counts() == {"done": 36}
    assert asked <= 60, "it is left alone after a while"


@on_one_database
async def test_an_outage_of_sense_kills_no_backlog(stage: Stage, three: list[FakeAnalyzer]) -> None:
    """When all of them talk nonsense they count as away, and only trials cost attempts."""
    for fake in three:
        fake.add_fault(Fault.malformed())
    async with stage.dispatcher():
        await some_looks(stage, 60)
        await stage.pass_time(120, 2)
        for fake in three:
            fake.heal()
        await stage.pass_time_until_nothing_waits(2)
    assert await stage.counts() == {"done": 60}


@on_one_database
async def test_a_picture_is_given_up_only_when_two_refuse_it(stage: Stage, three: list[FakeAnalyzer]) -> None:
    three[0].add_fault(Fault.answer_status(400))
    await some_looks(stage)
    async with stage.dispatcher():
        await stage.until_status(done=12)
        assert {job["attempt"] for job in await stage.jobs()} == {1}
        for fake in three[1:]:
            fake.add_fault(Fault.answer_status(400))
        await some_looks(stage, 1, NOW_MS + SEC)
        await stage.until_status(done=12, dead=1)


async def test_nobody_there_gives_back_what_was_at_hand(stage: Stage, three: list[FakeAnalyzer]) -> None:
    """Jobs that were claimed ahead when the last analyzer vanished are not kept, and lose no attempt."""
    stage.with_jobs(batch=4, breaker_failures=1)
    for fake in three:
        fake.add_fault(Fault.hold())
    await some_looks(stage, 18)
    async with stage.dispatcher():
        await until(lambda: sum(fake.in_flight for fake in three) == 12, "twelve questions asked")

        async def some_are_at_hand() -> bool:
            return (await stage.counts())["running"] > 12

        await stage.until(some_are_at_hand, "jobs at hand")
        for fake in three:
            await fake.refuse()

        async def none_is_held() -> bool:
            return "running" not in await stage.counts()

        await stage.until(none_is_held, "all given back")
        assert {job["attempt"] for job in await stage.jobs()} == {0}
        assert any("no analyzer can be asked" in str(job["last_error"]) for job in await stage.jobs())
        for fake in three:
            fake.heal()
            await fake.accept()
        await stage.pass_time(120, 10)
        await stage.until_status(done=18)


@on_one_database
async def test_a_mismatch_at_one_sends_the_vocabulary_to_that_one(stage: Stage, three: list[FakeAnalyzer]) -> None:
    async with stage.dispatcher():
        await until(lambda: all(fake.schema_version for fake in three), "the vocabulary everywhere")
        three[1].forget_vocabulary()
        await some_looks(stage)
        await stage.until_status(done=12)
    puts = [sum(record.method == "PUT" for record in fake.requests) for fake in three]
    assert puts == [1, 2, 1]
    assert {job["attempt"] for job in await stage.jobs()} == {1}


async def test_how_they_stand_is_told(stage: Stage, three: list[FakeAnalyzer]) -> None:
    await three[2].refuse()
    async with stage.dispatcher():
        await some_looks(stage)
        await stage.pass_time(40, 5)
        await stage.until_status(done=12)

        async def is_told() -> bool:
            return sorted(one.seen.state for one in await rows(stage)) == ["away", "ok", "ok"]

        await stage.pass_time(10, 5)
        await stage.until(is_told, "two are well and one is away")
        found = {one.seen.url: one.seen for one in await rows(stage)}
        assert "connection" in str(found[three[2].url].last_error)
        assert (found[three[0].url].concurrency, found[three[0].url].in_flight) == (stage.policy.batch, 0)
    assert await rows(stage) == (), "who stops takes its rows along"


@on_one_database
async def test_what_an_analyzer_warns_of_is_told(stage: Stage, three: list[FakeAnalyzer]) -> None:
    three[0].warnings = ("the chosen model can't be loaded",)
    async with stage.dispatcher():

        async def is_told(said: str | None) -> bool:
            found = {one.seen.url: one.seen.last_error for one in await rows(stage)}
            return bool(found) and found.get(three[0].url) == said and found.get(three[1].url) is None

        told = "warning: the chosen model can't be loaded"
        await stage.pass_time_until_found(lambda: is_told(told), "the warning is told")
        three[0].warnings = ()
        await stage.pass_time_until_found(lambda: is_told(None), "and goes with its cause")


@on_one_database
async def test_idle_analyzers_are_asked_for_their_health(stage: Stage, three: list[FakeAnalyzer]) -> None:
    async with stage.dispatcher():
        await stage.pass_time(20, 5)
        await until(lambda: all(len(fake.checks) >= 2 for fake in three), "health checks everywhere")
    for fake in three:
        paths = [check.path for check in fake.checks]
        assert paths.count("/v1/capabilities") == 1, "what it can do is asked once"


@on_one_database
async def test_what_an_analyzer_says_of_itself_may_be_nonsense(stage: Stage, three: list[FakeAnalyzer]) -> None:
    for path in ("/healthz", "/v1/capabilities"):
        three[0].add_fault(Rule(Fault.malformed(), path=path))
        three[1].add_fault(Rule(Fault.answer_status(404), path=path))
    three[2].add_fault(Rule(Fault.huge(2_000_000), path="/v1/capabilities"))
    async with stage.dispatcher():
        await stage.pass_time(20, 5)
        for fake in three:
            fake.add_fault(Fault.hold())
        await some_looks(stage)
        await until(lambda: [fake.in_flight for fake in three] == [4, 4, 4], "all are asked")
        for fake in three:
            fake.heal()
        await stage.until_status(done=12)


@on_one_database
async def test_the_picture_before_and_hints_are_sent_along(stage: Stage, three: list[FakeAnalyzer]) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (0, HUMAN, NOW_MS + 60 * SEC), (0, HUMAN, NOW_MS + 700 * SEC))
    records = sorted((one for fake in three for one in fake.analyses()), key=lambda one: str(one.captured_at))
    assert [record.has_prev_image for record in records] == [False, True, False], "not the first, not an old one"
    known = {"time_band": "day", "network_zone": "local"}
    assert [record.hints for record in records] == [
        known,
        {**known, "prev_captured_at": datetime.fromtimestamp(NOW_MS / 1000, UTC).isoformat(timespec="milliseconds")},
        known,
    ]


@on_one_database
async def test_what_people_said_of_a_camera_is_sent_along(stage: Stage, three: list[FakeAnalyzer]) -> None:
    mask = [[0.1, 0.1], [0.4, 0.1], [0.4, 0.3]]
    hints = {"preset": "parking", "thresholds": {"person": 0.5}}
    await stage.store.write(say, stage.scene.camera_keys[0], json.dumps(hints), json.dumps([mask]))
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (1, HUMAN, NOW_MS))
    said = {one.camera_id: dict(one.hints or {}) for fake in three for one in fake.analyses()}
    told, other = (said[camera_id] for camera_id in sorted(said, key=lambda key: -len(said[key])))
    assert (told["location_type"], told["expected_objects"]) == ("parking", ["vehicle"])
    assert (told["thresholds"], told["privacy_masks"]) == ({"person": 0.5}, [mask])
    assert set(other) == {"time_band", "network_zone"}


@on_one_database
async def test_the_picture_before_is_left_out_where_it_is_gone_or_not_wanted(
    stage: Stage, three: list[FakeAnalyzer]
) -> None:
    await stage.look(0, None, NOW_MS, verdict="skip")
    await stage.look(0, HUMAN, NOW_MS + SEC)
    async with stage.dispatcher():
        await stage.until_status(done=1)
    stage.settings = replace(stage.settings, analyzer=replace(stage.settings.analyzer, send_previous=False))
    await stage.look(0, HUMAN, NOW_MS + 2 * SEC)
    async with stage.dispatcher():
        await stage.until_status(done=2)
    assert [one.has_prev_image for fake in three for one in fake.analyses()] == [False, False]


@on_one_database
async def test_a_damaged_picture_before_does_not_cost_the_good_one_its_job(
    stage: Stage, three: list[FakeAnalyzer]
) -> None:
    """The fake refuses the request: it is asked once more without, and there nobody else is asked."""
    stage.settings = replace(stage.settings, analyzer=replace(stage.settings.analyzer, urls=(three[0].url,)))
    async with stage.dispatcher():
        await stage.look(0, HUMAN, NOW_MS)
        await stage.until_status(done=1)
        damaged = await stage.look(0, b"not a picture", NOW_MS + SEC)
        await stage.until_status(done=1, dead=1)
        good = await stage.look(0, HUMAN, NOW_MS + 2 * SEC)
        await stage.until_status(done=2, dead=1)
    asked: dict[str | None, list[tuple[bool, bool]]] = {}
    for one in three[0].analyses():
        told = one.has_prev_image, "prev_captured_at" in (one.hints or {})
        asked.setdefault(one.request_id, []).append(told)
    assert asked[good] == [(True, True), (False, False)]
    assert asked[damaged] == [(True, True), (False, False)], "the picture itself is none"
    job = await stage.job(good)
    assert (job["status"], job["attempt"]) == ("done", 1)
    (kept,) = await stage.rows("SELECT result_json FROM frames WHERE frame_uuid = :uuid", uuid=good)
    assert REFUSED_PREVIOUS in str(kept["result_json"])
