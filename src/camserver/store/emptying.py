"""Whether a database holds an installation, and taking all of it out again before a backup is put back."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from camserver.store import migrate
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.sql import Dialect
from camserver.store.tables import audit_guards, metadata

_VERSION = "alembic_version"


def is_empty(url: str) -> bool:
    """Whether there is no table of ours."""
    if dialect_of(url) is Dialect.SQLITE:
        return not sqlite_path(url).exists()
    return migrate.on_database(url, lambda connection: not _ours(connection))


def empty(url: str) -> None:
    """Drops our tables on a server; those of other programs stay. A SQLite file is replaced as a whole instead."""
    if dialect_of(url) is not Dialect.SQLITE:
        migrate.on_database(url, _drop)


def _ours(connection: Connection) -> list[str]:
    there = sa.inspect(connection).get_table_names()
    return [name for name in there if name in metadata.tables or name == _VERSION]


def _drop(connection: Connection) -> None:
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        for statement in audit_guards.drops("postgresql"):
            connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 0")
    for name in _ours(connection):
        connection.exec_driver_sql(f"DROP TABLE {name}{' CASCADE' if is_postgres else ''}")
