"""Processes on several machines that ask a provider with the same key: each tells how many questions it has in flight
at most, and learns what all have together. What they found out stays for those that come later."""

from dataclasses import dataclass

from camserver.domain.scoring_found import KEPT_MS, Found
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


async def found(tx: Tx, key_digest: str, now_ms: int) -> Found | None:
    """What was found out about a provider not long ago."""
    row = await tx.one(
        "SELECT places, too_many, pace, latency_sec FROM scoring_found "
        "WHERE key_digest = :key_digest AND found_at > :since_ms",
        key_digest=key_digest,
        since_ms=now_ms - KEPT_MS,
    )
    return None if row is None else Found(row["places"], row["too_many"], row["pace"], row["latency_sec"])


async def remember(tx: Tx, key_digest: str, found: Found, now_ms: int) -> None:
    await tx.run("DELETE FROM scoring_found WHERE found_at <= :since_ms", since_ms=now_ms - KEPT_MS)
    await tx.run(
        _REMEMBER,
        key_digest=key_digest,
        places=found.places,
        too_many=found.too_many,
        pace=found.pace,
        latency_sec=found.latency_sec,
        now_ms=now_ms,
    )


_VALUES = (
    "INSERT INTO scoring_limits (key_digest, worker, places, until) VALUES (:key_digest, :worker, :places, :until_ms)"
)
_TELL = Sql(
    f"{_VALUES} ON CONFLICT (key_digest, worker) DO UPDATE SET places = excluded.places, until = excluded.until",
    mariadb=f"{_VALUES} ON DUPLICATE KEY UPDATE places = VALUES(places), until = VALUES(until)",
)
_FOUND = (
    "INSERT INTO scoring_found (key_digest, places, too_many, pace, latency_sec, found_at) "
    "VALUES (:key_digest, :places, :too_many, :pace, :latency_sec, :now_ms)"
)
_REMEMBER = Sql(
    f"{_FOUND} ON CONFLICT (key_digest) DO UPDATE SET places = excluded.places, too_many = excluded.too_many, "
    "pace = excluded.pace, latency_sec = excluded.latency_sec, found_at = excluded.found_at",
    mariadb=f"{_FOUND} ON DUPLICATE KEY UPDATE places = VALUES(places), too_many = VALUES(too_many), "
    "pace = VALUES(pace), latency_sec = VALUES(latency_sec), found_at = VALUES(found_at)",
)
