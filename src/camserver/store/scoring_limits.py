"""Processes on several machines that ask a provider with the same key: each tells how many questions it has in flight
at most, and learns what all have together."""

from dataclasses import dataclass

from camserver.store.sql import Sql
from camserver.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Together:
    workers: int
    places: float


async def tell(tx: Tx, key_digest: str, worker: str, places: float, until_ms: int, now_ms: int) -> Together:
    """Says what this process has, forgets those that are silent, and answers what all have."""
    await tx.run(
        "DELETE FROM scoring_limits WHERE key_digest = :key_digest AND until < :now_ms",
        key_digest=key_digest,
        now_ms=now_ms,
    )
    await tx.run(_TELL, key_digest=key_digest, worker=worker, places=places, until_ms=until_ms)
    row = await tx.one(
        "SELECT COUNT(*) AS workers, SUM(places) AS places FROM scoring_limits WHERE key_digest = :key_digest",
        key_digest=key_digest,
    )
    assert row is not None  # an aggregate has a row
    return Together(int(row["workers"]), float(row["places"] or 0.0))


async def leave(tx: Tx, key_digest: str, worker: str) -> None:
    await tx.run(
        "DELETE FROM scoring_limits WHERE key_digest = :key_digest AND worker = :worker",
        key_digest=key_digest,
        worker=worker,
    )


_VALUES = (
    "INSERT INTO scoring_limits (key_digest, worker, places, until) VALUES (:key_digest, :worker, :places, :until_ms)"
)
_TELL = Sql(
    f"{_VALUES} ON CONFLICT (key_digest, worker) DO UPDATE SET places = excluded.places, until = excluded.until",
    mariadb=f"{_VALUES} ON DUPLICATE KEY UPDATE places = VALUES(places), until = VALUES(until)",
)
