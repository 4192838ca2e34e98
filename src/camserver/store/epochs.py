"""Writers of objects and whether they are alive (decisions 13)."""

from camserver.base.errors import EpochEnded
from camserver.store.tx import Tx


async def open_epoch(tx: Tx, owner: str, now_ms: int) -> int:
    return await tx.insert(
        "INSERT INTO epochs (owner, started_at, seen_at) VALUES (:owner, :now_ms, :now_ms) RETURNING epoch_id",
        owner=owner,
        now_ms=now_ms,
    )


async def renew_epoch(tx: Tx, epoch_id: int, now_ms: int) -> bool:
    """False when the epoch was ended: its owner was thought dead and must open a new one."""
    matched = await tx.run(
        "UPDATE epochs SET seen_at = :now_ms WHERE epoch_id = :epoch_id AND ended_at IS NULL",
        now_ms=now_ms,
        epoch_id=epoch_id,
    )
    return matched == 1


async def require_alive(tx: Tx, epoch_ids: list[int]) -> None:
    """Holds the epochs until the transaction ends, so that none is ended under a frame being recorded."""
    rows = await tx.all(
        "SELECT epoch_id FROM epochs WHERE epoch_id IN (:epoch_ids...) AND ended_at IS NULL FOR SHARE",
        epoch_ids=epoch_ids,
    )
    ended = set(epoch_ids) - {row["epoch_id"] for row in rows}
    if ended:
        raise EpochEnded(f"the writer's epoch {min(ended)} was ended; the object must be written under a new one")


async def end_epoch(tx: Tx, epoch_id: int, now_ms: int) -> None:
    """Ends one's own epoch on the way out; its objects are swept without waiting for it to be missed."""
    await tx.run(
        "UPDATE epochs SET ended_at = :now_ms WHERE epoch_id = :epoch_id AND ended_at IS NULL",
        now_ms=now_ms,
        epoch_id=epoch_id,
    )


async def end_dead(tx: Tx, seen_before: int, now_ms: int) -> int:
    """Ends the epochs whose owner was not seen since `seen_before`."""
    return await tx.run(
        "UPDATE epochs SET ended_at = :now_ms WHERE ended_at IS NULL AND seen_at < :seen_before",
        now_ms=now_ms,
        seen_before=seen_before,
    )


async def unswept(tx: Tx) -> tuple[int, ...]:
    """Ended epochs whose rowless objects have not been deleted yet."""
    rows = await tx.all(
        "SELECT epoch_id FROM epochs WHERE ended_at IS NOT NULL AND swept_at IS NULL ORDER BY epoch_id LIMIT 100"
    )
    return tuple(row["epoch_id"] for row in rows)


async def mark_swept(tx: Tx, epoch_id: int, now_ms: int) -> None:
    await tx.run("UPDATE epochs SET swept_at = :now_ms WHERE epoch_id = :epoch_id", now_ms=now_ms, epoch_id=epoch_id)
