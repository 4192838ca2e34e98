"""A worker's certificate is renewed in time, at once when the server says so, and again after a failure. The server
is a real one with its own CA."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from camserver.base import tls
from camserver.domain.certificates import DAY_MS
from camserver.services.worker import enrolling, identity_file
from camserver.services.worker.identity_file import Enrolled
from camserver.services.worker.renewing import LOOK_EVERY_SEC, RETRY_BASE_SEC, Renewing
from camserver.services.worker.waiting import end
from camserver.store import Store, open_store
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.templates import SqliteTemplate
from tests.services.control.rig import RunningControl, running_control
from tests.services.control.test_tls import new_token, url
from tests.services.worker.build import FollowingClock


@pytest.fixture
async def store(sqlite_template: SqliteTemplate) -> AsyncIterator[Store]:
    address = sqlite_template.fresh()
    store = await open_store(address)
    yield store
    await store.close()
    sqlite_template.discard(address)


@pytest.fixture
async def control(store: Store, tmp_path: Path) -> AsyncIterator[RunningControl]:
    async with running_control(store, ManualClock(), tmp_path / "server", tls=True) as running:
        yield running


@dataclass(slots=True)
class Shop:
    identity: Enrolled
    folder: Path
    clock: FollowingClock
    renewing: Renewing

    def kept(self) -> Enrolled:
        found = identity_file.read(self.folder)
        assert found is not None
        return found


@asynccontextmanager
async def shop(control: RunningControl, folder: Path, address: str) -> AsyncIterator[Shop]:
    identity, _ = await enrolling.enroll(url(control), await new_token(control), "shop-1")
    identity_file.write(folder, identity)
    clock = FollowingClock()
    context = tls.client_context(identity.ca_pem, identity.chain_pem)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        renewing = Renewing(identity, folder, address, session, (context,), clock, lambda: 1.0)
        running = asyncio.ensure_future(renewing.run())
        await clock.until_sleeping()
        yield Shop(identity, folder, clock, renewing)
        await end(running)


async def test_a_third_before_the_end_is_not_waited_for(control: RunningControl, tmp_path: Path) -> None:
    async with shop(control, tmp_path / "identity", url(control)) as worker:
        worker.clock.synced = True
        for clock in (worker.clock, control.clock):
            clock.jump_wall(9 * DAY_MS)
        await worker.clock.advance(round(LOOK_EVERY_SEC * 1000))
        await worker.clock.until_sleeping()
        assert worker.renewing.renewed == 0
        for clock in (worker.clock, control.clock):
            clock.jump_wall(DAY_MS)
        await worker.clock.advance(round(LOOK_EVERY_SEC * 1000))
        await until(lambda: worker.renewing.renewed == 1, "renewal")
        fresh = worker.kept()
        assert fresh.name == worker.identity.name
        assert fresh.validity.not_after_ms == control.clock.now_ms() + 30 * DAY_MS
        # The next renewal is made with the new one: the old one is over by then.
        for clock in (worker.clock, control.clock):
            clock.jump_wall(25 * DAY_MS)
        await worker.clock.until_sleeping()
        await worker.clock.advance(round(LOOK_EVERY_SEC * 1000))
        await until(lambda: worker.renewing.renewed == 2, "second renewal")


async def test_a_machine_that_does_not_know_the_time_believes_the_server(
    control: RunningControl, tmp_path: Path
) -> None:
    async with shop(control, tmp_path / "identity", url(control)) as worker:
        control.clock.jump_wall(100 * DAY_MS)
        worker.clock.jump_wall(-worker.clock.now_ms())  # it woke up in 1970
        await worker.clock.advance(round(LOOK_EVERY_SEC * 1000))
        await worker.clock.until_sleeping()
        assert worker.renewing.renewed == 0
        worker.renewing.expired()
        await until(lambda: worker.renewing.renewed == 1, "renewal")
        assert worker.kept().validity.not_after_ms == control.clock.now_ms() + 30 * DAY_MS


async def test_what_failed_is_tried_again(control: RunningControl, tmp_path: Path) -> None:
    async with shop(control, tmp_path / "identity", "https://127.0.0.1:1") as worker:
        worker.renewing.expired()
        await until(lambda: worker.renewing._failures == 1, "a failure")
        assert worker.kept() == worker.identity, "what it has is not lost"
        worker.renewing._server_url = url(control)
        await worker.clock.until_sleeping()
        await worker.clock.advance(round(RETRY_BASE_SEC * 1000))
        await until(lambda: worker.renewing.renewed == 1, "renewal")
