"""The signs of the status: what of it people should see a change of."""

import pytest

from camserver.domain.people import Principal, Role
from camserver.domain.progress import STALLED_AFTER_MS, Standing, analysis_standing
from camserver.store import Store, Tx, counts
from tests.domain.build import analysis
from tests.store.analyzing import hold, settle
from tests.store.people_rows import execute
from tests.store.scenery import NOW_MS, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_analysis_that_stalls_is_a_sign_and_work_that_waits_is_none(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 2)
    mine = fresh_store.as_(Principal(scene.tenant_id, None, Role.VIEWER))
    before = await mine.read(counts.signs, NOW_MS)
    await recorded(fresh_store, look(scene, 0, 1, NOW_MS))
    (row,) = await fresh_store.read(_created)
    soon, late = row + STALLED_AFTER_MS, row + STALLED_AFTER_MS + 1
    assert await mine.read(counts.signs, soon) == before
    stalled = await mine.read(counts.signs, late)
    assert (before.is_stalled, stalled.is_stalled) == (False, True)
    # One that was done lately shows that somebody analyzes.
    held = await hold(fresh_store, scene, 1, 1, NOW_MS, analysis(), late)
    await settle(fresh_store, held, now_ms=late)
    found = await mine.read(counts.count)
    standing = analysis_standing(found.last_done_at, found.oldest_waiting_at, late + 1)
    after = await mine.read(counts.signs, late + 1)
    assert after.is_stalled is (standing is Standing.STALLED)
    assert after.is_stalled is False


async def test_signs_are_of_what_somebody_reaches(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 2)
    one = Principal(scene.tenant_id, None, Role.VIEWER, frozenset(), camera_keys=frozenset(scene.camera_keys[:1]))
    everything = Principal(scene.tenant_id, None, Role.VIEWER)
    before = [await fresh_store.as_(who).read(counts.signs, NOW_MS) for who in (one, everything)]
    down = "UPDATE camera_state SET health = 'down' WHERE camera_key = :camera_key"
    await fresh_store.write(execute, down, {"camera_key": scene.camera_keys[1]})
    after = [await fresh_store.as_(who).read(counts.signs, NOW_MS) for who in (one, everything)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False]
    assert dict(after[1].health)["down"] == 1


async def _created(tx: Tx) -> list[int]:
    return [row["created_at"] for row in await tx.all("SELECT created_at FROM inference_jobs")]
