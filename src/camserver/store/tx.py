"""What a store operation gets: one transaction, the same on three databases.

An operation is a module-level `async def op(tx, ...)` that awaits nothing but `tx`. On PostgreSQL and MariaDB it
suspends at each statement; on SQLite it runs through without suspending, in the writer's process or a reader's
thread.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol, TypeVar

from camserver.base.errors import Bug
from camserver.domain.change_kinds import ChangeKind
from camserver.domain.people import Principal
from camserver.store.sql import Dialect, Sql, asks_for_reach

R = TypeVar("R")


class Row(Protocol):
    """A result row, read by column name. Rows never leave the operation that fetched them."""

    def __getitem__(self, column: str) -> Any: ...

    def keys(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the change feed (decisions 44): what changed, never its content."""

    tenant_id: int
    kind: ChangeKind
    site_id: int | None
    camera_key: int | None
    object_id: int | None
    at_ms: int


@lru_cache(maxsize=512)
def returned_column(text: str) -> str:
    found = re.search(r"\bRETURNING\s+(\w+)\s*$", text)
    if found is None:
        raise Bug(f"an insert must end in RETURNING and its key: {text.strip()[:80]}")
    return found.group(1)


@lru_cache(maxsize=512)
def returned_pair(text: str) -> tuple[str, str]:
    found = re.search(r"\bRETURNING\s+(\w+)\s*,\s*(\w+)\s*$", text)
    if found is None:
        raise Bug(f"an insert of many must end in RETURNING, its key and what tells rows apart: {text.strip()[:80]}")
    return found.group(1), found.group(2)


# A row as a NamedTuple whose fields are the columns of its SELECT, in their order.
F = TypeVar("F", bound=tuple[Any, ...])


# Kinds of rows that lists show again and again as they are: where a database gives them as text, each is read once.
SHOWN_AGAIN: set[type] = set()


def shown_again(kind: type[F]) -> type[F]:
    SHOWN_AGAIN.add(kind)
    return kind


def maker_of(kind: type[F]) -> Callable[[Iterable[Any]], F]:
    make: Callable[[Iterable[Any]], F] = kind._make  # type: ignore[attr-defined]  # of a NamedTuple
    return make


