"""Errands in the store: who may ask, who is sent, whose answer counts, and that nothing stays for ever."""

import asyncio
import json
from dataclasses import replace

import pytest
import pytest_asyncio

from camserver.base.credentials import seal
from camserver.base.errors import NotFound, Unavailable
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, errand_orders, errands, first_probes
from camserver.store.errand_orders import Answered, AnswerRow, Candidate, ErrandOrder, Sending
from camserver.store.errands import KEPT_MS, UNFINISHED_MAX, NewErrand
from camserver.store.leases import Lease, Want
from camserver.store.workers import disconnected
from tests.store.singles import take
from tests.store.stage import NOW_MS, TTL_MS, Stage, add_site, build, statement

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = b"k" * 32
LOOK = NewErrand("look-1", "look", "{}", NOW_MS + 30_000)
PROBE = NewErrand("probe-1", "probe", '{"source": {"type": "rtsp", "url": "rtsp://192.0.2.1/"}}', NOW_MS + 30_000)
ANSWER = AnswerRow("look-1", True, "", '{"width": 640}', None, 0, "", None)


@pytest_asyncio.fixture(loop_scope="module")
async def stage(fresh_store: Store) -> Stage:
    return await build(fresh_store)


def admin(stage: Stage) -> Principal:
    return Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN)


async def held(store: Store, stage: Stage, worker: int = 0, camera: int = 0, expected: int = 0) -> Lease:
    want = Want(stage.cameras[camera].key, stage.workers[worker].worker_key, expected)
    lease = await store.write(take, want, TTL_MS, NOW_MS)
    assert lease is not None
    return lease


async def ask_look(store: Store, stage: Stage, errand: NewErrand = LOOK) -> errands.ErrandState:
    return await store.as_(admin(stage)).write(errands.ask_camera, "cam_0", errand, "", NOW_MS)


async def ask_probe(store: Store, stage: Stage, errand: NewErrand = PROBE) -> errands.ErrandState:
    return await store.as_(admin(stage)).write(errands.ask_site, "main", errand, "", NOW_MS)


async def found(store: Store, stage: Stage, *workers: int, now_ms: int = NOW_MS) -> tuple[Candidate, ...]:
    keys = tuple(stage.workers[worker].worker_key for worker in workers)
    return await store.read(errand_orders.candidates, keys, (stage.site_id,), now_ms)


async def sent(store: Store, stage: Stage, worker: int = 0) -> ErrandOrder:
    """What that worker is sent on, when it is the only one there."""
    worker_key = stage.workers[worker].worker_key
    sendings = tuple(Sending(one.errand_id, worker_key, one.generation) for one in await found(store, stage, worker))
    await store.write(errand_orders.send, sendings, NOW_MS + 1)
    [order] = await store.read(errand_orders.unanswered, (worker_key,), NOW_MS + 1)
    return order


async def answer(
    store: Store, stage: Stage, row: AnswerRow = ANSWER, worker: str = "worker-0", now_ms: int = NOW_MS + 2
) -> Answered:
    return await store.write(errand_orders.answered, stage.tenant_id, worker, row, now_ms)


async def get(store: Store, stage: Stage, uuid: str = "look-1", now_ms: int = NOW_MS + 3) -> errands.ErrandState:
    return await store.as_(admin(stage)).read(errands.get, uuid, now_ms)


async def test_an_errand_of_a_camera_goes_to_its_holder_and_nobody_else(fresh_store: Store, stage: Stage) -> None:
    asked = await ask_look(fresh_store, stage)
    assert (asked.state, asked.camera_id, asked.is_over) == ("waiting", "cam_0", False)
    assert await found(fresh_store, stage, 0, 1) == ()
    await held(fresh_store, stage, worker=1)
    assert await found(fresh_store, stage, 0) == ()
    [candidate] = await found(fresh_store, stage, 0, 1)
    assert (candidate.worker_key, candidate.generation) == (stage.workers[1].worker_key, 1)
    order = await sent(fresh_store, stage, worker=1)
    assert (order.errand_uuid, order.kind, order.camera_id, order.generation) == ("look-1", "look", "cam_0", 1)
    assert await found(fresh_store, stage, 0, 1) == ()
    assert (await get(fresh_store, stage)).state == "sent"


