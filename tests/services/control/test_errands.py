"""Errands through a running control: asked in the store as web does, sent to a worker, answered by an upload."""

import asyncio
import json

from camserver.base.credentials import seal
from camserver.config import make_secrets
from camserver.domain.people import Principal, Role
from camserver.domain.workers import WorkerState
from camserver.services.control.errands import LOOK_EVERY_SEC
from camserver.store import Tx, errands
from camserver.store.epochs import end_dead
from camserver.store.errands import ErrandState, NewErrand
from camserver.wire.errands import ErrandHeader, ErrandRecorded, ErrandRefused
from camserver.wire.worker import Errand
from tests.services.control.rig import RunningControl, ScriptedWorker
from tests.store.stage import add_site

JPEG = b"\xff\xd8 an answer \xff\xd9"


def admin(control: RunningControl) -> Principal:
    return Principal(control.tenant_id, None, Role.SYSTEM_ADMIN)


async def ask_look(control: RunningControl, uuid: str = "errand-1", ttl_ms: int = 30_000) -> None:
    errand = NewErrand(uuid, "look", '{"width": 320}', control.clock.now_ms() + ttl_ms)
    await control.store.as_(admin(control)).write(errands.ask_camera, "cam_1", errand, "", control.clock.now_ms())


async def ask_discover(control: RunningControl, uuid: str = "errand-1", site: str = "main") -> None:
    errand = NewErrand(uuid, "discover", "{}", control.clock.now_ms() + 30_000)
    await control.store.as_(admin(control)).write(errands.ask_site, site, errand, "", control.clock.now_ms())


async def state(control: RunningControl, uuid: str = "errand-1") -> ErrandState:
    return await control.store.as_(admin(control)).read(errands.get, uuid, control.clock.now_ms())


def done(uuid: str = "errand-1", body: bytes = JPEG) -> ErrandHeader:
    return ErrandHeader(
        errand_id=uuid, ok=True, result={"width": 320}, content_type="image/jpeg" if body else "", bytes=len(body)
    )


async def looking(control: RunningControl) -> ScriptedWorker:
    await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await worker.beat(("cam_1", 1))
    return worker


async def test_a_question_is_on_its_way_within_a_second_and_its_answer_is_kept(control: RunningControl) -> None:
    worker = await looking(control)
    await ask_look(control)
    await control.pass_time(LOOK_EVERY_SEC, LOOK_EVERY_SEC)
    assert LOOK_EVERY_SEC <= 1
    errand = await worker.hear(Errand)
    assert (errand.errand_id, errand.kind, errand.camera_id, errand.generation) == ("errand-1", "look", "cam_1", 1)
    assert (errand.params, errand.source) == ({"width": 320}, None)
    assert 0 < errand.left_ms <= 30_000
    first = await control.answer(done(), body=JPEG)
    assert first == ErrandRecorded(repeat=False, server_time=control.clock.now_ms())
    found = await state(control)
    assert (found.state, json.loads(found.result or "")) == ("done", {"width": 320})
    picture = await control.store.as_(admin(control)).read(errands.picture, "errand-1")
    assert await control.objects.get(picture.object_key) == JPEG


async def test_a_question_is_on_its_way_at_once_when_web_rings(control: RunningControl) -> None:
    """The time stands still: nobody looks by himself."""
    worker = await looking(control)
    await ask_look(control)
    control.bells.errands.ring()
    assert (await worker.hear(Errand)).errand_id == "errand-1"


async def test_a_repeat_gets_the_same_answer_and_leaves_no_object(control: RunningControl) -> None:
    worker = await looking(control)
    await ask_look(control)
    await control.pass_time(1)
    await worker.hear(Errand)
    answers = await asyncio.gather(*(control.answer(done(), body=JPEG) for _ in range(4)))
    assert sorted(one.repeat for one in answers if isinstance(one, ErrandRecorded)) == [False, True, True, True]
    kept = await control.store.read(named_objects)
    assert len(kept) == 1
    assert await control.objects.list(f"e{kept[0][1]}/", 10) == [kept[0][0]]


async def named_objects(tx: Tx) -> list[tuple[str, int]]:
    rows = await tx.all("SELECT object_key, epoch_id FROM errands WHERE object_key IS NOT NULL LIMIT 10")
    return [(row["object_key"], row["epoch_id"]) for row in rows]


