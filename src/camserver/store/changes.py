"""Reading the change feed (decisions 44). Writing it is `Tx.changed`."""

from dataclasses import dataclass

from camserver.store.tx import Scoped, Tx

PAGE_MAX = 1000


@dataclass(frozen=True, slots=True)
class ChangeRow:
    seq: int
    kind: str
    site_id: int | None
    camera_key: int | None
    object_id: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Page:
    """Changes after a cursor. `resync`: the cursor is older than what is kept, so start from what is there now."""

    changes: tuple[ChangeRow, ...]
    last_seq: int
    resync: bool


async def after(tx: Scoped, seq: int, limit: int = PAGE_MAX) -> Page:
    newest = await tx.one("SELECT last_seq FROM change_counters WHERE tenant_id = :tenant_id")
    last_seq = newest["last_seq"] if newest is not None else 0
    rows = await tx.all(
        f"""
        SELECT seq, kind, site_id, camera_key, object_id, created_at FROM changes
        WHERE tenant_id = :tenant_id AND seq > :seq ORDER BY seq LIMIT {min(limit, PAGE_MAX)}""",
        seq=seq,
    )
    changes = tuple(
        ChangeRow(row["seq"], row["kind"], row["site_id"], row["camera_key"], row["object_id"], row["created_at"])
        for row in rows
    )
    # Numbers have no holes, so a first one that is not the next means that those between were pruned.
    pruned = changes[0].seq != seq + 1 if changes else seq < last_seq
    if pruned or seq > last_seq:
        return Page((), last_seq, resync=True)
    return Page(changes, changes[-1].seq if changes else seq, resync=False)


async def prune(tx: Tx, created_before: int, limit: int = 5000) -> int:
    """Forgets old changes, a batch of each tenant's, always from the front so that no hole appears."""
    deleted = 0
    for tenant in await tx.all("SELECT tenant_id FROM change_counters ORDER BY tenant_id"):
        newest_old = await tx.one(
            f"""
            SELECT max(seq) AS seq FROM (
              SELECT seq, created_at FROM changes WHERE tenant_id = :tenant_id ORDER BY seq LIMIT {int(limit)}
            ) AS front WHERE created_at < :created_before""",
            tenant_id=tenant["tenant_id"],
            created_before=created_before,
        )
        if newest_old is not None and newest_old["seq"] is not None:
            deleted += await tx.run(
                "DELETE FROM changes WHERE tenant_id = :tenant_id AND seq <= :seq",
                tenant_id=tenant["tenant_id"],
                seq=newest_old["seq"],
            )
    return deleted
