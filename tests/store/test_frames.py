"""Recording looks: what each is worth, that each counts once, and that holes are exactly what is missing."""

import asyncio
from dataclasses import replace

import pytest

from camserver.base.errors import Conflict, EpochEnded
from camserver.domain.leases import FrameStanding, LeasePolicy
from camserver.store import Store, Tx
from camserver.store.epochs import end_epoch, open_epoch
from camserver.store.frames import Look, Recorded, find_recorded, record, with_rows
from camserver.store.leases import Want
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded
from tests.store.singles import take

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIVE, LATE, REFUSED = FrameStanding.LIVE, FrameStanding.LATE, FrameStanding.REFUSED
OTHER_WORKER = 999_999
TTL_MS = 90_000
MOVED_AT = NOW_MS + 600_000


async def rows(tx: Tx, sql: str, **params: object) -> list[tuple[object, ...]]:
    """Rows as tuples of the columns named before FROM."""
    names = [name.split()[-1].rpartition(".")[2] for name in sql.split("FROM")[0].removeprefix("SELECT ").split(",")]
    return [tuple(row[name.strip()] for name in names) for row in await tx.all(sql, **params)]


async def frames_of(store: Store) -> list[tuple[object, ...]]:
    return await store.read(rows, "SELECT camera_key, generation, seq, late FROM frames ORDER BY frame_id")


async def jobs_of(store: Store) -> list[tuple[object, ...]]:
    return await store.read(rows, "SELECT camera_key, lap, captured_at FROM inference_jobs ORDER BY job_id")


async def gaps_of(store: Store) -> list[tuple[object, ...]]:
    return await store.read(rows, "SELECT first_seq, last_seq FROM frame_gaps ORDER BY generation, first_seq")


async def feed_of(store: Store) -> list[tuple[object, ...]]:
    return await store.read(rows, "SELECT kind, camera_key FROM changes ORDER BY seq")


async def expire(tx: Tx, camera_key: int) -> None:
    await tx.run(
        "UPDATE camera_sessions SET state = 'ORPHANED', lease_expires_at = 0 WHERE camera_key = :key", key=camera_key
    )


async def move(store: Store, camera_key: int, worker_key: int, generation: int = 1, now_ms: int = MOVED_AT) -> None:
    await store.write(expire, camera_key)
    assert await store.write(take, Want(camera_key, worker_key, generation), TTL_MS, now_ms) is not None


# What a look is worth


@pytest.mark.parametrize(
    ("moved", "changes", "standing"),
    [
        (False, {}, LIVE),
        (False, {"received_at": NOW_MS + 120_000}, LIVE),
        (False, {"received_at": NOW_MS + 120_001}, LATE),
        (False, {"worker_key": OTHER_WORKER}, REFUSED),
        (False, {"generation": 2}, REFUSED),
        (False, {"generation": 0}, REFUSED),
        # After the camera went to another worker at MOVED_AT, what was seen before that is kept as late.
        (True, {"captured_at": MOVED_AT, "received_at": MOVED_AT}, LATE),
        (True, {"captured_at": MOVED_AT + 1000, "received_at": MOVED_AT + 1000}, LATE),
        (True, {"captured_at": MOVED_AT + 1001, "received_at": MOVED_AT + 1001}, REFUSED),
        (True, {"captured_at": NOW_MS - 1001, "received_at": MOVED_AT}, REFUSED),
        (True, {"generation": 2, "captured_at": MOVED_AT, "received_at": MOVED_AT}, REFUSED),
        (
            True,
            {"generation": 2, "worker_key": OTHER_WORKER, "captured_at": MOVED_AT, "received_at": MOVED_AT},
            LIVE,
        ),
    ],
)
async def test_what_a_look_is_worth(
    fresh_store: Store, moved: bool, changes: dict[str, object], standing: FrameStanding
) -> None:
    scene = await furnish(fresh_store, cameras=1)
    if moved:
        await move(fresh_store, scene.camera_keys[0], OTHER_WORKER)
    feed = len(await feed_of(fresh_store))
    sent = look(scene, **changes)
    (answer,) = await recorded(fresh_store, sent)
    assert (answer.standing, answer.frame_uuid, answer.repeat) == (standing, sent.frame_uuid, False)
    assert bool(answer.reason) == (standing is REFUSED)
    kept = [] if standing is REFUSED else [(sent.camera_key, sent.generation, 1, int(standing is LATE))]
    assert await frames_of(fresh_store) == kept
    assert len(await jobs_of(fresh_store)) == len(kept)
    # A late look is not news for whoever watches the camera.
    assert len(await feed_of(fresh_store)) - feed == int(standing is LIVE)


