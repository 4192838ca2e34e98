"""Rows as tuples: the same values on every database, whatever they are."""

from typing import NamedTuple

import pytest

from camserver.store import Store, Tx, sqlite_tx
from camserver.store.tx import shown_again
from tests.store.scenery import furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Values(NamedTuple):
    camera_id: str
    name: str
    big: int
    share: float
    none: float | None
    text: str | None


NAMES = ('it\'s "quoted" \\ 赤い\n', "", "\t", "x" * 128)
SHARES = (0.1 + 0.2, 1e-9, 0.8, 2**53 + 2.0)


async def read(tx: Tx) -> list[Values]:
    return await tx.flat(
        Values,
        "SELECT c.camera_id, c.name, c.created_at AS big, e.confidence_max AS share, NULL AS none, NULL AS text "
        "FROM cameras c JOIN events e ON e.camera_key = c.camera_key ORDER BY c.camera_id DESC",
    )


async def fill(tx: Tx, tenant_id: int, camera_keys: tuple[int, ...]) -> None:
    for number, camera_key in enumerate(camera_keys):
        await tx.run(
            "UPDATE cameras SET name = :name, created_at = :big WHERE camera_key = :camera_key",
            name=NAMES[number],
            big=2**53 + number,
            camera_key=camera_key,
        )
        await tx.run(
            "INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, state, primary_event, "
            "start_at, last_seen_at, confidence_max, retention_class, created_at, updated_at) VALUES "
            "(:uuid, :tenant_id, 1, :camera_key, 1, 'closed', 'human', 1, 1, :share, 'normal', 1, 1)",
            uuid=f"e{number}",
            tenant_id=tenant_id,
            camera_key=camera_key,
            share=SHARES[number],
        )


async def test_values_are_what_was_written_in_the_order_asked_for(fresh_store: Store) -> None:
    assert await fresh_store.read(read) == []
    scene = await furnish(fresh_store, 4)
    await fresh_store.write(fill, scene.tenant_id, tuple(scene.camera_keys))
    found = await fresh_store.read(read)
    assert [one.camera_id for one in found] == ["cam_3", "cam_2", "cam_1", "cam_0"]
    assert [(one.name, one.big, one.share) for one in reversed(found)] == [
        (name, 2**53 + number, share) for number, (name, share) in enumerate(zip(NAMES, SHARES, strict=True))
    ]
    assert all(one.none is None and one.text is None for one in found)
    assert all(type(one.share) is float for one in found)


@shown_again
class Again(NamedTuple):
    camera_id: str
    name: str
    big: int
    share: float


async def read_again(tx: Tx) -> list[Again]:
    return await tx.flat(
        Again,
        "SELECT c.camera_id, c.name, c.created_at AS big, e.confidence_max AS share "
        "FROM cameras c JOIN events e ON e.camera_key = c.camera_key ORDER BY c.camera_id",
    )


async def rename(tx: Tx) -> None:
    await tx.run("UPDATE cameras SET name = 'another' WHERE camera_id = 'cam_1'")


async def test_rows_that_are_shown_again_are_those_that_are_there_now(
    fresh_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_tx, "KNOWN_MAX", 3)
    assert await fresh_store.read(read_again) == []
    scene = await furnish(fresh_store, 4)
    await fresh_store.write(fill, scene.tenant_id, tuple(scene.camera_keys))
    expected = [
        Again(f"cam_{number}", name, 2**53 + number, share)
        for number, (name, share) in enumerate(zip(NAMES, SHARES, strict=True))
    ]
    for _ in range(2):
        assert await fresh_store.read(read_again) == expected
    await fresh_store.write(rename)
    assert await fresh_store.read(read_again) == [
        one._replace(name="another") if one.camera_id == "cam_1" else one for one in expected
    ]
