"""Lets a test do to the audit log what its triggers refuse: as somebody who owns the database could."""

from camserver.store import Dialect, Tx
from camserver.store.tables.audit_guards import drops, guards

_NAMES = {"sqlite": "sqlite", "postgres": "postgresql", "mariadb": "mariadb"}


async def drop_guards(tx: Tx) -> None:
    for statement in drops(_NAMES[tx.dialect.value]):
        await tx.run(statement)


async def make_guards(tx: Tx) -> None:
    for statement in guards(_NAMES[tx.dialect.value]):
        await tx.run(statement)


async def empty_audit_log(tx: Tx) -> None:
    """MariaDB ends the transaction with each of these statements; TRUNCATE fires no trigger there."""
    if await tx.one("SELECT 1 FROM audit_log LIMIT 1") or await tx.one("SELECT 1 FROM audit_seals LIMIT 1"):
        if tx.dialect is Dialect.MARIADB:
            await tx.run("TRUNCATE audit_log")
            await tx.run("TRUNCATE audit_seals")
            return
        await drop_guards(tx)
        await tx.run("DELETE FROM audit_log")
        await tx.run("DELETE FROM audit_seals")
        await make_guards(tx)


async def tamper(tx: Tx, *statements: str) -> None:
    """Runs statements without the guards."""
    await drop_guards(tx)
    for statement in statements:
        await tx.run(statement)
    await make_guards(tx)
