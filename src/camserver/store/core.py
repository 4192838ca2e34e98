"""The store as services see it: run an operation as a read or as one transaction, in a principal's name or not.

What changes rows in a principal's name leaves an entry in the audit log in the same transaction, or is rolled back:
whoever adds an operation can't forget it. The few that need none say why, by `@unlogged`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from camserver.base.clock import boot_time_ms
from camserver.base.errors import Bug
from camserver.domain.people import Principal
from camserver.store.sql import Dialect
from camserver.store.tx import Scoped, Tx

P = ParamSpec("P")
R = TypeVar("R")
Operation = Callable[Concatenate[Tx, P], Coroutine[Any, Any, R]]
ScopedOperation = Callable[Concatenate[Scoped, P], Coroutine[Any, Any, R]]
# Goes beyond the principal's tenant, asks by itself whether it may, and logs by itself.
BeyondOperation = Callable[Concatenate[Tx, Principal, P], Coroutine[Any, Any, R]]

# Operations that change rows in a principal's name without an entry in the audit log, by name, and why.
UNLOGGED: dict[str, str] = {}


def unlogged(why: str) -> Callable[[ScopedOperation[P, R]], ScopedOperation[P, R]]:
    """Marks an operation whose changes are no news for the audit log."""

    def mark(operation: ScopedOperation[P, R]) -> ScopedOperation[P, R]:
        UNLOGGED[_name(operation)] = why
        return operation

    return mark


def _name(operation: Callable[..., object]) -> str:
    return f"{operation.__module__}.{operation.__qualname__}"


class Store(ABC):
    """One per process. Reads and writes are operations of the noun modules beside this one."""

    dialect: Dialect

    def __init__(self) -> None:
        # When this store last became usable, by the boot-time clock: leases are not reclaimed right after an outage.
        self.available_since_boot_ms = boot_time_ms()
        self._away = False

    @abstractmethod
    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs an operation that only reads."""

    @abstractmethod
    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs an operation as one transaction: all of it or nothing, durable on return."""

    def as_(self, principal: Principal) -> "ScopedStore":
        return ScopedStore(self, principal)

    @property
    def rules_version(self) -> int | None:
        """Another number whenever what `sql.RULING` names may have changed: what was read of it at this number holds.

        It changes before the write that changed it returns. None where other processes may change it unseen.
        """
        return None

    @abstractmethod
    async def database_time_ms(self) -> int | None:
        """The database's own time; None on SQLite, whose time is this machine's."""

    def hurry(self, within_sec: float) -> None:  # noqa: B027 - a database on this machine's own disk answers
        """Whoever uses it has to end: what a database does not answer within so long is given up, as unavailable."""

    @abstractmethod
    async def close(self) -> None: ...

    @property
    def away(self) -> bool:
        """True from a lost database until the next operation that succeeds."""
        return self._away

    def _note_away(self) -> None:
        self._away = True

    def _note_back(self) -> None:
        if self._away:
            self._away = False
            self.available_since_boot_ms = boot_time_ms()


class Runs(Protocol):
    """Runs operations; a store, or a part of one."""

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...


class ScopedStore:
    """The store in a principal's name; its operations get a `Scoped` transaction.

    `beyond` is where operations run that are not held to the principal's tenant, if that is somewhere else.
    """

    def __init__(self, store: Runs, principal: Principal, beyond: Runs | None = None) -> None:
        self.store = store
        self.principal = principal
        self.beyond = store if beyond is None else beyond

    async def read(self, operation: ScopedOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.store.read(in_name, self.principal, operation, args, kwargs)

    async def write(self, operation: ScopedOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.store.write(in_name_logged, self.principal, operation, args, kwargs)

    async def write_beyond(self, operation: BeyondOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs an operation that is told the principal and is not held to its tenant."""
        return await self.beyond.write(operation, self.principal, *args, **kwargs)


async def in_name(
    tx: Tx,
    principal: Principal,
    operation: Callable[..., Coroutine[Any, Any, R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> R:
    return await operation(Scoped(tx, principal), *args, **kwargs)


async def in_name_logged(
    tx: Tx,
    principal: Principal,
    operation: Callable[..., Coroutine[Any, Any, R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> R:
    scoped = Scoped(tx, principal)
    result = await operation(scoped, *args, **kwargs)
    if scoped.changed_rows and not scoped.logged and _name(operation) not in UNLOGGED:
        raise Bug(
            f"{_name(operation)} changed rows in a principal's name and left no entry in the audit log; call "
            "audit.add_own in it, or mark it @unlogged and say why"
        )
    return result
