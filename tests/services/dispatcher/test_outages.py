"""What is away, slow, full or broken costs time, never a job; what is wrong with one job costs that job only."""

from collections.abc import Callable, Sequence

import pytest

from camserver.base.errors import Unavailable
from camserver.objects.local import Keys, Objects
from tests.fakes.analyzer import Fault, Rule, Seen
from tests.rig.pictures import jpeg_of_bytes
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import NOW_MS

SEC = 1000
HOUR_SEC = 3600
HUMAN = Seen("human", ("count.single",))
# Where the database makes no difference.
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


async def test_an_hour_without_analyzer_kills_no_job(stage: Stage) -> None:
    await stage.analyzer.refuse()
    for camera in range(3):
        await stage.look(camera, HUMAN)
        await stage.look(camera, HUMAN, NOW_MS + 10 * SEC)
    async with stage.dispatcher():
        await stage.pass_time(HOUR_SEC, 30, settling=True)
        assert not {"dead", "skipped", "done"} & set(await stage.counts())
        assert max(job["attempt"] for job in await stage.jobs()) <= 1
        await stage.analyzer.accept()
        await stage.pass_time(180, 20, settling=True)
        await stage.until_status(done=6)
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 6
    assert [event["frame_count"] for event in await stage.events()] == [2, 2, 2]


@on_one_database
@pytest.mark.parametrize("status", [429, 503])
async def test_an_analyzer_that_is_full_for_an_hour_is_not_hammered(stage: Stage, status: int) -> None:
    stage.analyzer.add_fault(Fault.answer_status(status))
    for camera in range(3):
        await stage.look(camera, HUMAN)
    async with stage.dispatcher():
        await stage.pass_time(HOUR_SEC, 30, settling=True)
        assert set(await stage.counts()) <= {"delayed", "queued"}
        assert len(stage.analyzer.analyses()) < 200, "three jobs, sixty minutes"
        stage.analyzer.heal()
        await stage.pass_time(600, 30, settling=True)
        await stage.until_status(done=3)
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 3


@on_one_database
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_honoured_by_the_job_and_by_all_that_wait(stage: Stage, status: int) -> None:
    stage.analyzer.add_fault(Rule(Fault.answer_status(status, retry_after="45"), times=1))
    async with stage.dispatcher():
        await stage.look(0, HUMAN)
        await stage.until_status(delayed=1)
        assert (await stage.jobs())[0]["available_at"] == NOW_MS + 45 * SEC
        await stage.look(1, HUMAN)
        await stage.pass_time(44, 11)
        await stage.until_status(delayed=1, queued=1)
        assert len(stage.analyzer.analyses()) == 1, "nobody asked before the time it named"
        await stage.pass_time(3, 1)
        await stage.until_status(done=2)


