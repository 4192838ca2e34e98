"""What a camera's own issues do beside their events; test_health.py has the events themselves."""

import pytest

from camserver.domain.health import Issue
from camserver.domain.incidents import IncidentPolicy
from camserver.domain.notices import DeliveryPolicy, NotifyPolicy
from camserver.domain.suspicions import Suspicion
from camserver.store import Store
from camserver.store.issue_events import Issues, IssueTerms, apply_issues
from camserver.store.outcomes import Applied
from tests.domain.build import analysis, box
from tests.store.analyzing import hold, rows, settle
from tests.store.scenery import NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")

TERMS = IssueTerms(IncidentPolicy(), NotifyPolicy(), DeliveryPolicy())
SEC = 1000


def issues(scene: Scene, *kinds: Issue) -> Issues:
    told = tuple((kind, Suspicion(since=NOW_MS, last_at=NOW_MS, frame_id=1, looks=3)) for kind in kinds)
    return Issues(scene.camera_keys[0], scene.tenant_id, scene.site_id, told, True, "", None, NOW_MS, 90 * SEC)


async def seen(store: Store, scene: Scene, seq: int) -> None:
    at = NOW_MS + seq * SEC
    held = await hold(store, scene, 0, seq, at, analysis("vehicle", boxes=(box(),)), at)
    assert await settle(store, held, now_ms=at) == (Applied.DONE,)


async def memory(store: Store) -> tuple[object, int]:
    (row,) = await store.read(rows, "camera_state", "camera_key")
    return row["stills"], row["version"]


async def test_a_camera_that_moved_forgets_where_things_are(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await seen(fresh_store, scene, 1)
    _, version = await memory(fresh_store)
    await fresh_store.write(apply_issues, issues(scene, Issue.MOVED), NOW_MS, TERMS)
    # The version moves: what was decided on the old memory is decided again.
    assert await memory(fresh_store) == (None, version + 1)
    await seen(fresh_store, scene, 2)
    learned = await memory(fresh_store)
    assert learned[0]
    # What is learned of the new view stays, also when that has become the usual one.
    await fresh_store.write(apply_issues, issues(scene, Issue.MOVED), NOW_MS + SEC, TERMS)
    await fresh_store.write(apply_issues, issues(scene), NOW_MS + 2 * SEC, TERMS)
    assert await memory(fresh_store) == learned


@pytest.mark.parametrize("kind", [Issue.OFFLINE, Issue.COVERED, Issue.FROZEN])
async def test_other_issues_leave_the_memory_alone(fresh_store: Store, kind: Issue) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await seen(fresh_store, scene, 1)
    before = await memory(fresh_store)
    await fresh_store.write(apply_issues, issues(scene, kind), NOW_MS, TERMS)
    await fresh_store.write(apply_issues, issues(scene), NOW_MS + SEC, TERMS)
    assert await memory(fresh_store) == before
