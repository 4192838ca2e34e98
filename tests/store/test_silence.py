"""PostgreSQL and MariaDB that fall silent, and clients that do: each gives up the other within a bounded time."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from camserver.base.errors import StoreUnavailable
from camserver.store import Store, Tx, open_store
from tests.rig.databases import DatabaseServer
from tests.rig.polling import poll_async
from tests.rig.templates import Template

SERVERS = ["postgres", "mariadb"]
# Long enough for a slow machine to answer what is answered at all.
SHORT_SEC = 3
_RUNNING = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'UPDATE epochs%'",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE epochs%'",
}


class House:
    """A database with one row, `epoch_id`, and two clients of it."""

    def __init__(self, kind: str, server: DatabaseServer, url: str) -> None:
        self.kind = kind
        self.server = server
        self.url = url
        self.epoch_id = 0
        self._stores: list[Store] = []

    async def client(self) -> Store:
        store = await open_store(self.url, pool_size=2, acquire_timeout_sec=30)
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()

    async def running(self) -> int:
        """How many statements wait for the row."""
        return int(await asyncio.to_thread(self.server.admin, _RUNNING[self.kind]))

    async def until_running(self, count: int) -> None:
        async def is_so() -> bool:
            return await self.running() == count

        await poll_async(is_so, f"{count} statements at work")


@pytest_asyncio.fixture(params=SERVERS)
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    kind: str = request.param
    template: Template = request.getfixturevalue(f"{kind}_template")
    made = House(kind, request.getfixturevalue(kind), template.fresh())
    made.epoch_id = await (await made.client()).write(put)
    yield made
    await made.close()
    template.discard(made.url)


def limited(monkeypatch: pytest.MonkeyPatch, house: House, name: str) -> None:
    """For connections made from now on, and for their statements."""
    monkeypatch.setattr(f"camserver.store.{house.kind}.{name}", SHORT_SEC)


async def put(tx: Tx) -> int:
    return await tx.insert(
        "INSERT INTO epochs (owner, started_at, seen_at) VALUES ('somebody', 0, 0) RETURNING epoch_id"
    )


async def touch(tx: Tx, epoch_id: int) -> None:
    await tx.run("UPDATE epochs SET seen_at = seen_at + 1 WHERE epoch_id = :epoch_id", epoch_id=epoch_id)


async def touch_and_wait(tx: Tx, epoch_id: int, inside: asyncio.Event, go_on: asyncio.Event) -> None:
    await touch(tx, epoch_id)
    inside.set()
    await go_on.wait()
    await touch(tx, epoch_id)


async def seen_at(tx: Tx, epoch_id: int) -> int:
    row = await tx.one("SELECT seen_at FROM epochs WHERE epoch_id = :epoch_id", epoch_id=epoch_id)
    assert row is not None
    return int(row["seen_at"])


async def test_a_server_that_freezes_within_a_statement_is_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient, inside, go_on = await house.client(), asyncio.Event(), asyncio.Event()
    first = asyncio.ensure_future(patient.write(touch_and_wait, house.epoch_id, inside, go_on))
    await inside.wait()
    limited(monkeypatch, house, "ANSWER_TIMEOUT_SEC")
    store = await house.client()
    second = asyncio.ensure_future(store.write(touch, house.epoch_id))
    await house.until_running(1)
    with house.server.frozen():
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await second
        assert store.away
    go_on.set()
    await first
    assert await store.read(seen_at, house.epoch_id) == 2, "what was given up is not kept"
    assert not store.away


async def test_a_server_that_freezes_between_two_statements_is_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, house, "ANSWER_TIMEOUT_SEC")
    store, inside, go_on = await house.client(), asyncio.Event(), asyncio.Event()
    writing = asyncio.ensure_future(store.write(touch_and_wait, house.epoch_id, inside, go_on))
    await inside.wait()
    with house.server.frozen():
        go_on.set()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await writing
    assert await store.read(seen_at, house.epoch_id) == 0
    await store.write(touch, house.epoch_id)
    assert await store.read(seen_at, house.epoch_id) == 1


async def test_a_statement_that_takes_too_long_is_ended_on_the_server(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient, inside, go_on = await house.client(), asyncio.Event(), asyncio.Event()
    first = asyncio.ensure_future(patient.write(touch_and_wait, house.epoch_id, inside, go_on))
    await inside.wait()
    limited(monkeypatch, house, "STATEMENT_TIMEOUT_SEC")
    store = await house.client()
    with pytest.raises(StoreUnavailable):
        await store.write(touch, house.epoch_id)
    await house.until_running(0)
    go_on.set()
    await first
    assert await patient.read(seen_at, house.epoch_id) == 2


async def test_who_vanishes_within_a_transaction_locks_nobody_out_for_long(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that lost its power says no farewell: to the server it is a client that does not go on."""
    others = await house.client()
    limited(monkeypatch, house, "IDLE_TRANSACTION_TIMEOUT_SEC")
    store, inside, go_on = await house.client(), asyncio.Event(), asyncio.Event()
    writing = asyncio.ensure_future(store.write(touch_and_wait, house.epoch_id, inside, go_on))
    await inside.wait()
    await others.write(touch, house.epoch_id)
    go_on.set()
    with pytest.raises(StoreUnavailable):
        await writing
    assert await others.read(seen_at, house.epoch_id) == 1
    await store.write(touch, house.epoch_id)
    assert await others.read(seen_at, house.epoch_id) == 2
