"""MariaDB by asyncmy.

READ COMMITTED, since its default isolation met 2.5 deadlocks a job; matched rows are counted as in the others.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncmy.converters
import asyncmy.errors
from asyncmy.constants import CLIENT
from asyncmy.cursors import DictCursor

from camserver.base.errors import CamError, StoreUnavailable
from camserver.base.secrets import Secret
from camserver.store import row_sets
from camserver.store.pool import Pool
from camserver.store.server_store import (
    ANSWER_TIMEOUT_SEC,
    CONNECT_TIMEOUT_SEC,
    IDLE_TRANSACTION_TIMEOUT_SEC,
    STATEMENT_TIMEOUT_SEC,
    ServerStore,
    unavailable,
    violated,
)
from camserver.store.sql import Dialect, EmptyList, Sql, render
from camserver.store.tx import F, Row, Tx, maker_of, returned_pair

STATEMENTS_AT_ONCE = 64
# Up to four bytes each, and 16 MB is the server's default bound of a statement.
STATEMENT_CHARS_MAX = 1_000_000
_DEADLOCK, _LOCK_WAIT_TIMEOUT, _RECORD_CHANGED = 1213, 1205, 1020
_DISK_FULL = {1021, 1114, 3}
# The driver logs notes of MariaDB ("trigger does not exist", where it was to go if it does) as warnings. What matters
# is an error in strict mode.
logging.getLogger("asyncmy").setLevel(logging.ERROR)


class MariaTx(Tx):
    dialect = Dialect.MARIADB

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._connection = connection

    async def _execute(self, sql: str | Sql, params: Mapping[str, object]) -> Any:
        statement = render(sql, Dialect.MARIADB)
        cursor = self._connection.cursor(DictCursor)
        await _ask(cursor, statement.text, statement.arguments(Dialect.MARIADB, params))
        return cursor

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        cursor = await self._execute(sql, params)
        row: Row | None = await cursor.fetchone()
        return row

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        cursor = await self._execute(sql, params)
        rows: Sequence[Row] = await cursor.fetchall()
        return rows

    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        return list(map(maker_of(kind), await self._tuples(sql, params)))

    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        rows = await self._tuples(sql, params)
        return rows[0] if rows else None

    async def _tuples(self, sql: str | Sql, params: Mapping[str, object]) -> Sequence[tuple[Any, ...]]:
        statement = render(sql, Dialect.MARIADB)
        cursor = self._connection.cursor()
        await _ask(cursor, statement.text, statement.arguments(Dialect.MARIADB, params))
        rows: Sequence[tuple[Any, ...]] = await cursor.fetchall()
        return rows

    async def run(self, sql: str | Sql, **params: object) -> int:
        cursor = await self._execute(sql, params)
        return int(cursor.rowcount)

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        statement = render(sql, Dialect.MARIADB)
        arguments = [statement.arguments(Dialect.MARIADB, row) for row in rows]
        cursor = self._connection.cursor()
        if row_sets.parted_values(statement.text) is not None:
            for text in _inserts(cursor, statement.text, arguments):
                await _ask(cursor, text)
            return
        # The driver would run these row by row, each with its own way to the server and back.
        for first in range(0, len(arguments), STATEMENTS_AT_ONCE):
            texts = [cursor.mogrify(statement.text, one) for one in arguments[first : first + STATEMENTS_AT_ONCE]]
            async with asyncio.timeout(ANSWER_TIMEOUT_SEC):
                await cursor.execute(";".join(texts))
                # An error of any of them is raised here; the server runs none after it.
                while await cursor.nextset():
                    pass

    async def by_key(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        if len(rows) < 2:
            await self.many(sql, rows)
            return
        together = row_sets.joined(sql)
        cursor = self._connection.cursor()
        for update in _updates(cursor, together, rows):
            await _ask(cursor, update)

    async def _inserted(self, sql: str, rows: Sequence[Mapping[str, object]]) -> dict[object, int]:
        key, name = returned_pair(sql)
        statement = render(sql, Dialect.MARIADB)
        arguments = [statement.arguments(Dialect.MARIADB, row) for row in rows]
        cursor = self._connection.cursor(DictCursor)
        found: dict[object, int] = {}
        for text in _inserts(cursor, statement.text, arguments):
            await _ask(cursor, text)
            found.update({row[name]: row[key] for row in await cursor.fetchall()})
        return found


async def _ask(cursor: Any, text: str, arguments: tuple[object, ...] | None = None) -> None:
    """Runs a statement. The driver's own limit is by `asyncio.wait_for`, which may swallow a cancellation."""
    async with asyncio.timeout(ANSWER_TIMEOUT_SEC):
        await cursor.execute(text, arguments)


