"""PostgreSQL and MariaDB: a bounded pool, cancelled and failed operations, deadlocks, and servers that die."""

import asyncio
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import asyncmy.errors
import asyncpg
import pytest
import pytest_asyncio

from camserver.base.errors import Bug, Conflict, NotFound, StoreBusy, StoreUnavailable
from camserver.store import Store, Tx, open_store
from camserver.store.server_store import ServerStore
from tests.rig.cutter import Cutter, Way
from tests.rig.databases import DatabaseServer
from tests.rig.polling import poll_async, until
from tests.rig.templates import Template
from tests.store.conftest import wipe

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVERS = ["postgres", "mariadb"]
POOL = 4

# What operations of a test wait for and report to; they run in this process.
gates: dict[str, asyncio.Event] = {}
seen: dict[str, int] = {}


def gate(name: str) -> asyncio.Event:
    return gates.setdefault(name, asyncio.Event())


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SERVERS)
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[ServerStore[object]]:
    template: Template = request.getfixturevalue(f"{request.param}_template")
    url = template.fresh()
    store = await open_store(url, pool_size=POOL, acquire_timeout_sec=30)
    assert isinstance(store, ServerStore)
    yield store
    await store.close()
    template.discard(url)


@pytest_asyncio.fixture(loop_scope="module")
async def store(shared: ServerStore[object]) -> ServerStore[object]:
    gates.clear()
    seen.clear()
    await shared.write(wipe)
    return shared


async def put(tx: Tx, owner: str) -> int:
    return await tx.insert(
        "INSERT INTO epochs (owner, started_at, seen_at) VALUES (:owner, 0, 0) RETURNING epoch_id", owner=owner
    )


async def owners(tx: Tx) -> list[str]:
    return [row["owner"] for row in await tx.all("SELECT owner FROM epochs ORDER BY epoch_id")]


async def put_and_wait(tx: Tx, owner: str) -> int:
    key = await put(tx, owner)
    gate("inside").set()
    await gate("go on").wait()
    return key


async def settled() -> None:
    """Every task has got as far as it comes by itself."""
    for _ in range(50):
        await asyncio.sleep(0)


# The pool


async def test_an_exhausted_pool_is_busy_after_the_time_out(store: ServerStore[object]) -> None:
    holders = [asyncio.ensure_future(store.write(put_and_wait, str(number))) for number in range(POOL)]
    await until(lambda: store.pool.in_use == POOL, "a full pool")
    store.pool.acquire_timeout_sec, usual = 0.05, store.pool.acquire_timeout_sec
    try:
        for attempt in (store.write(put, "too many"), store.read(owners)):
            with pytest.raises(StoreBusy, match=rf"all {POOL} are in use.*pool_size"):
                await attempt
    finally:
        store.pool.acquire_timeout_sec = usual
    waiting = asyncio.ensure_future(store.write(put, "patient"))
    await asyncio.sleep(0)
    gate("go on").set()
    await asyncio.gather(*holders, waiting)
    assert sorted(await store.read(owners)) == ["0", "1", "2", "3", "patient"]
    assert store.pool.in_use == 0


async def test_a_cancelled_operation_leaves_a_clean_pool(store: ServerStore[object]) -> None:
    tasks = [asyncio.ensure_future(store.write(put_and_wait, str(number))) for number in range(POOL)]
    await until(lambda: store.pool.in_use == POOL, "a full pool")
    await gate("inside").wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert store.pool.in_use == 0
    # Every connection of the pool is usable at once, and nothing of what was cancelled stayed.
    await asyncio.gather(*(store.write(put, f"after {number}") for number in range(POOL * 2)))
    assert all(owner.startswith("after") for owner in await store.read(owners))


async def test_cancelling_at_any_moment_never_mixes_answers(store: ServerStore[object]) -> None:
    """Each operation reads back its own number; a connection reused half read would give another's."""

    async def one(number: int) -> None:
        task = asyncio.ensure_future(store.read(echo, number))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        if number % 2:
            task.cancel()
        try:
            assert await task == number
        except asyncio.CancelledError:
            assert number % 2

    await asyncio.gather(*(one(number) for number in range(150)))
    assert store.pool.in_use == 0
    assert await store.read(echo, 4711) == 4711


async def echo(tx: Tx, number: int) -> int:
    row = await tx.one(f"SELECT {number} AS number")
    assert row is not None
    return int(row["number"])


async def refuse(tx: Tx) -> None:
    await tx.one("SELECT 1 AS one")
    raise NotFound("there is no such thing")


