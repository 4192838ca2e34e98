"""Clips in the store: asked for once, taken over whole, given up with a reason, and read by those who may."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.clips import ASKED_WITHIN_MS, UNSENT_MS, WAITED_MS, NoClip, no_clip_phrase
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, clips, errand_orders, errands, event_views
from camserver.store.check import CHECKS, Check
from camserver.store.clips import ClipDetail, ClipTerms, Settled
from camserver.store.errand_orders import AnswerRow, Sending
from camserver.store.errands import KEPT_MS, UNFINISHED_MAX, NewErrand
from camserver.store.leases import Want
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, execute
from tests.store.singles import take
from tests.store.stage import NOW_MS, TTL_MS, Stage, add_site, build

pytestmark = pytest.mark.asyncio(loop_scope="module")

TERMS = ClipTerms()
FOUND = {"begin_at": NOW_MS - 5_200, "end_at": NOW_MS + 9_900, "codec": "h264", "width": 1280, "height": 720}


@pytest_asyncio.fixture(loop_scope="module")
async def stage(fresh_store: Store) -> Stage:
    made = await build(fresh_store)
    want = Want(made.cameras[0].key, made.workers[0].worker_key, 0)
    assert await fresh_store.write(take, want, TTL_MS, NOW_MS) is not None
    return made


def admin(stage: Stage) -> Principal:
    return Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN)


def viewer(stage: Stage) -> Principal:
    return Principal(stage.tenant_id, 1, Role.VIEWER)


async def begin(store: Store, stage: Stage, uuid: str = "event-1", start_at: int = NOW_MS, camera: int = 0) -> int:
    return await store.write(add_event, stage.tenant_id, stage.cameras[camera].id, uuid, start_at)


async def asked(tx: Tx) -> list[tuple[str, dict[str, int], int]]:
    """(kind, request, expires_at) of the errands there are."""
    rows = await tx.all("SELECT kind, request, expires_at FROM errands ORDER BY errand_id LIMIT 10")
    return [(row["kind"], json.loads(row["request"]), row["expires_at"]) for row in rows]


async def event_changes(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS n FROM changes WHERE kind = 'event'")
    assert row is not None
    return int(row["n"])


async def errand_of(tx: Tx, event_uuid: str) -> str:
    row = await tx.one(
        "SELECT k.errand_uuid FROM clips k JOIN events e ON e.event_id = k.event_id WHERE e.event_uuid = :uuid",
        uuid=event_uuid,
    )
    assert row is not None
    return str(row["errand_uuid"])


async def send(store: Store, stage: Stage) -> None:
    worker_key = stage.workers[0].worker_key
    for one in await store.read(errand_orders.candidates, (worker_key,), (stage.site_id,), NOW_MS):
        await store.write(errand_orders.send, (Sending(one.errand_id, worker_key, one.generation),), NOW_MS)


async def answered(store: Store, stage: Stage, event_uuid: str = "event-1", **changes: object) -> str:
    """The worker's answer to the clip of an event; the key of its object."""
    await send(store, stage)
    uuid = await store.read(errand_of, event_uuid)
    key = f"e{stage.epoch_id}/t1/errands/d1/{uuid}.ab.mp4"
    row = AnswerRow(uuid, True, "", json.dumps(FOUND), key, 5000, "video/mp4", stage.epoch_id)
    verdict = await store.write(
        errand_orders.answered,
        stage.tenant_id,
        "worker-0",
        replace(row, **changes),  # type: ignore[arg-type]  # the names are its own
        NOW_MS + 1,
    )
    assert verdict.recorded
    return key


async def ready(store: Store, stage: Stage, event_uuid: str = "event-1") -> str:
    await begin(store, stage, event_uuid)
    await store.write(clips.ask, NOW_MS, TERMS)
    key = await answered(store, stage, event_uuid)
    assert await store.write(clips.settle, NOW_MS + 2) == Settled(1, 0)
    return key


async def clip(store: Store, stage: Stage, uuid: str = "event-1") -> ClipDetail | None:
    return (await store.as_(admin(stage)).read(event_views.get, uuid)).clip


async def damage(store: Store) -> list[str]:
    return [one.kind for one in CHECKS if "clip" in one.sql and await store.read(is_found, one)]


async def is_found(tx: Tx, one: Check) -> bool:
    row = await tx.one(one.sql)
    return row is not None and row["found"] > 0


