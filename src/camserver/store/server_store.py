"""What PostgreSQL and MariaDB share: transactions on pooled connections, retried when the database asks for it."""

import asyncio
import random
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar

from camserver.base.errors import CamError, Conflict, StoreBusy, StoreUnavailable
from camserver.base.hurry import Hurry
from camserver.store.core import Operation, Store
from camserver.store.pool import Lend, Pool
from camserver.store.tx import Tx

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")

# A transaction that keeps losing deadlocks this often is reported as busy instead of spinning on.
ATTEMPTS_MAX = 12
BACKOFF_BASE_SEC = 0.005
CONNECT_TIMEOUT_SEC = 10
# The server itself ends a statement that takes so long, so that nothing runs on for somebody who has given up.
STATEMENT_TIMEOUT_SEC = 60
# Whoever has heard nothing by then has no server any more: it is frozen, or the network is dark.
ANSWER_TIMEOUT_SEC = STATEMENT_TIMEOUT_SEC + 5
# Between two statements an operation computes for milliseconds. Whoever says nothing for so long has vanished without
# a farewell, and the rows it has locked would stay locked until the server finds out: for hours, by their defaults.
IDLE_TRANSACTION_TIMEOUT_SEC = 30


class ServerStore(Store, Generic[C]):
    pool: Pool[C]

    def __init__(self) -> None:
        super().__init__()
        self._hurry = Hurry()

    @abstractmethod
    def _tx(self, connection: C) -> Tx: ...

    @abstractmethod
    async def _command(self, connection: C, command: str) -> None:
        """Runs BEGIN, COMMIT or ROLLBACK."""

    @abstractmethod
    def _asks_for_retry(self, error: Exception) -> bool:
        """True for a deadlock or a serialization failure: the transaction did nothing and may be run again."""

    @abstractmethod
    def _translated(self, error: Exception) -> CamError | None:
        """The error of our tree for a driver's error, or None when it is not the driver's."""

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        async def once(loan: Lend[C]) -> R:
            try:
                return await operation(self._tx(loan.connection), *args, **kwargs)
            except CamError:
                # The operation's own word (such as NotFound), said between two statements: nothing is left open.
                loan.clean = True
                raise

        return await self._with_connection(once)

    async def write(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.transact("BEGIN", operation, *args, **kwargs)

    async def transact(self, begin: str, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """`write` with a BEGIN of one's own."""

        async def once(loan: Lend[C]) -> R:
            tx = self._tx(loan.connection)
            await self._command(loan.connection, begin)
            try:
                result = await operation(tx, *args, **kwargs)
                await tx.write_changes()
            except Exception as error:
                # Of a server that is away nothing more is asked: the connection is closed, which rolls back as well.
                if not isinstance(self._translated(error), StoreUnavailable):
                    await self._command(loan.connection, "ROLLBACK")
                    loan.clean = True
                raise
            await self._command(loan.connection, "COMMIT")
            return result

        return await self._with_connection(once)

    async def _with_connection(self, once: Callable[[Lend[C]], Awaitable[R]]) -> R:
        try:
            async with self._hurry.heeded():
                return await self._attempts(once)
        except TimeoutError as error:
            raise StoreUnavailable("the database did not answer before this process had to end") from error

    async def _attempts(self, once: Callable[[Lend[C]], Awaitable[R]]) -> R:
        for attempt in range(ATTEMPTS_MAX):
            try:
                async with self.pool.lend() as loan:
                    result = await once(loan)
                    loan.clean = True
            except CamError:
                raise
            except Exception as error:
                if self._asks_for_retry(error):
                    await asyncio.sleep(BACKOFF_BASE_SEC * 2 ** min(attempt, 6) * random.random())
                    continue
                raise await self._mapped(error) from error
            self._note_back()
            return result
        raise StoreBusy(
            f"a transaction met {ATTEMPTS_MAX} deadlocks in a row; try again, and look for a long transaction on "
            "the database if it goes on"
        )

    async def _mapped(self, error: Exception) -> Exception:
        translated = self._translated(error)
        if translated is None:
            return error
        if isinstance(translated, StoreUnavailable):
            self._note_away()
            await self.pool.forget_free()
        return translated

    def hurry(self, within_sec: float) -> None:
        self._hurry.within(within_sec)

    async def close(self) -> None:
        await self.pool.close()


def unavailable(name: str, error: BaseException) -> StoreUnavailable:
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{name} does not answer; check that it runs, and the network on the way to it")
    return StoreUnavailable(
        f"{name} can't be reached ({type(error).__name__}: {error}); check that it runs and that [store] url is right"
    )


def violated(name: str, error: BaseException) -> Conflict:
    return Conflict(f"{name} refused a row that breaks a constraint ({error})")
