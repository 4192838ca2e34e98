"""What a check of the whole installation asks of rows: times, versions, certificates, keys, writers of objects."""

from dataclasses import dataclass

from camserver.store.tx import Tx

SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    worker_id: str
    version: str
    last_seen_at: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    worker_id: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Jobs that are not done."""

    count: int
    since: int | None  # the first that came after the last one that was done; it may have been skipped since


async def waiting_jobs(tx: Tx) -> Waiting:
    """Reads all of them."""
    unfinished = await tx.one(
        "SELECT COUNT(*) AS n FROM inference_jobs WHERE status IN ('queued','delayed','running')"
    )
    first = await tx.one(
        "SELECT MIN(created_at) AS at FROM inference_jobs WHERE created_at > "
        "(SELECT COALESCE(MAX(finished_at), 0) FROM inference_jobs WHERE status = 'done')"
    )
    assert unfinished is not None
    assert first is not None
    return Waiting(int(unfinished["n"]), first["at"])


async def dead_deliveries(tx: Tx, since: int) -> int:
    row = await tx.one(
        "SELECT COUNT(*) AS n FROM deliveries WHERE status = 'dead' AND finished_at >= :since", since=since
    )
    assert row is not None
    return int(row["n"])


async def newest_moment(tx: Tx) -> int:
    """The newest time that anything was written at."""
    row = await tx.one(
        "SELECT max(at) AS at FROM (SELECT max(seen_at) AS at FROM epochs UNION ALL "
        "SELECT max(last_seen_at) FROM workers UNION ALL SELECT max(created_at) FROM sessions) AS times"
    )
    return 0 if row is None else int(row["at"] or 0)


async def workers_since(tx: Tx, since: int) -> tuple[WorkerSeen, ...]:
    rows = await tx.all(
        "SELECT worker_id, version, last_seen_at FROM workers WHERE last_seen_at >= :since "
        f"ORDER BY worker_id LIMIT {SHOWN_MAX}",
        since=since,
    )
    return tuple([WorkerSeen(row["worker_id"], row["version"], row["last_seen_at"]) for row in rows])


async def ending_certificates(tx: Tx, after: int, before: int) -> tuple[Certificate, ...]:
    """Workers whose newest certificate ends between these moments."""
    rows = await tx.all(
        "SELECT worker_id, max(expires_at) AS expires_at FROM worker_certificates WHERE revoked_at IS NULL "
        f"GROUP BY tenant_id, worker_id HAVING max(expires_at) >= :after AND max(expires_at) < :before "
        f"ORDER BY worker_id LIMIT {SHOWN_MAX}",
        after=after,
        before=before,
    )
    return tuple([Certificate(row["worker_id"], int(row["expires_at"])) for row in rows])


async def sealing_keys(tx: Tx) -> dict[str, int]:
    """Ids of the keys that stored values were sealed with, and how many each."""
    found: dict[str, int] = {}
    for table in ("camera_auth", "receivers", "push_subscriptions"):
        for row in await tx.all(
            f"SELECT key_id, count(*) AS n FROM {table} WHERE key_id IS NOT NULL GROUP BY key_id LIMIT {SHOWN_MAX}"
        ):
            found[row["key_id"]] = found.get(row["key_id"], 0) + int(row["n"])
    return found


async def ended_epochs(tx: Tx, after: int) -> tuple[int, ...]:
    """Writers of objects that have ended, in order, from behind `after`."""
    rows = await tx.all(
        "SELECT epoch_id FROM epochs WHERE ended_at IS NOT NULL AND epoch_id > :after "
        f"ORDER BY epoch_id LIMIT {SHOWN_MAX}",
        after=after,
    )
    return tuple([row["epoch_id"] for row in rows])
