"""PostgreSQL by asyncpg: prepared statements, a literal SQL text per statement, READ COMMITTED."""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from camserver.base.errors import Bug, CamError, StoreUnavailable
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
from camserver.store.sql import Dialect, Sql, render
from camserver.store.tx import F, Row, Tx, maker_of, returned_pair


class PostgresTx(Tx):
    dialect = Dialect.POSTGRES

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._connection = connection

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        statement = render(sql, Dialect.POSTGRES)
        row: Row | None = await self._connection.fetchrow(
            statement.text, *statement.arguments(Dialect.POSTGRES, params)
        )
        return row

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        statement = render(sql, Dialect.POSTGRES)
        rows: Sequence[Row] = await self._connection.fetch(
            statement.text, *statement.arguments(Dialect.POSTGRES, params)
        )
        return rows

    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        # A row of this driver is a sequence of its values.
        rows: Any = await self.all(sql, **params)
        return list(map(maker_of(kind), rows))

    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        row: Any = await self.one(sql, **params)
        return None if row is None else tuple(row)

    async def run(self, sql: str | Sql, **params: object) -> int:
        statement = render(sql, Dialect.POSTGRES)
        status: str = await self._connection.execute(statement.text, *statement.arguments(Dialect.POSTGRES, params))
        # "UPDATE 3", "INSERT 0 1", "DELETE 2"; other commands have no count.
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            statement = render(sql, Dialect.POSTGRES)
            await self._connection.executemany(
                statement.text, [statement.arguments(Dialect.POSTGRES, row) for row in rows]
            )

    async def at_once(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        if len(rows) < 2:
            await self.many(sql, rows)
            return
        text = sql if isinstance(sql, str) else sql.on(Dialect.POSTGRES)
        names, together = await self._together(text)
        await self.run(together, **row_sets.columns(names, rows))

    async def _inserted(self, sql: str, rows: Sequence[Mapping[str, object]]) -> dict[object, int]:
        if len(rows) < 2:
            return await super()._inserted(sql, rows)
        key, name = returned_pair(sql)
        names, together = await self._together(sql)
        return {row[name]: row[key] for row in await self.all(together, **row_sets.columns(names, rows))}

    async def _together(self, text: str) -> tuple[tuple[str, ...], str]:
        """The statement for many rows. Which types its arrays have, the server says of the statement for one."""
        known = _TOGETHER.get(text)
        if known is None:
            statement = render(text, Dialect.POSTGRES)
            asked = await self._connection.prepare(statement.text)
            types = [one.name for one in asked.get_parameters()]
            together = row_sets.unnested(text, dict(zip(statement.names, types, strict=True)))
            known = _TOGETHER[text] = statement.names, together
        return known


# By the statement for one row. Bounded, as the texts of our statements are.
_TOGETHER: dict[str, tuple[tuple[str, ...], str]] = {}


class PostgresStore(ServerStore[Any]):
    dialect = Dialect.POSTGRES

    def __init__(self, url: Secret, *, pool_size: int, acquire_timeout_sec: float) -> None:
        super().__init__()
        self._url = url
        self.pool = Pool(self._connect, self._disconnect, size_max=pool_size, acquire_timeout_sec=acquire_timeout_sec)

    async def _connect(self) -> Any:
        return await asyncpg.connect(
            self._url.reveal(),
            timeout=CONNECT_TIMEOUT_SEC,
            command_timeout=ANSWER_TIMEOUT_SEC,
            server_settings={
                "application_name": "camserver",
                "jit": "off",
                # What is asked is short: to start another process takes longer, and from others.
                "max_parallel_workers_per_gather": "0",
                "statement_timeout": f"{STATEMENT_TIMEOUT_SEC}s",
                "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_TIMEOUT_SEC}s",
            },
        )

    async def _disconnect(self, connection: Any) -> None:
        # Without a farewell: the connection may be in any state, and the server notices by itself.
        connection.terminate()

    def _tx(self, connection: Any) -> Tx:
        return PostgresTx(connection)

    async def _command(self, connection: Any, command: str) -> None:
        done: str = await connection.execute(command)
        if command == "COMMIT" and done != "COMMIT":
            # PostgreSQL answers so when a statement failed before; without this the loss would look like success.
            raise Bug("an operation went on after a statement of it failed; nothing of it was kept")

    async def database_time_ms(self) -> int | None:
        return await self.read(_database_time_ms)

    def _asks_for_retry(self, error: Exception) -> bool:
        return isinstance(error, (asyncpg.SerializationError, asyncpg.DeadlockDetectedError))

    def _translated(self, error: Exception) -> CamError | None:
        if isinstance(error, asyncpg.IntegrityConstraintViolationError):
            return violated("PostgreSQL", error)
        if isinstance(error, _AWAY):
            return unavailable("PostgreSQL", error)
        if isinstance(error, asyncpg.DiskFullError):
            return StoreUnavailable("PostgreSQL's disk is full; free space there, then writing goes on by itself")
        return None


_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What the driver says on a connection that the server ended while it lay idle in the pool.
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)


async def _database_time_ms(tx: Tx) -> int:
    row = await tx.one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms")
    assert row is not None
    return int(row["now_ms"])