async def test_a_lease_that_ran_out_makes_no_holder(fresh_store: Store, stage: Stage) -> None:
    await held(fresh_store, stage)
    await ask_look(fresh_store, stage, replace(LOOK, expires_at=NOW_MS + 10 * TTL_MS))
    assert len(await found(fresh_store, stage, 0)) == 1
    assert await found(fresh_store, stage, 0, now_ms=NOW_MS + TTL_MS) == ()


async def test_an_answer_counts_once_and_from_its_worker_only(fresh_store: Store, stage: Stage) -> None:
    await held(fresh_store, stage)
    await ask_look(fresh_store, stage)
    assert not (await answer(fresh_store, stage)).recorded  # nobody was sent yet
    await sent(fresh_store, stage)
    for stranger in ("worker-1", "worker-9"):
        refused = await answer(fresh_store, stage, worker=stranger)
        assert (refused.recorded, refused.reason) == (False, "this worker was not sent on that errand")
    assert await fresh_store.read(
        errand_orders.expected_from, stage.tenant_id, "worker-1", "look-1", NOW_MS
    ) == Answered(False, reason="this worker was not sent on that errand")
    assert await answer(fresh_store, stage) == Answered(True)
    state = await get(fresh_store, stage)
    assert (state.state, json.loads(state.result or ""), state.done_at) == ("done", {"width": 640}, NOW_MS + 2)
    assert await answer(fresh_store, stage, replace(ANSWER, result='{"other": 1}')) == Answered(True, repeat=True)
    assert json.loads((await get(fresh_store, stage)).result or "") == {"width": 640}
    assert await fresh_store.read(errand_orders.unanswered, (stage.workers[0].worker_key,), NOW_MS) == ()


async def test_a_failed_errand_says_why(fresh_store: Store, stage: Stage) -> None:
    await held(fresh_store, stage)
    await ask_look(fresh_store, stage)
    await sent(fresh_store, stage)
    await answer(fresh_store, stage, replace(ANSWER, ok=False, message="401", result="{}"))
    state = await get(fresh_store, stage)
    assert (state.state, state.message, state.is_over) == ("failed", "401", True)


async def test_when_the_time_is_over_nothing_counts_any_more(fresh_store: Store, stage: Stage) -> None:
    await held(fresh_store, stage)
    await ask_look(fresh_store, stage)
    await sent(fresh_store, stage)
    late = await answer(fresh_store, stage, now_ms=NOW_MS + 30_000)
    assert (late.recorded, late.reason) == (False, "the errand's time is over")
    # Readers see it before any sweep came by.
    state = await get(fresh_store, stage, now_ms=NOW_MS + 30_000)
    assert (state.state, state.message) == ("expired", "the worker did not answer in time")
    assert await fresh_store.write(errands.expire, NOW_MS + 29_999) == 0
    assert await fresh_store.write(errands.expire, NOW_MS + 30_000) == 1
    assert (await get(fresh_store, stage)).state == "expired"
    assert await fresh_store.write(errands.expire, NOW_MS + 30_000) == 0


@pytest.mark.parametrize("ending", ["answered", "expired"])
async def test_credentials_are_forgotten_when_it_is_over(fresh_store: Store, stage: Stage, ending: str) -> None:
    sealed = seal(KEY, stage.tenant_id, "probe-1", b"secret")
    await ask_probe(fresh_store, stage, replace(PROBE, credentials=sealed))
    assert (await sent(fresh_store, stage)).credentials == sealed
    if ending == "answered":
        await answer(fresh_store, stage, replace(ANSWER, errand_uuid="probe-1"))
    else:
        await fresh_store.write(errands.expire, NOW_MS + 30_000)
    assert await fresh_store.read(secrets_left) == 0


async def secrets_left(tx: Tx) -> int:
    rows = await tx.all("SELECT errand_id FROM errands WHERE ciphertext IS NOT NULL OR nonce IS NOT NULL LIMIT 10")
    return len(rows)


async def test_an_errand_without_a_camera_is_anybodys_until_somebody_has_it(fresh_store: Store, stage: Stage) -> None:
    await ask_probe(fresh_store, stage)
    [candidate] = await found(fresh_store, stage, 0, 1)
    assert (candidate.worker_key, candidate.generation) == (None, None)
    await sent(fresh_store, stage, worker=0)
    assert await found(fresh_store, stage, 0, 1) == ()
    # A second process that saw it before is too late.
    late = Sending(candidate.errand_id, stage.workers[1].worker_key, None)
    await fresh_store.write(errand_orders.send, (late,), NOW_MS + 1)
    assert await fresh_store.read(errand_orders.unanswered, (stage.workers[1].worker_key,), NOW_MS) == ()


