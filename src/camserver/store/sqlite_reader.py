"""Reads of a SQLite file beside the server that owns it, or of a copy: one connection, no writes."""

import sqlite3
from typing import ParamSpec, TypeVar

from camserver.base.errors import Bug
from camserver.store.core import Operation
from camserver.store.sql import Dialect
from camserver.store.sqlite_tx import SqliteTx
from camserver.store.sqlite_writer import translated
from camserver.store.tx import drive

P = ParamSpec("P")
R = TypeVar("R")


class SqliteReader:
    """As a store that only reads. For tools: an operation runs in the calling thread."""

    dialect = Dialect.SQLITE

    def __init__(self, connection: sqlite3.Connection, *, one_moment: bool) -> None:
        self._connection = connection
        if one_moment:
            connection.execute("BEGIN")

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return drive(operation(SqliteTx(self._connection), *args, **kwargs))
        except sqlite3.DatabaseError as error:
            raise translated(error) from error

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        raise Bug("a reader was asked to write")

    async def database_time_ms(self) -> int | None:
        return None

    def close(self) -> None:
        self._connection.close()
