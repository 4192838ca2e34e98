"""What a round would delete is what a round then deletes."""

from dataclasses import replace
from pathlib import Path

import pytest

from camserver.domain.keeping import Why
from camserver.domain.people import Principal, Role
from camserver.domain.retention import RetentionPolicy
from camserver.services.web.retention_forecast import Forecast
from camserver.store import Store, upkeep, upkeep_pages
from tests.services.dispatcher.test_retaining import MIN, POLICY, Disk, House, days_ago
from tests.store.casework import Evidence
from tests.store.scenery import NOW_MS

PICTURES = 600  # bytes of a frame's two pictures in this house


@pytest.fixture
async def house(store: Store, tmp_path: Path) -> House:
    return House(store, await Evidence.gather(store), Disk(tmp_path / "objects"))


async def forecast(house: House, policy: RetentionPolicy, pages_left: int = 100) -> Forecast:
    tenant_id = house.evidence.scene.tenant_id
    scoped = house.store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    cameras = await scoped.read(upkeep_pages.own_cameras)
    made = Forecast(house.store.read, policy, cameras, house.clock.now_ms(), pages_left)
    await made.make(tenant_id, await house.disk.free_bytes())
    return made


def told(made: Forecast) -> list[tuple[str, int, int, str]]:
    return sorted((what, one.count, one.bytes, why.value) for (what, why), one in made.going.items())


async def mixed(house: House) -> None:
    """Something for every reason."""
    evidence = house.evidence
    for number in range(3):
        await evidence.frame(days_ago(15 + number))
    old = await evidence.event(days_ago(181))
    await evidence.clip(old, days_ago(181))
    young = await evidence.event(days_ago(20))
    await evidence.clip(young, days_ago(20))
    middle = await evidence.event(days_ago(40), frames=2)
    await evidence.clip(middle, days_ago(40))
    for number in range(4):
        await evidence.frame(NOW_MS - 60 * MIN + number * 10_000, verdict="skip", full_bytes=None)
    for camera in (0, 1):
        for number in range(5):
            await evidence.frame(days_ago(3) + number * MIN, camera)
    await evidence.frame(days_ago(2), retention_class="quarantine")
    await evidence.frame(NOW_MS)
    await evidence.frame(NOW_MS, camera=1)
    await house.put_objects()


async def test_a_round_deletes_what_was_foretold(house: House) -> None:
    await mixed(house)
    made = await forecast(house, POLICY)
    assert told(made) == [
        ("clips", 1, 4000, "age"),
        ("events", 1, 4000, "age"),
        # All but the best frame of the middle event; that of the old one is only its event's once that is gone.
        ("frames", 4, 4 * PICTURES, "age"),
        ("pictures", 2, 2 * 500, "age"),
        ("pictures", 3, 300, "quiet"),
    ]
    await house.retainer.round()
    swept = await house.reports()
    assert {(what, why) for what, _, _, why in swept} <= {(what, why) for what, _, _, why in told(made)}
    # The best frame of an event that goes is then an ordinary one, and goes whole.
    assert sum(taken for _, _, taken, _ in swept) == made.freed_bytes + 100
    assert made.is_whole


@pytest.mark.parametrize(
    ("change", "free", "why"),
    [
        ({"camera_max_bytes": 7_000}, None, Why.CAMERA_QUOTA),
        ({"tenant_max_bytes": 9_000}, None, Why.TENANT_QUOTA),
        ({"free_min_bytes": 5_000}, 2_000, Why.FLOOR),
    ],
)
async def test_what_is_short_of_room_is_foretold(
    house: House, change: dict[str, int], free: int | None, why: Why
) -> None:
    evidence = house.evidence
    event = await evidence.event(days_ago(4))
    await evidence.clip(event, days_ago(4))
    for camera in (0, 1):
        for number in range(12):
            await evidence.frame(days_ago(3) + number * MIN, camera)
    await evidence.frame(days_ago(2), retention_class="quarantine")
    await house.put_objects()
    house.disk.free = free
    policy = replace(POLICY, **change)
    made = await forecast(house, policy)
    assert {one for _, one in made.going} == {why}
    retainer = house.retainer_with(policy)
    await (retainer.keep_floor() if why is Why.FLOOR else retainer.round())
    swept = await house.reports()
    assert [(what, count) for what, count, _, _ in swept] == [(what, count) for what, count, _, _ in told(made)]
    assert sum(taken for _, _, taken, _ in swept) == made.freed_bytes


async def test_the_small_pictures_of_events_are_foretold_last(house: House) -> None:
    await house.evidence.event(days_ago(4), frames=2)
    await house.evidence.frame(NOW_MS, retention_class="quarantine")
    house.disk.free = 0
    made = await forecast(house, replace(POLICY, free_min_bytes=1_000_000))
    assert told(made) == [("pictures", 1, 100, "floor_best"), ("pictures", 3, 1100, "floor")]


async def test_too_much_to_look_at_is_said(house: House) -> None:
    await mixed(house)
    assert not (await forecast(house, POLICY, pages_left=1)).is_whole


async def test_old_records_are_counted(house: House) -> None:
    reports = tuple([upkeep.Report(house.evidence.scene.tenant_id, "frames", 1, 1, "age")] * 3)
    await house.store.write(upkeep.report, reports, days_ago(366))
    assert told(await forecast(house, POLICY)) == [("reports", 3, 0, "age")]
