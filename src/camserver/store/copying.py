"""All rows of one database into another of any kind, a page a transaction: the way from SQLite to a server.

While it lasts, from before the first table is made, the target is marked as a copy that is not whole, so no server
starts on it. A copy that was broken off goes on where it was: pages are copied in the order of the source's keys, so
as many rows as the target has are the first ones of the source. One that was broken off while its schema was being
made, or that another version began, is begun anew. At the end every table is read on both sides, and counts and
hashes must be equal; then numbers are set to go on behind the highest that the source ever gave, and only then the
mark goes. The source must not change meanwhile, which is for the caller to see to.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from camserver.base.errors import CheckFailed, Conflict
from camserver.store import marks, migrate, our_tables
from camserver.store.core import Runs
from camserver.store.marks import Mark
from camserver.store.our_tables import VERSION_TABLE
from camserver.store.tables import audit_guards, metadata
from camserver.store.tables.columns import Json
from camserver.store.tx import Tx

PAGE = 500

Key = tuple[int | str, ...]
# Of a table: rows that are done with, and all of them.
Told = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str  # json, bytes, float, int, text


@dataclass(frozen=True, slots=True)
class Plan:
    """A table as it is copied."""

    name: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    numbered: str | None  # the column that the database numbers by itself

    @property
    def names(self) -> str:
        return ", ".join(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a table holds. The hash is a sum over rows, so that no order of theirs matters."""

    rows: int = 0
    hash: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    rows: tuple[tuple[Any, ...], ...]
    end: Key | None  # behind which the next page begins; None: this was the last


def plans() -> tuple[Plan, ...]:
    """Every table, parents before their children."""
    return tuple([_plan(table) for table in metadata.sorted_tables])


def _plan(table: sa.Table) -> Plan:
    numbered = [column.name for column in table.primary_key.columns if column.autoincrement is True]
    return Plan(
        table.name,
        tuple([Column(column.name, _kind(column.type)) for column in table.columns]),
        tuple([column.name for column in table.primary_key.columns]),
        numbered[0] if numbered else None,
    )


def _kind(kind: sa.types.TypeEngine[Any]) -> str:
    if kind is Json or isinstance(kind, sa.JSON):
        return "json"
    if isinstance(kind, sa.LargeBinary):
        return "bytes"
    if isinstance(kind, (sa.Float, sa.Numeric)):
        return "float"
    return "int" if isinstance(kind, sa.Integer) else "text"


async def copy(source: Runs, target: Runs, target_url: str, told: Told) -> dict[str, Standing]:
    """Copies what is missing and compares everything. `target_url` is the one that `target` was opened with."""
    copied: dict[str, Standing] = {}
    for plan in plans():
        total = (await source.read(count, plan)).rows
        done = (await target.read(count, plan)).rows
        after: Key | None = await source.read(key_at, plan, done - 1) if done else ()
        while after is not None and done < total:
            page = await source.read(read, plan, after)
            await target.write(insert, plan, page.rows)
            done, after = done + len(page.rows), page.end
            told(plan.name, done, total)
    given: dict[str, int] = {}
    for plan in plans():
        copied[plan.name] = await compare(source, target, plan)
        if plan.numbered is not None:
            given[plan.name] = await source.read(highest_given, plan)
    await asyncio.to_thread(migrate.on_database, target_url, partial(_finish, given=given))
    return copied


async def compare(source: Runs, target: Runs, plan: Plan) -> Standing:
    """Counts and hashes, which must be equal."""
    ours, theirs = await standing(source, plan), await standing(target, plan)
    if ours != theirs:
        raise CheckFailed(
            f"the copy of {plan.name} is not equal: {ours.rows} rows here and {theirs.rows} there, or other values. "
            "The source changed since the copy was begun, or somebody wrote to the target; empty the target "
            "database and copy again. Nothing was changed here"
        )
    return ours


async def standing(store: Runs, plan: Plan) -> Standing:
    rows, total = 0, 0
    after: Key | None = ()
    while after is not None:
        page = await store.read(read, plan, after)
        rows += len(page.rows)
        total = (total + sum(_hash(plan, row) for row in page.rows)) % (1 << 256)
        after = page.end
    return Standing(rows, total)


async def count(tx: Tx, plan: Plan) -> Standing:
    row = await tx.one(f"SELECT count(*) AS n FROM {plan.name}")
    return Standing(0 if row is None else int(row["n"]))


async def key_at(tx: Tx, plan: Plan, index: int) -> Key:
    """The key of the row that has so many before it."""
    keys = ", ".join(plan.keys)
    row = await tx.one(f"SELECT {keys} FROM {plan.name} ORDER BY {keys} LIMIT 1 OFFSET :index", index=index)
    if row is None:
        raise Conflict(
            f"the target has more rows of {plan.name} than the source; empty the target database and copy again"
        )
    return tuple([row[name] for name in plan.keys])


async def read(tx: Tx, plan: Plan, after: Key) -> Page:
    """The rows behind a key, in the order of this database; () is before the first."""
    keys = ", ".join(plan.keys)
    behind = f"WHERE {_behind(plan.keys)} " if after else ""
    rows = await tx.all(
        f"SELECT {plan.names} FROM {plan.name} {behind}ORDER BY {keys} LIMIT {PAGE}",
        **{f"k{at}": value for at, value in enumerate(after)},
    )
    end = tuple([rows[-1][name] for name in plan.keys]) if len(rows) == PAGE else None
    return Page(tuple([tuple([_plain(column, row[column.name]) for column in plan.columns]) for row in rows]), end)


