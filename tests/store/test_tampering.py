"""One tampering is one event: that of the camera's health, on all three databases."""

import pytest

from camserver.domain.analysis import Analysis
from camserver.domain.health import Policies
from camserver.store import Store
from camserver.store.health import HealthTerms, sweep
from camserver.store.outcomes import Applied
from camserver.store.tx import Tx
from tests.domain.build import analysis, nothing
from tests.store.analyzing import hold, rows, settle
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIN = 60_000
COVERED = analysis("camera_issue", tags=("camera.occluded",), severity=2, confidence=None)
DARK = analysis("camera_issue", tags=("camera.dark",), confidence=None)
VIEW = "0f" * 18


async def seen(store: Store, scene: Scene, minute: int, result: Analysis, structure: float | None) -> None:
    """A look, its analysis and then what health makes of it, as it goes when health comes last."""
    at_ms = NOW_MS + minute * MIN
    view_hex = None if structure is None else VIEW
    held = await hold(
        store, scene, 0, 1 + minute, at_ms, result, at_ms, structure=structure, view_hex=view_hex,
        infer_hash64_hex=f"{minute:016x}",
    )  # fmt: skip
    assert await settle(store, held, now_ms=at_ms) == (Applied.DONE,)
    await store.write(sweep, at_ms, HealthTerms(INTERVAL_MS, Policies()))


async def renewed(tx: Tx) -> None:
    await tx.run("UPDATE camera_sessions SET lease_expires_at = :until", until=NOW_MS + 1000 * MIN)


async def scene_of(store: Store) -> Scene:
    scene = await furnish(store, cameras=1)
    await store.write(renewed)
    return scene


async def test_a_covered_camera_is_one_event(fresh_store: Store) -> None:
    scene = await scene_of(fresh_store)
    await seen(fresh_store, scene, 0, nothing(), 0.4)
    await seen(fresh_store, scene, 1, COVERED, 0.01)
    # Against the picture before nothing changed any more: what is left is a dark picture.
    await seen(fresh_store, scene, 2, DARK, 0.01)
    assert await fresh_store.read(rows, "events", "event_id") == []
    await seen(fresh_store, scene, 3, DARK, 0.01)
    await seen(fresh_store, scene, 4, DARK, 0.01)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["subject"], event["start_at"]) == ("covered", NOW_MS + 1 * MIN)
    tags = await fresh_store.read(rows, "frame_tags", "frame_id, tag_id")
    assert [tag["tag_id"] for tag in tags] == ["camera.occluded", "camera.dark", "camera.dark", "camera.dark"]
    frames = await fresh_store.read(rows, "frames", "frame_id")
    assert [frame["detected"] for frame in frames] == [0, 1, 1, 1, 1]


async def test_of_looks_that_nobody_measured_the_analysis_tells(fresh_store: Store) -> None:
    scene = await scene_of(fresh_store)
    await seen(fresh_store, scene, 0, nothing(), None)
    await seen(fresh_store, scene, 1, COVERED, None)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["subject"], event["primary_event"]) == ("", "camera_issue")
