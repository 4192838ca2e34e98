"""The SQLite writer: whatever happens to it, what was acknowledged is there and what failed harmed nobody else."""

import asyncio
import os
import pickle
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import Bug, Conflict, NotFound, StoreBusy, StoreUnavailable
from camserver.store import Store, Tx, open_store
from camserver.store import sqlite as sqlite_module
from camserver.store.sqlite import SqliteStore
from camserver.store.sqlite_writer import BATCH_MAX, framed, frames
from tests.rig.polling import until
from tests.rig.small_disk import small_disk
from tests.rig.templates import SqliteTemplate
from tests.store.conftest import wipe

on_one_loop = pytest.mark.asyncio(loop_scope="module")

WRITES = 60
WRITERS_IN_EARNEST = True


async def put(tx: Tx, owner: str, size: int = 0) -> int:
    return await tx.insert(
        "INSERT INTO epochs (owner, started_at, seen_at) VALUES (:owner, 0, 0) RETURNING epoch_id",
        owner=owner + "x" * size,
    )


async def put_garbage(tx: Tx, rows: int) -> None:
    key = "k" * 255
    await tx.many(
        "INSERT INTO garbage (tenant_id, object_key, created_at) VALUES (1, :key, 0)", [{"key": key}] * rows
    )


async def owners(tx: Tx) -> list[str]:
    return [row["owner"] for row in await tx.all("SELECT owner FROM epochs ORDER BY epoch_id")]


async def put_then(tx: Tx, owner: str, end: str) -> object:
    await put(tx, owner)
    match end:
        case "conflict":
            raise Conflict("somebody was first", other="them")
        case "constraint":
            await tx.run("INSERT INTO schema_versions (schema_version, document, created_at) VALUES ('v', NULL, 0)")
        case "syntax":
            await tx.run("SELEKT 1")
        case "value":
            raise ValueError("a value")
        case "unpicklable":
            raise Unpicklable(lambda: None)
        case "suspend":
            await asyncio.sleep(0)
        case "lambda":
            return lambda: None
        case "missing parameter":
            await tx.run("UPDATE epochs SET owner = :nobody")
    return "fine"


class Unpicklable(Exception):
    pass


async def wait_for(tx: Tx, fifo: str) -> None:
    Path(fifo).read_text()  # noqa: ASYNC240  # it runs in the writer's process, which has no loop


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(sqlite_template: SqliteTemplate) -> AsyncIterator[SqliteStore]:
    url = sqlite_template.fresh()
    opened = await open_store(url)
    assert isinstance(opened, SqliteStore)
    yield opened
    await opened.close()
    sqlite_template.discard(url)


@pytest_asyncio.fixture(loop_scope="module")
async def store(shared: SqliteStore) -> SqliteStore:
    """One for all tests, emptied: whatever the one before did to it, it must have recovered."""
    await shared.write(wipe)
    return shared


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def writer_pid(store: SqliteStore) -> int:
    assert store._writer is not None
    return store._writer.pid


# A batch


@pytest.mark.parametrize(
    ("end", "error", "word"),
    [
        ("conflict", Conflict, "somebody was first"),
        ("constraint", Conflict, "breaks a constraint"),
        ("syntax", Bug, "SELEKT"),
        ("value", ValueError, "a value"),
        ("unpicklable", RuntimeError, "Unpicklable"),
        ("suspend", Bug, "other than its transaction"),
        ("missing parameter", KeyError, "nobody"),
    ],
)
@on_one_loop
async def test_an_operation_that_fails_harms_no_other_of_its_batch(
    store: SqliteStore, end: str, error: type[Exception], word: str
) -> None:
    results = await asyncio.gather(
        *(store.write(put, f"before {number}") for number in range(5)),
        store.write(put_then, "failed", end),
        *(store.write(put, f"after {number}") for number in range(5)),
        return_exceptions=True,
    )
    assert isinstance(results[5], error)
    assert word in str(results[5])
    assert [isinstance(result, int) for result in results].count(True) == 10
    kept = await store.read(owners)
    assert len(kept) == 10
    assert "failed" not in kept


@on_one_loop
async def test_an_errors_details_cross_the_process(store: SqliteStore) -> None:
    with pytest.raises(Conflict) as caught:
        await store.write(put_then, "x", "conflict")
    assert caught.value.details == {"other": "them"}


