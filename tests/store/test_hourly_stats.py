"""Hourly figures are those of the rows, whenever these come and whoever counts."""

import asyncio
from typing import Any

import pytest

from camserver.store import Store, Tx, changes, erasure
from camserver.store.hourly_stats import look as look_for_hours
from camserver.store.hourly_stats import record
from tests.domain.build import analysis, nothing
from tests.store.analyzing import hold, rows, settle
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR_MS, MIN_MS = 3_600_000, 60_000
HOUR = NOW_MS // HOUR_MS * HOUR_MS
LATER = NOW_MS + 10 * MIN_MS


async def counted(store: Store, now_ms: int) -> list[dict[str, Any]]:
    """Counts until there is nothing more; what the table holds then."""
    while True:
        batch = await store.read(look_for_hours, now_ms)
        if batch.is_news:
            assert await store.write(record, batch)
        if not batch.more:
            return await store.read(rows, "hourly_stats", "camera_key, hour_at")


async def seen(
    store: Store, scene: Scene, seq: int, at_ms: int, primary_event: str = "human", **changes: Any
) -> None:
    held = await hold(store, scene, 0, seq, at_ms, analysis(primary_event, **changes), at_ms)
    await settle(store, held, now_ms=at_ms)


async def test_an_hour_holds_what_its_rows_say(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 2)
    await seen(fresh_store, scene, 1, NOW_MS, severity=2)
    await seen(fresh_store, scene, 2, NOW_MS + MIN_MS)
    held = await hold(fresh_store, scene, 0, 3, NOW_MS + 2 * MIN_MS, nothing(), NOW_MS + 2 * MIN_MS)
    await settle(fresh_store, held, now_ms=NOW_MS + 2 * MIN_MS)
    await seen(fresh_store, scene, 4, NOW_MS + 3 * MIN_MS, "unknown", unknown_flag=True)
    failed = {
        "collector_status": "timeout",
        "epoch_id": None,
        "infer_bytes": None,
        "full_bytes": None,
        "verdict": "skip",
    }
    await recorded(fresh_store, look(scene, 1, 1, NOW_MS, **failed))
    first, second = await counted(fresh_store, LATER)
    assert (first["camera_key"], first["hour_at"]) == (scene.camera_keys[0], HOUR)
    assert (first["looks"], first["looks_failed"], first["analyzed"], first["detected"]) == (4, 0, 4, 3)
    assert (first["unknown"], first["events"], first["severity_max"]) == (1, 2, 2)
    assert first["bytes"] == 4 * 6000
    assert (second["looks"], second["looks_failed"], second["events"]) == (1, 1, 0)
    again = await counted(fresh_store, LATER + 1)
    assert again == [first, second]


