"""What START carries: both streams, the camera's own values, the gate's state; and what follows a refusal."""

import asyncio
import base64
import json
from collections import Counter

import pytest

from camserver.base.credentials import seal
from camserver.config import make_secrets
from camserver.domain.people import Principal, Role
from camserver.domain.polygons import CAMERA_POINTS_MAX, POINTS_MAX
from camserver.services.control.entries import Entries
from camserver.store import camera_changes
from camserver.store.camera_changes import CameraChange
from camserver.store.cameras import Stream
from camserver.wire.looks import GATE_STATE_MAX_BYTES, Recorded
from camserver.wire.worker import MESSAGE_MAX_BYTES, Ack, Start, encode
from tests.rig.polling import until
from tests.services.control.rig import RunningControl, look_header
from tests.store.stage import session, statement

TRIANGLE = [[0.1234, 0.0], [0.5678, 0.0], [0.5678, 1.0]]


async def change(control: RunningControl, wanted: CameraChange) -> None:
    admin = Principal(control.tenant_id, None, Role.SYSTEM_ADMIN)
    await control.store.as_(admin).write(camera_changes.change, "cam_1", wanted, "", control.clock.now_ms())


async def test_a_change_reaches_the_worker_at_once_and_at_the_same_generation(control: RunningControl) -> None:
    camera = await control.hang_camera()
    worker = await control.connect()
    first = await worker.start()
    assert (first.sub, first.params.rotation, first.params.clip_sec) == (None, 0, 10.0)
    assert first.params.live_sound
    key = make_secrets(control.settings).credential_key_bytes()
    login = seal(key, control.tenant_id, "cam_1", b'{"user": "viewer", "password": "pass-word"}')
    values: dict[str, object] = {
        "polling_interval_sec": 2.5,
        "transport": "udp",
        "tls_pin": "ab" * 32,
        "rotation": 270,
        "ignore_masks": json.dumps([TRIANGLE]),
        "privacy_masks": json.dumps([TRIANGLE, TRIANGLE]),
        "zones": json.dumps([{"name": "門", "points": TRIANGLE}]),
        "mask_clock": 0,
        "live_sound": 0,
        "device": "nvr",
        "streams_max": 1,
        "clip_sec": 0.0,
    }
    main, sub = Stream("rtsp", "rtsp://192.0.2.1/main"), Stream("rtsp", "rtsp://192.0.2.1/sub")
    await change(control, CameraChange(main=main, sub=sub, credentials=login, values=tuple(values.items())))
    await control.pass_time(1)
    order = await worker.start()
    assert (order.generation, order.source.url, order.params.polling_interval_sec) == (1, main.url, 2.5)
    assert order.sub is not None
    assert order.sub.password is not None
    assert (order.sub.url, order.sub.user, order.sub.password.reveal()) == (sub.url, "viewer", "pass-word")
    params = json.loads(order.params.model_dump_json())
    assert params["privacy_masks"] == [TRIANGLE, TRIANGLE]
    assert params["zones"] == [{"name": "門", "points": TRIANGLE}]
    assert (params["transport"], params["rotation"], params["mask_clock"]) == ("udp", 270, False)
    assert params["live_sound"] is False
    assert (params["device"], params["streams_max"], params["clip_sec"]) == ("nvr", 1, 0.0)
    assert (await session(control.store, camera.key))["state"] == "ACTIVE"


