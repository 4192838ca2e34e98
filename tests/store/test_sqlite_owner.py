"""One process owns a SQLite file: the lock, what a killed owner leaves behind, and who may open it next."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from camserver.base.errors import DataOwned
from camserver.base.secrets import Secret
from camserver.store import Store, Tx, open_store, upgrade_database
from camserver.store.address import sqlite_path
from camserver.store.sqlite import OwnerLock, SqliteStore
from tests.rig.polling import poll
from tests.rig.templates import SqliteTemplate
from tests.store.scenery import furnish

WRITERS_IN_EARNEST = True

# Opens the store and says so, then waits; with an argument the writer hangs in the middle of a write.
OWNER = """
import asyncio, sys
from camserver.store import open_store
from tests.store.test_sqlite_owner import hang

async def main():
    store = await open_store(sys.argv[1])
    print("open", store._writer.pid, flush=True)
    if len(sys.argv) > 2:
        await store.write(hang, sys.argv[2])
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def hang(tx: Tx, fifo: str) -> None:
    """Waits, within a transaction, until somebody opens the other end of a named pipe."""
    await tx.run("UPDATE tenants SET name = 'never committed'")
    Path(fifo).read_text()  # noqa: ASYNC240  # it runs in the writer's process, which has no loop


async def tenant_names(tx: Tx) -> list[str]:
    return [row["name"] for row in await tx.all("SELECT name FROM tenants ORDER BY name")]


@pytest.fixture
def url(sqlite_template: SqliteTemplate) -> str:
    return sqlite_template.fresh()


@contextmanager
def owner(url: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen([sys.executable, "-c", OWNER, url, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        word, pid = process.stdout.readline().split()
        assert word == "open"
        yield process, int(pid)
    finally:
        process.kill()
        process.communicate()


async def open_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    with monkeypatch.context() as patch:
        patch.setattr(OwnerLock.acquire, "__defaults__", (0.0,))
        return await open_store(url)


async def test_a_second_owner_is_refused_and_told_who_has_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(url) as (process, _):
        with pytest.raises(DataOwned, match=rf"process {process.pid}\b.*stop that one"):
            await open_at_once(url, monkeypatch)
        with pytest.raises(DataOwned, match=rf"process {process.pid}\b"):
            await upgrade_database(Secret(url), None)


async def test_one_process_can_not_open_it_twice_either(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store(url)
    with pytest.raises(DataOwned, match=rf"process {os.getpid()}\b"):
        await open_at_once(url, monkeypatch)
    await store.close()
    again = await open_at_once(url, monkeypatch)
    await again.close()


async def test_the_lock_is_free_after_the_owner_was_killed(url: str) -> None:
    with owner(url) as (process, _):
        process.kill()
        process.wait()
        store = await open_store(url)
        await furnish(store)
        await store.close()


async def test_a_killed_owners_writer_keeps_the_lock_until_it_is_done(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a new owner would write beside it."""
    store = await open_store(url)
    await furnish(store)
    await store.close()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with owner(url, str(fifo)) as (process, writer_pid):
        # Opening a pipe for writing waits until the writer has it open for reading: it hangs in its transaction now.
        with fifo.open("w"):
            process.kill()
            process.wait()
            with pytest.raises(DataOwned, match=rf"process {process.pid}\b"):
                await open_at_once(url, monkeypatch)
        # The pipe's end lets the writer finish; nobody wants its answer any more, and it ends.
        store = await open_store(url)
        assert has_ended(writer_pid)
        assert await store.read(tenant_names) in (["scene"], ["never committed"])
        await store.close()


async def test_a_killed_writer_and_owner_leave_nothing_held(url: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    store = await open_store(url)
    await furnish(store)
    await store.close()
    with owner(url, str(fifo)) as (process, writer_pid), fifo.open("w"):
        process.kill()
        os.kill(writer_pid, signal.SIGKILL)
        process.wait()
        store = await open_store(url)
        assert await store.read(tenant_names) == ["scene"]
        await store.close()


def has_ended(pid: int) -> bool:
    """Also one that waits for its parent, whoever adopted it, to notice."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


async def test_closing_ends_the_writer(url: str) -> None:
    store = await open_store(url)
    assert isinstance(store, SqliteStore)
    assert store._writer is not None
    await store.close()
    assert store._writer.returncode == 0
    await store.close()


async def test_terminal_signals_do_not_end_the_writer(url: str) -> None:
    """Ctrl-C reaches every process of the terminal; the server decides when its writer goes."""
    store = await open_store(url)
    assert isinstance(store, SqliteStore)
    assert store._writer is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        store._writer.send_signal(number)
    await furnish(store)
    assert store._writer.poll() is None
    await store.close()


def test_the_lock_file_names_its_owner(url: str) -> None:
    with owner(url) as (process, _):
        lock = sqlite_path(url).with_name("camserver.db.lock")
        assert poll(lambda: lock.read_text() == str(process.pid), "the owner's number in the lock")
