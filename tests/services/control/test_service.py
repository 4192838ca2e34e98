"""Control as a worker meets it: a real socket, a moved clock."""

import base64
import json

import pytest
from aiohttp import WSServerHandshakeError

from camserver.base.errors import StoreUnavailable
from camserver.domain.workers import WorkerState
from camserver.store.leases import Claim, release
from camserver.store.starts import set_all_active
from camserver.store.tx import Row, Tx
from camserver.store.workers import heartbeats
from camserver.wire.looks import LookRefused, Recorded
from camserver.wire.worker import Ack, Capacity, Heartbeat, Lost, Refused, Renewed, Start
from tests.rig.processes import REPOSITORY
from tests.services.control.rig import SLEEPERS, RunningControl, held, look_header, register
from tests.store.stage import check_history, session, spans, statement

SAMPLES = REPOSITORY / "tests" / "wire" / "samples"


async def test_a_worker_gets_a_free_camera_without_waiting_for_a_round(control: RunningControl) -> None:
    """The clock stands still here: START comes because the worker registered, not because time passed."""
    camera = await control.hang_camera()
    worker = await control.connect()
    order = await worker.start()
    assert (order.camera_id, order.generation, order.next_seq) == ("cam_1", 1, 1)
    assert (order.source.type, order.source.url) == ("test", "test://still")
    assert order.params.polling_interval_sec == 60
    assert (await session(control.store, camera.key))["state"] == "ACTIVE"


async def test_a_camera_that_comes_later_is_started_with_the_next_round(control: RunningControl) -> None:
    worker = await control.connect()
    await control.hang_camera()
    await control.pass_time(1)
    assert (await worker.start()).camera_id == "cam_1"


async def test_an_intent_is_sent_again_until_it_is_acknowledged(control: RunningControl) -> None:
    await control.hang_camera()
    worker = await control.connect()
    first = await worker.hear(Start)
    await control.pass_time(6)
    again = await worker.hear(Start)
    assert again == first
    for _ in range(2):
        await worker.say(Ack(intent_id=first.intent_id, status="ok"))
    await worker.settled()
    await control.pass_time(8)
    await worker.settled()
    assert worker.heard.count(first) == 2


async def test_a_dropped_socket_changes_nothing_and_the_worker_comes_back_to_its_generation(
    control: RunningControl,
) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await worker.drop()
    other = await control.connect("worker-2")
    await control.pass_time(60, step_sec=5)
    row = await session(control.store, camera.key)
    assert (row["state"], row["generation"]) == ("ACTIVE", 1)
    back = await control.connect(holding=held(("cam_1", 1)))
    assert back.registered is not None
    assert back.registered.kept == held(("cam_1", 1))
    answer = await back.beat(("cam_1", 1))
    assert answer.renewed == held(("cam_1", 1))
    await other.settled()
    assert not any(isinstance(message, Start) for message in other.heard)
    row = await session(control.store, camera.key)
    assert (row["state"], row["generation"]) == ("ACTIVE", 1)


async def test_a_worker_that_forgot_its_cameras_is_started_at_the_same_generation(
    control: RunningControl,
) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    first = await worker.start()
    await control.upload(look_header(control.clock, "cam_1", 1, 1))
    await worker.drop()
    back = await control.connect(boot_id="boot-2")
    again = await back.start()
    assert (again.camera_id, again.generation, again.next_seq) == ("cam_1", 1, 2)
    assert again.intent_id != first.intent_id
    await check_history(control.store, camera.key)


async def test_an_expired_lease_goes_to_another_worker_and_the_first_one_is_told(
    control: RunningControl,
) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    other = await control.connect("worker-2")
    for _ in range(10):
        await control.pass_time(10, step_sec=5)
        await other.beat(state=WorkerState.IDLE)
    order = await other.start()
    assert (order.camera_id, order.generation) == ("cam_1", 2)
    assert await worker.closed() == 4008
    back = await control.connect(holding=held(("cam_1", 1)))
    assert back.registered is not None
    assert back.registered.kept == ()
    assert back.registered.lost == (Lost(camera_id="cam_1", generation=1, reason="superseded"),)
    answer = await back.beat(("cam_1", 1))
    assert (answer.renewed, answer.lost) == ((), back.registered.lost)
    assert [span[0] for span in await spans(control.store, camera.key)] == [1, 2]
    await check_history(control.store, camera.key)