async def test_everything_a_look_says_is_kept(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    sent = look(
        scene,
        collector_status="ok",
        diff_ratio=0.123456789012,
        luma_delta=-3.25,
        blur_score=99.875,
        full_w=1920,
        full_h=1080,
        infer_w=640,
        infer_h=360,
        letterbox=1,
        letterbox_top=1,
        letterbox_left=2,
        letterbox_bottom=3,
        letterbox_right=4,
        infer_hash64_hex="0123456789abcdef",
        structure=0.375,
        view_hex="0f" * 18,
        error_code="x",
        error_message="日本 100 %",
        worker_at=NOW_MS - 5,
    )
    await recorded(fresh_store, sent)
    assert await fresh_store.read(kept_look, sent) == sent


async def kept_look(tx: Tx, sent: Look) -> Look:
    row = await tx.one("SELECT * FROM frames WHERE frame_uuid = :uuid", uuid=sent.frame_uuid)
    assert row is not None
    columns = set(Look.__slots__) - {"worker_key", "priority", "gate_state"}  # those go elsewhere
    return replace(sent, **{name: row[name] for name in columns})


async def test_a_look_without_a_picture_or_reason_is_no_job(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await recorded(
        fresh_store,
        look(scene, seq=1, verdict="skip"),
        look(scene, seq=2, collector_status="timeout", epoch_id=None, infer_bytes=None, full_bytes=None),
        look(scene, seq=3, verdict="forced"),
    )
    assert len(await frames_of(fresh_store)) == 3
    assert len(await jobs_of(fresh_store)) == 1
    # Quiet looks are no news (decisions 44).
    assert await feed_of(fresh_store) == [("look", scene.camera_keys[0])]


# Repeats


async def test_a_repeat_gets_the_first_answer_and_changes_nothing(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    first, late = look(scene, seq=1), look(scene, seq=2, received_at=NOW_MS + 500_000)
    await recorded(fresh_store, first, late)
    before = await frames_of(fresh_store), await jobs_of(fresh_store), await feed_of(fresh_store)
    again = [look(scene, seq=1), look(scene, seq=2), look(scene, seq=1)]
    assert await recorded(fresh_store, *again) == (
        Recorded(LIVE, first.frame_uuid, repeat=True),
        Recorded(LATE, late.frame_uuid, repeat=True),
        Recorded(LIVE, first.frame_uuid, repeat=True),
    )
    assert (await frames_of(fresh_store), await jobs_of(fresh_store), await feed_of(fresh_store)) == before
    assert await fresh_store.read(find_recorded, first.camera_key, 1, 1) == Recorded(LIVE, first.frame_uuid, True)
    assert await fresh_store.read(find_recorded, first.camera_key, 1, 3) is None


async def test_a_repeat_within_one_batch(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    first = look(scene)
    answers = await recorded(fresh_store, first, look(scene))
    assert [answer.frame_uuid for answer in answers] == [first.frame_uuid] * 2
    assert [answer.repeat for answer in answers] == [False, True]
    assert len(await frames_of(fresh_store)) == 1


async def test_a_repeat_after_the_camera_moved_is_still_a_repeat(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    sent = look(scene)
    await recorded(fresh_store, sent)
    await move(fresh_store, scene.camera_keys[0], OTHER_WORKER)
    (answer,) = await recorded(fresh_store, look(scene, received_at=MOVED_AT))
    assert answer == Recorded(LIVE, sent.frame_uuid, repeat=True)


@pytest.mark.parametrize("together", [False, True])
async def test_another_workers_look_of_the_same_number_is_refused(fresh_store: Store, together: bool) -> None:
    """Were it answered as a repeat, that worker would drop a look that nobody has."""
    scene = await furnish(fresh_store, cameras=1)
    sent, strange = look(scene), look(scene, worker_key=OTHER_WORKER)
    if together:
        _, answer = await recorded(fresh_store, sent, strange)
    else:
        await recorded(fresh_store, sent)
        (answer,) = await recorded(fresh_store, strange)
    assert answer.standing is REFUSED
    assert len(await frames_of(fresh_store)) == 1


async def test_racing_repeats_leave_one_row_and_one_answer(fresh_pair: tuple[Store, Store]) -> None:
    scene = await furnish(fresh_pair[0], cameras=1)
    sent = [look(scene, seq=seq) for seq in range(1, 6) for _ in range(6)]
    answers = await asyncio.gather(*(recorded(fresh_pair[n % 2], one) for n, one in enumerate(sent)))
    uuids = {one.seq: set() for one in sent}  # type: dict[int, set[str]]
    for one, (answer,) in zip(sent, answers, strict=True):
        uuids[one.seq].add(answer.frame_uuid)
    assert all(len(found) == 1 for found in uuids.values())
    assert sum(not answer.repeat for (answer,) in answers) == 5
    assert len(await frames_of(fresh_pair[0])) == 5
    assert len(await jobs_of(fresh_pair[0])) == 5
    assert await gaps_of(fresh_pair[0]) == []


# Batches


async def test_a_batch_of_mixed_fates_over_many_cameras(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=40)
    await move(fresh_store, scene.camera_keys[5], OTHER_WORKER)
    await recorded(fresh_store, look(scene, 7, seq=1))
    batch = [look(scene, camera, seq=1 + camera % 3, received_at=NOW_MS + camera) for camera in range(40)]
    batch[7] = look(scene, 7, seq=1)
    batch[9] = look(scene, 9, worker_key=OTHER_WORKER)
    batch[11] = look(scene, 11, received_at=NOW_MS + 999_999)
    answers = await recorded(fresh_store, *batch)
    special = {5: (LATE, False), 7: (LIVE, True), 9: (REFUSED, False), 11: (LATE, False)}
    for camera, answer in enumerate(answers):
        assert (answer.standing, answer.repeat) == special.get(camera, (LIVE, False)), camera
    assert len(await frames_of(fresh_store)) == 39
    assert len(await jobs_of(fresh_store)) == 39


async def test_jobs_of_one_batch_are_told_apart_by_lap(fresh_store: Store) -> None:
    """A drained spool comes in batches: the fifth look of a camera must not stand beside another camera's first."""
    scene = await furnish(fresh_store, cameras=2)
    batch = [look(scene, 0, seq=seq, at_ms=NOW_MS + seq) for seq in (3, 1, 2)]
    await recorded(fresh_store, *batch, look(scene, 1, seq=1))
    await recorded(fresh_store, look(scene, 0, seq=5, at_ms=NOW_MS + 5), look(scene, 0, seq=4, at_ms=NOW_MS + 4))
    mine = [(lap, at) for camera, lap, at in await jobs_of(fresh_store) if camera == scene.camera_keys[0]]
    assert mine == [(lap, NOW_MS + lap + 1) for lap in range(5)]


async def test_an_ended_epoch_writes_nothing_of_the_batch(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    ended = await fresh_store.write(open_epoch, "dead", NOW_MS)
    await fresh_store.write(end_epoch, ended, NOW_MS)
    for epoch_id in (ended, 987_654):
        with pytest.raises(EpochEnded, match=f"epoch {epoch_id}"):
            await recorded(fresh_store, look(scene, 0), look(scene, 1, epoch_id=epoch_id), look(scene, 2))
    assert await frames_of(fresh_store) == []
    assert await jobs_of(fresh_store) == []
    assert await feed_of(fresh_store) == []


async def test_an_epoch_is_not_ended_under_a_look_being_recorded(fresh_pair: tuple[Store, Store]) -> None:
    """Each look is recorded before the end of its epoch or refused; never recorded after."""
    store, other = fresh_pair
    scene = await furnish(store, cameras=1)
    epochs = [await store.write(open_epoch, str(number), NOW_MS) for number in range(20)]

    async def race(number: int, epoch_id: int) -> bool:
        ending = asyncio.ensure_future(other.write(end_and_count, epoch_id))
        try:
            await recorded(store, look(scene, seq=number + 1, epoch_id=epoch_id))
            kept = True
        except EpochEnded:
            kept = False
        # What the sweep saw right after the end is all there will ever be.
        assert await ending == int(kept) or not kept
        found = await store.read(rows, "SELECT seq FROM frames WHERE epoch_id = :epoch_id", epoch_id=epoch_id)
        assert len(found) == int(kept)
        return kept

    await asyncio.gather(*(race(number, epoch_id) for number, epoch_id in enumerate(epochs)))


async def end_and_count(tx: Tx, epoch_id: int) -> int:
    await end_epoch(tx, epoch_id, NOW_MS)
    row = await tx.one("SELECT count(*) AS looks FROM frames WHERE epoch_id = :epoch_id", epoch_id=epoch_id)
    assert row is not None
    return int(row["looks"])


async def test_a_uuid_used_twice_is_a_conflict(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    first = look(scene, 0)
    await recorded(fresh_store, first)
    with pytest.raises(Conflict):
        await recorded(fresh_store, look(scene, 1, frame_uuid=first.frame_uuid))
    assert len(await frames_of(fresh_store)) == 1


async def test_nothing_to_record(fresh_store: Store) -> None:
    assert await fresh_store.write(record, (), LeasePolicy()) == ()


async def test_which_frames_have_rows(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    first, second = look(scene, 0), look(scene, 1)
    await recorded(fresh_store, first, second)
    asked = (first.frame_uuid, "nobody", second.frame_uuid)
    assert await fresh_store.read(with_rows, scene.epoch_id, asked) == {first.frame_uuid, second.frame_uuid}
    assert await fresh_store.read(with_rows, scene.epoch_id, ()) == frozenset()
    assert await fresh_store.read(with_rows, scene.epoch_id + 1, asked) == frozenset(), "their pictures lie elsewhere"


# Against a take of the same camera


async def test_recording_and_taking_a_camera_are_one_after_the_other(fresh_pair: tuple[Store, Store]) -> None:
    """A look is live only if it was recorded before the camera went to somebody else."""
    store, other = fresh_pair
    scene = await furnish(store, cameras=12)
    for camera_key in scene.camera_keys:
        await store.write(expire, camera_key)
    standings = await asyncio.gather(*(_race(store, other, scene, camera) for camera in range(12)))
    assert set(standings) <= {LIVE, LATE}


async def _race(store: Store, other: Store, scene: Scene, camera: int) -> FrameStanding:
    camera_key = scene.camera_keys[camera]
    taking = asyncio.ensure_future(other.write(take_and_count, Want(camera_key, OTHER_WORKER, 1)))
    (answer,) = await recorded(store, look(scene, camera, at_ms=NOW_MS))
    looks_at_take = await taking
    # Live and recorded after the take would be a stale holder writing as the owner.
    assert looks_at_take == 1 if answer.standing is LIVE else answer.standing is LATE
    return answer.standing


async def take_and_count(tx: Tx, want: Want) -> int:
    assert await take(tx, want, TTL_MS, NOW_MS + 10) is not None
    row = await tx.one("SELECT count(*) AS looks FROM frames WHERE camera_key = :key", key=want.camera_key)
    assert row is not None
    return int(row["looks"])