async def test_a_new_event_asks_once_around_its_beginning(fresh_store: Store, stage: Stage) -> None:
    await begin(fresh_store, stage)
    before = await fresh_store.read(event_changes)
    assert await fresh_store.write(clips.ask, NOW_MS + 500, TERMS) == 1
    assert await fresh_store.write(clips.ask, NOW_MS + 1500, TERMS) == 0
    [(kind, request, expires_at)] = await fresh_store.read(asked)
    assert (kind, request) == ("clip", {"from_ms": NOW_MS - 5_000, "to_ms": NOW_MS + 10_000})
    assert expires_at == NOW_MS + 500 + WAITED_MS
    found = await clip(fresh_store, stage)
    assert found == ClipDetail("asked", "", NOW_MS - 5_000, NOW_MS + 10_000, 0, "", 0, 0)
    assert await fresh_store.read(event_changes) == before + 1


async def test_two_dispatchers_ask_once(fresh_pair: tuple[Store, Store], stage: Stage) -> None:
    first, second = fresh_pair
    for number in range(5):
        await begin(first, stage, f"event-{number}", NOW_MS + number)
    counts = await asyncio.gather(*(store.write(clips.ask, NOW_MS, TERMS) for store in (first, second) * 3))
    assert sum(counts) == 5
    assert len(await first.read(asked)) == 5


async def test_what_has_no_clip_is_not_asked_for(fresh_store: Store, stage: Stage) -> None:
    await begin(fresh_store, stage, "old", NOW_MS - ASKED_WITHIN_MS)
    issue = await begin(fresh_store, stage, "issue")
    await fresh_store.write(execute, "UPDATE events SET subject = 'offline' WHERE event_id = :e", {"e": issue})
    await begin(fresh_store, stage, "off", camera=1)
    off = "INSERT INTO camera_overrides (camera_key, tenant_id, clip_sec, updated_at) VALUES (:c, :t, 0, 1)"
    await fresh_store.write(execute, off, {"c": stage.cameras[1].key, "t": stage.tenant_id})
    assert await fresh_store.write(clips.ask, NOW_MS, TERMS) == 0
    await begin(fresh_store, stage, "removed")
    await fresh_store.write(execute, "UPDATE cameras SET deleted_at = 1", {})
    assert await fresh_store.write(clips.ask, NOW_MS, TERMS) == 0
    assert await clip(fresh_store, stage, "old") is None


async def test_a_camera_has_its_own_length(fresh_store: Store, stage: Stage) -> None:
    own = "INSERT INTO camera_overrides (camera_key, tenant_id, clip_sec, updated_at) VALUES (:c, :t, 4, 1)"
    await fresh_store.write(execute, own, {"c": stage.cameras[0].key, "t": stage.tenant_id})
    await begin(fresh_store, stage)
    assert await fresh_store.write(clips.ask, NOW_MS, ClipTerms(clip_sec=0)) == 1
    [(_, request, _)] = await fresh_store.read(asked)
    assert request == {"from_ms": NOW_MS - 2_000, "to_ms": NOW_MS + 4_000}


async def test_what_the_worker_brought_becomes_the_clip_s_and_outlives_the_errand(
    fresh_store: Store, stage: Stage
) -> None:
    await begin(fresh_store, stage)
    await fresh_store.write(clips.ask, NOW_MS, TERMS)
    assert await fresh_store.write(clips.settle, NOW_MS) == Settled(0, 0)
    key = await answered(fresh_store, stage)
    before = await fresh_store.read(event_changes)
    assert await fresh_store.write(clips.settle, NOW_MS + 2) == Settled(1, 0)
    assert await fresh_store.write(clips.settle, NOW_MS + 2) == Settled(0, 0)
    assert await fresh_store.read(event_changes) == before + 1
    found = await clip(fresh_store, stage)
    assert found == ClipDetail("ready", "", NOW_MS - 5_200, NOW_MS + 9_900, 5000, "h264", 1280, 720)
    assert await damage(fresh_store) == []
    # Neither the errand's end nor the sweep takes the object.
    assert await fresh_store.write(errands.prune, NOW_MS + WAITED_MS + KEPT_MS) == 1
    assert await fresh_store.read(garbage_count) == 0
    assert await fresh_store.read(errand_orders.named, stage.epoch_id, (key, "other")) == {key}


