import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from camserver.domain.gate import GatePolicy
from camserver.domain.leases import Fault
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot
from camserver.services.worker.camera import Camera, Surroundings
from camserver.services.worker.hold import Hold
from camserver.services.worker.spool import Spool
from camserver.services.worker.waiting import end
from camserver.wire.looks import LookUpload
from camserver.wire.worker import Start, parse_fault
from tests.rig.polling import TIMEOUT_SEC, until
from tests.services.worker.build import (
    FollowingClock,
    ToldSource,
    gray_jpeg,
    look,
    reported,
    spooled,
    start_message,
    streams_of,
)

HELD_MS = 10_000_000


class Stage:
    """One camera on a moved clock; `pass_ms` lets time go on and waits for what it brought."""

    def __init__(self, clock: FollowingClock, given: Surroundings, start: Start) -> None:
        self.clock = clock
        self.given = given
        self.source = ToldSource(clock.now_ms)
        self.hold = Hold(start.camera_id, start.generation, clock)
        self.camera = Camera(start, streams_of(self.source, given), self.hold, given)
        self.task: asyncio.Task[None] | None = None

    def begin(self, held_ms: int = HELD_MS) -> None:
        if held_ms:
            self.hold.renew(self.clock.boot_ms() + held_ms)
        self.task = asyncio.ensure_future(self.camera.run())

    async def looked(self, count: int) -> None:
        """Until so many looks are kept and the camera sleeps until the next."""
        await until(lambda: self.given.spool.looks >= count, f"{count} looks")
        await self.clock.until_sleeping(1)

    async def looks(self) -> list[LookUpload]:
        return await spooled(self.given.spool)

    async def statuses(self) -> list[tuple[str, str | None]]:
        return [(one.header.status, one.header.error_code) for one in await self.looks()]

    def kinds(self) -> list[str]:
        return [report.event_type for report in reported(self.given.reports)]


Staging = Callable[..., Stage]


@pytest.fixture
async def stage(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Staging]:
    stages: list[Stage] = []

    def make(start: Start | None = None) -> Stage:
        stages.append(Stage(moved, given_to_cameras, start or start_message()))
        return stages[-1]

    yield make
    for one in stages:
        if one.task is not None:
            await end(one.task)


async def test_first_look_at_once_then_on_the_grid_without_drift(stage: Staging) -> None:
    on = stage(start_message(interval_sec=10))
    on.begin()
    await on.looked(1)
    began_at = on.clock.now_ms()
    for count in range(2, 7):
        assert on.clock.next_due_ms is not None
        await on.clock.advance(on.clock.next_due_ms)
        await on.looked(count)
        # A look that takes its time moves none of the later ones.
        await on.clock.advance(1234)
    first, *rest = on.source.asked_at
    assert first == began_at
    assert {later - earlier for earlier, later in itertools.pairwise(rest)} == {10_000}


async def test_cameras_are_spread_over_the_interval(stage: Staging) -> None:
    phases = set()
    for number in range(4):
        on = stage(start_message(f"cam_{number}", interval_sec=60))
        on.begin()
        await on.looked(number + 1)
        phases.add(on.camera._due_ms % 60_000)
        assert on.task is not None
        await end(on.task)
    assert len(phases) == 4


async def test_looks_never_overlap_and_missed_moments_are_left_out(stage: Staging) -> None:
    on = stage(start_message(interval_sec=1))
    on.begin()
    await on.looked(1)
    on.source.going_on.clear()
    await on.clock.advance(4500)  # below the time-out, over several moments of the grid
    assert len(on.source.asked_at) == 2
    on.source.going_on.set()
    await on.looked(2)
    await on.clock.advance(1000)
    await on.looked(3)
    assert on.source.at_once_max == 1
    assert len(on.source.asked_at) == 3


async def test_wall_clock_set_back_a_little_brings_no_moment_twice(stage: Staging) -> None:
    on = stage(start_message(interval_sec=10))
    on.begin()
    await on.looked(1)
    assert on.clock.next_due_ms is not None
    await on.clock.advance(on.clock.next_due_ms)
    on.clock.jump_wall(-50)
    await on.looked(2)
    await on.clock.advance(100)
    assert len(on.source.asked_at) == 2
    # Set back by an hour, the camera does not wait an hour.
    on.clock.jump_wall(-3_600_000)
    await on.clock.advance(10_100)
    await on.looked(3)
    await on.clock.advance(10_000)
    await on.looked(4)


