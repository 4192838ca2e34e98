"""What is kept and what went, as people see it: within their sites, as it was last counted and reported."""

from dataclasses import dataclass

from camserver.store.tx import Scoped
from camserver.store.upkeep import Usage, usage_of


@dataclass(frozen=True, slots=True)
class ShownUsage:
    camera_id: str
    camera_name: str
    removed: bool
    usage: Usage
    counted_at: int


@dataclass(frozen=True, slots=True)
class OwnCamera:
    camera_key: int
    camera_id: str
    name: str
    removed: bool


@dataclass(frozen=True, slots=True)
class ShownReport:
    at: int
    what: str
    count: int
    bytes: int
    reason: str


async def own_cameras(tx: Scoped) -> tuple[OwnCamera, ...]:
    """The cameras in reach, removed ones too."""
    rows = await tx.all(
        "SELECT camera_key, camera_id, name, deleted_at FROM cameras WHERE tenant_id = :tenant_id "
        "AND IN_REACH() ORDER BY camera_id LIMIT 10000",
    )
    return tuple(
        [OwnCamera(row["camera_key"], row["camera_id"], row["name"], row["deleted_at"] is not None) for row in rows]
    )


async def shown_usage(tx: Scoped) -> tuple[ShownUsage, ...]:
    """What the cameras in reach take, as it was last counted."""
    rows = await tx.all(
        "SELECT u.retention_class, u.pictures, u.bytes, u.day_bytes, u.oldest_at, u.counted_at, c.camera_id, c.name, "
        "c.deleted_at FROM camera_usage u JOIN cameras c ON c.camera_key = u.camera_key "
        "WHERE u.tenant_id = :tenant_id AND IN_REACH(c) "
        "ORDER BY c.camera_id, u.retention_class LIMIT 30000",
    )
    return tuple(
        [
            ShownUsage(row["camera_id"], row["name"], row["deleted_at"] is not None, usage_of(row), row["counted_at"])
            for row in rows
        ]
    )


async def shown_reports(tx: Scoped, limit: int) -> tuple[ShownReport, ...]:
    rows = await tx.all(
        "SELECT at, what, count, bytes, reason FROM sweep_reports WHERE tenant_id = :tenant_id "
        "ORDER BY at DESC, report_id DESC LIMIT :limit",
        limit=limit,
    )
    return tuple([ShownReport(row["at"], row["what"], row["count"], row["bytes"], row["reason"]) for row in rows])


async def swept_bytes(tx: Scoped, since_ms: int) -> int:
    row = await tx.one(
        "SELECT sum(bytes) AS bytes FROM sweep_reports WHERE tenant_id = :tenant_id AND at >= :since_ms",
        since_ms=since_ms,
    )
    return 0 if row is None or row["bytes"] is None else int(row["bytes"])
