"""Sets a database up, upgrades it or copies into it in a process of its own, and dies by kill -9 at a chosen moment.

python -m tests.store.dying open MIGRATIONS URL MOMENT
python -m tests.store.dying upgrade MIGRATIONS URL MOMENT
python -m tests.store.dying copy SOURCE TARGET MOMENT
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from alembic import command
from sqlalchemy.engine import Connection

from camserver.base.secrets import Secret
from camserver.store import copy_database, copying, marks, migrate, open_store, sqlite_schema, upgrade_database

MADE = ("in the first migration's tables", "between migrations", "before the mark goes")
COPIED = (*MADE[:2], "before rows", "at the end")
HALF_WAY = "0009"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _half_way(connection: Connection) -> None:
    command.upgrade(migrate._config(connection), HALF_WAY)
    die()


def _in_tables(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE tenants (tenant_id INTEGER PRIMARY KEY)")
    die()


def _marked_yet(connection: Connection, mark: marks.Mark) -> None:
    if connection.dialect.name != "postgresql":
        # As the statement that removes it does first.
        connection.exec_driver_sql("COMMIT")
    die()


def arm(moment: str) -> None:
    if moment == "in the first migration's tables":
        migrate.to_newest = _in_tables
    elif moment == "between migrations":
        migrate.to_newest = _half_way
    elif moment == "before the mark goes":
        marks.remove = _marked_yet
    elif moment == "before rows":
        copying.copy = lambda *_: die()  # type: ignore[assignment]  # it does not come back
    elif moment == "at the end":
        whole = copying._set_version
        copying._set_version = lambda connection, version: (
            whole(connection, version) if version.startswith(migrate.COPYING) else die()
        )


def main(work: str, first: str, second: str, moment: str) -> None:
    arm(moment)
    if work == "copy":
        asyncio.run(copy_database(Secret(first), Secret(second), None, lambda *_: None))
        return
    sqlite_schema.MIGRATIONS = Path(first)
    if work == "upgrade":
        asyncio.run(upgrade_database(Secret(second), Path(first).parent / "backups"))
    else:
        asyncio.run(open_store(second))


if __name__ == "__main__":
    main(*sys.argv[1:])
