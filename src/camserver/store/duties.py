"""Who of several dispatchers does what only one may do at a time; the rule is in domain/duties.py."""

from camserver.domain.duties import HOLD_MS, Duty, taken
from camserver.store.sql import Sql
from camserver.store.tx import Tx


async def take(tx: Tx, name: str, owner: str, token: str, now_ms: int, hold_ms: int = HOLD_MS) -> Duty | None:
    """Takes or renews a duty; None when somebody else has it, or when the hold under `token` ran out."""
    found = await find(tx, name, lock=True)
    duty = taken(found, name, owner, token, now_ms, hold_ms)
    if duty is None:
        return None
    if found is None:
        # Two who find nothing both insert; the second learns below who was first.
        await tx.run(_INSERT, name=name, owner=owner, token=token, until=duty.until)
        found = await find(tx, name, lock=True)
        return duty if found == duty else None
    await tx.run(
        "UPDATE duties SET owner = :owner, token = :token, until = :until WHERE name = :name",
        name=name,
        owner=owner,
        token=token,
        until=duty.until,
    )
    return duty


async def release(tx: Tx, name: str, token: str) -> None:
    """Gives a duty back, so that nobody waits until it runs out."""
    await tx.run("DELETE FROM duties WHERE name = :name AND token = :token", name=name, token=token)


async def release_all(tx: Tx, owner: str) -> int:
    return await tx.run("DELETE FROM duties WHERE owner = :owner", owner=owner)


async def find(tx: Tx, name: str, lock: bool = False) -> Duty | None:
    row = await tx.one(
        f"SELECT owner, token, until FROM duties WHERE name = :name{' FOR UPDATE' if lock else ''}", name=name
    )
    return None if row is None else Duty(name, row["owner"], row["token"], row["until"])


_INSERT = Sql(
    "INSERT INTO duties (name, owner, token, until) VALUES (:name, :owner, :token, :until) ON CONFLICT DO NOTHING",
    mariadb="INSERT INTO duties (name, owner, token, until) VALUES (:name, :owner, :token, :until) "
    "ON DUPLICATE KEY UPDATE name = name",
)