async def garbage_count(tx: Tx) -> int:
    return len(await tx.all("SELECT garbage_id FROM garbage LIMIT 10"))


async def test_two_dispatchers_settle_once(fresh_pair: tuple[Store, Store], stage: Stage) -> None:
    first, second = fresh_pair
    for number in range(4):
        await begin(first, stage, f"event-{number}")
    await first.write(clips.ask, NOW_MS, TERMS)
    for number in range(4):
        await answered(first, stage, f"event-{number}")
    settled = await asyncio.gather(*(store.write(clips.settle, NOW_MS + 2) for store in (first, second) * 3))
    assert sum(one.ready for one in settled) == 4


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"reason": "not_connected"}, NoClip.NOT_CONNECTED),
        ({"reason": "busy"}, NoClip.BUSY),
        ({"reason": "a newer worker's"}, NoClip.FAILED),
        ({"reason": 7}, NoClip.FAILED),
        ({}, NoClip.FAILED),
    ],
)
async def test_a_worker_says_why_there_is_none(
    fresh_store: Store, stage: Stage, result: dict[str, object], reason: NoClip
) -> None:
    await begin(fresh_store, stage)
    await fresh_store.write(clips.ask, NOW_MS, TERMS)
    nothing: dict[str, Any] = {"object_key": None, "object_bytes": 0, "object_type": "", "epoch_id": None}
    await answered(fresh_store, stage, ok=False, result=json.dumps(result), **nothing)
    before = await fresh_store.read(event_changes)
    assert await fresh_store.write(clips.settle, NOW_MS + 2) == Settled(0, 1)
    assert await fresh_store.read(event_changes) == before + 1
    found = await clip(fresh_store, stage)
    assert found is not None
    assert (found.state, found.reason) == ("none", reason)
    assert no_clip_phrase(found.reason).ja != no_clip_phrase(found.reason).en
    assert await damage(fresh_store) == []


async def test_a_camera_that_nobody_holds_is_not_waited_for(fresh_store: Store, stage: Stage) -> None:
    await begin(fresh_store, stage, camera=1)
    await fresh_store.write(clips.ask, NOW_MS, TERMS)
    assert await fresh_store.write(clips.settle, NOW_MS + UNSENT_MS - 1) == Settled(0, 0)
    assert await fresh_store.write(clips.settle, NOW_MS + UNSENT_MS) == Settled(0, 1)
    found = await clip(fresh_store, stage)
    assert found is not None
    assert (found.state, found.reason) == ("none", NoClip.NOT_HELD)
    # Nobody is sent for it later.
    want = Want(stage.cameras[1].key, stage.workers[1].worker_key, 0)
    assert await fresh_store.write(take, want, TTL_MS, NOW_MS) is not None
    keys = (stage.workers[1].worker_key,)
    assert await fresh_store.read(errand_orders.candidates, keys, (stage.site_id,), NOW_MS) == ()


@pytest.mark.parametrize("swept", [False, True])
async def test_a_worker_that_never_answers_is_given_up_in_the_end(
    fresh_store: Store, stage: Stage, swept: bool
) -> None:
    await begin(fresh_store, stage)
    await fresh_store.write(clips.ask, NOW_MS, TERMS)
    await send(fresh_store, stage)
    assert await fresh_store.write(clips.settle, NOW_MS + WAITED_MS - 1) == Settled(0, 0)
    if swept:
        await fresh_store.write(errands.expire, NOW_MS + WAITED_MS)
    assert await fresh_store.write(clips.settle, NOW_MS + WAITED_MS) == Settled(0, 1)
    found = await clip(fresh_store, stage)
    assert found is not None
    assert found.reason == NoClip.NO_ANSWER


async def test_a_clip_whose_errand_is_gone_is_given_up(fresh_store: Store, stage: Stage) -> None:
    await begin(fresh_store, stage)
    await fresh_store.write(clips.ask, NOW_MS, TERMS)
    await fresh_store.write(execute, "DELETE FROM errands", {})
    assert await fresh_store.write(clips.settle, NOW_MS) == Settled(0, 1)


async def test_clips_take_no_place_of_people_s_errands(fresh_store: Store, stage: Stage) -> None:
    for number in range(UNFINISHED_MAX):
        errand = NewErrand(f"clip-{number}", "clip", "{}", NOW_MS + 30_000)
        await fresh_store.write(errands.add, stage.tenant_id, stage.site_id, None, errand, NOW_MS)
    look = NewErrand("look-1", "look", "{}", NOW_MS + 30_000)
    state = await fresh_store.as_(admin(stage)).write(errands.ask_camera, "cam_0", look, "", NOW_MS)
    assert state.state == "waiting"