def _behind(keys: Sequence[str]) -> str:
    """Written so that every database finds the place by its index, which MariaDB does not for (a, b) > (x, y)."""
    text = f"{keys[-1]} > :k{len(keys) - 1}"
    for at in range(len(keys) - 2, -1, -1):
        text = f"({keys[at]} > :k{at} OR ({keys[at]} = :k{at} AND {text}))"
    return f"{keys[0]} >= :k0 AND {text}"


def _plain(column: Column, value: Any) -> Any:
    if value is None or (column.kind == "json" and isinstance(value, (str, bytes))):
        return value
    if column.kind == "json":
        # SQLite keeps JSON that is a bare number as a number.
        return json.dumps(value)
    return {"bytes": bytes, "float": float, "int": int, "text": str}[column.kind](value)


def _hash(plan: Plan, row: Sequence[Any]) -> int:
    """The same on each database: JSON by what it says, since some rewrite its text."""
    shown: list[object] = []
    for column, value in zip(plan.columns, row, strict=True):
        if column.kind == "json" and value is not None:
            shown.append(
                {"json": json.loads(value, parse_float=_number) if isinstance(value, (str, bytes)) else value}
            )
        elif isinstance(value, bytes):
            shown.append({"bytes": base64.b64encode(value).decode()})
        else:
            shown.append(value)
    text = json.dumps(shown, ensure_ascii=False, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


def _number(text: str) -> float | int:
    """1e2 and 100 are the same number, and some databases write the one for the other."""
    value = float(text)
    return int(value) if value.is_integer() else value


async def insert(tx: Tx, plan: Plan, rows: tuple[tuple[Any, ...], ...]) -> None:
    names = [column.name for column in plan.columns]
    values = ", ".join(f":{name}" for name in names)
    await tx.many(
        f"INSERT INTO {plan.name} ({plan.names}) VALUES ({values})",
        [dict(zip(names, row, strict=True)) for row in rows],
    )


async def highest_given(tx: Tx, plan: Plan) -> int:
    """The highest number that SQLite gave in a table: that of a row that is gone, too, where it promised never to
    give one twice (`columns.key`)."""
    row = await tx.one(
        f"SELECT max(COALESCE((SELECT max({plan.numbered}) FROM {plan.name}), 0), "
        "COALESCE((SELECT max(seq) FROM sqlite_sequence WHERE name = :name), 0)) AS n",
        name=plan.name,
    )
    return 0 if row is None else int(row["n"])


def prepare(target_url: str) -> None:
    """Makes the schema in an empty database and marks it, or finds the mark of a copy that was broken off."""
    migrate.alone(target_url, _prepare)


def _prepare(connection: Connection) -> None:
    if _is_ready(connection):
        return
    if not marks.is_there(connection, Mark.COPYING):
        _refuse_used(connection)
        marks.put(connection, Mark.COPYING)
    # Tables without rows, or half a schema of a copy that was killed, which MariaDB can't go on with.
    our_tables.drop(connection, keeping=(Mark.COPYING,))
    migrate.to_newest(connection)
    # Rows of the audit log come with their batches, which its triggers let nobody write.
    for statement in audit_guards.drops(_dialect(connection)):
        connection.execute(sa.text(statement))
    _set_version(connection, migrate.COPYING + migrate.newest())


def _refuse_used(connection: Connection) -> None:
    migrate.status_on(connection)  # a newer one, or half of something else
    if our_tables.first_full(connection) is not None:
        raise Conflict(
            "the target database has rows already; make a new, empty database for the copy, or empty that one"
        )


def _is_ready(connection: Connection) -> bool:
    """Whether rows can be copied into it."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return False
    return _version(connection) == migrate.COPYING + migrate.newest()


def _version(connection: Connection) -> str | None:
    found: str | None = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return found


def _finish(connection: Connection, given: Mapping[str, int]) -> None:
    dialect = _dialect(connection)
    for plan in plans():
        if plan.numbered is not None:
            connection.exec_driver_sql(_numbers_go_on(plan, dialect, given[plan.name] + 1))
    for statement in (*audit_guards.drops(dialect), *audit_guards.guards(dialect)):
        connection.exec_driver_sql(statement)
    # Before the version, which is a mark as well: with neither, servers start.
    marks.remove(connection, Mark.COPYING)
    _set_version(connection, migrate.newest())


def _numbers_go_on(plan: Plan, dialect: str, next_number: int) -> str:
    if dialect == "postgresql":
        return f"SELECT setval(pg_get_serial_sequence('{plan.name}', '{plan.numbered}'), {next_number}, false)"
    return f"ALTER TABLE {plan.name} AUTO_INCREMENT = {next_number}"


def _set_version(connection: Connection, version: str) -> None:
    connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = :version"), {"version": version})


def _dialect(connection: Connection) -> str:
    return "mariadb" if connection.dialect.name == "mysql" else connection.dialect.name
