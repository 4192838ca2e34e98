"""Workers without a socket: registered, given cameras, renewed and heard by single requests, on each database."""

import json
from pathlib import Path
from typing import Any

import pytest

from camserver.domain.workers import WorkerState
from camserver.store import Store
from camserver.wire.message import Message
from camserver.wire.worker import Ack, Heartbeat, Report, Start
from tests.rig.clock import ManualClock
from tests.services.control.rig import RunningControl, held, look_header, register, running_control
from tests.store.stage import check_history, session

NAME = "edge-1"


async def ask(
    control: RunningControl, path: str, body: Message | dict[str, Any], worker_id: str = NAME
) -> tuple[int, dict[str, Any]]:
    text = body.model_dump_json() if isinstance(body, Message) else json.dumps(body)
    status, answer = await control.post(text.encode(), worker_id, path=path)
    return status, json.loads(answer)


async def registered(control: RunningControl, **changes: object) -> dict[str, Any]:
    status, answer = await ask(control, f"/v1/workers/{NAME}/register", register(NAME, control.clock, **changes))
    assert (status, answer["type"]) == (200, "REGISTERED"), answer
    return answer


async def assigned(control: RunningControl, most: int = 10) -> list[dict[str, Any]]:
    status, answer = await ask(control, "/v1/assign", {"worker_id": NAME, "most": most})
    assert status == 200, answer
    intents: list[dict[str, Any]] = answer["intents"]
    return intents


async def renewed(control: RunningControl, *leases: tuple[str, int]) -> dict[str, Any]:
    beat = Heartbeat(worker_id=NAME, heartbeat_seq=1, boot_ms=1, state=WorkerState.RUNNING, renew=held(*leases))
    status, answer = await ask(control, "/v1/leases/renew", beat)
    assert (status, answer["type"]) == (200, "RENEWED"), answer
    return answer


async def say(control: RunningControl, message: Message) -> None:
    assert await ask(control, "/v1/messages", message) == (200, {"result": "taken"})


def event(control: RunningControl, kind: str, camera_id: str, generation: int) -> Report:
    clock = control.clock
    return Report(
        camera_id=camera_id, generation=generation, event_type=kind, ts=clock.now_ms(), boot_ms=clock.boot_ms()
    )


async def test_a_camera_s_life_by_requests(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_control(store, clock, tmp_path) as control:
        camera = await control.hang_camera()
        await control.pass_time(6, step_sec=2)
        answer = await registered(control)
        assert (answer["ttl_ms"], answer["kept"], answer["lost"]) == (90_000, [], [])
        assert await assigned(control, most=0) == [], "it did not ask for any"
        (order,) = await assigned(control)
        assert (order["type"], order["camera_id"], order["generation"]) == ("START", "cam_1", 1)
        assert await assigned(control) == [order], "it was not acknowledged"
        await say(control, Ack(intent_id=order["intent_id"], status="ok"))
        assert await assigned(control) == []
        await say(control, event(control, "pipeline_ready", "cam_1", 1))
        assert (await session(store, camera.key))["state"] == "ACTIVE"
        answer = await renewed(control, ("cam_1", 1), ("cam_9", 1))
        assert [one["camera_id"] for one in answer["renewed"]] == ["cam_1"]
        assert [one["reason"] for one in answer["lost"]] == ["unknown_camera"]
        look = await control.upload(look_header(clock, "cam_1", 1, 1), worker_id=NAME)
        assert look.result == "recorded"
        assert (await registered(control, holding=held(("cam_1", 1))))["kept"] != []
        await say(control, event(control, "pipeline_stopped", "cam_1", 1))
        assert (await session(store, camera.key))["worker_key"] is None
        await check_history(store, camera.key)


async def test_nobody_plans_with_a_worker_that_only_asks(control: RunningControl) -> None:
    """It is given nothing unasked, and a worker that has a socket need not wait for it."""
    await registered(control)
    await control.hang_camera()
    await control.pass_time(10, step_sec=5)
    other = await control.connect("worker-1")
    assert (await other.hear(Start)).camera_id == "cam_1"
    assert await assigned(control) == []


async def test_who_stays_away_loses_its_cameras_like_anybody(control: RunningControl) -> None:
    await control.hang_camera()
    await registered(control)
    (order,) = await assigned(control)
    await say(control, Ack(intent_id=order["intent_id"], status="ok"))
    await say(control, event(control, "pipeline_ready", "cam_1", 1))
    other = await control.connect("worker-1")
    for _ in range(10):
        await control.pass_time(10, step_sec=5)
        await other.beat(state=WorkerState.IDLE)
    assert (await other.start()).generation == 2
    assert [one["reason"] for one in (await renewed(control, ("cam_1", 1)))["lost"]] == ["superseded"]


async def test_a_socket_replaces_requests_and_the_other_way_round(control: RunningControl) -> None:
    await registered(control)
    worker = await control.connect(NAME)
    status, answer = await ask(control, "/v1/assign", {"worker_id": NAME})
    assert (status, answer["error_code"]) == (401, "unauthenticated")
    await registered(control)
    await worker.beat(state=WorkerState.IDLE)
    assert await worker.closed() == 4001


async def test_requests_are_held_to_the_rules_of_the_socket(control: RunningControl) -> None:
    path = f"/v1/workers/{NAME}/register"
    good = register(NAME, control.clock)
    cases: list[tuple[str, Message | dict[str, Any], str, int, str]] = [
        (path, good, "somebody", 400, "the path names"),
        (path, register("other", control.clock), NAME, 400, "edge-1's, not other's"),
        (path, register(NAME, control.clock, protocol=2), NAME, 400, "speaks protocol 1"),
        (path, register(NAME, control.clock, site="nowhere"), NAME, 404, "no site 'nowhere'"),
        (path, Ack(intent_id="x", status="ok"), NAME, 400, "carries REGISTER"),
        ("/v1/leases/renew", good, NAME, 400, "carries HEARTBEAT"),
        ("/v1/leases/renew", {"type": "HEARTBEAT"}, NAME, 400, "not understood"),
        ("/v1/assign", {"worker_id": NAME, "most": -1}, NAME, 400, "not understood"),
        ("/v1/assign", {"worker_id": "other"}, NAME, 400, "edge-1's, not other's"),
        ("/v1/messages", Ack(intent_id="x", status="ok"), NAME, 401, "has not registered"),
        (path, {"x": "x" * 70_000}, NAME, 413, "more than"),
    ]
    for where, body, worker_id, status, words in cases:
        answer = await ask(control, where, body, worker_id)
        assert answer[0] == status, (where, answer)
        assert words in answer[1]["message"], (where, answer)
    status, body = await control.post(good.model_dump_json().encode(), NAME, token="wrong", path=path)
    assert status == 401


@pytest.mark.parametrize("status", ["refused", "failed"])
async def test_a_start_that_is_not_done_frees_the_camera(control: RunningControl, status: str) -> None:
    camera = await control.hang_camera()
    await registered(control)
    (order,) = await assigned(control)
    ack = {"type": "ACK", "intent_id": order["intent_id"], "status": status, "details": "full"}
    assert (await ask(control, "/v1/messages", ack))[0] == 200
    assert (await session(control.store, camera.key))["worker_key"] is None
