"""Objects whose row is gone: named here in the row's transaction, unlinked afterwards, then forgotten."""

from dataclasses import dataclass

from camserver.store.tx import Tx

BATCH = 500


@dataclass(frozen=True, slots=True)
class Trash:
    garbage_id: int
    object_key: str


async def add(tx: Tx, tenant_id: int, object_keys: tuple[str, ...], now_ms: int) -> None:
    await tx.many(
        "INSERT INTO garbage (tenant_id, object_key, created_at) VALUES (:tenant_id, :object_key, :now_ms)",
        [{"tenant_id": tenant_id, "object_key": key, "now_ms": now_ms} for key in object_keys],
    )


async def oldest(tx: Tx, after: int = 0) -> tuple[Trash, ...]:
    """The oldest behind that id: what can't be deleted must not hide what can."""
    rows = await tx.all(
        f"SELECT garbage_id, object_key FROM garbage WHERE garbage_id > :after ORDER BY garbage_id LIMIT {BATCH}",
        after=after,
    )
    return tuple(Trash(row["garbage_id"], row["object_key"]) for row in rows)


async def count(tx: Tx, tenant_id: int) -> int:
    row = await tx.one("SELECT count(*) AS n FROM garbage WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    return 0 if row is None else int(row["n"])


async def some_keys(tx: Tx, tenant_id: int) -> tuple[str, ...]:
    rows = await tx.all(
        f"SELECT object_key FROM garbage WHERE tenant_id = :tenant_id ORDER BY garbage_id LIMIT {BATCH}",
        tenant_id=tenant_id,
    )
    return tuple(row["object_key"] for row in rows)


async def forget(tx: Tx, garbage_ids: tuple[int, ...]) -> None:
    await tx.run("DELETE FROM garbage WHERE garbage_id IN (:garbage_ids...)", garbage_ids=list(garbage_ids))