async def test_an_operations_own_error_costs_no_connection(store: ServerStore[object]) -> None:
    await store.read(owners)
    free = list(store.pool._free)
    for attempt in (store.read, store.write):
        with pytest.raises(NotFound):
            await attempt(refuse)
    assert list(store.pool._free) == free


async def test_a_closed_store_says_so(request: pytest.FixtureRequest, store: ServerStore[object]) -> None:
    template: Template = request.getfixturevalue(f"{store.dialect.value}_template")
    url = template.fresh()
    closed = await open_store(url)
    await closed.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await closed.read(owners)
    template.discard(url)


# Failing operations


async def put_then(tx: Tx, owner: str, end: str) -> None:
    await put(tx, owner)
    match end:
        case "conflict":
            raise Conflict("somebody was first")
        case "constraint":
            await tx.run("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ('a', 'a', 0)")
            await tx.run("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ('b', 'a', 0)")
        case "null":
            await tx.run("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ('a', NULL, 0)")
        case "parent":
            await tx.run("INSERT INTO change_counters (tenant_id) VALUES (4711)")
        case "check":
            await tx.run(
                "INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority,"
                " available_at, created_at) VALUES (1, 1, 1, 1, 'odd', 1, 1, 1)"
            )
        case "value":
            raise ValueError("a value")


@pytest.mark.parametrize("end", ["conflict", "constraint", "null", "parent", "value"])
async def test_a_failed_operation_leaves_nothing(store: ServerStore[object], end: str) -> None:
    with pytest.raises(ValueError if end == "value" else Conflict):
        await store.write(put_then, "failed", end)
    assert await store.read(owners) == []
    assert not store.away


async def swallow(tx: Tx) -> None:
    await put(tx, "half")
    try:
        await tx.run("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ('a', NULL, 0)")
    except Exception:
        return


async def test_an_operation_that_swallows_an_error_is_never_half_kept_in_silence(store: ServerStore[object]) -> None:
    """PostgreSQL turns such a COMMIT into a ROLLBACK without saying so; MariaDB keeps what went before."""
    if store.dialect == "postgres":
        with pytest.raises(Bug, match="nothing of it was kept"):
            await store.write(swallow)
        assert await store.read(owners) == []
    else:
        await store.write(swallow)
        assert await store.read(owners) == ["half"]


async def wrong_type(tx: Tx) -> None:
    await tx.all("SELECT epoch_id FROM epochs WHERE epoch_id = :key AND started_at = :at", key="x", at=object())


async def test_a_wrong_argument_is_not_taken_for_a_lost_server(store: ServerStore[object]) -> None:
    if store.dialect == "postgres":  # MariaDB's driver writes anything as text
        with pytest.raises(asyncpg.DataError, match="invalid input"):
            await store.read(wrong_type)
    assert not store.away
    assert await store.read(owners) == []


# Deadlocks


async def lock_both(tx: Tx, first: int, second: int, meet: bool) -> str:
    """Locks two rows, and the first time waits until the other one has locked its first too."""
    name = f"{first}"
    seen[name] = seen.get(name, 0) + 1
    await tx.run("UPDATE epochs SET seen_at = seen_at + 1 WHERE epoch_id = :key", key=first)
    if meet and seen[name] == 1:
        gate(f"locked {first}").set()
        await gate(f"locked {second}").wait()
    await tx.run("UPDATE epochs SET seen_at = seen_at + 1 WHERE epoch_id = :key", key=second)
    return name


async def seen_at(tx: Tx) -> list[int]:
    return [row["seen_at"] for row in await tx.all("SELECT seen_at FROM epochs ORDER BY epoch_id")]


async def test_a_deadlock_is_run_again_and_counts_once(store: ServerStore[object]) -> None:
    a, b = await store.write(put, "a"), await store.write(put, "b")
    async with asyncio.timeout(60):
        await asyncio.gather(store.write(lock_both, a, b, True), store.write(lock_both, b, a, True))
    assert sum(seen.values()) >= 3, "there was no deadlock"
    assert await store.read(seen_at) == [2, 2]


async def always_deadlocks(tx: Tx, error: Callable[[], Exception]) -> None:
    seen["tries"] = seen.get("tries", 0) + 1
    raise error()


