"""Marks of work on a server's database that is not whole before its end: tables whose names say what was begun.

A table, since MariaDB commits at every statement that changes the schema, so that nothing else is sure to be there
before the first of them. Whoever finds a mark knows that nobody finished. A mark may have an aim, a word that is the
name of its one column, since that is there with the table or not at all; it has no rows.
"""

from enum import StrEnum
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from camserver.base.errors import StoreTooOld


class Mark(StrEnum):
    """Values are names of tables."""

    RESTORING = "camserver_restoring"  # the database is emptied and filled from a backup; see emptying.py
    COPYING = "camserver_copying"  # `camserver db copy` makes the schema or fills it; see copying.py
    # MariaDB only, see migrate.py:
    MAKING = "camserver_making"  # the schema is made in a database that was empty
    UPGRADING = "camserver_upgrading"  # a schema that was whole is changed; the aim is the one it gets


# What keeps servers from starting; the others are dealt with by whoever upgrades.
REFUSED: Final = {
    Mark.RESTORING: "a backup was being put back into this database and is not whole; run the same "
    "`camserver restore` again with --force",
    Mark.COPYING: "a copy into this database is not whole; run `camserver db copy` again to its end",
}


_AIM: Final = "to_"


def names() -> frozenset[str]:
    return frozenset(mark.value for mark in Mark)


def is_there(connection: Connection, mark: Mark) -> bool:
    return connection.dialect.name != "sqlite" and sa.inspect(connection).has_table(mark.value)


def aim_of(connection: Connection, mark: Mark) -> str | None:
    """None: it is not marked so."""
    if connection.dialect.name == "sqlite":
        return None
    try:
        columns = sa.inspect(connection).get_columns(mark.value)
    except sa.exc.NoSuchTableError:
        # Not asked for before: another process may remove the mark in between.
        return None
    return str(columns[0]["name"]).removeprefix(_AIM)


def put(connection: Connection, mark: Mark, aim: str = "whole") -> None:
    """In place of one that is there: at no moment there is none, by one statement or by the transaction."""
    columns = f"({_AIM}{aim} INTEGER PRIMARY KEY)"
    if connection.dialect.name == "postgresql":
        remove(connection, mark)
        connection.exec_driver_sql(f"CREATE TABLE {mark.value} {columns}")
    else:
        connection.exec_driver_sql(f"CREATE OR REPLACE TABLE {mark.value} {columns}")


def remove(connection: Connection, mark: Mark) -> None:
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {mark.value}")


def refuse(connection: Connection) -> None:
    """Raises when what is in the database is not whole."""
    for mark, words in REFUSED.items():
        if is_there(connection, mark):
            raise StoreTooOld(words)
