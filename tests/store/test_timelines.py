"""What cameras' hours look like, and a camera's frames, the quiet ones too."""

from typing import Any

import pytest

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.timeline import Gap
from camserver.store import Store, frame_pages, hourly_stats, timelines
from camserver.store.frame_pages import CameraFrames
from camserver.store.sql import Dialect, Sql
from camserver.store.timelines import Span, TimelineFilter
from camserver.store.tx import Scoped
from tests.domain.build import analysis
from tests.store.analyzing import hold, settle
from tests.store.people_rows import execute
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR_MS, CELL_MS, MIN_MS = 3_600_000, 300_000, 60_000
HOUR = NOW_MS // HOUR_MS * HOUR_MS
FAILED: dict[str, Any] = {
    "collector_status": "timeout", "epoch_id": None, "infer_bytes": None, "full_bytes": None, "verdict": "skip",
}  # fmt: skip
QUIET: dict[str, Any] = {"verdict": "skip", "full_bytes": None}
DAY = Span(HOUR, HOUR + 2 * HOUR_MS, CELL_MS)
LATER = HOUR + 3 * HOUR_MS


def somebody(scene: Scene, **changes: Any) -> Principal:
    return Principal(scene.tenant_id, None, Role.VIEWER, **changes)


async def some_looks(store: Store) -> Scene:
    """The first camera looks well, badly, sees somebody, and is away for half an hour; the second is never seen."""
    scene = await furnish(store, 2, now_ms=HOUR - HOUR_MS)
    await recorded(store, look(scene, 0, 1, HOUR, **QUIET))
    await recorded(store, look(scene, 0, 2, HOUR + CELL_MS, **FAILED))
    held = await hold(store, scene, 0, 3, HOUR + 2 * CELL_MS, analysis(severity=2), HOUR + 2 * CELL_MS)
    await settle(store, held, now_ms=HOUR + 2 * CELL_MS)
    await recorded(store, look(scene, 0, 4, HOUR + 9 * CELL_MS, **QUIET), look(scene, 0, 6, HOUR + 9 * CELL_MS + 1,
                   **FAILED))  # fmt: skip
    await _count(store)
    return scene


async def _count(store: Store) -> None:
    while (batch := await store.read(hourly_stats.look, LATER)).is_news:
        assert await store.write(hourly_stats.record, batch)


async def test_a_timeline_shows_looks_severity_and_events(fresh_store: Store) -> None:
    scene = await some_looks(fresh_store)
    found = await fresh_store.as_(somebody(scene)).read(timelines.read, TimelineFilter(), DAY, LATER, LATER)
    first, second = found.cameras
    assert (first.camera_id, first.site) == ("cam_0", "main")
    assert first.strip.looked == "oxo......m.." + "." * 12
    assert first.strip.severity == "002" + "0" * 21
    assert first.strip.events == [(2, 1)]
    assert second.strip.looked == "." * 24
    assert (found.next_after, found.counted_until) == (None, LATER - 600_000)


async def test_what_is_not_counted_yet_is_no_gap(fresh_store: Store) -> None:
    scene = await some_looks(fresh_store)
    now = HOUR + 10 * CELL_MS
    found = await fresh_store.as_(somebody(scene)).read(timelines.read, TimelineFilter(), DAY, now, now)
    assert found.cameras[0].strip.looked == "oxo......m" + "?" * 14


async def test_what_came_and_is_not_counted_for_long_is_no_gap(fresh_store: Store) -> None:
    """The dispatcher is away, or far behind, while control goes on recording."""
    scene = await some_looks(fresh_store)
    await recorded(
        fresh_store, *(look(scene, 0, 7 + number, HOUR + number * CELL_MS, **QUIET) for number in (12, 13))
    )
    counted_to = await fresh_store.read(hourly_stats.counted_to, LATER)
    assert HOUR + 12 * CELL_MS <= counted_to <= HOUR + 13 * CELL_MS
    mine = fresh_store.as_(somebody(scene))
    found = await mine.read(timelines.read, TimelineFilter(), DAY, counted_to, LATER)
    assert found.cameras[0].strip.looked == "oxo......m.." + "?" * 12
    looks = await mine.read(timelines.looks, "cam_0", HOUR, HOUR + 2 * HOUR_MS, 60, counted_to, LATER)
    assert looks.gaps == (
        Gap(HOUR + 3 * CELL_MS, HOUR + 9 * CELL_MS),
        Gap(HOUR + 10 * CELL_MS, HOUR + 12 * CELL_MS),
    )
    assert found.counted_until == looks.counted_until == counted_to
    await _count(fresh_store)
    assert await fresh_store.read(hourly_stats.counted_to, LATER) == LATER


async def test_hours_from_before_there_were_cells(fresh_store: Store) -> None:
    scene = await some_looks(fresh_store)
    await fresh_store.write(execute, "UPDATE hourly_stats SET cells = NULL", {})
    found = await fresh_store.as_(somebody(scene)).read(timelines.read, TimelineFilter(), DAY, LATER, LATER)
    assert found.cameras[0].strip.looked == "m" * 12 + "." * 12
    assert found.cameras[0].strip.events == [(0, 1)]