async def test_quiet_look_sends_the_small_picture_only(stage: Staging) -> None:
    on = stage(start_message(interval_sec=1))
    on.begin()
    await on.looked(1)
    await on.clock.advance(1000)
    await on.looked(2)
    on.source.answer = JpegShot(gray_jpeg(250))
    await on.clock.advance(1000)
    await on.looked(3)
    first, quiet, changed = await on.looks()
    assert [one.header.verdict for one in (first, quiet, changed)] == ["analyze", "skip", "analyze"]
    assert [one.header.seq for one in (first, quiet, changed)] == [1, 2, 3]
    assert first.full == gray_jpeg(128)
    assert changed.full == gray_jpeg(250)
    assert quiet.full == b""
    assert quiet.infer
    assert (first.header.diff_ratio, first.header.luma_delta) == (1.0, 255.0)
    assert (quiet.header.diff_ratio, quiet.header.luma_delta) == (0.0, 0.0)
    assert (changed.header.full_w, changed.header.full_h) == (64, 48)


async def test_look_is_stamped_with_both_clocks(stage: Staging) -> None:
    on = stage()
    on.begin()
    await on.looked(1)
    (one,) = await on.looks()
    assert (one.header.boot_ms, one.header.captured_at) == (on.clock.boot_ms(), on.clock.now_ms())


async def test_a_look_has_the_picture_s_own_time(stage: Staging) -> None:
    on = stage()
    await on.clock.advance(5000)
    on.source.answer = JpegShot(gray_jpeg(9), boot_ms=on.clock.boot_ms() - 700)
    on.begin()
    await on.looked(1)
    (one,) = await on.looks()
    assert (one.header.boot_ms, one.header.captured_at) == (on.clock.boot_ms() - 700, on.clock.now_ms() - 700)


async def test_the_infer_picture_has_no_bars_and_says_so(stage: Staging) -> None:
    on = stage()
    on.begin()
    await on.looked(1)
    header = (await on.looks())[0].header
    assert not header.letterbox
    assert (header.letterbox_top, header.letterbox_left) == (0, 0)
    assert (header.letterbox_bottom, header.letterbox_right) == (0, 0)


@pytest.mark.parametrize(("next_seq", "spooled_seq", "expected"), [(1, 0, 1), (5, 0, 5), (5, 9, 10), (12, 9, 12)])
async def test_seq_goes_on_after_what_the_server_or_the_spool_has(
    stage: Staging, spool: Spool, next_seq: int, spooled_seq: int, expected: int
) -> None:
    if spooled_seq:
        await spool.add(look(spooled_seq))
    before = spool.looks
    on = stage(start_message(next_seq=next_seq))
    on.begin()
    await on.looked(before + 1)
    assert (await on.looks())[-1].header.seq == expected


async def test_nothing_is_captured_before_the_hold_is_covered(stage: Staging) -> None:
    on = stage()
    on.begin(held_ms=0)
    await on.clock.advance(60_000)
    assert on.source.asked_at == []
    on.hold.renew(on.clock.boot_ms() + 60_000)
    await on.looked(1)


async def test_capture_stops_at_the_deadline_and_goes_on_when_renewed(stage: Staging) -> None:
    on = stage(start_message(interval_sec=10))
    on.begin(held_ms=20_000)
    await on.looked(1)
    for count in (2, 3):
        assert on.clock.next_due_ms is not None
        await on.clock.advance(on.clock.next_due_ms)
        await on.looked(count)
    await on.clock.advance(100_000)
    deadline = on.source.asked_at[0] + 20_000
    assert len(on.source.asked_at) == 3
    assert all(asked < deadline for asked in on.source.asked_at)
    assert on.source.closed >= 1  # the camera is let go, not only left alone
    on.hold.renew(on.clock.boot_ms() + HELD_MS)
    await on.looked(4)
    assert [one.header.seq for one in await on.looks()] == [1, 2, 3, 4]


