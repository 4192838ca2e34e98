"""Jobs as people see to them: lists, counts, queueing again."""

import pytest

from camserver.base.errors import BadInput, Conflict, NotFound
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import Dead, Delay, JobPolicy, Skip
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, job_pages, jobs
from camserver.store.core import ScopedStore
from camserver.store.job_pages import JobFilter, JobSummary
from camserver.store.jobs import ClaimTerms, Failure
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = JobPolicy()
TERMS = ClaimTerms(POLICY, EventPolicy(), INTERVAL_MS)
DAY_MS = 86_400_000


def reader(store: Store, scene: Scene, site_ids: frozenset[int] | None = None) -> ScopedStore:
    return store.as_(Principal(scene.tenant_id, None, Role.SITE_MANAGER, site_ids))


async def given_up(store: Store, scene: Scene) -> list[str]:
    """Camera 0: one dead and one skipped; camera 1: two dead; camera 2: one delayed, one queued."""
    looks = [look(scene, number // 2, 1 + number % 2, NOW_MS + number) for number in range(6)]
    follows: list[Dead | Skip | Delay | None] = [
        Dead("bad_request"),
        Skip("older than 86400 s"),
        Dead("server_error in attempt 5 of 5"),
        Dead("unreadable_image"),
        Delay(NOW_MS + 60_000, refund=False),
        None,
    ]
    for one, follow in zip(looks, follows, strict=True):
        await recorded(store, one)
        if follow is not None:
            [job] = await store.write(jobs.claim, "d", one.frame_uuid, 1, NOW_MS, TERMS)
            error = f"{getattr(follow, 'reason', 'timeout').partition(' ')[0]}: because"
            await store.write(jobs.fail, (Failure(job.job_id, job.token, follow, error),), NOW_MS + 5)
    return [one.frame_uuid for one in looks]


async def pages(store: ScopedStore, wanted: JobFilter, limit: int = 2) -> list[JobSummary]:
    found: list[JobSummary] = []
    before = None
    while page := await store.read(job_pages.page, wanted, before, limit):
        assert len(page) <= limit
        found += page
        before = page[-1].cursor
    return found


@pytest.mark.parametrize(
    ("wanted", "which"),
    [
        (JobFilter(), [5, 4, 3, 2, 1, 0]),
        (JobFilter(statuses=("dead",)), [3, 2, 0]),
        (JobFilter(statuses=("dead", "skipped")), [3, 2, 1, 0]),
        (JobFilter(statuses=("skipped", "queued")), [5, 1]),
        (JobFilter(camera_ids=("cam_1",)), [3, 2]),
        (JobFilter(camera_ids=("cam_1", "cam_2"), statuses=("dead", "delayed")), [4, 3, 2]),
        (JobFilter(reason="server_error"), [2]),
        (JobFilter(reason="too_old"), [1]),
        (JobFilter(reason="timeout"), [4]),
        (JobFilter(reason="too_many"), []),
    ],
    ids=str,
)
async def test_jobs_are_listed_newest_first_page_by_page(
    fresh_store: Store, wanted: JobFilter, which: list[int]
) -> None:
    scene = await furnish(fresh_store)
    uuids = await given_up(fresh_store, scene)
    found = await pages(reader(fresh_store, scene), wanted)
    assert [job.frame_uuid for job in found] == [uuids[number] for number in which]


async def test_what_a_job_says(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    uuids = await given_up(fresh_store, scene)
    found = {job.frame_uuid: job for job in await pages(reader(fresh_store, scene), JobFilter())}
    dead, delayed = found[uuids[2]], found[uuids[4]]
    assert (dead.camera_id, dead.status, dead.attempt, dead.finished_at) == ("cam_1", "dead", 1, NOW_MS + 5)
    assert (dead.reason, dead.error) == ("server_error", "server_error in attempt 5 of 5: because")
    assert (delayed.available_at, delayed.reason) == (NOW_MS + 60_000, "timeout")
    assert found[uuids[1]].reason == "too_old"
    assert found[uuids[5]].reason is None


async def test_counts(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await given_up(fresh_store, scene)
    found = await reader(fresh_store, scene).read(job_pages.count)
    assert found.statuses == {"queued": 1, "delayed": 1, "running": 0, "done": 0, "dead": 3, "skipped": 1}
    assert found.reasons == {"bad_request": 1, "too_old": 1, "server_error": 1, "unreadable_image": 1}


async def test_a_job_is_queued_again_as_if_it_were_new(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    uuids = await given_up(fresh_store, scene)
    later = NOW_MS + 3 * DAY_MS
    again = await reader(fresh_store, scene).write(job_pages.requeue, uuids[0], "192.0.2.1", later)
    assert (again.status, again.attempt, again.created_at, again.finished_at) == ("queued", 0, later, None)
    assert again.reason == "bad_request", "why it failed stays to be read"
    await fresh_store.write(jobs.skip_old, later, POLICY)
    assert (await reader(fresh_store, scene).read(job_pages.get, uuids[0])).status == "queued", "its age began anew"
    [claimed] = await fresh_store.write(jobs.claim, "d", "t", 1, later, TERMS)
    assert (claimed.frame_uuid, claimed.attempt) == (uuids[0], 1)
    entries = await fresh_store.read(audit)
    assert entries == [("job_requeued", "frame", uuids[0], "192.0.2.1")]


async def audit(tx: Tx) -> list[tuple[str, str, str, str]]:
    rows = await tx.all("SELECT action, object_kind, object_id, address FROM audit_log ORDER BY entry_id")
    return [(row["action"], row["object_kind"], row["object_id"], row["address"]) for row in rows]


async def test_only_what_was_given_up_is_queued_again(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    uuids = await given_up(fresh_store, scene)
    for number in (4, 5):
        with pytest.raises(Conflict):
            await reader(fresh_store, scene).write(job_pages.requeue, uuids[number], "", NOW_MS)
    await reader(fresh_store, scene).write(job_pages.requeue, uuids[0], "", NOW_MS)
    with pytest.raises(Conflict):
        await reader(fresh_store, scene).write(job_pages.requeue, uuids[0], "", NOW_MS)
    with pytest.raises(NotFound):
        await reader(fresh_store, scene).write(job_pages.requeue, "0198c0de", "", NOW_MS)


async def test_jobs_are_queued_again_by_what_they_have_in_common(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    uuids = await given_up(fresh_store, scene)
    mine = reader(fresh_store, scene)
    done = await mine.write(job_pages.requeue_all, JobFilter(reason="too_many"), 10, "", NOW_MS)
    assert (done.count, done.more) == (0, False)
    done = await mine.write(job_pages.requeue_all, JobFilter(statuses=("dead",)), 2, "", NOW_MS)
    assert (done.count, done.more) == (2, True)
    statuses = {job.frame_uuid: job.status for job in await pages(mine, JobFilter())}
    assert [statuses[uuid] for uuid in uuids[:4]] == ["dead", "skipped", "queued", "queued"], "the newest first"
    done = await mine.write(job_pages.requeue_all, JobFilter(), 1000, "", NOW_MS)
    assert (done.count, done.more) == (2, False)
    assert [entry[0] for entry in await fresh_store.read(audit)] == ["jobs_requeued"] * 2


async def test_a_camera_with_jobs_waiting_serves_them_in_turn(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await given_up(fresh_store, scene)
    await reader(fresh_store, scene).write(job_pages.requeue_all, JobFilter(), 10, "", NOW_MS)
    laps = await fresh_store.read(laps_of)
    assert laps == {key: [0, 1] for key in scene.camera_keys}


async def laps_of(tx: Tx) -> dict[int, list[int]]:
    laps: dict[int, list[int]] = {}
    for row in await tx.all("SELECT camera_key, lap FROM inference_jobs ORDER BY camera_key, lap"):
        laps.setdefault(row["camera_key"], []).append(row["lap"])
    return laps


async def test_others_neither_see_nor_touch_them(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    other = await furnish(fresh_store, name="other")
    uuids = await given_up(fresh_store, scene)
    for stranger in (reader(fresh_store, other), reader(fresh_store, scene, frozenset({other.site_id}))):
        assert await stranger.read(job_pages.page, JobFilter(), None, 10) == ()
        assert sum((await stranger.read(job_pages.count)).statuses.values()) == 0
        with pytest.raises(NotFound):
            await stranger.write(job_pages.requeue, uuids[0], "", NOW_MS)
        done = await stranger.write(job_pages.requeue_all, JobFilter(), 10, "", NOW_MS)
        assert done.count == 0
    mine = reader(fresh_store, scene, frozenset({scene.site_id}))
    assert len(await mine.read(job_pages.page, JobFilter(), None, 10)) == 6


async def test_a_made_up_cursor_is_refused(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    with pytest.raises(BadInput):
        await reader(fresh_store, scene).read(job_pages.page, JobFilter(), "x", 10)