@on_one_loop
async def test_a_result_that_can_not_be_sent_is_an_error_for_its_caller_only(store: SqliteStore) -> None:
    results = await asyncio.gather(
        store.write(put, "a"), store.write(put_then, "b", "lambda"), store.write(put, "c"), return_exceptions=True
    )
    assert isinstance(results[1], RuntimeError)
    assert isinstance(results[0], int)
    assert isinstance(results[2], int)
    # Its write stands: it had succeeded.
    assert await store.read(owners) == ["a", "b", "c"]


@on_one_loop
async def test_an_argument_that_can_not_be_sent_is_an_error_at_once(store: SqliteStore) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        await store.write(put, lambda: None)  # type: ignore[arg-type]  # what the test is about
    assert await store.write(put, "next") > 0


@on_one_loop
async def test_more_than_a_batch_at_once(store: SqliteStore) -> None:
    count = BATCH_MAX * 2 + 3
    keys = await asyncio.gather(*(store.write(put, str(number)) for number in range(count)))
    assert len(set(keys)) == count
    assert await store.read(owners) == [str(number) for number in range(count)]


@on_one_loop
async def test_a_message_larger_than_a_socket_takes_at_once(store: SqliteStore) -> None:
    big = "日" * 3_000_000
    assert await store.write(echo, big) == big


async def echo(tx: Tx, text: str) -> str:
    return text


@given(st.lists(st.binary(max_size=50), max_size=10), st.integers(1, 20))
def test_messages_come_out_as_they_went_in_however_they_are_cut(messages: list[bytes], step: int) -> None:
    stream = b"".join(map(framed, messages))
    buffer, found = bytearray(), []
    for start in range(0, len(stream), step):
        buffer += stream[start : start + step]
        found += list(frames(buffer))
    assert found == messages
    assert not buffer


# Bounds


@on_one_loop
async def test_reads_do_not_wait_for_a_write(store: SqliteStore, fifo: Path) -> None:
    await store.write(put, "before")
    writing = asyncio.ensure_future(store.write(wait_for, str(fifo)))
    pipe = await asyncio.to_thread(fifo.open, "w")  # returns when the writer hangs in its transaction
    assert await store.read(owners) == ["before"]
    assert not writing.done()
    pipe.close()
    await writing