async def test_clips_stay_within_tenant_and_sites(fresh_store: Store, stage: Stage) -> None:
    key = await ready(fresh_store, stage)
    assert (await fresh_store.as_(viewer(stage)).read(clips.place, "event-1")).object_key == key
    other = await build(fresh_store, name="other")
    annex = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    strangers = [
        admin(other),
        Principal(stage.tenant_id, 1, Role.SITE_MANAGER, site_ids=frozenset({annex})),
        Principal(stage.tenant_id, 1, Role.VIEWER, site_ids=frozenset()),
    ]
    await frame_of(fresh_store, stage)
    for stranger in strangers:
        for read in (event_views.get, clips.place):
            with pytest.raises(NotFound, match="no event"):
                await fresh_store.as_(stranger).read(read, "event-1")
        with pytest.raises(NotFound, match="no frame"):
            await fresh_store.as_(stranger).read(clips.linkable, "frame-1")


async def frame_of(store: Store, stage: Stage, event_uuid: str | None = "event-1", uuid: str = "frame-1") -> None:
    event_id = None if event_uuid is None else await store.read(event_id_of, event_uuid)
    row = FrameRow(stage.tenant_id, "cam_0", NOW_MS, uuid, epoch_id=stage.epoch_id, event_id=event_id)
    await store.write(add_frame, row)


async def event_id_of(tx: Tx, event_uuid: str) -> int:
    row = await tx.one("SELECT event_id FROM events WHERE event_uuid = :uuid", uuid=event_uuid)
    assert row is not None
    return int(row["event_id"])


async def test_a_frame_links_to_the_clip_of_its_event(fresh_store: Store, stage: Stage) -> None:
    key = await ready(fresh_store, stage)
    await frame_of(fresh_store, stage)
    assert (await fresh_store.as_(viewer(stage)).read(clips.linkable, "frame-1")).object_key == key
    assert (await fresh_store.read(clips.linked, "frame-1")).bytes == 5000
    await begin(fresh_store, stage, "without")
    await fresh_store.write(
        execute, "UPDATE frames SET event_id = :e", {"e": await fresh_store.read(event_id_of, "without")}
    )
    with pytest.raises(NotFound, match="has no clip"):
        await fresh_store.read(clips.linked, "frame-1")
    await fresh_store.write(execute, "UPDATE frames SET event_id = NULL", {})
    with pytest.raises(NotFound, match="has no clip"):
        await fresh_store.read(clips.linked, "frame-1")


@pytest.mark.parametrize("of_case", ["events", "frames"])
async def test_no_link_opens_what_belongs_to_a_case(fresh_store: Store, stage: Stage, of_case: str) -> None:
    await ready(fresh_store, stage)
    await frame_of(fresh_store, stage)
    await fresh_store.write(execute, f"UPDATE {of_case} SET retention_class = 'case'", {})
    with pytest.raises(Forbidden):
        await fresh_store.as_(admin(stage)).read(clips.linkable, "frame-1")
    with pytest.raises(Forbidden):
        await fresh_store.read(clips.linked, "frame-1")


async def test_the_clip_of_a_case_is_for_those_who_investigate(fresh_store: Store, stage: Stage) -> None:
    await ready(fresh_store, stage)
    await fresh_store.write(execute, "UPDATE events SET retention_class = 'case'", {})
    assert (await fresh_store.as_(admin(stage)).read(clips.place, "event-1")).bytes == 5000
    assert (await fresh_store.as_(viewer(stage)).read(event_views.get, "event-1")).clip is None
    with pytest.raises(Forbidden, match="investigate"):
        await fresh_store.as_(viewer(stage)).read(clips.place, "event-1")


async def test_an_event_without_a_clip(fresh_store: Store, stage: Stage) -> None:
    await fresh_store.write(add_event, stage.tenant_id, "cam_0", "event-1", NOW_MS, (), EventRow())
    assert await clip(fresh_store, stage) is None
    with pytest.raises(NotFound, match="has no clip"):
        await fresh_store.as_(admin(stage)).read(clips.place, "event-1")
