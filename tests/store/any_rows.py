"""A row in every table that has a tenant, made from the schema alone, so that a new table is met by itself."""

from itertools import count
from typing import Any

from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, SmallInteger, String, Text
from sqlalchemy import Table as SqlTable

from camserver.store import Tx
from camserver.store.tables import metadata

_numbers = count(1)
# What a check or the code itself allows.
_OF_TABLE = {"scoring_runs.status": "running", "scoring_runs.wanted": "run", "scoring_chunks.status": "running"}
_WORDS = {"status": "done", "role": "viewer", "retention_class": "normal", "state": "ready"}
OF_TENANTS = tuple(table for table in metadata.sorted_tables if "tenant_id" in table.columns)
# The tenant itself and its counter are made with it.
MADE = tuple(table for table in OF_TENANTS if table.name not in ("tenants", "change_counters"))


async def fill(tx: Tx, tenant_id: int) -> None:
    """One row in each table, its parents the rows before."""
    keys: dict[str, int] = {}
    for table in MADE:
        if await _is_full(tx, table, tenant_id):
            continue
        values = {column.name: _value(column, tenant_id, keys) for column in table.columns if _is_given(column)}
        names = ", ".join(values)
        await tx.run(
            f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(f':{name}' for name in values)})", **values
        )
        await _remember(tx, table, tenant_id, keys)


async def _is_full(tx: Tx, table: SqlTable, tenant_id: int) -> bool:
    """Whether it has the one row that a tenant has there."""
    if [column.name for column in table.primary_key.columns] != ["tenant_id"]:
        return False
    found = await tx.one(f"SELECT 1 AS one FROM {table.name} WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    return found is not None


async def counts(tx: Tx, tenant_id: int) -> dict[str, int]:
    found = {}
    for table in OF_TENANTS:
        row = await tx.one(
            f"SELECT count(*) AS n FROM {table.name} WHERE tenant_id = :tenant_id", tenant_id=tenant_id
        )
        assert row is not None
        found[table.name] = row["n"]
    return found


def _is_given(column: Column[Any]) -> bool:
    # An entry is added without a batch; the database refuses it otherwise.
    is_later = (column.table.name, column.name) in (("audit_log", "batch_no"), ("audit_seals", "pruned_at"))
    return not (column.primary_key and column.autoincrement is True) and not is_later


async def _remember(tx: Tx, table: SqlTable, tenant_id: int, keys: dict[str, int]) -> None:
    [first, *_] = table.primary_key.columns
    row = await tx.one(
        f"SELECT max({first.name}) AS k FROM {table.name} WHERE tenant_id = :tenant_id", tenant_id=tenant_id
    )
    assert row is not None
    keys[table.name] = row["k"]


def _value(column: Column[Any], tenant_id: int, keys: dict[str, int]) -> object:
    if column.name == "tenant_id":
        return tenant_id
    for foreign in column.foreign_keys:
        return keys[foreign.column.table.name]
    parent = {"camera_key": "cameras", "frame_id": "frames", "event_id": "events", "incident_id": "incidents"}
    if column.name in parent:
        return keys.get(parent[column.name], next(_numbers))
    kind = column.type
    if isinstance(kind, SmallInteger):
        return 0
    if isinstance(kind, (BigInteger, Integer, Double)):
        return next(_numbers)
    if isinstance(kind, LargeBinary):
        return b"0"
    if isinstance(kind, (String, Text)):
        own = _OF_TABLE.get(f"{column.table.name}.{column.name}")
        return own or _WORDS.get(column.name, f"{tenant_id}w{next(_numbers)}"[: getattr(kind, "length", None) or 8])
    return "{}"
