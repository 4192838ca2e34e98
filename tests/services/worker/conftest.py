"""Fixtures of the worker's tests."""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from camserver.services.worker.camera import Surroundings
from camserver.services.worker.spool import Spool
from tests.services.worker.build import FollowingClock, roomy_spool, surroundings
from tests.services.worker.control import ScriptedControl


@pytest.fixture
def moved() -> FollowingClock:
    return FollowingClock()


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    opened = roomy_spool(tmp_path / "spool")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def pictures() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def given_to_cameras(moved: FollowingClock, spool: Spool, pictures: ThreadPoolExecutor) -> Surroundings:
    return surroundings(moved, spool, pictures)


@pytest.fixture
async def control(moved: FollowingClock) -> AsyncIterator[ScriptedControl]:
    async with ScriptedControl(moved.now_ms) as server:
        yield server