def _inserts(cursor: Any, text: str, arguments: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """An INSERT … VALUES of many rows, in parts that the server takes. The driver's own way knows only plain values
    and no RETURNING."""
    parts = row_sets.parted_values(text)
    assert parts is not None
    head, values, tail = parts[0] % (), parts[1], parts[2] % ()
    for written in _portions(cursor.mogrify(values, one) for one in arguments):
        yield f"{head}{','.join(written)}{tail}"


def _updates(cursor: Any, text: row_sets.Joined, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """An UPDATE of many rows, in parts that the server takes."""
    arguments = [tuple([row[name] for name in text.names]) for row in rows]
    place = 0
    for written in _portions(cursor.mogrify(text.other, one) for one in arguments):
        # The first one names the columns.
        given = [cursor.mogrify(text.first, arguments[place])]
        if len(written) > 1:
            given.append(f" UNION ALL VALUES {','.join(written[1:])}")
        yield f"{text.head}{''.join(given)}{text.tail}"
        place += len(written)


def _portions(rows: Iterable[str]) -> Iterator[list[str]]:
    """The rows of one statement after the other."""
    written: list[str] = []
    size = 0
    for row in rows:
        if written and size + len(row) > STATEMENT_CHARS_MAX:
            yield written
            written, size = [], 0
        written.append(row)
        size += len(row)
    yield written


class MariaStore(ServerStore[Any]):
    dialect = Dialect.MARIADB

    def __init__(self, url: Secret, *, pool_size: int, acquire_timeout_sec: float) -> None:
        super().__init__()
        self._url = url
        self.pool = Pool(self._connect, self._disconnect, size_max=pool_size, acquire_timeout_sec=acquire_timeout_sec)

    async def _connect(self) -> Any:
        # The driver's own limit ends with the connection; it would wait for a greeting without end.
        async with asyncio.timeout(CONNECT_TIMEOUT_SEC):
            try:
                connection = await asyncmy.connect(**connect_arguments(self._url))
            except RuntimeError as error:
                # So the driver puts it that the connection was reset while it was being set up.
                raise ConnectionResetError(str(error)) from error
            cursor = connection.cursor()
            for statement in _session_statements():
                await cursor.execute(statement)
            return connection

    async def _disconnect(self, connection: Any) -> None:
        connection.close()

    def _tx(self, connection: Any) -> Tx:
        return MariaTx(connection)

    async def _command(self, connection: Any, command: str) -> None:
        await _ask(connection.cursor(), command)

    async def database_time_ms(self) -> int | None:
        return await self.read(_database_time_ms)

    def _asks_for_retry(self, error: Exception) -> bool:
        return _number(error) in (_DEADLOCK, _LOCK_WAIT_TIMEOUT, _RECORD_CHANGED)

    def _translated(self, error: Exception) -> CamError | None:
        if isinstance(error, asyncmy.errors.IntegrityError):
            return violated("MariaDB", error)
        if _number(error) in _DISK_FULL:
            return StoreUnavailable("MariaDB's disk is full; free space there, then writing goes on by itself")
        if isinstance(error, _AWAY) or is_away(_number(error)):
            return unavailable("MariaDB", error)
        return None


_AWAY = (OSError, TimeoutError, EOFError, asyncmy.errors.InterfaceError)
# Of the server: full, refusing this user or database, shutting down, out of patience or out of memory. The driver
# calls mistakes in SQL operational errors too; those must not look like an outage.
_AWAY_NUMBERS = {1037, 1038, 1040, 1041, 1042, 1043, 1044, 1045, 1049, 1053, 1077, 1079, 1129, 1130, 1203, 1226, 1290}
_AWAY_NUMBERS |= {1317, 1836, 1927, 1969, 4031, *range(1152, 1162)}


def is_away(number: int | None) -> bool:
    # 2000 to 2999 are the client's own: it could not connect, or the connection broke.
    return number is not None and (2000 <= number < 3000 or number in _AWAY_NUMBERS)


def _number(error: Exception) -> int | None:
    if isinstance(error, asyncmy.errors.MySQLError) and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return None


def _session_statements() -> tuple[str, ...]:
    return (
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        # As our columns are, so that a given text compares with them wherever it stands.
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 10, "
        f"max_statement_time = {STATEMENT_TIMEOUT_SEC}, idle_transaction_timeout = {IDLE_TRANSACTION_TIMEOUT_SEC}, "
        "time_zone = '+00:00'",
    )


def connect_arguments(url: Secret) -> dict[str, object]:
    """asyncmy's arguments from a mysql:// or mariadb:// URL."""
    parts = urlsplit(url.reveal())
    return {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "db": parts.path.lstrip("/"),
        "charset": "utf8mb4",
        "autocommit": True,
        "client_flag": CLIENT.FOUND_ROWS,
        "connect_timeout": CONNECT_TIMEOUT_SEC,
        "conv": {**asyncmy.converters.conversions, EmptyList: _empty_list},
    }


def _empty_list(*_: object) -> str:
    # A literal (NULL) would make NOT IN unknown instead of true.
    return "(SELECT NULL FROM DUAL WHERE FALSE)"


async def _database_time_ms(tx: Tx) -> int:
    row = await tx.one("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED) AS now_ms")
    assert row is not None
    return int(row["now_ms"])