async def test_nobody_else_can_answer(control: RunningControl) -> None:
    worker = await looking(control)
    await control.connect("worker-2")
    await ask_look(control)
    await control.pass_time(1)
    await worker.hear(Errand)
    for uuid, worker_id in (("errand-1", "worker-2"), ("errand-1", "worker-9"), ("errand-9", "worker-1")):
        refused = await control.answer(done(uuid), worker_id, JPEG)
        assert isinstance(refused, ErrandRefused)
    status, _ = await control.post(b"\0\0\0\2{}", token="wrong", path="/v1/errands")
    assert status == 401
    assert (await state(control)).state == "sent"
    assert await control.store.read(named_objects) == []


async def test_a_malformed_answer_is_refused_and_a_huge_one_unread(control: RunningControl) -> None:
    await looking(control)
    status, text = await control.post(b"\0\0\0\2{}", path="/v1/errands")
    assert (status, json.loads(text)["error_code"]) == (400, "bad_input")


async def test_it_is_sent_again_until_it_is_answered_and_after_a_reconnection(control: RunningControl) -> None:
    worker = await looking(control)
    await ask_look(control)
    await control.pass_time(1)
    first = await worker.hear(Errand)
    await control.pass_time(6)
    again = await worker.hear(Errand)
    assert (again.errand_id, again.left_ms < first.left_ms) == (first.errand_id, True)
    await worker.drop()
    back = await control.connect()
    await control.pass_time(1)
    assert (await back.hear(Errand)).errand_id == first.errand_id
    await control.answer(done(), body=JPEG)
    await control.pass_time(6)
    await back.settled()
    assert sum(isinstance(message, Errand) for message in back.heard) == 1


async def test_one_without_a_camera_goes_to_a_worker_of_its_site_that_stays(control: RunningControl) -> None:
    leaving = await control.connect("worker-1")
    await leaving.beat(state=WorkerState.DRAINING)
    elsewhere = await control.store.write(add_site, control.tenant_id, "annex", control.clock.now_ms())
    assert elsewhere != control.site_id
    far = await control.connect("worker-2", site="annex")
    await ask_discover(control)
    await control.pass_time(2)
    assert (await state(control)).state == "waiting"
    near = await control.connect("worker-3")
    await control.pass_time(1)
    assert (await near.hear(Errand)).kind == "discover"
    await far.settled()
    await leaving.settled()
    assert not any(isinstance(message, Errand) for message in [*far.heard, *leaving.heard])


async def test_a_probe_carries_the_login_that_was_sealed_for_it(control: RunningControl) -> None:
    worker = await control.connect()
    key = make_secrets(control.settings).credential_key_bytes()
    sealed = seal(key, control.tenant_id, "errand-1", b'{"user": "viewer", "password": "pass-word"}')
    request = {"source": {"type": "rtsp", "url": "rtsp://192.0.2.1/live"}, "transport": "udp"}
    errand = NewErrand("errand-1", "probe", json.dumps(request), control.clock.now_ms() + 30_000, sealed)
    await control.store.as_(admin(control)).write(errands.ask_site, "main", errand, "", control.clock.now_ms())
    await control.pass_time(1)
    heard = await worker.hear(Errand)
    assert heard.source is not None
    assert heard.source.password is not None
    assert (heard.source.url, heard.source.user) == ("rtsp://192.0.2.1/live", "viewer")
    assert heard.source.password.reveal() == "pass-word"
    assert heard.params == {"transport": "udp"}


async def test_one_that_nobody_answers_expires_with_its_reason(control: RunningControl) -> None:
    await control.hang_camera()
    await ask_look(control, ttl_ms=3_000)
    await control.pass_time(10)
    found = await state(control)
    assert (found.state, found.message) == ("expired", "no worker holds this camera now")


async def test_an_answer_survives_that_this_process_was_thought_dead(control: RunningControl) -> None:
    worker = await looking(control)
    await ask_look(control)
    await control.pass_time(1)
    await worker.hear(Errand)
    now_ms = control.clock.now_ms()
    await control.store.write(end_dead, now_ms + 1, now_ms)
    assert isinstance(await control.answer(done(), body=JPEG), ErrandRecorded)
    [(key, _)] = await control.store.read(named_objects)
    assert await control.objects.get(key) == JPEG