async def test_the_most_that_can_be_drawn_and_learned_fits_into_a_start(control: RunningControl) -> None:
    await control.hang_camera()
    polygon = [[0.1234, 0.5678 + n / 10_000] for n in range(POINTS_MAX)]
    masks = json.dumps([polygon] * (CAMERA_POINTS_MAX // POINTS_MAX // 2))
    await change(control, CameraChange(values=(("ignore_masks", masks), ("privacy_masks", masks))))
    worker = await control.connect()
    await worker.start()
    state = base64.b64encode(bytes(GATE_STATE_MAX_BYTES)).decode()
    look = look_header(control.clock, "cam_1", 1, 1, gate_state=state)
    assert isinstance(await control.upload(look), Recorded)
    await worker.drop()
    back = await control.connect()
    order = await back.hear(Start)
    assert len(order.params.ignore_masks) == len(order.params.privacy_masks) == 16
    assert order.gate_state == state
    assert len(encode(order).encode()) <= MESSAGE_MAX_BYTES


async def test_more_than_fits_costs_the_head_start_and_then_that_camera_alone(control: RunningControl) -> None:
    """With values that no change lets in: control goes on with the other cameras."""
    camera = await control.hang_camera()
    await change(control, CameraChange(values=(("rotation", 0),)))
    worker = await control.connect()
    await worker.start()
    state = base64.b64encode(bytes(GATE_STATE_MAX_BYTES)).decode()
    await control.upload(look_header(control.clock, "cam_1", 1, 1, gate_state=state))
    await draw(control, 0.1234, 0.12)
    await worker.drop()
    worker = await control.connect()
    assert (await worker.start()).gate_state is None
    await draw(control, 0.123456789, 0.123456789)
    await worker.drop()
    worker = await control.connect()
    await control.pass_time(1)
    await control.hang_camera("cam_2")
    await control.pass_time(2)
    assert (await worker.start()).camera_id == "cam_2"
    row = await session(control.store, camera.key)
    assert (row["state"], row["worker_key"]) == ("PAUSED", None)


async def draw(control: RunningControl, in_masks: float, in_zones: float) -> None:
    """As many polygons as there may be of each kind, all at once."""
    masks = [[[in_masks] * 2] * POINTS_MAX] * 16
    zones = [{"name": str(number), "points": [[in_zones] * 2] * POINTS_MAX} for number in range(16)]
    sql = "UPDATE camera_overrides SET ignore_masks = :masks, privacy_masks = :masks, zones = :zones"
    await control.store.write(statement, sql, {"masks": json.dumps(masks), "zones": json.dumps(zones)})


@pytest.mark.parametrize("state", ["not base64!", "", base64.b64encode(bytes(GATE_STATE_MAX_BYTES + 1)).decode()])
async def test_an_unusable_gate_state_costs_no_look(control: RunningControl, state: str) -> None:
    await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    good = base64.b64encode(b"learned").decode()
    assert isinstance(await control.upload(look_header(control.clock, "cam_1", 1, 1, gate_state=good)), Recorded)
    assert isinstance(await control.upload(look_header(control.clock, "cam_1", 1, 2, gate_state=state)), Recorded)
    await worker.drop()
    assert (await (await control.connect()).hear(Start)).gate_state == good


async def test_a_refused_start_frees_the_camera_for_another_worker_soon(control: RunningControl) -> None:
    camera = await control.hang_camera()
    leaving = await control.connect("worker-1")
    order = await leaving.hear(Start)
    other = await control.connect("worker-2")
    await leaving.say(Ack(intent_id=order.intent_id, status="refused", details="the worker is DRAINING"))
    await leaving.settled()
    row = await session(control.store, camera.key)
    assert (row["worker_key"], row["state"], row["moved_at"]) == (None, "ORPHANED", None)
    await control.pass_time(4)
    assert (await other.start()).generation == 2


async def test_what_a_worker_says_at_once_is_written_together_and_it_pays_for_no_delay_of_ours(
    control: RunningControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is slow: meanwhile nothing is sent again, and nobody's START counts as failed."""
    cameras = [await control.hang_camera(f"cam_{number}") for number in range(1, 6)]
    original, may_write, asked, written = control.store.write, asyncio.Event(), Counter[str](), Counter[str]()

    async def write(operation: object, *args: object, **kwargs: object) -> object:
        name = getattr(operation, "__name__", "")
        if name in ("acked_all", "set_all_active"):
            written[name] += 1
            await may_write.wait()
        return await original(operation, *args, **kwargs)  # type: ignore[arg-type]  # passed through

    def counted(name: str) -> None:
        method = getattr(Entries, name)

        async def submit(entries: Entries, *args: object) -> bool:
            asked[name] += 1
            return bool(await method(entries, *args))

        monkeypatch.setattr(Entries, name, submit)

    counted("ack")
    counted("ready")
    monkeypatch.setattr(control.store, "write", write)
    worker = await control.connect()
    orders = [await worker.hear(Start) for _ in cameras]
    for order in orders:
        await worker.say(Ack(intent_id=order.intent_id, status="ok"))
        await worker.report("pipeline_ready", order.camera_id, order.generation)
    await until(lambda: asked == {"ack": 5, "ready": 5}, "everything the worker said was heard")
    await control.clock.advance(20_000)
    may_write.set()
    await worker.settled()
    assert [(await session(control.store, camera.key))["state"] for camera in cameras] == ["ACTIVE"] * 5
    assert sum(isinstance(message, Start) for message in worker.heard) == 5
    # The first of each kind went alone, the others together.
    assert max(written.values()) <= 2
