"""Numbered migrations: what a database is at, bringing it up to date, and refusing one from the future.

An upgrade backs up first. SQLite is upgraded in a copy that replaces the file when it is whole, so a kill at any
moment leaves the old file or the new one. PostgreSQL rolls a failed migration back. MariaDB can't: a schema that was
being made in an empty database is made anew, and after a change that was broken off the backup is the way back.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from camserver.base import folders
from camserver.base.errors import CamError, DataUnusable, StoreTooNew, StoreTooOld, StoreUnavailable, UpgradeFailed
from camserver.base.secrets import scrub
from camserver.store import dumps, marks, our_tables, sqlite_schema
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.marks import Mark
from camserver.store.sql import Dialect

T = TypeVar("T")

# Any number that no other program on the same PostgreSQL would choose.
UPGRADE_LOCK = 0x63616D73
# Begins the schema's name while `camserver db copy` fills the database; see copying.py.
COPYING = "copying-"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """`current` None = an empty database."""

    current: str | None
    head: str
    is_half_upgraded: bool = False  # on MariaDB, which can't undo it

    @property
    def up_to_date(self) -> bool:
        return self.current == self.head


def status(url: str) -> SchemaStatus:
    """What the database is at. A newer one than this program is refused."""
    if dialect_of(url) is Dialect.SQLITE and not sqlite_path(url).exists():
        return SchemaStatus(None, _scripts().get_current_head() or "")
    try:
        return on_database(url, status_on)
    except sa.exc.DatabaseError as error:
        if dialect_of(url) is not Dialect.SQLITE:
            raise
        raise DataUnusable(
            f"{sqlite_path(url)} can't be read as a SQLite database ({_cause(error)}); restore a backup"
        ) from error


def upgrade(url: str, backup_dir: Path | None = None, *, only_empty: bool = False) -> SchemaStatus:
    """Brings the database to the newest schema. `backup_dir` None makes no backup.

    `only_empty` leaves a server's database of an older schema as it is, once nobody is at work on it.
    """
    before = status(url)
    if before.up_to_date:
        return before
    if dialect_of(url) is Dialect.SQLITE:
        _back_up(url, before, backup_dir)
    try:
        if dialect_of(url) is Dialect.SQLITE:
            _upgrade_sqlite(sqlite_path(url))
        else:
            alone(url, lambda connection: _upgrade_server(connection, url, backup_dir, only_empty))
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        raise UpgradeFailed(
            f"the upgrade from {before.current} to {before.head} failed ({scrub(_cause(error))}); "
            + (f"the backup is in {backup_dir}" if backup_dir else "no backup was asked for")
            + ("; half of it may be done, so put that back first" if dialect_of(url) is Dialect.MARIADB else "")
        ) from error
    return status(url)


def upgrade_restored(url: str) -> None:
    """The same for a server's database that a backup was loaded into, and that nobody else uses yet."""

    def work(connection: Connection) -> None:
        if not _schema(connection).up_to_date:
            to_newest(connection)

    on_database(url, work)


def _cause(error: Exception) -> str:
    """The database's own words, where there are any; the library's go on with the whole statement."""
    return str(getattr(error, "orig", None) or error)


def require_current(url: str) -> None:
    """Refuses a database that is not at this program's schema."""
    found = status(url)
    if found.is_half_upgraded:
        raise StoreTooOld(
            "an upgrade of this database was broken off, and MariaDB can't undo what was done of it: put back the "
            "backup that was made before, or run: camserver db upgrade"
        )
    if not found.up_to_date:
        raise StoreTooOld(
            f"the database is at schema {found.current or 'none'}, this program needs {found.head}; "
            "run: camserver db upgrade"
        )


def knows(revision: str) -> bool:
    """Whether this program can bring a database of that schema up to date."""
    return revision in {script.revision for script in _scripts().walk_revisions()}