@on_one_loop
async def test_too_many_writes_are_refused_after_the_time_out(
    sqlite_template: SqliteTemplate, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "WRITES_MAX", 3)
    store = await open_store(sqlite_template.fresh(), acquire_timeout_sec=0.05)
    hanging = asyncio.ensure_future(store.write(wait_for, str(fifo)))
    pipe = await asyncio.to_thread(fifo.open, "w")
    waiting = [asyncio.ensure_future(store.write(put, str(number))) for number in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(StoreBusy, match="3 writes are waiting"):
        await store.write(put, "too many")
    pipe.close()
    await asyncio.gather(hanging, *waiting)
    assert await store.write(put, "there is room again") > 0
    assert "too many" not in await store.read(owners)
    await store.close()


@on_one_loop
async def test_a_cancelled_write_gives_its_place_back(store: SqliteStore, fifo: Path) -> None:
    hanging = asyncio.ensure_future(store.write(wait_for, str(fifo)))
    pipe = await asyncio.to_thread(fifo.open, "w")
    cancelled = [asyncio.ensure_future(store.write(put, str(number))) for number in range(10)]
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
    pipe.close()
    await hanging
    assert store._places._value == sqlite_module.WRITES_MAX
    assert await store.write(put, "next") > 0


@on_one_loop
async def test_a_closed_store_says_so(sqlite_template: SqliteTemplate) -> None:
    store = await open_store(sqlite_template.fresh())
    await store.close()
    with pytest.raises(StoreUnavailable, match=r"closed|ended"):
        await store.write(put, "x")


# The writer dies


@on_one_loop
async def test_killing_the_writer_under_load_loses_nothing_acknowledged(store: SqliteStore) -> None:
    acknowledged: list[str] = []
    failed: list[str] = []
    first_done = asyncio.Event()

    async def write(number: int) -> None:
        for turn in range(4):
            name = f"{number}.{turn}"
            try:
                await store.write(put, name)
                acknowledged.append(name)
            except StoreUnavailable:
                failed.append(name)
            first_done.set()

    since = store.available_since_boot_ms
    writing = asyncio.gather(*(write(number) for number in range(WRITES)))
    await first_done.wait()
    os.kill(writer_pid(store), signal.SIGKILL)
    await writing
    assert await store.write(put, "after") > 0
    kept = await store.read(owners)
    assert len(kept) == len(set(kept))
    assert set(acknowledged) <= set(kept)
    assert set(kept) <= {*acknowledged, *failed, "after"}
    assert store.available_since_boot_ms >= since
    assert not store.away


@on_one_loop
async def test_pending_writes_are_told_that_the_writer_died(store: SqliteStore, fifo: Path) -> None:
    pending = [asyncio.ensure_future(store.write(wait_for, str(fifo)))]
    pipe = await asyncio.to_thread(fifo.open, "w")
    pending += [asyncio.ensure_future(store.write(put, str(number))) for number in range(5)]
    await asyncio.sleep(0)
    os.kill(writer_pid(store), signal.SIGKILL)
    for result in await asyncio.gather(*pending, return_exceptions=True):
        assert isinstance(result, StoreUnavailable)
        assert "may or may not stand" in str(result)
    with suppress(BrokenPipeError):
        pipe.close()
    assert await store.write(put, "next") > 0
    assert await store.read(owners) == ["next"]


@on_one_loop
async def test_a_caller_cancelled_while_the_writer_starts_leaves_no_trap(store: SqliteStore) -> None:
    """The start it asked for must not keep the next caller waiting for ever."""
    os.kill(writer_pid(store), signal.SIGKILL)
    await until(lambda: store._channel is not None and store._channel.lost, "the end of the writer")
    first = asyncio.ensure_future(store.write(put, "cancelled"))
    before = writer_pid(store)
    await until(lambda: writer_pid(store) != before, "a new writer")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    async with asyncio.timeout(60):
        assert await store.write(put, "next") > 0
    assert await store.read(owners) == ["next"]


@on_one_loop
async def test_a_writer_that_can_not_start_is_unavailable_until_it_can(store: SqliteStore) -> None:
    os.kill(writer_pid(store), signal.SIGKILL)
    await until(lambda: store._channel is not None and store._channel.lost, "the end of the writer")
    working, store.path = store.path, store.path.parent / "no" / "folder.db"
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await store.write(put, "x")
    assert store.away
    store.path = working
    assert await store.write(put, "next") > 0
    assert not store.away


# The disk is full


@on_one_loop
async def test_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() -> None:
    with small_disk(6 << 20) as disk:
        store = await open_store(f"sqlite:///{disk}/camserver.db")
        acknowledged: list[str] = []
        with pytest.raises(StoreUnavailable, match=r"(?i)full.*free space"):
            await _fill(store, disk, acknowledged)
        assert len(acknowledged) > 3
        kept = await store.read(owners)
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1
        (disk / "ballast").unlink()
        assert await store.write(put, "after") > 0
        assert (await store.read(owners))[-1] == "after"
        await store.close()


async def _fill(store: Store, disk: Path, acknowledged: list[str]) -> None:
    for number in range(1000):
        if number == 3:
            free = os.statvfs(disk)
            (disk / "ballast").write_bytes(b"b" * max(0, free.f_bavail * free.f_frsize - 300_000))
        await asyncio.gather(store.write(put, str(number)), store.write(put_garbage, 200))
        acknowledged.append(str(number))


# Reading


async def read_then(tx: Tx, end: str) -> None:
    await put_then(tx, "x", end) if end == "write" else await tx.all("SELEKT 1")


async def not_there(tx: Tx) -> None:
    raise NotFound("there is no such thing")


@on_one_loop
async def test_a_read_can_not_write(store: SqliteStore) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"):
        await store.read(read_then, "write")
    assert await store.read(owners) == []


@on_one_loop
async def test_a_read_with_wrong_sql_is_a_bug(store: SqliteStore) -> None:
    with pytest.raises(Bug, match="SELEKT"):
        await store.read(read_then, "syntax")


@on_one_loop
async def test_a_reads_own_error_comes_through(store: SqliteStore) -> None:
    with pytest.raises(NotFound):
        await store.read(not_there)


@on_one_loop
async def test_the_file_is_set_up_to_keep_what_it_acknowledged(store: SqliteStore) -> None:
    assert await store.write(pragmas) == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


async def pragmas(tx: Tx) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in ("journal_mode", "synchronous", "foreign_keys"):
        row = await tx.one(f"PRAGMA {name}")
        assert isinstance(row, sqlite3.Row)
        found[name] = row[0]
    return found