async def test_frozen_process_captures_nothing_more_as_the_holder(stage: Staging) -> None:
    """Everything stops, the lease runs out, everything goes on: by then somebody else may hold the camera."""
    on = stage(start_message(interval_sec=10))
    on.begin(held_ms=85_000)
    await on.looked(1)
    on.clock.freeze(100_000)
    await on.clock.advance(30_000)
    assert len(on.source.asked_at) == 1
    assert on.given.spool.looks == 1


async def test_picture_that_came_after_the_deadline_is_given_up(stage: Staging) -> None:
    on = stage(start_message(interval_sec=10))
    on.begin(held_ms=85_000)
    await on.looked(1)
    on.source.going_on.clear()
    assert on.clock.next_due_ms is not None
    await on.clock.advance(on.clock.next_due_ms)
    assert len(on.source.asked_at) == 2
    on.clock.freeze(100_000)
    on.source.going_on.set()
    await until(lambda: on.given.counts.given_up == 1, "the look given up")
    assert on.given.spool.looks == 1


async def test_time_out_leaves_a_look(stage: Staging) -> None:
    on = stage()
    on.source.going_on.clear()
    on.begin()
    await on.clock.advance(6000)  # 3 s to connect, 3 s for the picture
    await on.looked(1)
    assert await on.statuses() == [("timeout", "timeout")]
    assert on.kinds() == ["camera_fault"]


async def test_rare_keyframes_are_waited_for_longer(stage: Staging) -> None:
    on = stage()
    on.source.learned_gop_ms = 10_000
    on.source.going_on.clear()
    on.begin()
    await on.clock.advance(22_000)  # 3 s to connect, twice 10 s for the picture
    assert on.given.spool.looks == 0
    await on.clock.advance(1_000)
    await on.looked(1)


async def test_a_source_that_timed_out_by_itself_leaves_a_time_out(stage: Staging) -> None:
    on = stage()
    on.source.answer = Miss(Fault.NO_VIDEO, "it stalled", timed_out=True)
    on.begin()
    await on.looked(1)
    assert await on.statuses() == [("timeout", "timeout")]


@pytest.mark.parametrize("fault", [Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.REFUSED, Fault.NO_VIDEO])
async def test_fault_leaves_a_look_and_a_report_with_the_back_off(stage: Staging, fault: Fault) -> None:
    on = stage(start_message(failures=2))
    on.source.answer = Miss(fault, "as the test says")
    on.begin()
    await on.looked(1)
    assert await on.statuses() == [("error", fault.value)]
    (report,) = reported(on.given.reports)
    assert (report.event_type, report.camera_id, report.generation) == ("camera_fault", "cam_1", 1)
    payload = parse_fault(report.payload)
    assert (payload.fault, payload.failures) == (fault, 3)  # counted on from what came with START
    assert payload.auth_failures == (1 if fault is Fault.UNAUTHORIZED else 0)
    assert payload.next_attempt_at > on.clock.now_ms()


@pytest.mark.parametrize("answer", [JpegShot(b"no jpeg"), ValueError("broken source")])
async def test_unreadable_picture_or_crashing_source_is_a_failed_look(
    stage: Staging, answer: JpegShot | Exception
) -> None:
    on = stage()
    on.source.answer = answer
    on.begin()
    await on.looked(1)
    expected = Fault.NO_VIDEO if isinstance(answer, JpegShot) else Fault.CRASH
    assert await on.statuses() == [("error", expected.value)]
    on.source.answer = JpegShot(gray_jpeg(1))
    await on.clock.advance(20_000)
    await on.looked(2)  # and it goes on


async def test_crash_beyond_the_source_ends_no_camera(stage: Staging, monkeypatch: pytest.MonkeyPatch) -> None:
    on = stage(start_message(interval_sec=1))

    async def broken(one: LookUpload) -> bool:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(on.given.spool, "add", broken)
        on.begin()
        await until(lambda: len(on.given.reports) == 1, "a report")
        await on.clock.until_sleeping(1)
    await on.clock.advance(5000)
    await on.looked(1)
    assert on.kinds() == ["camera_fault", "pipeline_ready"]


