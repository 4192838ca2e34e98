"""Control running on SQLite; what differs between databases is tested with the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.store import Store, open_store
from tests.rig.clock import ManualClock
from tests.rig.templates import SqliteTemplate
from tests.services.control.rig import RunningControl, running_control


@pytest.fixture
async def sqlite_store(sqlite_template: SqliteTemplate) -> AsyncIterator[Store]:
    url = sqlite_template.fresh()
    store = await open_store(url)
    yield store
    await store.close()
    sqlite_template.discard(url)


@pytest.fixture
async def control(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningControl]:
    async with running_control(sqlite_store, clock, tmp_path) as running:
        yield running
