"""A whole house on a database of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.store import Store
from tests.services.streamer.house import House, house


@pytest.fixture
async def home(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[House]:
    async with house(sqlite_store, tmp_path / "data") as made:
        yield made