@on_one_database
async def test_the_breaker_stops_claiming_and_tries_with_one(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.answer_status(503), times=3))
    stage.analyzer.add_fault(Fault.hold())
    async with stage.dispatcher():
        for camera in range(3):
            await stage.look(camera, HUMAN)
        await stage.until_status(delayed=3)
        for camera in range(3):
            await stage.look(camera, HUMAN)
        await stage.clock.some_turns()
        assert await stage.counts() == {"delayed": 3, "queued": 3}, "three failures in a row: nothing more is claimed"
        await stage.pass_time(3, 1)
        await stage.analyzer.until_received(1 + 3 + 1)
        await stage.clock.some_turns()
        assert stage.analyzer.in_flight == 1, "one trial, however many wait"
        stage.analyzer.heal()
        await stage.until_status(done=6)


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        pytest.param(None, "unreadable_image", id="missing"),
        pytest.param(b"not a picture", "bad_request", id="garbage"),
        pytest.param(b"", "bad_request", id="empty"),
        pytest.param(jpeg_of_bytes(5_000_001), "bad_request", id="too large"),
    ],
)
@on_one_database
async def test_a_picture_that_can_not_be_used_makes_its_job_dead_and_no_other(
    stage: Stage, picture: bytes | None, reason: str
) -> None:
    bad = await stage.look(0, picture)
    good = await stage.look(1, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(dead=1, done=1)
        await stage.look(0, HUMAN)
        await stage.until_status(dead=1, done=2)
    assert (await stage.job(good))["status"] == "done"
    job = await stage.job(bad)
    assert (job["status"], job["attempt"], job["analyzed"]) == ("dead", 1, 0)
    assert job["last_error"].startswith(reason)


async def test_a_frame_whose_picture_is_gone_is_dead_with_a_reason(stage: Stage) -> None:
    uuid = await stage.look(0, None)
    async with stage.dispatcher():
        await stage.until_status(dead=1)
    assert f"there is no object {stage.key(uuid, 0, NOW_MS)}" in (await stage.job(uuid))["last_error"]


@on_one_database
async def test_a_frame_that_never_had_a_picture_is_dead_with_a_reason(stage: Stage) -> None:
    uuid = await stage.look(0, None, epoch_id=None)
    async with stage.dispatcher():
        await stage.until_status(dead=1)
    assert "the frame has no picture" in (await stage.job(uuid))["last_error"]


class AwayObjects:
    """Pictures on a disk that is away."""

    def __init__(self, real: Objects) -> None:
        self.real = real
        self.is_away = True

    async def get(self, key: str) -> bytes:
        if self.is_away:
            raise Unavailable("the disk is away")
        return await self.real.get(key)

    async def get_each(self, keys: Sequence[str]) -> list[bytes | None]:
        return [None] * len(keys) if self.is_away else await self.real.get_each(keys)

    async def get_range(self, key: str, begin: int, length: int) -> bytes:
        return (await self.get(key))[begin : begin + length]

    async def put(self, key: str, data: bytes) -> None:
        await self.real.put(key, data)

    async def delete(self, key: str) -> None:
        await self.real.delete(key)

    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        return await self.real.list(prefix, limit, after)

    async def free_bytes(self) -> int | None:
        return await self.real.free_bytes()


@on_one_database
async def test_an_hour_without_the_disk_of_pictures_kills_no_job(stage: Stage) -> None:
    objects = AwayObjects(stage.objects)
    for camera in range(3):
        await stage.look(camera, HUMAN)
    async with stage.dispatcher(objects=objects):
        await stage.pass_time(HOUR_SEC, 30, settling=True)
        assert set(await stage.counts()) <= {"delayed", "queued"}
        assert any("the disk is away" in str(job["last_error"]) for job in await stage.jobs())
        objects.is_away = False
        await stage.pass_time(180, 20, settling=True)
        await stage.until_status(done=3)
    assert len(stage.analyzer.analyses()) == 3


@on_one_database
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.malformed, "broken_answer"),
        (Fault.wrong_camera, "broken_answer: the analyzer answered for camera_id"),
        (lambda: Fault.huge(2_000_000), "broken_answer: the analyzer's answer is longer"),
        (lambda: Fault.redirect("http://127.0.0.1:1/"), "broken_answer: the analyzer answered 307"),
        (lambda: Fault.answer_status(500), "server_error"),
    ],
    ids=["malformed", "wrong camera", "huge", "redirect", "500"],
)
async def test_an_answer_outside_the_contract_costs_the_attempt(
    stage: Stage, fault: Callable[[], Fault], said: str
) -> None:
    stage.analyzer.add_fault(Rule(fault(), times=1))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        (job,) = await stage.jobs()
        assert job["attempt"] == 1
        assert job["last_error"].startswith(said)
        await stage.pass_time(4, 1)
        await stage.until_status(done=1)
    assert (await stage.jobs())[0]["attempt"] == 2
    assert [event["frame_count"] for event in await stage.events()] == [1]


@on_one_database
@pytest.mark.parametrize("breach", ["tags:unheard", "primary_event:unheard", "severity:high", "bboxes:turned"])
async def test_of_a_liars_answers_nothing_is_kept(stage: Stage, breach: str) -> None:
    stage.analyzer.add_fault(Fault.break_contract(breach))
    frame = await stage.look(0, HUMAN)
    async with stage.dispatcher():
        for attempt in range(1, 5):
            await stage.until_status(delayed=1)
            await stage.clock.advance(2**attempt * SEC + 2 * SEC)
            await stage.analyzer.until_received(1 + attempt + 1)
        await stage.until_status(dead=1)
    job = await stage.job(frame)
    assert (job["attempt"], job["analyzed"], job["event_id"]) == (5, 0, None)
    assert job["last_error"].startswith("broken_answer in attempt 5 of 5")
    assert breach.partition(":")[0] in job["last_error"], "the field is named"
    for table in ("events", "incidents", "frame_tags", "event_tags", "deliveries"):
        assert await stage.rows(f"SELECT * FROM {table}") == []
    (row,) = await stage.rows("SELECT result_json, tags_json, primary_event FROM frames")
    assert (row["result_json"], row["tags_json"]) == (None, None)
