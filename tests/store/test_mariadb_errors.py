"""Which of MariaDB's errors mean that it is away, and which are mistakes of ours."""

import asyncmy.errors
import pytest

from camserver.base.errors import CamError, Conflict, Retry, StoreUnavailable
from camserver.base.secrets import Secret
from camserver.store.mariadb import MariaStore
from camserver.store.tx import Tx
from tests.rig.templates import MariadbTemplate


async def _misspelt(tx: Tx) -> None:
    await tx.run("SELECT nothing_of_this_name FROM tenants")


async def test_a_mistake_in_sql_is_no_outage(mariadb_template: MariadbTemplate) -> None:
    store = MariaStore(Secret(mariadb_template.fresh()), pool_size=2, acquire_timeout_sec=30)
    try:
        with pytest.raises(asyncmy.errors.MySQLError) as raised:
            await store.write(_misspelt)
        assert not isinstance(raised.value, CamError)
        assert not store.away
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (asyncmy.errors.OperationalError(2013, "Lost connection"), StoreUnavailable),
        (asyncmy.errors.OperationalError(1040, "Too many connections"), StoreUnavailable),
        (asyncmy.errors.OperationalError(1045, "Access denied"), StoreUnavailable),
        (asyncmy.errors.OperationalError(1053, "Server shutdown in progress"), StoreUnavailable),
        (asyncmy.errors.OperationalError(1021, "Disk full"), Retry),
        (asyncmy.errors.IntegrityError(1062, "Duplicate entry"), Conflict),
        (asyncmy.errors.OperationalError(1052, "Column is ambiguous"), None),
        (asyncmy.errors.OperationalError(1054, "Unknown column"), None),
        (asyncmy.errors.ProgrammingError(1064, "Syntax"), None),
    ],
)
async def test_numbers_are_told_apart(error: Exception, expected: type[CamError] | None) -> None:
    store = MariaStore(Secret("mysql://nobody@127.0.0.1:1/nothing"), pool_size=1, acquire_timeout_sec=1)
    translated = store._translated(error)
    assert translated is None if expected is None else isinstance(translated, expected)


async def test_a_connection_reset_while_it_is_made_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver then complains about its own transport, in its own words and as a RuntimeError."""

    async def connect(**_: object) -> None:
        raise RuntimeError("Transport does not expose socket instance")

    monkeypatch.setattr(asyncmy, "connect", connect)
    store = MariaStore(Secret("mysql://nobody@127.0.0.1:1/nothing"), pool_size=1, acquire_timeout_sec=1)
    with pytest.raises(StoreUnavailable):
        await store.read(_misspelt)
    assert store.away
    await store.close()
