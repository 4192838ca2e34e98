"""Fixtures of whole-product tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.grounds import Grounds


@pytest.fixture
async def grounds(db_kind: str, db_url: str, tmp_path: Path) -> AsyncIterator[Grounds]:
    """Servers on a fresh database and simulated cameras; workers come when a test starts them."""
    async with Grounds(db_kind, db_url, tmp_path) as made:
        yield made