async def test_endless_deadlocks_end_as_busy(store: ServerStore[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.store.server_store.BACKOFF_BASE_SEC", 0)
    with pytest.raises(StoreBusy, match="12 deadlocks in a row"):
        await store.write(always_deadlocks, _deadlock(store))
    assert seen["tries"] == 12


def _deadlock(store: Store) -> Callable[[], Exception]:
    if store.dialect == "postgres":
        return lambda: asyncpg.DeadlockDetectedError("deadlock")
    return lambda: asyncmy.errors.OperationalError(1213, "deadlock")


# The server dies


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_crash_under_load_loses_nothing_acknowledged(request: pytest.FixtureRequest, kind: str) -> None:
    server: DatabaseServer = request.getfixturevalue(f"durable_{kind}")
    template: Template = request.getfixturevalue(f"durable_{kind}_template")
    url = template.fresh()
    store = await open_store(url, pool_size=POOL)
    acknowledged: list[str] = []
    failed: list[str] = []
    stop = asyncio.Event()

    async def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            name, turn = f"{number}.{turn}", turn + 1
            try:
                await store.write(put, name)
                acknowledged.append(name)
            except (StoreUnavailable, StoreBusy):
                failed.append(name)
                await asyncio.sleep(0.01)  # as a loop that finds the store away does

    since = store.available_since_boot_ms
    writers = [asyncio.ensure_future(write(number)) for number in range(POOL + 2)]
    await until(lambda: len(acknowledged) >= 50, "some writes")
    await asyncio.to_thread(server.crash)
    await until(lambda: bool(failed) and store.away, "a store that is away")
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        await store.read(owners)
    before = len(acknowledged)
    await asyncio.to_thread(server.start)
    await until(lambda: len(acknowledged) >= before + 20, "writes after the crash")
    stop.set()
    await asyncio.gather(*writers)
    kept = await store.read(owners)
    assert len(kept) == len(set(kept))
    assert set(acknowledged) <= set(kept)
    assert set(kept) <= {*acknowledged, *failed}
    assert not store.away
    assert store.available_since_boot_ms > since
    await store.close()
    template.discard(url)


async def test_a_server_that_cuts_its_connections_is_asked_again(
    request: pytest.FixtureRequest, store: ServerStore[object]
) -> None:
    """What an administrator's KILL or a proxy's idle time-out does."""
    server: DatabaseServer = request.getfixturevalue(store.dialect.value)
    await asyncio.gather(*(store.read(owners) for _ in range(POOL)))
    name = store._url.reveal().rpartition("/")[2]  # type: ignore[attr-defined]  # both servers' stores have one
    if store.dialect == "postgres":
        await asyncio.to_thread(
            server.admin, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
    else:
        listed = await asyncio.to_thread(
            server.admin, f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
        )
        for connection in listed.split():
            await asyncio.to_thread(server.admin, f"KILL {connection}")

    async def works() -> bool:
        try:
            await store.write(put, "again")
        except StoreUnavailable:
            return False
        return True

    await poll_async(works, "a new connection")
    assert "again" in await store.read(owners)


async def test_the_databases_time_is_told(store: ServerStore[object]) -> None:
    first = await store.database_time_ms()
    second = await store.database_time_ms()
    assert first is not None
    assert second is not None
    assert 1_700_000_000_000 < first <= second


# A process that has to end


async def test_a_database_that_does_not_answer_is_given_up_by_who_has_to_end(request: pytest.FixtureRequest) -> None:
    for kind in SERVERS:
        template: Template = request.getfixturevalue(f"{kind}_template")
        url = urlsplit(template.fresh())
        assert url.port is not None
        async with Cutter(url.port) as net:
            behind = url._replace(netloc=url.netloc.replace(str(url.port), str(net.port)))
            store = await open_store(behind.geturl(), pool_size=POOL, acquire_timeout_sec=30)
            await store.write(put, "before")
            net.hold(Way.DOWN)
            writes = [asyncio.ensure_future(store.write(put, str(number))) for number in range(POOL + 1)]
            assert isinstance(store, ServerStore)
            await until(lambda net=net: net.open_connections == POOL, "a full pool")  # type: ignore[misc]
            await settled()  # a connection that is there at the moment of a cancellation hides it (asyncio.wait_for)
            store.hurry(0.0)
            for ended in await asyncio.gather(*writes, return_exceptions=True):
                assert isinstance(ended, StoreUnavailable), ended
            with pytest.raises(StoreUnavailable, match="did not answer before this process had to end"):
                await store.read(owners)
            await store.close()
            # What the driver still has to tell the database.
            net.heal()
            await until(lambda net=net: net.open_connections == 0, "the last connection is closed")  # type: ignore[misc]
        template.discard(url.geturl())


async def test_whoever_has_to_end_soon_is_answered_until_then(store: ServerStore[object]) -> None:
    working = asyncio.ensure_future(store.write(put_and_wait, "under way"))
    await gate("inside").wait()
    store.hurry(3600.0)
    gate("go on").set()
    await working
    assert await store.read(owners) == ["under way"]