async def test_cameras_are_narrowed_and_paged(fresh_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await furnish(fresh_store, 5)
    mine = fresh_store.as_(somebody(scene))
    monkeypatch.setattr(timelines, "CAMERAS_MAX", 2)
    seen, after = [], ""
    while True:
        found = await mine.read(timelines.read, TimelineFilter(after=after), DAY, LATER, LATER)
        seen += [one.camera_id for one in found.cameras]
        if found.next_after is None:
            break
        after = found.next_after
    assert seen == [f"cam_{number}" for number in range(5)]
    some = TimelineFilter(camera_ids=("cam_3",), sites=("main",))
    assert [one.camera_id for one in (await mine.read(timelines.read, some, DAY, LATER, LATER)).cameras] == ["cam_3"]
    with pytest.raises(NotFound, match="cam_9"):
        await mine.read(timelines.read, TimelineFilter(camera_ids=("cam_9",)), DAY, LATER, LATER)
    elsewhere = fresh_store.as_(somebody(scene, site_ids=frozenset({999})))
    assert (await elsewhere.read(timelines.read, TimelineFilter(), DAY, LATER, LATER)).cameras == ()


async def test_a_camera_that_was_looking_and_saw_nothing_can_be_told_from_one_that_was_not(
    fresh_store: Store,
) -> None:
    scene = await some_looks(fresh_store)
    mine = fresh_store.as_(somebody(scene))
    found = await mine.read(timelines.looks, "cam_0", HOUR, HOUR + 2 * HOUR_MS, 60, LATER, LATER)
    first, second = found.hours
    assert (first.looks, first.looks_failed, first.lost, first.events, first.severity_max) == (5, 2, 1, 1, 2)
    assert (first.pictures, first.quiet) == (3, 2)
    assert (second.hour_at, second.looks, second.pictures) == (HOUR + HOUR_MS, 0, 0)
    assert found.gaps == (
        Gap(HOUR + 3 * CELL_MS, HOUR + 9 * CELL_MS),
        Gap(HOUR + 10 * CELL_MS, HOUR + 2 * HOUR_MS),
    )
    assert found.interval_ms == 60_000
    slow = await mine.read(timelines.looks, "cam_0", HOUR, HOUR + 2 * HOUR_MS, 1800, LATER, LATER)
    assert slow.gaps == (Gap(HOUR + 10 * CELL_MS, HOUR + 2 * HOUR_MS),)
    elsewhere = fresh_store.as_(somebody(scene, site_ids=frozenset({999})))
    for who, camera_id in ((elsewhere, "cam_0"), (mine, "cam_9")):
        with pytest.raises(NotFound, match=camera_id):
            await who.read(timelines.looks, camera_id, HOUR, HOUR + HOUR_MS, 60, LATER, LATER)


ONLY = {"all": [6, 4, 3, 2, 1], "pictures": [4, 3, 1], "quiet": [4, 1], "failed": [6, 2]}


@pytest.mark.parametrize("steps", [(200, 1000), (1, 1), (2, 1)])
async def test_a_camera_s_frames_are_paged_without_hole_or_repeat(
    fresh_store: Store, monkeypatch: pytest.MonkeyPatch, steps: tuple[int, ...]
) -> None:
    monkeypatch.setattr(frame_pages, "LOOKED_AT", steps)
    scene = await some_looks(fresh_store)
    mine = fresh_store.as_(somebody(scene))
    moments = {1: 0, 2: CELL_MS, 3: 2 * CELL_MS, 4: 9 * CELL_MS, 6: 9 * CELL_MS + 1}
    for only, seqs in ONLY.items():
        for limit in (1, 2, 50):
            seen: list[int] = []
            before = None
            for _ in range(20):
                frames, before = await mine.read(
                    frame_pages.of_camera, CameraFrames("cam_0", only=only), before, limit
                )
                seen += [frame.captured_at - HOUR for frame in frames]
                if before is None:
                    break
            assert seen == [moments[seq] for seq in seqs], (only, limit)
    narrow = CameraFrames("cam_0", HOUR + CELL_MS, HOUR + 9 * CELL_MS)
    frames, _ = await mine.read(frame_pages.of_camera, narrow, None, 50)
    assert [frame.captured_at - HOUR for frame in frames] == [2 * CELL_MS, CELL_MS]
    with pytest.raises(NotFound):
        await mine.read(frame_pages.of_camera, CameraFrames("cam_9"), None, 5)
    with pytest.raises(BadInput, match="cursor"):
        await mine.read(frame_pages.of_camera, CameraFrames("cam_0"), "x", 5)


async def test_a_look_that_comes_within_a_page_makes_it_repeat_nothing(
    fresh_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements of one read see what came between them, and where a step ended is asked after what is on it."""
    if fresh_store.dialect is Dialect.SQLITE:
        pytest.skip("all statements of a read see the same rows")
    monkeypatch.setattr(frame_pages, "LOOKED_AT", (2, 2))
    scene = await furnish(fresh_store, 1, now_ms=HOUR - HOUR_MS)
    for seq in range(1, 9):
        await recorded(fresh_store, look(scene, 0, seq, HOUR + seq * MIN_MS, **QUIET))
    one, later = Scoped.one, iter(range(9, 30))

    async def busy(tx: Scoped, sql: str | Sql, **params: object) -> Any:
        if "OFFSET" in str(sql):
            seq = next(later)
            await recorded(fresh_store, look(scene, 0, seq, HOUR + seq * MIN_MS, **QUIET))
        return await one(tx, sql, **params)

    monkeypatch.setattr(Scoped, "one", busy)
    mine = fresh_store.as_(somebody(scene))
    seen: list[int] = []
    before = None
    for _ in range(9):
        frames, before = await mine.read(frame_pages.of_camera, CameraFrames("cam_0"), before, 50)
        seen += [(frame.captured_at - HOUR) // MIN_MS for frame in frames]
        if before is None:
            break
    assert seen == [8, 7, 6, 5, 4, 3, 2, 1]