async def test_nothing_is_reclaimed_right_after_the_start(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await control.store.write(
        statement,
        "UPDATE camera_sessions SET lease_expires_at = :past WHERE camera_key = :key",
        {"past": control.clock.now_ms() - 1, "key": camera.key},
    )
    await control.pass_time(25, step_sec=5)
    assert (await session(control.store, camera.key))["state"] == "ACTIVE"
    await control.pass_time(10, step_sec=5)
    assert (await session(control.store, camera.key))["state"] != "ACTIVE"


async def test_a_start_that_nobody_acknowledges_is_tried_elsewhere(control: RunningControl) -> None:
    camera = await control.hang_camera()
    silent = await control.connect()
    await silent.hear(Start)
    other = await control.connect("worker-2")
    await control.pass_time(21)
    order = await other.start()
    assert (order.camera_id, order.generation) == ("cam_1", 2)
    row = await session(control.store, camera.key)
    assert row["state"] == "ACTIVE"
    assert (await spans(control.store, camera.key))[0][4].startswith("start failed: no_ack")


async def test_a_start_that_a_worker_refuses_is_tried_elsewhere_at_once(control: RunningControl) -> None:
    await control.hang_camera()
    worker = await control.connect()
    order = await worker.hear(Start)
    other = await control.connect("worker-2")
    await worker.say(Ack(intent_id=order.intent_id, status="failed", details="no such source"))
    assert (await other.start()).generation == 2


async def test_an_acknowledged_start_without_pictures_is_paused_but_stays(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start(ready=False)
    await control.connect("worker-2")
    await control.pass_time(21)
    row = await session(control.store, camera.key)
    assert (row["state"], row["generation"]) == ("PAUSED", 1)
    assert row["reason"] == "start failed: no_video"
    await worker.report("pipeline_ready", "cam_1", 1)
    await worker.settled()
    assert (await session(control.store, camera.key))["state"] == "ACTIVE"


async def test_a_cameras_own_fault_stays_with_it(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start(ready=False)
    later = control.clock.now_ms() + 60_000
    payload = {"fault": "unauthorized", "failures": 4, "auth_failures": 4, "next_attempt_at": later}
    await worker.report("camera_fault", "cam_1", 1, **payload)
    await worker.settled()
    row = await session(control.store, camera.key)
    assert (row["state"], row["failures"], row["auth_failures"]) == ("PENDING", 4, 4)
    await worker.report("pipeline_error", "cam_1", 1, **{**payload, "failures": 5, "message": "401"})
    await worker.settled()
    row = await session(control.store, camera.key)
    assert (row["state"], row["reason"], row["next_attempt_at"]) == ("PAUSED", "unauthorized: 401", later)
    # It moves on with what it learned, and not before its time.
    await control.store.write(
        release, Claim(control.tenant_id, row_worker(row), "cam_1", 1), "drained", control.clock.now_ms()
    )
    for _ in range(5):
        await control.pass_time(10, step_sec=5)
        await worker.beat(state=WorkerState.IDLE)
    assert (await session(control.store, camera.key))["generation"] == 1
    await control.pass_time(12, step_sec=1)
    order = await worker.start()
    assert (order.generation, order.failures, order.auth_failures) == (2, 5, 4)


def row_worker(row: dict[str, object]) -> int:
    assert isinstance(row["worker_key"], int)
    return row["worker_key"]


async def test_a_camera_switched_off_is_stopped_before_it_is_free(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await control.store.write(
        statement, "UPDATE cameras SET enabled = 0 WHERE camera_key = :key", {"key": camera.key}
    )
    await control.pass_time(6)
    order = await worker.stop()
    assert (order.camera_id, order.generation, order.reason) == ("cam_1", 1, "camera switched off")
    assert (await session(control.store, camera.key))["worker_key"] is not None
    await worker.report("pipeline_stopped", "cam_1", 1)
    await worker.settled()
    row = await session(control.store, camera.key)
    assert (row["worker_key"], row["state"]) == (None, "TERMINATED")
    await check_history(control.store, camera.key)


async def test_a_stale_generation_never_writes_as_the_owner(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    early = look_header(control.clock, "cam_1", 1, 1)
    await worker.beat(("cam_1", 1), state=WorkerState.DRAINING)
    await worker.report("pipeline_stopped", "cam_1", 1)
    await worker.settled()
    order = await (await control.connect("worker-2")).hear(Start)
    assert order.generation == 2
    late = await control.upload(early)
    assert isinstance(late, Recorded)
    assert late.standing == "late"
    await control.clock.advance(10_000)
    stale = await control.upload(look_header(control.clock, "cam_1", 1, 2))
    assert isinstance(stale, LookRefused)
    await worker.report("pipeline_ready", "cam_1", 1)
    await worker.settled()
    assert (await session(control.store, camera.key))["state"] == "PENDING"


async def test_what_the_gate_learned_goes_to_the_next_holder(control: RunningControl) -> None:
    await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await worker.beat(("cam_1", 1), state=WorkerState.DRAINING)
    learned = base64.b64encode(b"what is usual here").decode()
    await worker.report("pipeline_stopped", "cam_1", 1, gate_state=learned)
    await worker.settled()
    order = await (await control.connect("worker-2")).hear(Start)
    assert order.gate_state == learned


async def test_bad_messages_are_refused_and_the_connection_lives_on(control: RunningControl) -> None:
    worker = await control.connect()
    for text in ("", "nonsense", "[]", '{"type": "WHAT"}', '{"type": "HEARTBEAT"}', " " * 70_000):
        await worker.socket.send_str(text)
        assert (await worker.hear(Refused)).error_code == "bad_input"
    for sample in sorted((SAMPLES / "refused").iterdir()):
        await worker.socket.send_str(sample.read_text())
        assert (await worker.hear(Refused)).error_code == "bad_input", sample.name
    await worker.socket.send_bytes(b"{}")
    assert "text frames" in (await worker.hear(Refused)).message
    await worker.say(register("worker-1", control.clock))
    assert "registered already" in (await worker.hear(Refused)).message
    assert (await worker.beat(state=WorkerState.IDLE)).renewed == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"site": "nowhere"}, "there is no site 'nowhere'"),
        ({"protocol": 2}, "speaks protocol 1"),
        ({"protocol": 0}, "speaks protocol 1"),
    ],
)
async def test_registration_is_refused_and_the_connection_ends(
    control: RunningControl, changes: dict[str, object], message: str
) -> None:
    worker = await control.open()
    await worker.say(register("worker-1", control.clock, **changes))
    assert message in (await worker.hear(Refused)).message
    assert await worker.closed() == 4003


async def test_the_first_message_must_be_register(control: RunningControl) -> None:
    worker = await control.open()
    await worker.say(Ack(intent_id="x", status="ok"))
    assert "must be REGISTER" in (await worker.hear(Refused)).message
    assert await worker.closed() == 4003


async def test_without_the_token_nobody_gets_in(control: RunningControl) -> None:
    with pytest.raises(WSServerHandshakeError) as refused:
        await control.open(token="wrong")
    assert refused.value.status == 401
    status, body = await control.post(b"anything", token="wrong")
    assert status == 401
    assert b"unauthenticated" in body


async def test_a_newer_connection_replaces_the_older_one(control: RunningControl) -> None:
    older = await control.connect()
    newer = await control.connect()
    assert (await older.hear(Refused)).error_code == "replaced"
    assert await older.closed() == 4001
    await control.hang_camera()
    await control.pass_time(1)
    assert (await newer.start()).camera_id == "cam_1"


async def test_capacity_bounds_what_a_worker_gets(control: RunningControl) -> None:
    for index in range(3):
        await control.hang_camera(f"cam_{index}")
    worker = await control.connect(capacity=Capacity(slots=2))
    started = {(await worker.start()).camera_id for _ in range(2)}
    assert len(started) == 2
    await control.pass_time(3)
    await worker.settled()
    assert sum(isinstance(message, Start) for message in worker.heard) == 2


async def test_a_draining_worker_gets_no_camera(control: RunningControl) -> None:
    worker = await control.connect()
    await worker.beat(state=WorkerState.DRAINING)
    await control.hang_camera()
    await control.pass_time(3)
    await worker.settled()
    assert not any(isinstance(message, Start) for message in worker.heard)


async def test_health_and_readiness(control: RunningControl) -> None:
    async with control.http.get(control.url("/healthz")) as response:
        assert response.status == 200
    async with control.http.get(control.url("/readyz")) as response:
        assert (response.status, await response.json()) == (200, {"checks": {"control": "ok"}})
    control.ready.clear("control", "a reason")
    async with control.http.get(control.url("/readyz")) as response:
        assert (response.status, await response.json()) == (503, {"checks": {"control": "a reason"}})


async def test_while_the_store_is_away_no_lease_is_renewed_and_no_report_is_lost(
    control: RunningControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    order = await worker.start(ready=False)
    original = control.store.write
    away: list[object] = [heartbeats, set_all_active, set_all_active]

    async def write(operation: object, *args: object, **kwargs: object) -> object:
        if operation in away:
            away.remove(operation)
            raise StoreUnavailable("the database is away")
        return await original(operation, *args, **kwargs)  # type: ignore[arg-type]  # passed through

    monkeypatch.setattr(control.store, "write", write)
    await worker.say(
        Heartbeat(
            worker_id="worker-1", heartbeat_seq=99, boot_ms=1, state=WorkerState.RUNNING, renew=held(("cam_1", 1))
        )
    )
    assert (await worker.hear(Refused)).error_code == "store_unavailable"
    await worker.report("pipeline_ready", "cam_1", order.generation)
    await control.clock.until_sleeping(SLEEPERS + 1)
    await control.pass_time(3)
    await worker.settled()
    assert (await session(control.store, camera.key))["state"] == "ACTIVE"
    assert not any(isinstance(message, Renewed) for message in worker.heard)


HOUR_MS = 3_600_000


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_database_whose_clock_jumps_moves_no_camera(control: RunningControl, hours: int) -> None:
    """Every lease has run out at once by that clock, or holds for an hour more; the workers beat on as before."""
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    other = await control.connect("worker-2")
    for _ in range(8):
        await control.pass_time(5, step_sec=5)
        await worker.beat(("cam_1", 1))
        await other.beat(state=WorkerState.IDLE)
    control.clock.jump_wall(hours * HOUR_MS)
    for _ in range(24):
        await control.pass_time(5, step_sec=5)
        row = await session(control.store, camera.key)
        assert (row["state"], row["generation"]) == ("ACTIVE", 1)
        answer = await worker.beat(("cam_1", 1))
        assert answer.lost == ()
        await other.beat(state=WorkerState.IDLE)
    await check_history(control.store, camera.key)


@pytest.mark.parametrize("hours", [1, -1])
async def test_after_a_jump_of_the_clock_a_lost_worker_is_still_missed(control: RunningControl, hours: int) -> None:
    """Also one that was lost just before: its lease is an hour too long by a clock that was set back."""
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    other = await control.connect("worker-2")
    await worker.drop()
    control.clock.jump_wall(hours * HOUR_MS)
    for _ in range(24):
        await control.pass_time(5, step_sec=5)
        await other.beat(state=WorkerState.IDLE)
    order = await other.start()
    assert (order.camera_id, order.generation) == ("cam_1", 2)
    await check_history(control.store, camera.key)


async def test_a_workers_metrics_are_written_down_at_most_once_a_minute(control: RunningControl) -> None:
    worker = await control.connect()

    async def noted(count: float) -> object:
        await worker.beat(metrics={"spool": count})
        await worker.settled()
        [row] = await control.store.read(all_workers)
        return None if row["metrics"] is None else json.loads(row["metrics"])

    assert await noted(1) == {"spool": 1}
    assert await noted(2) == {"spool": 1}
    await control.pass_time(61)
    assert await noted(3) == {"spool": 3}


async def all_workers(tx: Tx) -> list[Row]:
    return list(await tx.all("SELECT metrics FROM workers"))


async def test_a_fault_of_one_of_two_streams_is_kept_until_it_is_over(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await worker.report("stream_fault", "cam_1", 1, stream="sub", fault="no_video", message="nothing came")
    await worker.settled()
    fault = await control.store.read(stream_fault, camera.key)
    assert (fault["stream"], fault["fault"], fault["over_at"]) == ("sub", "no_video", None)
    await worker.report("stream_ready", "cam_1", 1, stream="sub")
    await worker.settled()
    fault = await control.store.read(stream_fault, camera.key)
    assert fault["over_at"] is not None


async def stream_fault(tx: Tx, camera_key: int) -> dict[str, object]:
    row = await tx.one("SELECT stream_fault FROM camera_sessions WHERE camera_key = :key", key=camera_key)
    assert row is not None
    fault: dict[str, object] = json.loads(row["stream_fault"])
    return fault
