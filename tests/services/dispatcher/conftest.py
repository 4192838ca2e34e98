from pathlib import Path

import pytest

from camserver.store import Store
from tests.fakes.analyzer import FakeAnalyzer
from tests.services.dispatcher.stage import Stage


@pytest.fixture
async def stage(store: Store, analyzer: FakeAnalyzer, tmp_path: Path) -> Stage:
    return await Stage.open(store, analyzer, tmp_path)
