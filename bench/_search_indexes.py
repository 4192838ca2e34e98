"""Indexes of the tables that a bench fills: taken away while millions of rows come, and made again from all of them.

That takes a fraction of the time, and the indexes are as the product makes them: from its own tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Index, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex

from camserver.store import Store, Tx
from camserver.store.sql import Dialect
from camserver.store.tables import metadata


@dataclass(frozen=True, slots=True)
class _Key:
    table: str
    name: str
    columns: str
    is_constraint: bool
    is_unique: bool
    create: str  # on SQLite and PostgreSQL


def _keys(tables: Sequence[str], dialect: Dialect) -> Iterator[_Key]:
    for name in tables:
        table = metadata.tables[name]
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            yield _of_index(table, index, dialect)
        # On SQLite they are a part of their table.
        if dialect is not Dialect.SQLITE:
            for constraint in table.constraints:
                if isinstance(constraint, UniqueConstraint):
                    columns = ", ".join(column.name for column in constraint.columns)
                    create = f"ALTER TABLE {name} ADD CONSTRAINT {constraint.name} UNIQUE ({columns})"
                    yield _Key(name, str(constraint.name), columns, True, True, create)


def _of_index(table: Table, index: Index, dialect: Dialect) -> _Key:
    compiled = CreateIndex(index).compile(
        dialect=sqlite.dialect() if dialect is Dialect.SQLITE else postgresql.dialect()  # type: ignore[no-untyped-call]
    )
    columns = ", ".join(column.name for column in index.columns)
    return _Key(table.name, str(index.name), columns, False, bool(index.unique), str(compiled))


async def drop(store: Store, tables: Sequence[str]) -> None:
    await store.write(_drop, tuple(tables))


async def _drop(tx: Tx, tables: tuple[str, ...]) -> None:
    for key in _keys(tables, tx.dialect):
        if tx.dialect is Dialect.MARIADB:
            await tx.run(f"ALTER TABLE {key.table} DROP INDEX {key.name}")
        elif key.is_constraint:
            await tx.run(f"ALTER TABLE {key.table} DROP CONSTRAINT {key.name}")
        else:
            await tx.run(f"DROP INDEX {key.name}")


async def create(store: Store, tables: Sequence[str]) -> None:
    """A table after the other: a statement may take a minute."""
    for table in tables:
        await store.write(_create, table)


async def _create(tx: Tx, table: str) -> None:
    keys = list(_keys([table], tx.dialect))
    if not keys:
        return
    if tx.dialect is Dialect.MARIADB:
        # All at once: the table is read once.
        added = (f"ADD {'UNIQUE ' * key.is_unique}INDEX {key.name} ({key.columns})" for key in keys)
        await tx.run("SET SESSION max_statement_time = 0")
        await tx.run(f"ALTER TABLE {table} {', '.join(added)}")
        return
    if tx.dialect is Dialect.POSTGRES:
        await tx.run("SET LOCAL maintenance_work_mem = '512MB'")
    for key in keys:
        await tx.run(key.create)