async def test_of_two_processes_that_send_at_once_one_does(fresh_pair: tuple[Store, Store], stage: Stage) -> None:
    await ask_probe(fresh_pair[0], stage)
    [candidate] = await found(fresh_pair[0], stage, 0, 1)
    sendings = [Sending(candidate.errand_id, worker.worker_key, None) for worker in stage.workers]
    await asyncio.gather(
        *(
            store.write(errand_orders.send, (sending,), NOW_MS)
            for store, sending in zip(fresh_pair, sendings, strict=True)
        )
    )
    keys = tuple(worker.worker_key for worker in stage.workers)
    assert len(await fresh_pair[0].read(errand_orders.unanswered, keys, NOW_MS)) == 1


async def test_an_errand_whose_worker_is_gone_goes_to_another(fresh_store: Store, stage: Stage) -> None:
    await ask_probe(fresh_store, stage)
    await sent(fresh_store, stage, worker=0)
    await fresh_store.write(disconnected, stage.workers[0].worker_key, stage.epoch_id)
    order = await sent(fresh_store, stage, worker=1)
    assert order.errand_uuid == "probe-1"
    assert not (await answer(fresh_store, stage, replace(ANSWER, errand_uuid="probe-1"))).recorded
    assert (await answer(fresh_store, stage, replace(ANSWER, errand_uuid="probe-1"), worker="worker-1")).recorded


@pytest.mark.parametrize(("kind", "moves"), [("look", True), ("clip", False)])
async def test_when_the_camera_moves_a_look_follows_and_a_clip_does_not(
    fresh_store: Store, stage: Stage, kind: str, moves: bool
) -> None:
    await held(fresh_store, stage, worker=0)
    await ask_look(fresh_store, stage, replace(LOOK, kind=kind, expires_at=NOW_MS + 10 * TTL_MS))
    await sent(fresh_store, stage, worker=0)
    await fresh_store.write(
        statement, "UPDATE camera_sessions SET state = 'ORPHANED', lease_expires_at = :now", {"now": NOW_MS}
    )
    await held(fresh_store, stage, worker=1, expected=1)
    assert len(await found(fresh_store, stage, 0, 1)) == int(moves)


