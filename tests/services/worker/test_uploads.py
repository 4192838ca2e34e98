import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from camserver.base.secrets import Secret
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.services.worker.upload_client import Away, UploadClient
from camserver.services.worker.uploads import Uploader
from camserver.services.worker.waiting import end
from camserver.wire.looks import LookRefused, LookUpload, Recorded, pack
from tests.rig.clock import START_MS
from tests.rig.cutter import Cutter, Way
from tests.rig.polling import until
from tests.services.worker.build import BOOT_ID, FollowingClock, look, reported
from tests.services.worker.control import TOKEN, ScriptedControl, failed, recorded, refused


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


class Sending:
    """An uploader at work."""

    def __init__(self, uploader: Uploader, reports: Reports) -> None:
        self.uploader = uploader
        self.reports = reports
        self.task = asyncio.ensure_future(uploader.run())


Sender = Callable[..., Sending]


@pytest.fixture
async def sender(
    session: aiohttp.ClientSession, control: ScriptedControl, spool: Spool, moved: FollowingClock
) -> AsyncIterator[Sender]:
    started: list[Sending] = []

    def start(in_flight: int = 2, url: str | None = None, token: str = TOKEN, timeout_sec: float = 60.0) -> Sending:
        client = UploadClient(session, url or control.url, "w1", Secret(token), timeout_sec)
        reports = Reports(moved)
        uploader = Uploader(spool, client, moved, reports, BOOT_ID, in_flight, jitter=lambda: 1.0)
        started.append(Sending(uploader, reports))
        return started[-1]

    yield start
    for one in started:
        await end(one.task)


async def empty(spool: Spool) -> None:
    await asyncio.wait_for(spool.until_empty(), 60)


async def test_recorded_look_leaves_the_spool(
    control: ScriptedControl, spool: Spool, sender: Sender, tmp_path: Path
) -> None:
    await spool.add(look(1, quiet=False))
    sending = sender()
    await empty(spool)
    (sent,) = control.uploads
    assert sent.infer == look(1).infer
    assert sending.uploader.recorded == 1
    await spool.delete_sent()
    assert list((tmp_path / "spool" / "looks").iterdir()) == []


async def test_look_is_not_dropped_before_the_answer(control: ScriptedControl, spool: Spool, sender: Sender) -> None:
    answering = asyncio.Event()

    async def late(one: LookUpload) -> web.StreamResponse:
        await answering.wait()
        return recorded()

    control.answer = late
    await spool.add(look(1))
    sender()
    await until(lambda: len(control.uploads) == 1, "the upload")
    assert spool.looks == 1
    answering.set()
    await empty(spool)