async def test_a_look_that_crashed_leaves_a_frame(stage: Staging, monkeypatch: pytest.MonkeyPatch) -> None:
    on = stage(start_message(interval_sec=60))

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("nobody thought of that")

    with monkeypatch.context() as patch:
        patch.setattr(on.camera._darkroom, "develop", broken)
        on.begin()
        await on.looked(1)
    assert await on.statuses() == [("error", "crash")]
    assert on.kinds() == ["camera_fault"]


async def test_whoever_asked_is_told_when_the_camera_is_let_go_in_the_middle_of_the_look(stage: Staging) -> None:
    on = stage(start_message(interval_sec=3600))
    on.begin()
    await on.looked(1)
    on.source.going_on.clear()
    asking = asyncio.ensure_future(on.camera.look_now())
    await until(lambda: len(on.source.asked_at) == 2, "the look under way")
    assert on.task is not None
    await end(on.task)
    looked = await asyncio.wait_for(asking, TIMEOUT_SEC)
    assert (looked.jpeg, "let go" in looked.message) == (b"", True)
    # And nobody waits for one that is over.
    assert await asyncio.wait_for(on.camera.look_now(), TIMEOUT_SEC) == looked


async def test_five_failures_report_the_error_once_and_recovery_reports_ready(stage: Staging) -> None:
    on = stage(start_message(interval_sec=60))
    on.source.answer = Miss(Fault.NO_VIDEO, "dark")
    on.begin()
    for count in range(1, 8):
        await on.looked(count)
        await on.clock.advance(120_000 if count < 7 else 0)
        if count < 7:
            await on.looked(count + 1)
    kinds = on.kinds()
    assert kinds.count("pipeline_error") == 1
    assert kinds[:5] == ["camera_fault"] * 4 + ["pipeline_error"]
    assert not on.camera.is_going
    before = on.given.spool.looks
    on.source.answer = JpegShot(gray_jpeg(5))
    await on.clock.advance(120_000)
    await on.looked(before + 1)
    assert on.kinds()[0] == "pipeline_ready"
    assert on.camera.is_going


async def test_back_off_is_kept_even_when_the_interval_is_short(stage: Staging) -> None:
    on = stage(start_message(interval_sec=1, failures=6))
    on.source.answer = Miss(Fault.NO_VIDEO, "dark")
    on.begin()
    await on.looked(1)
    await on.clock.advance(59_000)  # jitter is full here: the pause is the cap of 60 s
    assert len(on.source.asked_at) == 1
    await on.clock.advance(2_000)
    await on.looked(2)


async def test_a_look_that_failed_is_tried_again_long_before_the_next_moment_of_the_grid(stage: Staging) -> None:
    on = stage(start_message(interval_sec=3600))
    on.source.answer = Miss(Fault.NO_VIDEO, "dark")
    on.begin()
    await on.looked(1)
    for count, pause_ms in enumerate((1000, 2000, 4000, 8000), start=2):
        assert on.clock.next_due_ms == pause_ms  # jitter is full here
        await on.clock.advance(pause_ms)
        await on.looked(count)
    on.source.answer = JpegShot(gray_jpeg(5))
    await on.clock.advance(16_000)
    await on.looked(6)
    # And back to the grid.
    assert on.camera._due_ms - on.clock.now_ms() == on.clock.next_due_ms
    assert on.camera.is_going


async def test_a_wrong_password_is_left_alone_for_minutes_and_says_so(stage: Staging) -> None:
    on = stage(start_message(interval_sec=1))
    on.source.answer = Miss(Fault.UNAUTHORIZED, "user or password")
    on.begin()
    await on.looked(1)
    await on.clock.advance(299_000)
    assert len(on.source.asked_at) == 1
    (report,) = reported(on.given.reports)
    assert "not tried again for 6 min" in parse_fault(report.payload).message
    # Not even when somebody asks: most cameras lock an account after a few tries.
    looked = await on.camera.look_now()
    assert "not tried again" in looked.message
    assert len(on.source.asked_at) == 1