async def test_what_people_ask_for_is_not_behind_clips_on_their_way(
    fresh_store: Store, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await held(fresh_store, stage)
    later_ms = NOW_MS + 60_000
    for uuid, kind in (("clip-1", "clip"), ("look-1", "look"), ("clip-2", "clip"), ("look-2", "explain")):
        errand = NewErrand(uuid, kind, "{}", later_ms)
        camera_key = stage.cameras[0].key
        await fresh_store.write(errands.add, stage.tenant_id, stage.site_id, camera_key, errand, NOW_MS)
    worker_key = stage.workers[0].worker_key
    sendings = tuple(Sending(one.errand_id, worker_key, one.generation) for one in await found(fresh_store, stage, 0))
    await fresh_store.write(errand_orders.send, sendings, NOW_MS)
    orders = await fresh_store.read(errand_orders.unanswered, (worker_key,), NOW_MS)
    assert [order.errand_uuid for order in orders] == ["look-1", "look-2", "clip-2", "clip-1"]
    monkeypatch.setattr(errand_orders, "UNANSWERED_MAX", 3)
    assert len(await fresh_store.read(errand_orders.unanswered, (worker_key,), NOW_MS)) == 3


async def test_a_probe_of_a_camera_carries_its_source_and_notes_what_was_found(
    fresh_store: Store, stage: Stage
) -> None:
    probe = replace(PROBE, request='{"stream": "main"}')
    await fresh_store.as_(admin(stage)).write(errands.ask_camera, "cam_0", probe, "", NOW_MS)
    order = await sent(fresh_store, stage)
    assert (order.source_type, order.url, order.camera_credentials) == ("test", "test://still", None)
    caps = {"codec": "h264", "res": "1920x1080", "fps": 25}
    await answer(fresh_store, stage, replace(ANSWER, errand_uuid="probe-1", result=json.dumps({"caps": caps})))
    assert await fresh_store.read(caps_of, "cam_0") == (caps, NOW_MS + 2)
    sub = replace(PROBE, errand_uuid="probe-2", request='{"stream": "sub"}')
    await fresh_store.as_(admin(stage)).write(errands.ask_camera, "cam_0", sub, "", NOW_MS)
    await sent(fresh_store, stage)
    found_sub = json.dumps({"caps": {"sub": {"codec": "h264"}}})
    await answer(fresh_store, stage, replace(ANSWER, errand_uuid="probe-2", result=found_sub), now_ms=NOW_MS + 5)
    # What is known of the main stream stays.
    assert await fresh_store.read(caps_of, "cam_0") == (caps | {"sub": {"codec": "h264"}}, NOW_MS + 5)


async def test_a_probe_that_failed_notes_when_and_why_and_forgets_nothing(fresh_store: Store, stage: Stage) -> None:
    async def probed(uuid: str, ok: bool, result: object, at_ms: int) -> tuple[object, int | None]:
        probe = replace(PROBE, errand_uuid=uuid, request='{"stream": "main"}')
        await fresh_store.as_(admin(stage)).write(errands.ask_camera, "cam_0", probe, "", NOW_MS)
        await sent(fresh_store, stage)
        row = replace(ANSWER, errand_uuid=uuid, ok=ok, result=json.dumps(result))
        await answer(fresh_store, stage, row, now_ms=at_ms)
        return await fresh_store.read(caps_of, "cam_0")

    refused = {"cause": "wrong_password"}
    assert await probed("probe-1", False, refused, NOW_MS + 2) == ({"error": "wrong_password"}, NOW_MS + 2)
    caps = {"codec": "h264"}
    assert await probed("probe-2", True, {"caps": caps}, NOW_MS + 3) == (caps, NOW_MS + 3)
    assert await probed("probe-3", False, {}, NOW_MS + 4) == (caps | {"error": "other"}, NOW_MS + 4)


async def going(tx: Tx, ready_at: int) -> None:
    await tx.run("UPDATE camera_sessions SET state = 'ACTIVE', ready_at = :ready_at", ready_at=ready_at)


async def probes(tx: Tx) -> list[tuple[int, str]]:
    rows = await tx.all("SELECT camera_key, state FROM errands WHERE kind = 'probe' ORDER BY errand_id")
    return [(row["camera_key"], row["state"]) for row in rows]


async def test_every_camera_is_probed_once_when_it_is_going_a_few_at_a_time(fresh_store: Store, stage: Stage) -> None:
    for camera in range(len(stage.cameras)):
        await held(fresh_store, stage, camera=camera)
    assert await fresh_store.write(first_probes.ask, 1, NOW_MS) == 0, "none has sent a picture yet"
    await fresh_store.write(going, NOW_MS)
    assert await fresh_store.write(first_probes.ask, 1, NOW_MS + first_probes.SETTLED_MS - 1) == 0
    at_ms = NOW_MS + first_probes.SETTLED_MS
    assert await fresh_store.write(first_probes.ask, 1, at_ms) == 1
    while await fresh_store.write(first_probes.ask, 1, at_ms):
        pass
    keys = [key for key, _ in await fresh_store.read(probes)]
    assert sorted(keys) == sorted(camera.key for camera in stage.cameras)
    # It goes to the holder with all that a probe needs, and is never asked for again.
    orders = await sent_all(fresh_store, stage, at_ms)
    assert {order.url for order in orders} == {"test://still"}
    for order in orders:
        row = replace(ANSWER, errand_uuid=order.errand_uuid, ok=False, result='{"cause": "no_route"}')
        assert (await answer(fresh_store, stage, row, now_ms=at_ms + 2)).recorded
    await fresh_store.write(errands.prune, at_ms + 10 * KEPT_MS)
    assert await fresh_store.read(probes) == []
    assert await fresh_store.write(first_probes.ask, 1, at_ms + 10 * KEPT_MS) == 0


async def sent_all(store: Store, stage: Stage, now_ms: int) -> tuple[ErrandOrder, ...]:
    worker_key = stage.workers[0].worker_key
    some = await found(store, stage, 0, now_ms=now_ms)
    await store.write(
        errand_orders.send, tuple(Sending(one.errand_id, worker_key, one.generation) for one in some), now_ms
    )
    return await store.read(errand_orders.unanswered, (worker_key,), now_ms)


async def caps_of(tx: Tx, camera_id: str) -> tuple[object, int | None]:
    row = await tx.one("SELECT caps, last_probe_at FROM cameras WHERE camera_id = :camera_id", camera_id=camera_id)
    assert row is not None
    return None if row["caps"] is None else json.loads(row["caps"]), row["last_probe_at"]


async def test_who_asks_for_the_same_picture_at_once_gets_the_same_errand(fresh_store: Store, stage: Stage) -> None:
    first = await ask_look(fresh_store, stage)
    second = await ask_look(fresh_store, stage, replace(LOOK, errand_uuid="look-2"))
    assert second.errand_uuid == first.errand_uuid
    other = await ask_look(fresh_store, stage, replace(LOOK, errand_uuid="look-3", request='{"width": 320}'))
    assert other.errand_uuid == "look-3"


async def test_a_tenant_has_so_many_errands_under_way_and_no_more(fresh_store: Store, stage: Stage) -> None:
    for number in range(UNFINISHED_MAX):
        errand = replace(PROBE, errand_uuid=f"probe-{number}")
        await fresh_store.write(errands.add, stage.tenant_id, stage.site_id, None, errand, NOW_MS)
    with pytest.raises(Unavailable, match="under way already"):
        await ask_probe(fresh_store, stage, replace(PROBE, errand_uuid="too-many"))
    await fresh_store.write(errands.expire, NOW_MS + 30_000)
    await ask_probe(fresh_store, stage, replace(PROBE, errand_uuid="later"))


async def test_errands_stay_within_tenant_and_sites(fresh_store: Store, stage: Stage) -> None:
    await ask_look(fresh_store, stage)
    other = await build(fresh_store, name="other")
    annex = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    strangers = [
        admin(other),
        Principal(stage.tenant_id, 1, Role.SITE_MANAGER, site_ids=frozenset({annex})),
        Principal(stage.tenant_id, 1, Role.VIEWER, site_ids=frozenset()),
    ]
    for stranger in strangers:
        with pytest.raises(NotFound):
            await fresh_store.as_(stranger).read(errands.get, "look-1", NOW_MS)
        with pytest.raises(NotFound):
            await fresh_store.as_(stranger).read(errands.picture, "look-1")
    for stranger in strangers[1:]:
        with pytest.raises(NotFound):
            await fresh_store.as_(stranger).write(
                errands.ask_camera, "cam_0", replace(LOOK, errand_uuid="x"), "", NOW_MS
            )
        with pytest.raises(NotFound):
            await fresh_store.as_(stranger).write(
                errands.ask_site, "main", replace(PROBE, errand_uuid="x"), "", NOW_MS
            )
    # A worker of another tenant, even one of the same name, has no say.
    await held(fresh_store, stage)
    await sent(fresh_store, stage)
    refused = await fresh_store.write(errand_orders.answered, other.tenant_id, "worker-0", ANSWER, NOW_MS + 2)
    assert not refused.recorded


async def test_an_object_has_its_row_until_it_is_garbage(fresh_store: Store, stage: Stage) -> None:
    await held(fresh_store, stage)
    await ask_look(fresh_store, stage)
    await sent(fresh_store, stage)
    key = f"e{stage.epoch_id}/t1/errands/d1/look-1.ab.jpg"
    row = replace(ANSWER, object_key=key, object_bytes=9, object_type="image/jpeg", epoch_id=stage.epoch_id)
    await answer(fresh_store, stage, row)
    picture = await fresh_store.as_(admin(stage)).read(errands.picture, "look-1")
    assert (picture.object_key, picture.content_type, picture.kind) == (key, "image/jpeg", "look")
    assert (await get(fresh_store, stage)).has_picture
    named = await fresh_store.read(errand_orders.named, stage.epoch_id, (key, "e1/other"))
    assert named == {key}
    over = NOW_MS + 30_000 + KEPT_MS
    assert await fresh_store.write(errands.prune, over - 1) == 0
    assert await fresh_store.write(errands.prune, over) == 1
    assert await fresh_store.read(garbage_keys) == [key]
    assert await fresh_store.read(errand_orders.named, stage.epoch_id, (key,)) == frozenset()
    with pytest.raises(NotFound, match="no errand"):
        await get(fresh_store, stage)


async def garbage_keys(tx: Tx) -> list[str]:
    return [row["object_key"] for row in await tx.all("SELECT object_key FROM garbage LIMIT 10")]