class Tx(ABC):
    """A transaction (write) or a series of statements (read)."""

    dialect: Dialect

    def __init__(self) -> None:
        self._changes: list[Change] = []

    @abstractmethod
    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        """The first row, or None."""

    @abstractmethod
    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        """All rows. Bound them with LIMIT: everything is held in memory."""

    @abstractmethod
    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        """All rows as tuples of that kind, which may leave the operation. For long lists. The columns are named as
        the fields, and in their order."""

    @abstractmethod
    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        """The first row's values in the order of their columns, which may leave the operation, or None."""

    @abstractmethod
    async def run(self, sql: str | Sql, **params: object) -> int:
        """Runs a statement; how many rows it matched, changed or not."""

    @abstractmethod
    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        """Runs one statement for each row of parameters."""

    async def at_once(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        """As `many`, in no order, for an UPDATE … WHERE or INSERT … VALUES: one statement for all, where the database
        has a way. No two rows of parameters may be about the same row of the table."""
        await self.many(sql, rows)

    async def by_key(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """As `at_once`, for an UPDATE … SET … WHERE that names the primary key, or how it begins. MariaDB needs to
        know by which index it finds rows."""
        await self.at_once(sql, rows)

    async def insert(self, sql: str | Sql, **params: object) -> int:
        """Runs an INSERT … RETURNING key and answers the key."""
        row = await self.one(sql, **params)
        if row is None:
            raise Bug("an INSERT … RETURNING gave no row")
        return int(row[returned_column(sql if isinstance(sql, str) else sql.on(self.dialect))])

    async def insert_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> list[int]:
        """Runs an INSERT … RETURNING key, name for rows that differ in the parameter `name`; their keys in order."""
        name = returned_pair(sql)[1]
        found = await self._inserted(sql, rows) if rows else {}
        return [found[row[name]] for row in rows]

    async def _inserted(self, sql: str, rows: Sequence[Mapping[str, object]]) -> dict[object, int]:
        """The new keys, by what tells the rows apart."""
        key, name = returned_pair(sql)
        found: dict[object, int] = {}
        for params in rows:
            row = await self.one(sql, **params)
            if row is None:
                raise Bug("an INSERT … RETURNING gave no row")
            found[row[name]] = int(row[key])
        return found

    def changed(
        self,
        *,
        tenant_id: int,
        kind: ChangeKind,
        at_ms: int,
        site_id: int | None = None,
        camera_key: int | None = None,
        object_id: int | None = None,
    ) -> None:
        """Adds a line to the change feed. It is written as the last statement of the transaction."""
        self._changes.append(Change(tenant_id, kind, site_id, camera_key, object_id, at_ms))

    async def write_changes(self) -> None:
        """Numbers and writes the collected changes; called by the store right before it commits.

        The counter row is locked from here to the commit and by nothing earlier, so numbers become visible in their
        order: a reader who remembers the last one never misses one. Tenants go in order to avoid deadlocks.
        """
        if not self._changes:
            return
        changes = sorted(self._changes, key=lambda change: change.tenant_id)
        self._changes = []
        for tenant_id, group in groupby(changes, key=lambda change: change.tenant_id):
            await self._number(tenant_id, list(group))

    async def _number(self, tenant_id: int, changes: list[Change]) -> None:
        if self.dialect is Dialect.POSTGRES:
            if not await self.run(_NUMBER_POSTGRES, tenant_id=tenant_id, count=len(changes), **_columns(changes)):
                raise _no_counter(tenant_id)
            return
        rows = [
            {
                "tenant_id": tenant_id,
                "back": len(changes) - 1 - index,
                "kind": change.kind,
                "site_id": change.site_id,
                "camera_key": change.camera_key,
                "object_id": change.object_id,
                "at_ms": change.at_ms,
            }
            for index, change in enumerate(changes)
        ]
        if self.dialect is Dialect.MARIADB:
            if not await self.run(_COUNT_MARIADB, tenant_id=tenant_id, count=len(changes)):
                raise _no_counter(tenant_id)
            await self.many(_INSERT_CHANGE_MARIADB, rows)
            return
        row = await self.one(_COUNT_SQLITE, tenant_id=tenant_id, count=len(changes))
        if row is None:
            raise _no_counter(tenant_id)
        last = int(row["last_seq"])
        await self.many(_INSERT_CHANGE, [{**values, "last": last} for values in rows])


def _no_counter(tenant_id: int) -> Bug:
    return Bug(f"tenant {tenant_id} has no change counter; make tenants with tenants.ensure")


_COUNT_SQLITE = (
    "UPDATE change_counters SET last_seq = last_seq + :count WHERE tenant_id = :tenant_id RETURNING last_seq"
)
_COUNT_MARIADB = (
    "UPDATE change_counters SET last_seq = LAST_INSERT_ID(last_seq + :count) WHERE tenant_id = :tenant_id"
)
_INSERT_CHANGE = """
INSERT INTO changes (tenant_id, seq, kind, site_id, camera_key, object_id, created_at)
VALUES (:tenant_id, :last - :back, :kind, :site_id, :camera_key, :object_id, :at_ms)"""
# The number is in the session since the counter was raised: no way to the server and back while others wait for it.
_INSERT_CHANGE_MARIADB = _INSERT_CHANGE.replace(":last", "LAST_INSERT_ID()")
_NUMBER_POSTGRES = """
WITH counter AS (
  UPDATE change_counters SET last_seq = last_seq + :count WHERE tenant_id = :tenant_id RETURNING last_seq
)
INSERT INTO changes (tenant_id, seq, kind, site_id, camera_key, object_id, created_at)
SELECT :tenant_id, counter.last_seq - :count + c.n, c.kind, c.site_id, c.camera_key, c.object_id, c.at_ms
FROM counter, unnest(:kinds::text[], :site_ids::bigint[], :camera_keys::bigint[], :object_ids::bigint[],
                     :at_ms::bigint[]) WITH ORDINALITY AS c(kind, site_id, camera_key, object_id, at_ms, n)"""


def _columns(changes: Iterable[Change]) -> dict[str, list[object]]:
    rows = [(c.kind, c.site_id, c.camera_key, c.object_id, c.at_ms) for c in changes]
    kinds, site_ids, camera_keys, object_ids, at_ms = (list(column) for column in zip(*rows, strict=True))
    return {
        "kinds": kinds,
        "site_ids": site_ids,
        "camera_keys": camera_keys,
        "object_ids": object_ids,
        "at_ms": at_ms,
    }


# Whole: `:tenant_ids...` would let a caller name other tenants.
_TENANT = re.compile(r"(?<!:):tenant_id\b")
_CHANGES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b|\s*WITH\b.*\b(INSERT\s+INTO|DELETE\s+FROM|(?<!FOR )UPDATE)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is to know of a statement's text. Read once for each: looking takes longer than many a statement."""

    has_tenant: bool
    asks_for_reach: bool
    changes: bool


@lru_cache(maxsize=4096)
def _facts(text: str) -> _Facts:
    return _Facts(_TENANT.search(text) is not None, asks_for_reach(text), _CHANGES.match(text) is not None)


def reach_of(principal: Principal) -> dict[str, object]:
    """What `IN_REACH` and `IN_SITE_REACH` ask for."""
    return {
        "all_sites": int(principal.site_ids is None),
        "site_ids": sorted(principal.site_ids or ()),
        "camera_keys": sorted(principal.camera_keys),
    }


class Scoped:
    """A transaction in somebody's name: each statement is held to the principal's tenant.

    `:tenant_id` is bound here and nowhere else, and a statement without it is refused, so a query across tenants
    can't be written by whoever uses this. `IN_REACH` holds it to the principal's sites and cameras as well.
    """

    def __init__(self, tx: Tx, principal: Principal) -> None:
        self._tx = tx
        self.principal = principal
        self.dialect = tx.dialect
        self.changed_rows = False
        self.logged = False  # an entry was written into the audit log
        self._reach: dict[str, object] | None = None  # of the principal, once a statement has asked for it

    def _bound(self, sql: str | Sql, params: Mapping[str, object]) -> dict[str, object]:
        text = sql if isinstance(sql, str) else sql.on(self.dialect)
        facts = _facts(text)
        if not facts.has_tenant:
            raise Bug(f"a statement in a principal's name lacks :tenant_id: {text.strip()[:80]}")
        if "tenant_id" in params:
            raise Bug("tenant_id comes from the principal, not from an argument")
        bound = {**params, "tenant_id": self.principal.tenant_id}
        if not facts.asks_for_reach:
            return bound
        if self._reach is None:
            self._reach = reach_of(self.principal)
        if not self._reach.keys().isdisjoint(params):
            raise Bug(f"what is reached comes from the principal, not from an argument: {text.strip()[:80]}")
        return {**bound, **self._reach}

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        row = await self._tx.one(sql, **self._bound(sql, params))
        self._note(sql, row is not None)
        return row

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        rows = await self._tx.all(sql, **self._bound(sql, params))
        self._note(sql, bool(rows))
        return rows

    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        return await self._tx.flat(kind, sql, **self._bound(sql, params))

    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        return await self._tx.values(sql, **self._bound(sql, params))

    async def run(self, sql: str | Sql, **params: object) -> int:
        count = await self._tx.run(sql, **self._bound(sql, params))
        self._note(sql, count > 0)
        return count

    async def lock(self, sql: str | Sql, **params: object) -> None:
        """Runs an UPDATE that only makes others wait or decide again: nothing that anybody would look up changes."""
        await self._tx.run(sql, **self._bound(sql, params))

    async def insert(self, sql: str | Sql, **params: object) -> int:
        self._note(sql, True)
        return await self._tx.insert(sql, **self._bound(sql, params))

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        self._note(sql, bool(rows))
        await self._tx.many(sql, [self._bound(sql, row) for row in rows])

    def _note(self, sql: str | Sql, some: bool) -> None:
        """What changes rows in a principal's name must be in the audit log; core.py sees to it."""
        if some and not self.changed_rows:
            self.changed_rows = _facts(sql if isinstance(sql, str) else sql.on(self.dialect)).changes

    def changed(
        self,
        *,
        kind: ChangeKind,
        at_ms: int,
        site_id: int | None = None,
        camera_key: int | None = None,
        object_id: int | None = None,
    ) -> None:
        self._tx.changed(
            tenant_id=self.principal.tenant_id,
            kind=kind,
            at_ms=at_ms,
            site_id=site_id,
            camera_key=camera_key,
            object_id=object_id,
        )


def drive(operation: Coroutine[Any, Any, R]) -> R:
    """Runs an operation whose transaction never suspends (SQLite) to its end."""
    try:
        operation.send(None)
    except StopIteration as stop:
        result: R = stop.value
        return result
    operation.close()
    raise Bug("a store operation awaited something other than its transaction")