async def test_analyses_and_late_looks_that_come_afterwards_are_counted_in_their_hour(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    held = await hold(fresh_store, scene, 0, 1, NOW_MS, analysis(), NOW_MS)
    (row,) = await counted(fresh_store, LATER)
    assert (row["looks"], row["analyzed"], row["events"]) == (1, 0, 0)
    await settle(fresh_store, held, now_ms=LATER)
    (row,) = await counted(fresh_store, LATER + 1)
    assert (row["looks"], row["analyzed"], row["events"]) == (1, 1, 1)
    # Two days later the worker brings a look from before.
    two_days = NOW_MS + 48 * HOUR_MS
    await recorded(fresh_store, look(scene, 0, 2, NOW_MS + MIN_MS, received_at=two_days))
    hours = {one["hour_at"]: one for one in await counted(fresh_store, two_days + MIN_MS)}
    assert hours[HOUR]["looks"] == 2


async def test_looks_that_may_still_come_into_sight_are_waited_for(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    await recorded(fresh_store, look(scene, 0, 1, NOW_MS))
    assert await counted(fresh_store, NOW_MS + 1000) == []
    assert len(await counted(fresh_store, NOW_MS + 31_000)) == 1


async def test_what_was_counted_outlives_its_rows(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    for seq in (1, 2):
        await recorded(fresh_store, look(scene, 0, seq, NOW_MS + seq))
    before = await counted(fresh_store, LATER)
    await fresh_store.write(_delete_frame, 2)
    assert await counted(fresh_store, NOW_MS + 26 * HOUR_MS) == before


async def _delete_frame(tx: Tx, seq: int) -> None:
    await tx.run("DELETE FROM frames WHERE seq = :seq", seq=seq)


async def test_looks_are_counted_that_get_the_numbers_of_an_erased_tenants(fresh_store: Store) -> None:
    """On SQLite they do."""
    scene = await furnish(fresh_store, 2)
    for camera in (0, 1):
        await recorded(fresh_store, look(scene, camera, 1, NOW_MS))
    await counted(fresh_store, LATER)
    tenant_id, camera_key = scene.tenant_id, scene.camera_keys[1]
    while (await fresh_store.write(erasure.erase_of_camera, tenant_id, camera_key, LATER)).rows:
        pass
    await recorded(fresh_store, look(scene, 0, 2, NOW_MS + MIN_MS))
    first, *_ = await counted(fresh_store, LATER)
    assert (first["camera_key"], first["looks"]) == (scene.camera_keys[0], 2)


async def test_a_feed_that_was_pruned_means_that_the_last_day_is_counted_anew(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    held = await hold(fresh_store, scene, 0, 1, NOW_MS, analysis(), NOW_MS)
    await counted(fresh_store, LATER)
    await settle(fresh_store, held, now_ms=LATER)
    await fresh_store.write(changes.prune, LATER + 1)
    (row,) = await counted(fresh_store, LATER + MIN_MS)
    assert (row["analyzed"], row["events"]) == (1, 1)


async def test_what_nobody_told_of_is_found_when_the_hour_is_a_day_old(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, 1)
    await recorded(fresh_store, look(scene, 0, 1, NOW_MS), look(scene, 0, 2, NOW_MS + 1))
    # As a look whose number came into sight too late: the cursor is behind it.
    await fresh_store.write(_forget_frame)
    await counted(fresh_store, LATER)
    await fresh_store.write(_remember_frame)
    for now_ms, looks in ((LATER + MIN_MS, 1), (NOW_MS + 26 * HOUR_MS, 2)):
        found = await counted(fresh_store, now_ms)
        assert [row["looks"] for row in found if row["camera_key"] > 0] == [looks]


async def _forget_frame(tx: Tx) -> None:
    await tx.run("UPDATE frames SET camera_key = -camera_key WHERE seq = 1")


async def _remember_frame(tx: Tx) -> None:
    await tx.run("UPDATE frames SET camera_key = -camera_key WHERE seq = 1")


async def test_of_two_who_count_at_once_one_writes(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    scene = await furnish(first, 1)
    await recorded(first, look(scene, 0, 1, NOW_MS))
    for now_ms in (LATER, LATER + 26 * HOUR_MS):
        batches = [await store.read(look_for_hours, now_ms) for store in (first, second)]
        written = await asyncio.gather(first.write(record, batches[0]), second.write(record, batches[1]))
        assert sorted(written) == [False, True]


async def test_many_looks_are_counted_batch_by_batch(fresh_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.store.hourly_stats.FRAMES_MAX", 3)
    scene = await furnish(fresh_store, 2)
    looks = [look(scene, seq % 2, seq, NOW_MS + seq * 20 * MIN_MS, received_at=NOW_MS) for seq in range(1, 11)]
    await recorded(fresh_store, *looks)
    found = await counted(fresh_store, NOW_MS + 24 * HOUR_MS)
    assert sum(row["looks"] for row in found) == 10
    for row in found:
        inside = [
            one
            for one in looks
            if one.camera_key == row["camera_key"] and row["hour_at"] <= one.captured_at < row["hour_at"] + HOUR_MS
        ]
        assert row["looks"] == len(inside)
