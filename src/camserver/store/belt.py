"""Web's store where row-level security is on: what is done in somebody's name goes through a role of its own.

Signing in, sessions, signed links and the change feed ask before it is known whose tenant it is: these go through the
ordinary role as before. Everything of `as_` runs on a connection of the other one, which PostgreSQL holds to the
principal's tenant, whatever the statement says. Should a connection ever be held to another tenant than the one that
a statement is bound to, that statement finds nothing. What is about other tenants or the whole installation
(`write_beyond`) goes through the ordinary role, too; its operations ask by themselves whether the principal may.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from camserver.base.errors import StoreUnavailable
from camserver.base.secrets import Secret
from camserver.domain.people import Principal
from camserver.store import row_security
from camserver.store.address import dialect_of
from camserver.store.core import Operation, P, R, ScopedStore, Store
from camserver.store.postgres import PostgresStore, PostgresTx
from camserver.store.tx import Tx


class _HeldTx(PostgresTx):
    """`held` says to which tenant connections are held between transactions."""

    def __init__(self, connection: Any, held: WeakKeyDictionary[Any, int]) -> None:
        super().__init__(connection)
        self._held = held

    async def hold(self, tenant_id: int) -> None:
        """Outside a transaction, so it stays; costs nothing where the connection served the same tenant before."""
        if self._held.get(self._connection) != tenant_id:
            self._held.pop(self._connection, None)
            await self._connection.execute(_set_tenant(tenant_id, only_here=False))
            self._held[self._connection] = tenant_id


def _set_tenant(tenant_id: int, *, only_here: bool) -> str:
    """An int, so nothing of it needs quoting. `only_here`: until the transaction ends."""
    return f"SELECT set_config('camserver.tenant', '{int(tenant_id)}', {'true' if only_here else 'false'})"


class Belt(PostgresStore):
    """Connections of the role that is held. It sees nothing without a tenant."""

    def __init__(self, url: Secret, *, pool_size: int, acquire_timeout_sec: float) -> None:
        super().__init__(url, pool_size=pool_size, acquire_timeout_sec=acquire_timeout_sec)
        self._held: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def _tx(self, connection: Any) -> Tx:
        return _HeldTx(connection, self._held)

    def of(self, tenant_id: int) -> "OfTenant":
        return OfTenant(self, tenant_id)


class OfTenant:
    """Runs operations on the rows of one tenant."""

    def __init__(self, belt: Belt, tenant_id: int) -> None:
        self._belt = belt
        self._tenant_id = tenant_id

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._belt.read(_read_held, self._tenant_id, operation, args, kwargs)

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        # Sent with BEGIN, it costs no way to the server and back.
        begin = f"BEGIN; {_set_tenant(self._tenant_id, only_here=True)}"
        return await self._belt.transact(begin, operation, *args, **kwargs)


async def _read_held(
    tx: Tx,
    tenant_id: int,
    operation: Callable[..., Coroutine[Any, Any, R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> R:
    assert isinstance(tx, _HeldTx)
    await tx.hold(tenant_id)
    return await operation(tx, *args, **kwargs)


class BeltedStore(Store):
    def __init__(self, main: Store, belt: Belt) -> None:
        super().__init__()
        self.dialect = main.dialect
        self._main = main
        self._belt = belt

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._main.read(operation, *args, **kwargs)

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._main.write(operation, *args, **kwargs)

    def as_(self, principal: Principal) -> ScopedStore:
        return ScopedStore(self._belt.of(principal.tenant_id), principal, self._main)

    async def database_time_ms(self) -> int | None:
        return await self._main.database_time_ms()

    @property
    def away(self) -> bool:
        return self._main.away or self._belt.away

    def hurry(self, within_sec: float) -> None:
        """Likewise: the ordinary store is hurried by its owner."""
        self._belt.hurry(within_sec)

    async def close(self) -> None:
        """Closes what is its own; the ordinary store is its owner's to close."""
        await self._belt.close()


async def _check_held(belt: Belt) -> None:
    try:
        await belt.read(row_security.check_held)
    except StoreUnavailable as error:
        raise StoreUnavailable(error.message.replace("[store] url", "web.store_url")) from error


@asynccontextmanager
async def belted(
    main: Store, url: Secret, *, pool_size: int, acquire_timeout_sec: float
) -> AsyncIterator[BeltedStore]:
    """The store with its belt; Fatal when that would hold nothing."""
    for dialect in (main.dialect, dialect_of(url.reveal())):
        row_security.require_postgres(dialect)
    store = BeltedStore(main, belt := Belt(url, pool_size=pool_size, acquire_timeout_sec=acquire_timeout_sec))
    try:
        await _check_held(belt)
        yield store
    finally:
        await store.close()
