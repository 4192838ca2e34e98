"""One SQLite connection and the transaction over it. Its coroutines never suspend; see tx.drive."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, get_args

import orjson

from camserver.store.sql import Dialect, Sql, render
from camserver.store.tx import SHOWN_AGAIN, F, Row, Tx

LIBRARY_VERSION = sqlite3.sqlite_version
STATEMENTS_CACHED = 512
# Rows of at least so many columns are given as dicts: sqlite3.Row finds a column by looking at one after the other.
WIDE_COLUMNS = 16
# Only a foreign program (a backup tool, a shell) can hold the file: the owner lock keeps other servers out.
BUSY_TIMEOUT_MS = 10_000


# Pages of the file that a connection keeps in memory.
CACHE_KIB = 32_768


def connect(path: str, *, read_only: bool = False, cache_kib: int = CACHE_KIB) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, cached_statements=STATEMENTS_CACHED, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Without it a row that REPLACE deletes fires no trigger, and those of the audit log let it go.
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _found(cursor: sqlite3.Cursor) -> Sequence[Row]:
    rows: list[sqlite3.Row] = cursor.fetchall()
    if not rows or len(rows[0]) < WIDE_COLUMNS:
        return rows
    names = rows[0].keys()
    return [dict(zip(names, row, strict=True)) for row in rows]


@lru_cache(maxsize=512)
def _together(kind: type[tuple[Any, ...]], sql: str | Sql) -> str:
    """The same rows as one text, each a line of JSON; NULL without any.

    The driver lets go of the interpreter at each row. Where other threads want it, getting it back for each of fifty
    rows takes longer than to read them.
    """
    text = sql if isinstance(sql, str) else sql.on(Dialect.SQLITE)
    line = f"JSON_ARRAY({', '.join(map(_as_json, *_fields(kind)))})"
    return f"SELECT GROUP_CONCAT({line}, CHAR(10)) FROM ({text})"


def _rows_of(kind: type[F], lines: str) -> list[F]:
    if kind not in SHOWN_AGAIN:
        # Their columns were asked for by the kind's names, so as many are there.
        return list(map(partial(tuple.__new__, kind), orjson.loads(f"[{lines.replace(_NEW_LINE, ',')}]")))
    known, found = _known[kind], []
    for line in lines.split(_NEW_LINE):
        row = known.get(line)
        if row is None:
            if len(known) >= KNOWN_MAX:
                known.clear()
            row = known[line] = tuple.__new__(kind, orjson.loads(line))
        found.append(row)
    return found


_NEW_LINE = "\n"  # within a line, JSON writes it otherwise
# Rows of the kinds in `SHOWN_AGAIN`, by their line.
KNOWN_MAX = 4_096
_known: dict[type, dict[str, Any]] = defaultdict(dict)


def _fields(kind: type[tuple[Any, ...]]) -> tuple[tuple[str, ...], list[Any]]:
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of a NamedTuple
    return names, [kind.__annotations__[name] for name in names]


def _as_json(column: str, type_: Any) -> str:
    # Else SQLite writes a number with 15 digits, and it would be another one.
    return f"IIF({column} IS NULL, NULL, JSON(PRINTF('%!.17g', {column})))" if float in _types(type_) else column


def _types(type_: Any) -> tuple[Any, ...]:
    return get_args(type_) or (type_,)


class SqliteTx(Tx):
    dialect = Dialect.SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self.rules = False  # a statement changed, or may have changed, what sql.RULING names

    def _execute(self, sql: str | Sql, params: Mapping[str, object]) -> sqlite3.Cursor:
        statement = render(sql, Dialect.SQLITE)
        self.rules |= statement.rules
        return self._connection.execute(statement.text, statement.arguments(Dialect.SQLITE, params))

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        # All rows are fetched: a statement with RETURNING that is not stepped to its end stays open.
        rows = _found(self._execute(sql, params))
        return rows[0] if rows else None

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        return _found(self._execute(sql, params))

    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        statement = render(_together(kind, sql), Dialect.SQLITE)
        [[lines]] = self._connection.execute(statement.text, statement.arguments(Dialect.SQLITE, params))
        return _rows_of(kind, lines) if lines is not None else []

    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        rows = self._execute(sql, params).fetchall()
        return tuple(rows[0]) if rows else None

    async def run(self, sql: str | Sql, **params: object) -> int:
        return max(self._execute(sql, params).rowcount, 0)

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            statement = render(sql, Dialect.SQLITE)
            self.rules |= statement.rules
            self._connection.executemany(statement.text, [statement.arguments(Dialect.SQLITE, row) for row in rows])
