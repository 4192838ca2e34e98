"""The whole worker against a scripted server on real sockets, on a clock that the tests move."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from camserver.base.errors import BadSettings, DataOwned
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.domain.certificates import WorkerName
from camserver.domain.workers import WorkerState
from camserver.services.worker import identity_file, service
from camserver.services.worker.link import CONNECT_SEC
from camserver.services.worker.spool_files import LookName
from camserver.services.worker.streams import Streams
from camserver.services.worker.waiting import end
from camserver.wire.looks import LookUpload
from camserver.wire.worker import (
    CAMERAS_MAX,
    Ack,
    CameraVerdict,
    Drain,
    Heartbeat,
    Held,
    LiveStart,
    LiveStop,
    Refused,
    Register,
    Reload,
    Renewed,
    Report,
    Start,
    Stop,
)
from tests.rig.cutter import Cutter
from tests.rig.identities import new_identity
from tests.rig.polling import until
from tests.services.worker.build import FollowingClock, Quiet, start_message
from tests.services.worker.control import TOKEN, ScriptedControl, recorded

TICK_MS = 500


def settings_for(data_dir: Path, url: str, **variables: str) -> Settings:
    return load(
        None,
        {
            "CAMSERVER_CONTROL_WORKER_TOKEN": TOKEN,
            "CAMSERVER_WORKER_SERVER_URL": url,
            "CAMSERVER_WORKER_NAME": "w1",
            "CAMSERVER_WORKER_SITE_ID": "site-1",
            **variables,
        },
        data_dir,
    )


class Running:
    """A worker and the server it talks to."""

    def __init__(self, clock: FollowingClock, control: ScriptedControl, data_dir: Path) -> None:
        self.clock = clock
        self.control = control
        self.data_dir = data_dir
        self.url = control.url
        self.ready = Ready()
        self.quiet = Quiet()
        self.task: asyncio.Task[None] | None = None

    def begin(self, **variables: str) -> None:
        settings = settings_for(self.data_dir, self.url, **variables)
        self.task = asyncio.ensure_future(service.run(self.clock, settings, self.ready))

    async def registered(self, count: int = 1) -> Register:
        message = await self.control.until(lambda one: isinstance(one, Register), "REGISTER", count)
        assert isinstance(message, Register)
        await until(lambda: self.ready.is_ready, "ready")
        return message

    async def start(self, start: Start) -> Ack:
        await self.control.send(start)
        return await self.ack(start.intent_id)

    async def ack(self, intent_id: str, count: int = 1) -> Ack:
        def is_it(one: object) -> bool:
            return isinstance(one, Ack) and one.intent_id == intent_id

        message = await self.control.until(is_it, f"ACK {intent_id}", count)
        assert isinstance(message, Ack)
        return message

    async def going(self, start: Start | None = None) -> None:
        """Registered, and one camera looks."""
        self.begin()
        await self.registered()
        assert (await self.start(start or start_message())).status == "ok"
        await self.control.until_report("pipeline_ready")

    async def pass_until(self, condition: Callable[[], bool], what: str, bound_ms: int = 300_000) -> int:
        """Lets time go on in small steps until the condition holds; how long that took on the moved clock."""
        passed_ms = 0
        while not condition():
            assert passed_ms < bound_ms, f"{what}: not within {bound_ms} ms of the moved clock"
            await self.clock.advance(TICK_MS)
            passed_ms += TICK_MS
            # Sockets and files are real: the clock must not run ahead of them, however slow the machine is.
            await self.quiet.come()
        return passed_ms

    async def let_pass(self, ms: int) -> None:
        """Lets time go on, with everything it brings."""
        target_boot_ms = self.clock.boot_ms() + ms
        await self.pass_until(lambda: self.clock.boot_ms() >= target_boot_ms, "time", bound_ms=ms + TICK_MS)

    def heartbeats(self) -> list[Heartbeat]:
        return [one for one in self.control.received if isinstance(one, Heartbeat)]

    def reports(self, event_type: str) -> list[Report]:
        return [one for one in self.control.received if isinstance(one, Report) and one.event_type == event_type]


@pytest.fixture
async def worker(moved: FollowingClock, control: ScriptedControl, tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(moved, control, tmp_path)
    yield running
    if running.task is not None:
        await end(running.task)


HELD = Held(camera_id="cam_1", generation=1)


async def test_registers_and_follows_the_servers_time(worker: Running) -> None:
    worker.clock.jump_wall(-50_000_000)  # a machine whose clock is half a day behind
    server_time = worker.clock.now_ms() + 50_000_000
    worker.control._server_time_ms = lambda: server_time
    worker.begin()
    register = await worker.registered()
    assert (register.worker_id, register.site, register.protocol) == ("w1", "site-1", 1)
    assert register.capacity.slots == 64
    assert register.holding == ()
    assert worker.clock.now_ms() == server_time


async def test_start_is_acknowledged_renewed_looked_at_and_uploaded(worker: Running) -> None:
    await worker.going()
    beats = worker.heartbeats()
    assert beats[0].renew == (HELD,)  # at once: a camera looks only under a lease it knows the end of
    await until(lambda: worker.control.seqs() == [1], "the first look")
    await worker.pass_until(lambda: len(worker.control.seqs()) >= 4, "more looks")
    assert worker.control.seqs()[:4] == [1, 2, 3, 4]
    assert all(one.header.generation == 1 for one in worker.control.uploads)
    assert worker.heartbeats()[-1].state is WorkerState.RUNNING
    assert worker.heartbeats()[-1].metrics["cameras"] == 1


async def test_heartbeats_tell_what_the_worker_does(worker: Running) -> None:
    await worker.going()
    await worker.pass_until(lambda: len(worker.control.seqs()) >= 6, "looks")
    count = len(worker.heartbeats())
    await worker.pass_until(lambda: len(worker.heartbeats()) > count, "a heartbeat after them")
    told = worker.heartbeats()[-1].metrics
    assert told["looks_ok"] >= 6
    assert told["decode_fps"] * 60 >= 5
    assert 0 < told["detect_fps"] <= told["decode_fps"]
    assert told["latency_ms_p95"] >= told["latency_ms_p50"] >= 0
    assert told["lease_renew_rtt_ms"] >= 0
    assert told["dropped_frames"] == 0
    assert told["ringbuf_seconds"] == 0, "a camera without video has no ring"


async def test_no_look_without_an_answer_to_a_heartbeat(worker: Running) -> None:
    worker.control.answers_heartbeats = False
    worker.begin()
    await worker.registered()
    assert (await worker.start(start_message())).status == "ok"
    await until(lambda: worker.heartbeats() != [], "a heartbeat")
    await worker.let_pass(5000)
    assert worker.control.uploads == []
    assert worker.reports("pipeline_ready") == []


async def test_heartbeats_every_ten_seconds_with_growing_seq(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    for count in (1, 2, 3):
        await worker.pass_until(lambda count=count: len(worker.heartbeats()) >= count, "heartbeat")  # type: ignore[misc]
    beats = worker.heartbeats()
    assert [beat.heartbeat_seq for beat in beats[:3]] == [1, 2, 3]
    assert beats[1].boot_ms - beats[0].boot_ms >= 10_000
    assert beats[0].state is WorkerState.IDLE


async def test_repeated_start_is_acknowledged_again_and_reports_ready_again(worker: Running) -> None:
    await worker.going()
    await worker.start(start_message(intent_id="intent-2"))
    await worker.control.send(start_message(intent_id="intent-2"))
    assert (await worker.ack("intent-2", 2)).status == "ok"
    await worker.control.until_report("pipeline_ready", 3)
    await worker.pass_until(lambda: len(worker.control.seqs()) >= 3, "looks")
    assert worker.control.seqs()[:3] == [1, 2, 3]  # still one camera task


async def test_start_with_other_settings_goes_on_with_the_same_count(worker: Running) -> None:
    await worker.going()
    await until(lambda: worker.control.seqs() == [1], "the first look")
    # The server's figure is from before it got the first look.
    again = start_message(intent_id="intent-2", interval_sec=1, next_seq=1)
    assert (await worker.start(again)).status == "ok"
    await worker.pass_until(lambda: len(worker.control.seqs()) >= 4, "looks", bound_ms=8000)
    assert worker.control.seqs()[:4] == [1, 2, 3, 4]


async def test_stale_start_is_refused_and_newer_one_replaces(worker: Running) -> None:
    await worker.going(start_message(generation=5))
    stale = await worker.start(start_message(generation=4, intent_id="stale"))
    assert stale.status == "refused"
    assert "generation" in stale.details
    assert (await worker.start(start_message(generation=6, intent_id="newer"))).status == "ok"
    await worker.control.until_report("pipeline_ready", 2)
    await worker.pass_until(lambda: any(one.header.generation == 6 for one in worker.control.uploads), "look")
    await worker.pass_until(lambda: worker.heartbeats()[-1].renew == (Held(camera_id="cam_1", generation=6),), "beat")


@pytest.mark.parametrize(("kind", "url"), [("http", "http:///x"), ("rtsp", "rtsp:///x"), ("test", "test://nonsense")])
async def test_source_that_can_not_be_is_refused(worker: Running, kind: str, url: str) -> None:
    worker.begin()
    await worker.registered()
    ack = await worker.start(start_message(kind=kind, url=url))
    assert ack.status == "failed"
    await worker.pass_until(lambda: worker.heartbeats() != [], "heartbeat")
    assert worker.heartbeats()[-1].renew == ()
    assert worker.heartbeats()[-1].state is WorkerState.IDLE


async def test_no_more_cameras_than_slots(worker: Running) -> None:
    worker.begin(CAMSERVER_WORKER_SLOTS="1")
    await worker.registered()
    assert (await worker.start(start_message("cam_1", intent_id="a"))).status == "ok"
    assert (await worker.start(start_message("cam_2", intent_id="b"))).status == "refused"


async def test_stop_flushes_then_releases(worker: Running) -> None:
    answering = asyncio.Event()

    async def late(one: LookUpload) -> web.StreamResponse:
        await answering.wait()
        return recorded()

    worker.control.answer = late
    await worker.going()
    await until(lambda: len(worker.control.uploads) == 1, "an upload")
    await worker.control.send(Stop(intent_id="s", camera_id="cam_1", generation=1, reason="moved"))
    assert (await worker.ack("s")).status == "ok"
    assert worker.reports("pipeline_stopped") == []  # not before what was captured has arrived
    answering.set()
    await worker.control.until_report("pipeline_stopped")
    (stopped,) = worker.reports("pipeline_stopped")
    assert (stopped.camera_id, stopped.generation, stopped.payload["left"]) == ("cam_1", 1, 0)
    await worker.pass_until(lambda: worker.heartbeats()[-1].renew == (), "heartbeat")
    sent = len(worker.control.uploads)
    await worker.let_pass(60_000)
    assert len(worker.control.uploads) == sent
    assert worker.heartbeats()[-1].state is WorkerState.IDLE


async def test_stop_does_not_wait_for_ever_and_what_is_left_follows(worker: Running) -> None:
    answering = asyncio.Event()

    async def late(one: LookUpload) -> web.StreamResponse:
        await answering.wait()
        return recorded()

    worker.control.answer = late
    await worker.going()
    await until(lambda: len(worker.control.uploads) == 1, "an upload")
    await worker.control.send(Stop(intent_id="s", camera_id="cam_1", generation=1, reason="moved"))
    await worker.ack("s")
    took_ms = await worker.pass_until(lambda: worker.reports("pipeline_stopped") != [], "pipeline_stopped")
    assert took_ms <= 5000
    assert worker.reports("pipeline_stopped")[0].payload["left"] == 1
    answering.set()
    spool = worker.data_dir / "spool" / "looks"
    await until(lambda: list(spool.iterdir()) == [], "the rest")


async def test_repeated_stop_is_answered_and_reported_again(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    for count in (1, 2):
        await worker.control.send(Stop(intent_id="s", camera_id="cam_9", generation=7, reason="moved"))
        assert (await worker.ack("s", count)).status == "ok"
        await worker.control.until_report("pipeline_stopped", count)


async def test_ready_is_told_again_to_a_server_that_may_have_missed_it(worker: Running) -> None:
    await worker.going()
    await worker.control.hang_up()
    await worker.pass_until(lambda: len(worker.reports("pipeline_ready")) == 2, "ready on the new connection")
    await worker.control.send(Refused(error_code="store_unavailable", message="try again"))
    await worker.pass_until(lambda: len(worker.reports("pipeline_ready")) == 3, "ready after the outage")
    beats = len(worker.heartbeats())
    await worker.pass_until(lambda: len(worker.heartbeats()) >= beats + 3, "heartbeats")
    assert len(worker.reports("pipeline_ready")) == 3


async def test_reload_is_acknowledged(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    await worker.control.send(Reload(intent_id="r"))
    assert (await worker.ack("r")).status == "ok"


async def test_live_view_of_a_camera_that_is_not_held_is_refused(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    live: dict[str, Any] = {"camera_id": "cam_1", "generation": 1}
    await worker.control.send(
        LiveStart(intent_id="l", streamer_url="wss://server.example/v1/feed", ticket="a-ticket", **live)
    )
    answer = await worker.ack("l")
    assert (answer.status, answer.details.partition(":")[0]) == ("refused", "moved")
    await worker.control.send(LiveStop(intent_id="s", **live))
    assert (await worker.ack("s")).status == "ok"


async def test_dropped_socket_changes_nothing_and_the_same_generation_goes_on(worker: Running) -> None:
    await worker.going(start_message(interval_sec=5))
    await worker.control.hang_up()
    await worker.pass_until(lambda: len(worker.control.sockets) == 2, "a new connection")
    register = await worker.registered(2)
    assert register.holding == (HELD,)
    before = len(worker.control.seqs())
    await worker.pass_until(lambda: len(worker.control.seqs()) >= before + 3, "looks")
    seqs = worker.control.seqs()
    assert seqs == list(range(1, len(seqs) + 1))
    assert {one.header.generation for one in worker.control.uploads} == {1}
    assert worker.reports("fsm_refused") == []


async def test_server_away_looks_are_spooled_and_sent_when_it_is_back(worker: Running) -> None:
    await worker.going(start_message(interval_sec=5))
    await until(lambda: worker.control.seqs() == [1], "the first look")
    await worker.control.go_away()
    spool = worker.data_dir / "spool" / "looks"
    await worker.pass_until(lambda: len(list(spool.iterdir())) >= 5, "spooled looks", bound_ms=60_000)
    assert not worker.ready.is_ready
    files = list(spool.iterdir())
    names = [LookName.parse(file.name) for file in files]
    spooled = {name.seq for name in names if name is not None}
    async with worker.control:
        await worker.pass_until(lambda: spooled <= set(worker.control.seqs()), "what was spooled")
        await until(lambda: not any(file.exists() for file in files), "a spool without them")
        seqs = worker.control.seqs()
        assert sorted(set(seqs)) == list(range(1, max(seqs) + 1))
        await worker.pass_until(lambda: worker.ready.is_ready, "the socket too")


async def test_without_renewal_capture_stops_at_its_own_deadline(worker: Running) -> None:
    """Sent + 90 s - 5 s, whoever is cut off: nothing is captured later than that."""
    await worker.going(start_message(interval_sec=5))
    renewed_at = worker.heartbeats()[-1].boot_ms
    worker.control.answers_heartbeats = False
    worker.control.answers_register = False
    await worker.pass_until(lambda: worker.clock.boot_ms() > renewed_at + 180_000, "three minutes")
    captured = [one.header.boot_ms for one in worker.control.uploads]
    assert max(captured) < renewed_at + 85_000
    assert max(captured) > renewed_at + 75_000  # and not much earlier either
    # Nobody took the camera: it goes on at the same generation.
    worker.control.answers_heartbeats = True
    worker.control.answers_register = True
    before = len(captured)
    await worker.pass_until(lambda: len(worker.control.uploads) > before + 1, "looks again")
    assert worker.control.uploads[-1].header.generation == 1


async def test_late_answer_counts_from_when_its_heartbeat_was_sent(worker: Running) -> None:
    await worker.going(start_message(interval_sec=5))
    worker.control.answers_heartbeats = False
    worker.control.answers_register = False
    count = len(worker.heartbeats())
    await worker.pass_until(lambda: len(worker.heartbeats()) > count, "a heartbeat")
    beat = worker.heartbeats()[count]
    await worker.clock.advance(15_000)
    now_ms, boot_ms = worker.clock.now_ms(), worker.clock.boot_ms()
    # So slow an answer says too little about the time to be followed.
    late = Renewed(heartbeat_seq=beat.heartbeat_seq, renewed=(HELD,), ttl_ms=90_000, server_time=now_ms + 10**9)
    unknown = Renewed(heartbeat_seq=999, renewed=(HELD,), ttl_ms=900_000, server_time=now_ms)
    for answer in (late, unknown):
        await worker.control.send(answer)
    await worker.let_pass(130_000)
    assert worker.clock.now_ms() - now_ms == worker.clock.boot_ms() - boot_ms
    captured = max(one.header.boot_ms for one in worker.control.uploads)
    assert beat.boot_ms + 75_000 < captured < beat.boot_ms + 85_000


async def test_frozen_worker_captures_nothing_before_it_is_renewed(worker: Running) -> None:
    await worker.going(start_message(interval_sec=5))
    worker.control.answers_heartbeats = False
    worker.control.answers_register = False
    frozen_at = worker.clock.boot_ms()
    worker.clock.freeze(200_000)
    await worker.pass_until(lambda: worker.clock.boot_ms() > frozen_at + 260_000, "a minute")
    assert max(one.header.boot_ms for one in worker.control.uploads) <= frozen_at


@pytest.mark.parametrize("by", ["heartbeat", "register"])
async def test_lost_lease_ends_the_camera(worker: Running, by: str) -> None:
    await worker.going(start_message(interval_sec=5))
    worker.control.lost[("cam_1", 1)] = "taken"
    if by == "register":
        await worker.control.hang_up()
    await worker.pass_until(lambda: bool(worker.heartbeats()) and worker.heartbeats()[-1].renew == (), "end")
    await until(lambda: list((worker.data_dir / "spool" / "looks").iterdir()) == [], "flush")
    sent = len(worker.control.uploads)
    await worker.let_pass(60_000)
    assert len(worker.control.uploads) == sent
    assert worker.reports("pipeline_stopped") == []  # it was not ours to give back


async def test_camera_fault_travels_as_a_report_and_as_a_look(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    await worker.start(start_message(url="test://broken?fault=unauthorized"))
    await worker.control.until_report("camera_fault")
    assert worker.reports("camera_fault")[0].payload["auth_failures"] == 1
    await until(lambda: len(worker.control.uploads) == 1, "the failed look")
    assert worker.control.uploads[0].header.error_code == "unauthorized"


async def test_drain_lets_all_go_and_takes_nothing_more(worker: Running) -> None:
    await worker.going()
    answering = asyncio.Event()

    async def late(one: LookUpload) -> web.StreamResponse:
        await answering.wait()
        return recorded()

    await until(lambda: len(worker.control.uploads) >= 1, "an upload")
    worker.control.answer = late
    await worker.pass_until(lambda: len(worker.control.uploads) >= 2, "an upload under way")
    await worker.control.send(Drain(intent_id="d"))
    assert (await worker.ack("d")).status == "ok"
    late_start = await worker.start(start_message("cam_2", intent_id="late"))
    assert late_start.status == "refused"
    assert "DRAINING" in late_start.details
    await worker.control.until_report("fsm_refused")
    await worker.control.send(Drain(intent_id="d"))
    assert (await worker.ack("d", 2)).status == "ok"
    answering.set()
    await worker.pass_until(lambda: worker.reports("pipeline_stopped") != [], "pipeline_stopped")
    await worker.pass_until(lambda: "drained" in str(worker.ready.checks()), "the end")
    assert list((worker.data_dir / "spool" / "looks").iterdir()) == []
    sockets = len(worker.control.sockets)
    await worker.let_pass(120_000)
    assert len(worker.control.sockets) == sockets  # it stays away
    assert worker.task is not None
    assert not worker.task.done()


async def test_refused_registration_says_why_and_tries_again(worker: Running) -> None:
    worker.control.refuse_register = Refused(error_code="unknown_site", message="no such site")
    worker.begin()
    await until(lambda: "no such site" in str(worker.ready.checks()), "the reason")
    worker.control.refuse_register = None
    await worker.pass_until(lambda: worker.ready.is_ready, "registration")


async def test_wrong_token_says_so_and_tries_again(worker: Running) -> None:
    worker.control.token = "another-token"
    worker.begin()
    await until(lambda: "401" in str(worker.ready.checks()), "the reason")
    assert TOKEN not in str(worker.ready.checks())
    worker.control.token = TOKEN
    await worker.pass_until(lambda: worker.ready.is_ready, "registration")


async def test_pauses_between_tries_grow_up_to_their_cap(worker: Running) -> None:
    await worker.control.go_away()
    worker.begin()

    def pauses() -> list[float]:
        return [seconds for seconds in worker.clock.slept_sec if seconds != CONNECT_SEC]

    await worker.pass_until(lambda: len(pauses()) >= 9, "nine tries")
    for number, pause_sec in enumerate(pauses()):
        full_sec = min(0.5 * 2**number, 15.0)  # one and a half heartbeats
        assert full_sec / 2 <= pause_sec <= full_sec


async def test_silent_server_is_left_for_a_new_connection(worker: Running) -> None:
    async with Cutter(worker.control.port) as net:
        worker.url = f"http://127.0.0.1:{net.port}"
        worker.begin()
        await worker.registered()
        net.swallow()
        await worker.pass_until(lambda: not worker.ready.is_ready, "notices", bound_ms=45_000)
        net.heal()
        await worker.pass_until(lambda: worker.ready.is_ready, "comes back")
    assert len(worker.control.sockets) >= 2


@pytest.mark.parametrize(
    "text", ["no json", "{}", '{"type": "START"}', '{"type": "RENEWED", "heartbeat_seq": "x"}', "[" * 10_000]
)
async def test_message_that_makes_no_sense_is_left_and_the_connection_lives(worker: Running, text: str) -> None:
    worker.begin()
    await worker.registered()
    await worker.control.sockets[-1].send_str(text)
    await worker.control.sockets[-1].send_bytes(b"binary")
    await worker.control.send(Refused(error_code="bad_input", message="you too"))
    await worker.control.send(Reload(intent_id="r"))
    assert (await worker.ack("r")).status == "ok"
    assert len(worker.control.sockets) == 1


async def test_message_longer_than_the_bound_costs_the_connection_only(worker: Running) -> None:
    worker.begin()
    await worker.registered()
    await worker.control.sockets[-1].send_str("x" * 70_000)
    await worker.pass_until(lambda: len(worker.control.sockets) == 2, "a new connection")
    await worker.registered(2)


async def test_restarted_worker_goes_on_with_the_same_generation_after_what_it_spooled(worker: Running) -> None:
    async def refuse(one: LookUpload) -> web.StreamResponse:
        return web.Response(status=503)

    worker.control.answer = refuse
    await worker.going(start_message(interval_sec=5))
    spool = worker.data_dir / "spool" / "looks"
    await worker.pass_until(lambda: len(list(spool.iterdir())) >= 3, "spooled looks")
    assert worker.task is not None
    await worker.control.go_away()
    await end(worker.task)
    left = len(list(spool.iterdir()))
    worker.control.uploads.clear()
    worker.control.answer = worker.control.record
    async with worker.control:
        worker.begin()
        await worker.registered(2)
        await until(lambda: list(spool.iterdir()) == [], "an empty spool")
        # The server knew of none of them when it made this START.
        await worker.start(start_message(intent_id="again", next_seq=1))
        await until(lambda: len(worker.control.seqs()) > left, "a new look")
        assert sorted(worker.control.seqs()) == list(range(1, left + 2))


async def test_told_to_stop_it_gives_its_leases_back(worker: Running) -> None:
    await worker.going()
    assert worker.task is not None
    worker.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(worker.task, 60)
    assert worker.reports("pipeline_stopped")[0].payload["reason"] == "worker stops"


async def test_second_worker_on_the_same_spool_is_refused(worker: Running, tmp_path: Path) -> None:
    worker.begin()
    await worker.registered()
    with pytest.raises(DataOwned):
        await service.run(worker.clock, settings_for(tmp_path, worker.url), Ready())


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"CAMSERVER_WORKER_NAME": "工場"}, r"worker\.name"),
        ({"CAMSERVER_WORKER_NAME": "a b"}, r"worker\.name"),
        ({"CAMSERVER_WORKER_SERVER_URL": "http://192.0.2.1:8081"}, "https"),
    ],
)
def test_settings_that_can_not_work_are_refused(tmp_path: Path, variables: dict[str, str], said: str) -> None:
    settings = load(None, {"CAMSERVER_CONTROL_WORKER_TOKEN": TOKEN, **variables}, tmp_path)
    with pytest.raises(BadSettings, match=said):
        service.identify(settings, service.read_enrolled(settings))


def test_a_server_elsewhere_needs_a_certificate_and_gets_no_token(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "https://cameras.example.org")
    with pytest.raises(BadSettings, match=r"worker enroll https://cameras\.example\.org"):
        service.read_enrolled(settings)
    enrolled = new_identity(WorkerName("tenant", "site", "shop-1"))
    identity_file.write(settings.worker.identity_dir, enrolled)
    identity = service.identify(settings, service.read_enrolled(settings))
    assert (identity.worker_id, identity.site, identity.token) == ("shop-1", "site", None)
    assert identity.headers() == {}


def test_beside_its_server_it_has_the_token(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "http://127.0.0.1:8081")
    identity = service.identify(settings, service.read_enrolled(settings))
    assert identity.headers() == {"Authorization": f"Bearer {TOKEN}"}
    assert TOKEN not in repr(identity)


async def test_verdicts_that_come_with_a_renewal_keep_the_gate_awake(worker: Running) -> None:
    worker.begin(CAMSERVER_GATE_LEARN_LOOKS="0")
    await worker.registered()
    await worker.start(start_message(url="test://still", interval_sec=1, force_every=1000))

    def verdicts() -> list[str]:
        return [look.header.verdict for look in worker.control.uploads]

    await worker.pass_until(lambda: len(verdicts()) >= 3, "looks")
    assert set(verdicts()[1:]) == {"skip"}
    seen = max(look.header.captured_at for look in worker.control.uploads)
    worker.control.verdicts = (CameraVerdict(camera_id="cam_1", captured_at=seen, detected=True),)
    await worker.pass_until(lambda: "analyze" in verdicts()[1:], "a look that passes because of the verdict")


def test_no_more_slots_can_be_set_than_fit_into_a_heartbeat(tmp_path: Path) -> None:
    most = settings_for(tmp_path, "http://127.0.0.1:1", CAMSERVER_WORKER_SLOTS=str(CAMERAS_MAX))
    assert service.identify(most, None).slots == CAMERAS_MAX
    with pytest.raises(BadSettings, match=r"worker\.slots"):
        settings_for(tmp_path, "http://127.0.0.1:1", CAMSERVER_WORKER_SLOTS=str(CAMERAS_MAX + 1))


async def test_a_camera_that_hangs_while_it_is_let_go_delays_nothing_else(
    worker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.going()
    going_on, close = asyncio.Event(), Streams.close

    async def hanging(self: Streams) -> None:
        await going_on.wait()
        await close(self)

    monkeypatch.setattr(Streams, "close", hanging)
    # Begun anew with another interval, and taken away again: in that order, after the old one is gone.
    anew = start_message(intent_id="anew", generation=2, interval_sec=5)
    await worker.control.send(anew)
    await worker.control.send(Stop(intent_id="stop", camera_id="cam_1", generation=2, reason="moved"))
    assert (await worker.start(start_message("cam_2", intent_id="other"))).status == "ok"
    await worker.control.until_report("pipeline_ready", 2)
    beats = len(worker.heartbeats())
    await worker.pass_until(lambda: len(worker.heartbeats()) >= beats + 2, "heartbeats")
    acks = [one.intent_id for one in worker.control.received if isinstance(one, Ack)]
    assert acks == ["intent-1", "other"]
    going_on.set()
    assert (await worker.ack("anew")).status == "ok"
    assert (await worker.ack("stop")).status == "ok"
    acks = [one.intent_id for one in worker.control.received if isinstance(one, Ack)]
    assert acks == ["intent-1", "other", "anew", "stop"]
    await worker.pass_until(lambda: len(worker.reports("pipeline_stopped")) == 1, "the camera is let go")
