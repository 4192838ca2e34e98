"""What an analyzer is told besides the picture."""

import json
from dataclasses import replace

import pytest

from camserver.domain.earlier_looks import LOOKS_MAX
from camserver.domain.hints import Told
from camserver.store import Store, Tx, analyzers, questions
from camserver.store.analyzers import FORGOTTEN_MS, Seen
from camserver.store.jobs import claim, claimed
from camserver.store.sql import Dialect
from tests.store.analyzing import TERMS
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGE_MS = 600_000


async def frame_ids(tx: Tx) -> tuple[int, ...]:
    rows = await tx.all("SELECT frame_id FROM frames ORDER BY captured_at, camera_key")
    return tuple(row["frame_id"] for row in rows)


async def test_the_look_before_is_found_where_it_has_a_picture_and_is_not_old(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    looks = [
        look(scene, 0, 1, NOW_MS),
        look(scene, 1, 1, NOW_MS + 1),
        look(scene, 0, 2, NOW_MS + AGE_MS),  # its former one is just not too old
        look(scene, 0, 3, NOW_MS + AGE_MS + 1, epoch_id=None, infer_bytes=None, verdict="skip"),
        look(scene, 0, 4, NOW_MS + AGE_MS + 2),  # the look before it failed
        look(scene, 1, 2, NOW_MS + 2 * AGE_MS),  # its former one is too old
    ]
    await recorded(fresh_store, *looks)
    ids = await fresh_store.read(frame_ids)
    found = await fresh_store.read(questions.backgrounds, ids, AGE_MS)
    before = [found[frame_id].previous for frame_id in ids]
    assert [None if one is None else one.frame_uuid for one in before] == [
        None,
        None,
        looks[0].frame_uuid,
        looks[2].frame_uuid,
        None,
        None,
    ]
    assert before[2] == questions.Previous(looks[0].frame_uuid, NOW_MS, scene.epoch_id)
    assert {(one.timezone, one.network_zone) for one in found.values()} == {("UTC", "local")}
    without = await fresh_store.read(questions.backgrounds, ids, None)
    assert {one.previous for one in without.values()} == {None}


async def test_a_look_from_before_the_camera_was_changed_is_none(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    looks = [look(scene, 0, number, NOW_MS + number) for number in (1, 2, 3)]
    await recorded(fresh_store, *looks)
    await fresh_store.write(touch, scene.camera_keys[0], NOW_MS + 2)
    ids = await fresh_store.read(frame_ids)
    found = await fresh_store.read(questions.backgrounds, ids, AGE_MS)
    before = [found[frame_id].previous for frame_id in ids]
    assert [one and one.frame_uuid for one in before] == [None, None, looks[1].frame_uuid]


async def touch(tx: Tx, camera_key: int, now_ms: int) -> None:
    await tx.run("UPDATE cameras SET updated_at = :now_ms WHERE camera_key = :key", now_ms=now_ms, key=camera_key)


SHELF = json.dumps({"shelf_roi": [[0, 0], [1, 0], [1, 1]]})


async def with_shelf(store: Store, scene: Scene, *cameras: int) -> None:
    for camera in cameras:
        await store.write(say, scene.camera_keys[camera], SHELF, None)


async def note_seen(tx: Tx, frame_uuid: str, primary_event: str, tags: list[str]) -> None:
    await tx.run(
        "UPDATE frames SET analyzed = 1, primary_event = :primary_event, tags_json = :tags "
        "WHERE frame_uuid = :frame_uuid",
        frame_uuid=frame_uuid,
        primary_event=primary_event,
        tags=json.dumps(tags),
    )


async def test_where_things_shall_not_vanish_the_look_before_somebody_came_is_found(fresh_store: Store) -> None:
    """One camera with a shelf, one without; somebody stands there in the two looks before the last one."""
    scene = await furnish(fresh_store, cameras=2)
    await with_shelf(fresh_store, scene, 0)
    looks = [
        [
            look(scene, camera, 1, NOW_MS + camera, verdict="skip"),
            look(scene, camera, 2, NOW_MS + 10 + camera),
            look(scene, camera, 3, NOW_MS + 20 + camera),
            look(scene, camera, 4, NOW_MS + 30 + camera, epoch_id=None, infer_bytes=None, verdict="skip"),
            look(scene, camera, 5, NOW_MS + 40 + camera),
            look(scene, camera, 6, NOW_MS + 50 + camera),
        ]
        for camera in (0, 1)
    ]
    await recorded(fresh_store, *looks[0], *looks[1])
    for mine in looks:
        for number in (1, 2, 4):
            await fresh_store.write(note_seen, mine[number].frame_uuid, "human", ["count.single"])
    ids = await fresh_store.read(frame_ids)
    found = await fresh_store.read(questions.backgrounds, ids, AGE_MS)
    before = [found[frame_id].previous for frame_id in ids]
    with_a_shelf, without = (
        [one and [look.frame_uuid for look in looks[camera]].index(one.frame_uuid) for one in before[camera::2]]
        for camera in (0, 1)
    )
    assert with_a_shelf == [None, 0, 0, 0, 0, 0]
    assert without == [None, 0, 1, 2, None, 4]
    assert before[10] == questions.Previous(looks[0][0].frame_uuid, NOW_MS, scene.epoch_id)


async def test_without_such_a_look_it_is_the_look_before(fresh_store: Store) -> None:
    """Too old, from before the camera was changed, or beyond the looks that are searched."""
    scene = await furnish(fresh_store, cameras=3)
    await with_shelf(fresh_store, scene, 0, 1, 2)
    end_ms = NOW_MS + AGE_MS + 1
    many = [look(scene, 2, n, end_ms - 1000 + n) for n in range(2, LOOKS_MAX + 2)]
    early = [look(scene, 0, 1, NOW_MS), look(scene, 1, 1, end_ms - 100), look(scene, 2, 1, end_ms - 1000)]
    somebody = [look(scene, camera, 2, end_ms - 50) for camera in (0, 1)] + many
    last = [look(scene, camera, 900, end_ms + camera) for camera in range(3)]
    await recorded(fresh_store, *early, *somebody, *last)
    for one in early:
        await fresh_store.write(note_seen, one.frame_uuid, "none", [])
    for one in somebody:
        await fresh_store.write(note_seen, one.frame_uuid, "human", ["count.single"])
    await fresh_store.write(touch, scene.camera_keys[1], end_ms - 60)
    ids = (await fresh_store.read(frame_ids))[-3:]
    found = await fresh_store.read(questions.backgrounds, ids, AGE_MS)
    before = [found[frame_id].previous for frame_id in ids]
    assert [one and one.frame_uuid for one in before] == [
        somebody[0].frame_uuid,
        somebody[1].frame_uuid,
        many[-1].frame_uuid,
    ]


async def test_many_frames_are_searched_for_in_parts(fresh_store: Store) -> None:
    count = questions.SEARCHED_AT_ONCE + 1
    scene = await furnish(fresh_store, cameras=count)
    await with_shelf(fresh_store, scene, *range(count))
    looks = [
        [look(scene, camera, seq, NOW_MS + seq, verdict="analyze" if seq > 1 else "skip") for seq in (1, 2, 3)]
        for camera in range(count)
    ]
    await recorded(fresh_store, *(one for mine in looks for one in mine))
    for mine in looks:
        await fresh_store.write(note_seen, mine[1].frame_uuid, "animal", ["animal.dog"])
    ids = (await fresh_store.read(frame_ids))[-count:]
    found = await fresh_store.read(questions.backgrounds, ids, AGE_MS)
    before = [found[frame_id].previous for frame_id in ids]
    assert [one and one.frame_uuid for one in before] == [mine[0].frame_uuid for mine in looks]


async def test_earlier_looks_are_found_by_an_index(fresh_store: Store) -> None:
    plan = await fresh_store.read(plan_of_the_search)
    assert "ix_frames_camera_key_captured_at" in plan
    assert "SCAN q" not in plan, "every look there ever was would be gone over"


async def plan_of_the_search(tx: Tx) -> str:
    word = "EXPLAIN QUERY PLAN" if tx.dialect is Dialect.SQLITE else "EXPLAIN"
    if tx.dialect is Dialect.POSTGRES:
        await tx.run("SET LOCAL enable_seqscan = off")  # of an empty table it is the cheapest way
    sql = questions._earlier_of_one(0)
    rows = await tx.all(f"{word} {sql}", camera_key_0=1, at_0=NOW_MS, since_0=NOW_MS - AGE_MS)
    return str([list(dict(row).values()) for row in rows])  # type: ignore[call-overload]  # rows are mappings


async def test_what_people_said_of_a_camera_is_found(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    await recorded(fresh_store, look(scene, 0, 1, NOW_MS), look(scene, 1, 1, NOW_MS + 1))
    hints, masks = {"preset": "shop", "thresholds": {"person": 0.5}}, [[[0.1, 0.2], [0.3, 0.2], [0.3, 0.4]]]
    await fresh_store.write(say, scene.camera_keys[0], json.dumps(hints), json.dumps(masks))
    ids = await fresh_store.read(frame_ids)
    for age_ms in (AGE_MS, None):
        found = await fresh_store.read(questions.backgrounds, ids, age_ms)
        told = found[ids[0]].told
        assert (json.loads(str(told.hints)), json.loads(str(told.privacy_masks))) == (hints, masks)
        assert found[ids[1]].told == Told()


async def say(tx: Tx, camera_key: int, hints: str, masks: str | None) -> None:
    await tx.run(
        "INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, hints, privacy_masks) "
        "SELECT camera_key, tenant_id, updated_at, :hints, :masks FROM cameras WHERE camera_key = :camera_key",
        camera_key=camera_key,
        hints=hints,
        masks=masks,
    )


async def test_a_claim_brings_the_background_of_its_jobs(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    before = look(scene, 0, 1, NOW_MS, verdict="skip")
    await recorded(fresh_store, before, look(scene, 0, 2, NOW_MS + 1))
    terms = replace(TERMS, previous_max_age_ms=AGE_MS)
    (job,) = await fresh_store.write(claim, "d", "token", 4, NOW_MS + 2, terms)
    assert job.background is not None
    assert job.background.previous == questions.Previous(before.frame_uuid, NOW_MS, scene.epoch_id)
    (again,) = await fresh_store.read(claimed, (job.job_id,), ("token",), terms)
    assert again == replace(job, background=None)


async def test_what_dispatchers_see_of_analyzers(fresh_store: Store) -> None:
    ok = Seen("http://a:9000", "ok", 3, 16, 21, None)
    bad = Seen("http://b:9000", "away", 0, 1, None, "x" * 300)
    await fresh_store.write(analyzers.report, "one", (ok, bad), NOW_MS)
    await fresh_store.write(analyzers.report, "two", (ok,), NOW_MS + 1)
    await fresh_store.write(analyzers.report, "one", (ok, bad), NOW_MS + 2)
    found = await fresh_store.read(analyzers.seen, NOW_MS + 2)
    assert [(one.dispatcher, one.seen.url, one.seen_at) for one in found] == [
        ("one", "http://a:9000", NOW_MS + 2),
        ("two", "http://a:9000", NOW_MS + 1),
        ("one", "http://b:9000", NOW_MS + 2),
    ]
    assert found[0].seen == ok
    assert found[2].seen.last_error == "x" * 255
    later = NOW_MS + 2 + FORGOTTEN_MS
    assert [one.dispatcher for one in await fresh_store.read(analyzers.seen, later)] == ["one", "one"]
    await fresh_store.write(analyzers.report, "two", (ok,), later)
    await fresh_store.write(analyzers.forget, "two")
    assert [one.dispatcher for one in await fresh_store.read(analyzers.seen, later)] == ["one", "one"]
