"""Opens the store that a URL names, and takes the SQLite file's owner lock where there is one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.store import row_security, sqlite_schema
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.core import Store
from camserver.store.sql import Dialect
from camserver.store.sqlite import OwnerLock, SqliteStore
from camserver.store.sqlite_reader import SqliteReader
from camserver.store.sqlite_tx import CACHE_KIB, connect

if TYPE_CHECKING:
    from camserver.store.copying import Standing, Told
    from camserver.store.migrate import SchemaStatus
# `migrate` is imported where it is used: its libraries take a second to load, and neither a start that finds nothing
# to migrate nor the SQLite writer's process, which every start and restart waits for, needs them.


async def open_store(
    url: str | Secret,
    *,
    pool_size: int = 10,
    acquire_timeout_sec: float = 5.0,
    sqlite_readers: int = 4,
    sqlite_cache_kib: int = CACHE_KIB,
    backup_dir: Path | None = None,
) -> Store:
    """A ready store.

    An empty database is set up. An older SQLite file is backed up and upgraded, since it is ours alone; an older
    server database is refused with the command to run, since other machines may be using it.
    """
    address = url if isinstance(url, Secret) else Secret(url)
    match dialect_of(address.reveal()):
        case Dialect.SQLITE:
            return await _open_sqlite(
                address.reveal(), sqlite_readers, sqlite_cache_kib, acquire_timeout_sec, backup_dir
            )
        case Dialect.POSTGRES:
            # Imported here, so that one machine on SQLite needs no driver of the others.
            from camserver.store.postgres import PostgresStore

            await asyncio.to_thread(_prepare_server, address.reveal())
            return PostgresStore(address, pool_size=pool_size, acquire_timeout_sec=acquire_timeout_sec)
        case Dialect.MARIADB:
            from camserver.store.mariadb import MariaStore

            await asyncio.to_thread(_prepare_server, address.reveal())
            return MariaStore(address, pool_size=pool_size, acquire_timeout_sec=acquire_timeout_sec)


async def upgrade_database(url: Secret, backup_dir: Path | None) -> "SchemaStatus":
    """`camserver db upgrade`: refused while a camserver runs on the SQLite file."""
    from camserver.store import migrate

    async with owned(url.reveal()):
        status = await asyncio.to_thread(migrate.upgrade, url.reveal(), backup_dir)
    if dialect_of(url.reveal()) is Dialect.POSTGRES:
        async with postgres_store(url) as store:
            await store.write(row_security.refresh)
    return status


@asynccontextmanager
async def postgres_store(url: Secret) -> AsyncIterator[Store]:
    """A store for a command about PostgreSQL itself; the schema is taken as it is."""
    row_security.require_postgres(dialect_of(url.reveal()))
    from camserver.store.postgres import PostgresStore

    store = PostgresStore(url, pool_size=1, acquire_timeout_sec=5.0)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def restored_store(url: Secret) -> AsyncIterator[Store]:
    """A server's database that a backup was loaded into, brought up to date; after this servers may start."""
    from camserver.store import emptying, migrate

    await asyncio.to_thread(migrate.upgrade_restored, url.reveal())
    async with _server_store(url) as store:
        if store.dialect is Dialect.POSTGRES:
            await store.write(row_security.refresh)
        yield store
    await asyncio.to_thread(emptying.finish, url.reveal())


async def copy_database(
    source: Secret, target: Secret, backup_dir: Path | None, told: "Told"
) -> "dict[str, Standing]":
    """`camserver db copy`: from a SQLite file, which nobody uses meanwhile, to an empty database of a server."""
    from camserver.store import copying

    if dialect_of(source.reveal()) is not Dialect.SQLITE or dialect_of(target.reveal()) is Dialect.SQLITE:
        raise BadInput("rows are copied from SQLite to PostgreSQL or MariaDB, and in no other direction")
    ours = await open_store(source, backup_dir=backup_dir)
    try:
        await asyncio.to_thread(copying.prepare, target.reveal())
        async with _server_store(target) as theirs:
            return await copying.copy(ours, theirs, target.reveal(), told)
    finally:
        await ours.close()


@asynccontextmanager
async def _server_store(url: Secret) -> AsyncIterator[Store]:
    """Two connections to a server's database, whatever its schema."""
    store: Store
    if dialect_of(url.reveal()) is Dialect.POSTGRES:
        from camserver.store.postgres import PostgresStore

        store = PostgresStore(url, pool_size=2, acquire_timeout_sec=5.0)
    else:
        from camserver.store.mariadb import MariaStore

        store = MariaStore(url, pool_size=2, acquire_timeout_sec=5.0)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def sqlite_reader(url: Secret, *, one_moment: bool = True) -> AsyncIterator[SqliteReader]:
    """Reads of a SQLite file that a server may own. While all are of one moment, its log can't be shortened."""
    reader = SqliteReader(connect(str(sqlite_path(url.reveal())), read_only=True), one_moment=one_moment)
    try:
        yield reader
    finally:
        reader.close()


@asynccontextmanager
async def owned(url: str) -> AsyncIterator[None]:
    """While nobody else uses the SQLite file; refused at once when somebody does. Of servers nothing is asked."""
    if dialect_of(url) is not Dialect.SQLITE:
        yield
        return
    lock = _lock_of(url)
    await lock.acquire(wait_sec=0)
    try:
        yield
    finally:
        lock.release()


def _lock_of(url: str) -> OwnerLock:
    path = sqlite_path(url)
    return OwnerLock(path.with_name(path.name + ".lock"))


async def _open_sqlite(
    url: str, readers: int, cache_kib: int, acquire_timeout_sec: float, backup_dir: Path | None
) -> SqliteStore:
    path = sqlite_path(url)
    lock = _lock_of(url)
    await lock.acquire()
    try:
        if not await asyncio.to_thread(sqlite_schema.is_newest, path):
            from camserver.store import migrate

            await asyncio.to_thread(migrate.upgrade, url, backup_dir)
        store = SqliteStore(path, lock, readers=readers, acquire_timeout_sec=acquire_timeout_sec, cache_kib=cache_kib)
        await store.start()
    except BaseException:
        lock.release()
        raise
    return store


def _prepare_server(url: str) -> None:
    from camserver.store import migrate

    # Not judged by a first look: MariaDB shows each migration of a set-up that another process has just begun.
    migrate.upgrade(url, only_empty=True)
    migrate.require_current(url)