async def test_capture_time_follows_what_is_known_of_the_servers_time_by_now(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    captured_at = moved.now_ms()
    await spool.add(look(1, captured_at=5))  # made by a clock that knew nothing yet
    await spool.add(look(2, "cam_2", captured_at=6, boot_id="earlier-boot"))
    await moved.advance(4000)
    sender()
    await empty(spool)
    by_seq = {one.header.seq: one.header for one in control.uploads}
    assert by_seq[1].captured_at == captured_at
    assert by_seq[2].captured_at == 6  # of another boot nothing more can be known
    assert by_seq[1].sent_boot_ms == by_seq[2].sent_boot_ms == moved.boot_ms()


async def test_at_most_so_many_in_flight(control: ScriptedControl, spool: Spool, sender: Sender) -> None:
    answering = asyncio.Event()

    async def late(one: LookUpload) -> web.StreamResponse:
        await answering.wait()
        return recorded()

    control.answer = late
    for seq in range(1, 7):
        await spool.add(look(seq, f"cam_{seq}"))
    sender(in_flight=2)
    await until(lambda: len(control.uploads) == 2, "two uploads")
    answering.set()
    await empty(spool)
    assert control.in_flight_max == 2


async def test_fresh_looks_overtake_the_backlog_and_the_backlog_still_moves(
    control: ScriptedControl, spool: Spool, sender: Sender
) -> None:
    for seq in range(1, 6):
        for camera in ("a", "b"):
            await spool.add(look(seq, camera, captured_at=START_MS + 60_000 * seq))
    sender(in_flight=1)
    await empty(spool)
    order = [(one.header.camera_id, one.header.seq) for one in control.uploads]
    # One lane takes turns; both cameras are fresh after three uploads.
    assert order[:4] == [("a", 5), ("a", 1), ("b", 5), ("b", 1)]
    assert sorted(order) == sorted((camera, seq) for camera in ("a", "b") for seq in range(1, 6))


async def test_after_a_short_outage_every_camera_s_looks_arrive_in_order(
    control: ScriptedControl, spool: Spool, sender: Sender
) -> None:
    for seq in range(1, 11):
        for camera in ("a", "b", "c"):
            await spool.add(look(seq, camera, captured_at=START_MS + 1000 * seq))
    sender(in_flight=1)
    await empty(spool)
    for camera in ("a", "b", "c"):
        assert [one.header.seq for one in control.uploads if one.header.camera_id == camera] == list(range(1, 11))


async def test_refused_look_is_set_aside_and_reported(
    control: ScriptedControl, spool: Spool, sender: Sender, tmp_path: Path
) -> None:
    async def refuse(one: LookUpload) -> web.StreamResponse:
        return refused("not_held") if one.header.seq == 1 else recorded()

    control.answer = refuse
    for seq in (1, 2):
        await spool.add(look(seq, generation=3))
    sending = sender()
    await empty(spool)
    (report,) = reported(sending.reports)
    assert (report.event_type, report.camera_id, report.generation) == ("look_refused", "cam_1", 3)
    assert report.payload == {"seq": 1, "reason": "not_held"}
    assert len(list((tmp_path / "spool" / "refused").iterdir())) == 1
    assert (sending.uploader.refused, sending.uploader.recorded) == (1, 1)


@pytest.mark.parametrize("status", [400, 413])
async def test_servers_own_400_and_413_are_final(
    control: ScriptedControl, spool: Spool, sender: Sender, status: int
) -> None:
    async def answer(one: LookUpload) -> web.StreamResponse:
        return failed(status, "bad_input")

    control.answer = answer
    await spool.add(look(1))
    sending = sender()
    await empty(spool)
    (report,) = reported(sending.reports)
    assert "bad_input" in str(report.payload["reason"])
    assert len(control.uploads) == 1


@pytest.mark.parametrize(
    "first",
    [
        lambda: failed(503, "store_busy", {"Retry-After": "1"}),
        lambda: failed(401, "unauthenticated"),
        lambda: web.Response(status=413, text="<html>a proxy that likes no large requests</html>"),
        lambda: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
        lambda: web.Response(status=502, text="bad gateway"),
        lambda: web.Response(text="not JSON"),
        lambda: web.Response(text='{"result": "recorded"}'),
        lambda: web.Response(text="x" * 100_000),
    ],
)
async def test_what_says_nothing_about_the_look_is_tried_again(
    control: ScriptedControl,
    spool: Spool,
    sender: Sender,
    moved: FollowingClock,
    first: Callable[[], web.Response],
) -> None:
    async def once(one: LookUpload) -> web.StreamResponse:
        return first() if len(control.uploads) == 1 else recorded()

    control.answer = once
    await spool.add(look(1))
    sending = sender(in_flight=1)
    await until(lambda: sending.uploader.failed == 1, "the failure")
    assert spool.looks == 1
    await moved.until_sleeping(1)
    await moved.advance(1000)
    await empty(spool)
    assert control.seqs() == [1, 1]
    assert len(sending.reports) == 0


async def test_pauses_grow_retry_after_wins_and_an_answer_ends_them(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    answers = [failed(503), failed(503), failed(503, headers={"Retry-After": "77"}), recorded(), failed(503)]

    async def answer(one: LookUpload) -> web.StreamResponse:
        return answers.pop(0) if answers else recorded()

    control.answer = answer
    await spool.add(look(1))
    sending = sender(in_flight=1)
    pauses = []
    for count in (1, 2, 3):
        await until(lambda count=count: sending.uploader.failed == count, "a failure")  # type: ignore[misc]
        await moved.until_sleeping(1)
        assert moved.next_due_ms is not None
        pauses.append(moved.next_due_ms)
        await moved.advance(moved.next_due_ms)
    await empty(spool)
    await spool.add(look(2))
    await until(lambda: sending.uploader.failed == 4, "a failure")
    await moved.until_sleeping(1)
    assert moved.next_due_ms is not None
    assert [*pauses, moved.next_due_ms] == [1000, 2000, 77_000, 1000]
    sending.uploader.try_now()  # the socket is back: no need to wait for the rest
    await empty(spool)


async def test_lanes_that_fail_together_count_as_one_failure(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    both = asyncio.Event()

    async def fail_together(one: LookUpload) -> web.StreamResponse:
        if len(control.uploads) == 2:
            both.set()
        await both.wait()
        return failed(503) if len(control.uploads) <= 2 else recorded()

    control.answer = fail_together
    for seq in (1, 2):
        await spool.add(look(seq))
    sending = sender(in_flight=2)
    await until(lambda: sending.uploader.failed == 2, "two failures")
    await moved.until_sleeping(2)
    assert moved.next_due_ms == 1000
    await moved.advance(1000)
    await empty(spool)


async def test_look_on_which_the_server_fails_rests_alone(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    async def fail_on_first(one: LookUpload) -> web.StreamResponse:
        return failed(500) if one.header.seq == 1 and control.seqs().count(1) < 3 else recorded()

    control.answer = fail_on_first
    for seq in range(1, 6):
        await spool.add(look(seq))
    sending = sender(in_flight=1)
    await until(lambda: spool.looks == 1, "the others recorded")
    for count, pause_ms in ((1, 5000), (2, 10_000)):
        await until(lambda count=count: sending.uploader.failed == count, "a failure")  # type: ignore[misc]
        await moved.until_sleeping(1)
        await moved.advance(pause_ms)
    await empty(spool)
    assert control.seqs().count(1) == 3


async def test_server_away_keeps_everything_until_it_is_back(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    await control.go_away()
    for seq in (1, 2, 3):
        await spool.add(look(seq))
    sending = sender()
    for count in (1, 2, 3):
        await until(lambda count=count: sending.uploader.failed >= count, "a failure")  # type: ignore[misc]
        await moved.until_sleeping(2)
        await moved.advance(120_000)
    assert spool.looks == 3
    async with control:
        sending.uploader.try_now()
        await moved.advance(120_000)
        await empty(spool)
    assert sorted(set(control.seqs())) == [1, 2, 3]


async def test_connection_cut_in_the_middle_is_tried_again(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    async with Cutter(control.port) as net:
        net.cut_after(50_000, Way.UP)
        await spool.add(look(1, size_bytes=200_000))
        sending = sender(in_flight=1, url=f"http://127.0.0.1:{net.port}")
        await until(lambda: sending.uploader.failed == 1, "the cut")
        assert spool.looks == 1
        await moved.until_sleeping(1)
        await moved.advance(1000)
        await empty(spool)
    assert control.seqs() == [1]


async def test_lost_answer_is_a_repeat_and_not_a_second_look(
    control: ScriptedControl, spool: Spool, sender: Sender, moved: FollowingClock
) -> None:
    """The server recorded it, the answer never came: sent again, told so, dropped."""
    known: set[int] = set()

    async def remember(one: LookUpload) -> web.StreamResponse:
        repeat = one.header.seq in known
        known.add(one.header.seq)
        return recorded(repeat)

    control.answer = remember
    async with Cutter(control.port) as net:
        net.cut_after(0, Way.DOWN)
        await spool.add(look(1))
        sending = sender(in_flight=1, url=f"http://127.0.0.1:{net.port}")
        await until(lambda: sending.uploader.failed == 1, "the cut")
        await moved.until_sleeping(1)
        await moved.advance(1000)
        await empty(spool)
    assert control.seqs() == [1, 1]
    assert known == {1}


async def test_server_that_never_answers_is_given_up(
    control: ScriptedControl, session: aiohttp.ClientSession
) -> None:
    async def never(one: LookUpload) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    control.answer = never
    client = UploadClient(session, control.url, "w1", Secret(TOKEN), answer_timeout_sec=0.05)
    one = look(1)
    assert await client.send(pack(one.header, one.infer, one.full)) == Away("no answer in time")


async def test_damaged_spool_file_is_reported_and_stops_nothing(
    control: ScriptedControl, spool: Spool, sender: Sender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camserver.services.worker.spool.AT_HAND_MAX_BYTES", 0)  # it is read from its file
    for seq in (1, 2):
        await spool.add(look(seq))
    damaged = min((tmp_path / "spool" / "looks").iterdir())
    damaged.write_bytes(b"damaged")
    sending = sender()
    await empty(spool)
    assert control.seqs() == [2]
    (report,) = reported(sending.reports)
    assert report.event_type == "look_refused"
    assert "damaged" in str(report.payload["reason"])


async def test_cancelled_upload_keeps_the_look(control: ScriptedControl, spool: Spool, sender: Sender) -> None:
    async def never(one: LookUpload) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    control.answer = never
    await spool.add(look(1))
    sending = sender()
    await until(lambda: len(control.uploads) == 1, "the upload")
    await end(sending.task)
    assert spool.looks == 1
    assert spool.take(0, fresh_first=True) is not None


async def test_token_goes_with_every_upload(control: ScriptedControl, session: aiohttp.ClientSession) -> None:
    one = look(1)
    body = pack(one.header, one.infer, one.full)
    wrong = await UploadClient(session, control.url, "w1", Secret("wrong-token")).send(body)
    assert isinstance(wrong, Away)
    assert "401" in wrong.reason
    right = await UploadClient(session, control.url + "/", "w1", Secret(TOKEN)).send(body)
    assert isinstance(right, Recorded)

    async def refuse(one: LookUpload) -> web.StreamResponse:
        return refused()

    control.answer = refuse
    assert isinstance(await UploadClient(session, control.url, "w1", Secret(TOKEN)).send(body), LookRefused)
