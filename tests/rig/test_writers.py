"""Writers that are forked do what those started in earnest do; how they behave is tested in tests/store."""

import os
import signal
from pathlib import Path

from camserver.base.errors import StoreUnavailable
from camserver.store import Store, Tx, open_store
from camserver.store.sqlite import SqliteStore
from tests.rig.polling import poll_async, until
from tests.rig.templates import SqliteTemplate
from tests.rig.writers import ForkedWriter


async def add(tx: Tx, owner: str) -> int:
    return await tx.insert(
        "INSERT INTO epochs (owner, started_at, seen_at) VALUES (:owner, 0, 0) RETURNING epoch_id", owner=owner
    )


async def process_id(tx: Tx) -> int:
    return os.getpid()


def writer_of(store: Store) -> ForkedWriter:
    assert isinstance(store, SqliteStore)
    writer: object = store._writer
    assert isinstance(writer, ForkedWriter)
    return writer


async def test_operations_of_tests_run_in_a_process_of_their_own_that_ends_with_the_store(
    sqlite_template: SqliteTemplate,
) -> None:
    store = await open_store(sqlite_template.fresh())
    assert await store.write(add, "somebody") == 1
    pid = await store.write(process_id)
    assert pid == writer_of(store).pid != os.getpid()
    await store.close()
    await until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the writer")


async def test_another_one_is_forked_when_it_was_killed(sqlite_template: SqliteTemplate) -> None:
    store = await open_store(sqlite_template.fresh())
    killed = writer_of(store).pid
    os.kill(killed, signal.SIGKILL)

    async def is_back() -> bool:
        try:
            return await store.write(process_id) != killed
        except StoreUnavailable:
            return False

    await poll_async(is_back, "another writer")
    await store.close()


async def test_two_stores_have_two_writers_and_neither_holds_the_other_s_end(
    sqlite_template: SqliteTemplate,
) -> None:
    first, second = [await open_store(sqlite_template.fresh()) for _ in range(2)]
    pids = {await store.write(process_id) for store in (first, second)}
    assert len(pids) == 2
    # It would wait for ever if the second's process had the first's end of the socket too.
    await first.close()
    assert await second.write(add, "somebody") == 1
    await second.close()


def test_a_process_that_ended_can_be_waited_for_and_killed_again() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    writer = ForkedWriter(pid, os.pidfd_open(pid))
    writer.wait()
    writer.wait()
    writer.kill()
    assert os.waitpid(pid, 0)[1] == 0
