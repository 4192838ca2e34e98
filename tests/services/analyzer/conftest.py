from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.services.analyzer.rig import RunningAnalyzer, running_analyzer


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[RunningAnalyzer]:
    """An analyzer that was never given a vocabulary."""
    async with running_analyzer(tmp_path) as running:
        yield running


@pytest.fixture
async def analyzer(empty: RunningAnalyzer) -> RunningAnalyzer:
    await empty.put_vocabulary()
    return empty
