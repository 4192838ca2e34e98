"""The running dispatcher follows cameras' health, also through an outage of the store."""

from typing import Any

import pytest

from tests.services.dispatcher.stage import CutStore, Stage
from tests.store.scenery import NOW_MS
from tests.store.stage import statement

SEC = 1000
FAILED: dict[str, Any] = {
    "collector_status": "error",
    "error_code": "refused",
    "verdict": "skip",
    "epoch_id": None,
    "infer_bytes": None,
    "full_bytes": None,
}
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


@on_one_database
async def test_an_offline_camera_becomes_an_event_and_an_outage_of_the_store_loses_none(stage: Stage) -> None:
    lease = "UPDATE camera_sessions SET lease_expires_at = :until"
    await stage.store.write(statement, lease, {"until": NOW_MS + 86_400 * SEC})
    store = CutStore(stage.store)
    async with stage.dispatcher(store):
        for _ in range(3):
            await stage.look(0, **FAILED)
        await stage.pass_time(10, 5)
        store.is_cut = True
        await stage.pass_time(60, 5)
        assert await stage.events() == []
        store.is_cut = False
        await stage.pass_time(10, 5)

        async def told() -> bool:
            return [(event["subject"], event["state"]) for event in await stage.events()] == [("offline", "open")]

        await stage.until(told, "the camera is told as offline")
    [event] = await stage.events()
    assert (event["start_at"], event["cause"]) == (NOW_MS, "refused")