async def test_a_look_on_demand_is_made_at_once_and_kept_like_any_other(stage: Staging) -> None:
    on = stage(start_message(interval_sec=60))
    on.begin()
    await on.looked(1)
    due_ms = on.camera._due_ms
    on.source.answer = JpegShot(gray_jpeg(128))
    looked = await asyncio.wait_for(on.camera.look_now(), 60)
    assert looked.jpeg == gray_jpeg(128)
    assert (looked.size, looked.seq, looked.captured_at) == ((64, 48), 2, on.clock.now_ms())
    kept = (await on.looks())[-1]
    # Nothing changed, so the large picture is not kept.
    assert (kept.header.seq, kept.header.verdict, kept.full) == (2, "skip", b"")
    assert on.camera._due_ms == due_ms


async def test_a_look_on_demand_waits_for_the_one_under_way(stage: Staging) -> None:
    on = stage(start_message(interval_sec=60))
    on.source.going_on.clear()
    on.begin()
    await until(lambda: len(on.source.asked_at) == 1, "the first look")
    asked = [asyncio.ensure_future(on.camera.look_now()) for _ in range(3)]
    await on.clock.advance(10)
    on.source.going_on.set()
    looked = await asyncio.wait_for(asyncio.gather(*asked), 60)
    assert {one.seq for one in looked} == {2}  # one look for all who asked meanwhile
    assert on.source.at_once_max == 1


async def test_a_look_on_demand_is_told_why_there_is_no_picture(stage: Staging) -> None:
    on = stage(start_message(interval_sec=60))
    on.begin()
    await on.looked(1)
    on.source.answer = Miss(Fault.NO_VIDEO, "dark")
    looked = await asyncio.wait_for(on.camera.look_now(), 60)
    assert (looked.message, looked.jpeg) == ("dark", b"")
    # One that is in its pause for such a reason is tried all the same when somebody asks.
    on.source.answer = JpegShot(gray_jpeg(7))
    assert (await asyncio.wait_for(on.camera.look_now(), 60)).jpeg


async def test_whoever_asked_is_answered_when_the_camera_is_let_go(stage: Staging) -> None:
    on = stage()
    on.begin(held_ms=0)
    asked = asyncio.ensure_future(on.camera.look_now())
    await on.clock.advance(1)
    async with cancelled(on):
        pass
    assert "let go" in (await asyncio.wait_for(asked, 60)).message


async def test_whoever_stops_waiting_is_forgotten(stage: Staging) -> None:
    on = stage()
    on.begin(held_ms=0)
    asked = asyncio.ensure_future(on.camera.look_now())
    await on.clock.advance(1)
    asked.cancel()
    await on.clock.advance(1)
    assert on.camera._asked == []


async def test_what_the_gate_learned_goes_along_every_twenty_looks(stage: Staging, moved: FollowingClock) -> None:
    on = stage(start_message(interval_sec=1))
    on.camera = Camera(
        on.camera.start, streams_of(on.source, on.given), on.hold, replace(on.given, gate=GatePolicy())
    )
    on.source.answer = JpegShot(gray_jpeg(100, (640, 360)))
    on.begin()
    for count in range(1, 42):
        await on.looked(count)
        await on.clock.advance(1000)
    with_state = [one.header.seq for one in await on.looks() if one.header.gate_state]
    assert with_state == [20, 40]


async def test_start_with_a_back_off_waits_for_it(stage: Staging, moved: FollowingClock) -> None:
    on = stage(start_message(next_attempt_at=moved.now_ms() + 30_000))
    on.begin()
    await on.clock.advance(29_999)
    assert on.source.asked_at == []
    await on.clock.advance(1)
    await on.looked(1)


async def test_camera_not_to_be_processed_is_never_asked_for_a_picture(stage: Staging) -> None:
    on = stage(start_message(do_not_process=True))
    on.begin()
    await on.clock.advance(600_000)
    assert on.source.asked_at == []
    assert on.given.spool.looks == 0
    assert on.kinds() == ["pipeline_ready"]
    assert "not to be processed" in (await on.camera.look_now()).message


@asynccontextmanager
async def cancelled(on: Stage) -> AsyncIterator[None]:
    yield
    assert on.task is not None
    await end(on.task)


async def test_stopping_closes_the_source(stage: Staging) -> None:
    on = stage()
    on.begin()
    async with cancelled(on):
        await on.looked(1)
    assert on.source.closed == 1