def newest() -> str:
    return _scripts().get_current_head() or ""


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(sqlite_schema.MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def status_on(connection: Connection) -> SchemaStatus:
    """The same on a connection; what was begun and is not whole is refused."""
    marks.refuse(connection)
    aim = marks.aim_of(connection, Mark.UPGRADING)
    if aim is not None:
        _refuse_newer(aim)  # tables of that one may be there already
    found = _schema(connection)
    return SchemaStatus(found.current, found.head, aim not in (None, found.current))


def _schema(connection: Connection) -> SchemaStatus:
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current.startswith(COPYING):
        raise StoreTooOld(marks.REFUSED[Mark.COPYING])
    if current is not None:
        _refuse_newer(current)
    return SchemaStatus(current, newest())


def _refuse_newer(revision: str) -> None:
    if not knows(revision):
        raise StoreTooNew(
            f"the database is at schema {revision}, which this program does not know (it knows up to {newest()}): it "
            "was made by a newer camserver; install that version again, or restore the backup made before the upgrade"
        )


def to_newest(connection: Connection) -> None:
    """Runs the migrations that are missing, whatever is marked."""
    command.upgrade(_config(connection), "head")


def alone(url: str, work: Callable[[Connection], None]) -> None:
    """Runs `work` on a server's database while nobody else changes its schema: several services may start at once;
    one backs up and upgrades, the others wait and find nothing to do."""
    on_database(url, lambda connection: _locked(connection, work))


def _locked(connection: Connection, work: Callable[[Connection], None]) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": UPGRADE_LOCK})
        work(connection)
        return
    if connection.scalar(sa.text("SELECT GET_LOCK('camserver-upgrade', 600)")) != 1:
        raise UpgradeFailed("another camserver has been upgrading this database for ten minutes; wait for it")
    try:
        work(connection)
        # Before the lock is let go: whoever gets it next must see the new version, and not upgrade again.
        connection.execute(sa.text("COMMIT"))
    finally:
        connection.execute(sa.text("SELECT RELEASE_LOCK('camserver-upgrade')"))


def _upgrade_server(connection: Connection, url: str, backup_dir: Path | None, only_empty: bool) -> None:
    found = status_on(connection)
    if connection.dialect.name != "postgresql":
        found = _without_half_made(connection, found)
    if found.up_to_date or (found.current is not None and only_empty):
        return
    if not found.is_half_upgraded:
        # A dump of half an upgrade would be taken for the backup made before it.
        _back_up(url, found, backup_dir)
    mark = Mark.MAKING if found.current is None else Mark.UPGRADING
    marks.put(connection, mark, found.head)
    to_newest(connection)
    marks.remove(connection, mark)


def _without_half_made(connection: Connection, found: SchemaStatus) -> SchemaStatus:
    """What a killed set-up left on MariaDB can't be gone on with, and nothing is in it: it is made anew."""
    if not marks.is_there(connection, Mark.MAKING):
        return found
    if not found.up_to_date and our_tables.first_full(connection) is None:
        our_tables.drop(connection, keeping=(Mark.MAKING,))
        return SchemaStatus(None, found.head)
    marks.remove(connection, Mark.MAKING)
    return found


def on_database(url: str, work: Callable[[Connection], T]) -> T:
    """Runs `work` in one transaction of its own; callable with or without a running event loop."""
    if dialect_of(url) is Dialect.SQLITE:
        return _on_sqlite(sqlite_path(url), work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_on_server(url, work))).result()


def _on_sqlite(path: Path, work: Callable[[Connection], T]) -> T:
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        return work(connection)


async def _on_server(url: str, work: Callable[[Connection], T]) -> T:
    driver = {Dialect.POSTGRES: "postgresql+asyncpg", Dialect.MARIADB: "mariadb+asyncmy"}[dialect_of(url)]
    engine = create_async_engine(sa.make_url(url).set(drivername=driver), poolclass=sa.pool.NullPool)
    connected = False
    try:
        async with engine.begin() as connection:
            connected = True
            return await connection.run_sync(work)
    except (OSError, sa.exc.DBAPIError) as error:
        # Whatever keeps us from connecting, a server that is just starting up among it, may be over in a moment.
        if not connected or _is_connection_lost(error):
            raise StoreUnavailable(
                f"the database can't be reached ({scrub(str(error))}); check that it runs and that [store] url "
                "is right"
            ) from error
        raise
    finally:
        await engine.dispose()


def _is_connection_lost(error: OSError | sa.exc.DBAPIError) -> bool:
    if isinstance(error, OSError) or error.connection_invalidated:
        return True
    number = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if isinstance(number, int):
        # MariaDB's driver calls mistakes in SQL operational errors, too: they are no outage.
        from camserver.store import mariadb

        return mariadb.is_away(number)
    return isinstance(error, sa.exc.OperationalError)


def _upgrade_sqlite(path: Path) -> None:
    draft = path.with_name(path.name + ".upgrading")
    for suffix in ("", "-wal", "-shm", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        dumps.copy_sqlite(path, draft)
    _on_sqlite(draft, to_newest)
    with closing(sqlite3.connect(draft)) as connection:
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise sqlite3.IntegrityError(f"{len(broken)} rows lost their parent in the upgrade")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    if path.exists():
        dumps.fold_log_in(path)
    draft.replace(path)
    folders.sync(path.parent)


def _back_up(url: str, found: SchemaStatus, backup_dir: Path | None) -> None:
    """Copies the database aside, if there is one and a backup is wanted. Servers are dumped with their own tools,
    which also restore."""
    if found.current is None or backup_dir is None:
        return
    target = backup_dir / f"camserver-{found.current}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if dialect_of(url) is Dialect.SQLITE:
        dumps.copy_sqlite(sqlite_path(url), target.with_suffix(".db"))
        return
    try:
        dumps.dump_server(url, target.with_suffix(dumps.suffix_of(url)))
    except CamError as error:
        raise UpgradeFailed(
            f"the backup before the upgrade failed: {error.message}; nothing was changed. Or make a backup yourself "
            "and run: camserver db upgrade --no-backup"
        ) from error
