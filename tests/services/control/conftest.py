"""Control running on SQLite; what differs between databases is tested with the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.services.control.rig import RunningControl, running_control


@pytest.fixture
async def control(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningControl]:
    async with running_control(sqlite_store, clock, tmp_path) as running:
        yield running
