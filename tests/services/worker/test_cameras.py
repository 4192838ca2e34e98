"""The table of cameras, without a server: what a START changes about a camera that is held already."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from camserver.domain.gate import GatePolicy
from camserver.domain.leases import Fault
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot
from camserver.media.sources import SourceWanted
from camserver.services.worker.camera import Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.wire.worker import Held, Start
from tests.rig.clock import settle
from tests.rig.polling import TIMEOUT_SEC, until
from tests.services.worker.build import FollowingClock, ToldSource, gray_jpeg, reported, start_message


@dataclass
class Stage:
    given: Surroundings
    clock: FollowingClock
    opened: list[SourceWanted] = field(default_factory=list)
    sources: list[ToldSource] = field(default_factory=list)
    answer: JpegShot | Miss = field(default_factory=lambda: JpegShot(gray_jpeg(100, (640, 360))))

    def __post_init__(self) -> None:
        self.cameras = Cameras(self.given, 4, lambda wanted, boot_ms: self._open(wanted))

    def _open(self, wanted: SourceWanted) -> ToldSource:
        source = ToldSource(self.clock.now_ms)
        source.answer = self.answer
        self.opened.append(wanted)
        self.sources.append(source)
        return source

    async def start(self, start: Start) -> None:
        assert await self.cameras.start(start) is None
        held = Held(camera_id=start.camera_id, generation=start.generation)
        self.cameras.renewed(held, self.clock.boot_ms() + 10_000_000)

    async def looked(self, count: int) -> None:
        await until(lambda: self.given.spool.looks >= count, f"{count} looks")


@pytest.fixture
async def on(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Stage]:
    stage = Stage(replace(given_to_cameras, gate=GatePolicy()), moved)
    yield stage
    await stage.cameras.close()


def changed(start: Start, **params: object) -> Start:
    return start.model_copy(update={"params": start.params.model_copy(update=params)})


async def test_new_values_are_followed_with_what_the_gate_has_learned(on: Stage) -> None:
    start = start_message(interval_sec=60)
    await on.start(start)
    await on.looked(1)
    before = on.cameras.camera("cam_1", 1)
    assert before is not None
    await on.start(changed(start, polling_interval_sec=5))
    await on.looked(2)
    after = on.cameras.camera("cam_1", 1)
    assert after is not None
    assert after is not before
    assert after.start.gate_state == before.gate_state() is not None
    assert on.sources[0].closed == 1
    # A picture that is turned looks different everywhere.
    await on.start(changed(start, rotation=90))
    await on.looked(3)
    turned = on.cameras.camera("cam_1", 1)
    assert turned is not None
    assert turned.start.gate_state is None


async def test_the_same_values_change_nothing(on: Stage) -> None:
    await on.start(start_message())
    await on.looked(1)
    await on.start(start_message(intent_id="another"))
    assert len(on.sources) == 1


async def test_a_new_password_is_tried_at_once(on: Stage) -> None:
    on.answer = Miss(Fault.UNAUTHORIZED, "wrong")
    start = start_message(interval_sec=60)
    await on.start(start)
    await on.looked(1)
    # What came of the look is told after it was kept.
    await until(lambda: len(on.given.reports) > 0, "the report")
    (report,) = reported(on.given.reports)
    next_attempt_at = report.payload["next_attempt_at"]
    assert isinstance(next_attempt_at, int)
    assert next_attempt_at - on.clock.now_ms() >= 300_000
    on.answer = JpegShot(gray_jpeg(100))
    update = {"credential_version": 1, "next_attempt_at": next_attempt_at, "auth_failures": 1, "failures": 1}
    await on.start(start.model_copy(update=update))
    await on.looked(2)
    await until(lambda: len(on.given.reports) > 0, "the next report")
    assert [report.event_type for report in reported(on.given.reports)] == ["pipeline_ready"]


async def test_a_sub_stream_is_opened_beside_the_main_one_and_counts_as_a_change(on: Stage) -> None:
    await on.start(start_message(url="test://still"))
    await on.looked(1)
    await on.start(start_message(url="test://still", sub_url="test://moving"))
    await on.looked(2)
    assert [wanted.url for wanted in on.opened] == ["test://still", "test://still", "test://moving"]


async def test_what_the_gate_learned_is_told_when_a_camera_is_let_go(on: Stage) -> None:
    await on.start(start_message())
    await on.looked(1)
    while (entry := on.given.spool.take(0, fresh_first=False)) is not None:
        await on.given.spool.acknowledged(entry)
    on.cameras.stop("cam_1", 1, "moved")
    await on.cameras.stop_all("moved")
    last = reported(on.given.reports)[-1]
    assert (last.event_type, last.payload["reason"]) == ("pipeline_stopped", "moved")
    assert last.payload["gate_state"]


async def test_cameras_of_one_recorder_share_its_door(on: Stage) -> None:
    for name in ("cam_1", "cam_2"):
        start = start_message(name, kind="rtsp", url=f"rtsp://10.0.0.{name[-1]}/x")
        await on.start(changed(start, device="recorder", streams_max=1))
    await on.looked(2)
    assert len({door.place.device for door in on.cameras.doors._doors}) == 1


async def test_a_camera_whose_task_crashed_is_begun_anew_after_a_pause(
    on: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await on.start(start_message(interval_sec=60))
    await on.looked(1)
    before = on.cameras.camera("cam_1", 1)
    assert before is not None

    def broken() -> int:
        raise ZeroDivisionError("nobody thought of that")

    monkeypatch.setattr(before, "_next_due_ms", broken)
    await on.clock.advance(60_000)
    await until(lambda: on.cameras.camera("cam_1", 1) is not before, "the camera begun anew")
    after = on.cameras.camera("cam_1", 1)
    assert after is not None
    looks = on.given.spool.looks
    assert on.sources[0].closed == 1
    reports = reported(on.given.reports)
    assert [report.event_type for report in reports] == ["pipeline_ready", "camera_fault"]
    assert reports[-1].payload["fault"] == "crash"
    assert after.start.next_seq == looks + 1
    await on.clock.until_sleeping(1)
    assert on.given.spool.looks == looks
    await on.clock.advance(1000)
    await on.looked(looks + 1)
    await until(lambda: len(on.given.reports) > 0, "its report")
    assert [report.event_type for report in reported(on.given.reports)] == ["pipeline_ready"]


async def test_lost_cameras_are_not_waited_for_but_their_next_start_is(
    on: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await on.start(start_message(interval_sec=60))
    await on.looked(1)
    going_on = asyncio.Event()

    async def hanging() -> None:
        await going_on.wait()

    monkeypatch.setattr(on.sources[0], "close", hanging)
    on.cameras.lost(Held(camera_id="cam_1", generation=1), "taken")
    assert on.cameras.camera("cam_1", 1) is None
    again = asyncio.ensure_future(on.start(start_message(generation=2)))
    await on.start(start_message("cam_2"))
    await on.looked(2)
    assert not again.done()
    going_on.set()
    await asyncio.wait_for(again, TIMEOUT_SEC)
    await on.looked(3)


async def test_cameras_that_are_being_begun_have_their_slots(on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    on.cameras._slots = 1
    await on.start(start_message(interval_sec=60))
    await on.looked(1)
    going_on = asyncio.Event()

    async def hanging() -> None:
        await going_on.wait()

    monkeypatch.setattr(on.sources[0], "close", hanging)
    again = asyncio.ensure_future(on.start(start_message(generation=2)))
    await settle()
    assert "slots" in (await on.cameras.start(start_message("cam_2")) or "")
    going_on.set()
    await asyncio.wait_for(again, TIMEOUT_SEC)
