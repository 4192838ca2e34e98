"""What retention does besides pictures: old records of other kinds, removed cameras, what cameras take, reports.

Each step is a transaction of at most a page of rows, found by an index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from camserver.domain.keeping import DAY_MS
from camserver.domain.people import Principal
from camserver.domain.retention import RetentionPolicy
from camserver.store import audit
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped, Tx

PAGE = 500
# Old records are counted up to so many, for people who ask what would go.
COUNTED_MAX = 100_000
# A removed camera's leases are remembered for so long even without evidence: a worker may come back with its looks.
REMOVED_KEPT_DAYS = 30
# When a round is wanted out of its turn, and when the last one ended: rows of `settings`, of the installation.
ROUND_WANTED = "retention.round_wanted"
ROUND_ENDED = "retention.round_ended"
INSTALLATION = 0


@dataclass(frozen=True, slots=True)
class CameraRef:
    camera_key: int
    tenant_id: int
    site_id: int
    removed_at: int | None


@dataclass(frozen=True, slots=True)
class Usage:
    """What the pictures and clips of one class take."""

    retention_class: str
    pictures: int
    bytes: int
    day_bytes: int  # of the last 24 hours
    oldest_at: int | None


@dataclass(frozen=True, slots=True)
class CameraUsage:
    camera_key: int
    tenant_id: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Report:
    tenant_id: int
    what: str
    count: int
    bytes: int
    reason: str


# ---------------------------------------------------------------------------------------------------------------
# Records of other kinds
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aged:
    """A kind of record that goes by age alone. `find` answers keys that are past `:cutoff`, by an index."""

    table: str
    key: str
    find: str


# By tenant, because their indexes begin with it.
AGED: Mapping[str, Aged] = {
    "notifications": Aged(
        "notifications",
        "notification_id",
        "SELECT notification_id FROM notifications WHERE tenant_id = :tenant_id AND sent_at < :cutoff",
    ),
    "reports": Aged(
        "sweep_reports",
        "report_id",
        "SELECT report_id FROM sweep_reports WHERE tenant_id = :tenant_id AND at < :cutoff",
    ),
    "snoozes": Aged(
        "snoozes", "snooze_id", "SELECT snooze_id FROM snoozes WHERE tenant_id = :tenant_id AND until < :cutoff"
    ),
}
OVER = ("done", "dead", "skipped", "suppressed")


def days_of(what: str, policy: RetentionPolicy) -> int:
    return {
        "notifications": policy.notifications_days,
        "reports": policy.statistics_days,
        "snoozes": policy.notifications_days,
    }[what]


def day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


async def tenants(tx: Tx) -> tuple[int, ...]:
    """Without those that are being erased."""
    rows = await tx.all("SELECT tenant_id FROM tenants WHERE erasing_at IS NULL ORDER BY tenant_id")
    return tuple([row["tenant_id"] for row in rows])


async def prune(tx: Tx, what: str, tenant_id: int, cutoff: int) -> int:
    aged = AGED[what]
    rows = await tx.all(f"{aged.find} LIMIT {PAGE}", tenant_id=tenant_id, cutoff=cutoff)
    keys = [row[aged.key] for row in rows]
    return await tx.run(f"DELETE FROM {aged.table} WHERE {aged.key} IN (:keys...)", keys=keys) if keys else 0


async def count_aged(tx: Tx, what: str, tenant_id: int, cutoff: int) -> int:
    """How many records `prune` would delete in the end, up to a bound."""
    return await _counted(tx, AGED[what].find, tenant_id=tenant_id, cutoff=cutoff)


async def count_old_deliveries(tx: Tx, tenant_id: int, status: str, finished_before: int) -> int:
    """The same of deliveries; those whose parts are younger go later, and are counted all the same."""
    return await _counted(
        tx, _OVER_DELIVERIES, tenant_id=tenant_id, status=status, cutoff=finished_before, before=finished_before
    )


async def _counted(tx: Tx, find: str, **params: object) -> int:
    row = await tx.one(f"SELECT count(*) AS n FROM ({find} LIMIT {COUNTED_MAX}) found", **params)
    return 0 if row is None else int(row["n"])


async def prune_deliveries(tx: Tx, status: str, finished_before: int) -> int:
    """Deletes deliveries that are over. What fanned out goes after its parts, and a sent message after its record."""
    rows = await tx.all(OLD_DELIVERIES, status=status, cutoff=finished_before, finished_before=finished_before)
    keys = [row["delivery_id"] for row in rows]
    return await tx.run("DELETE FROM deliveries WHERE delivery_id IN (:keys...)", keys=keys) if keys else 0


async def prune_statistics(tx: Tx, before_ms: int, before_day: str) -> int:
    """Hours, days and summaries that are past their time; small tables but for the hours, which go hour by hour."""
    hour = await tx.one("SELECT min(hour_at) AS hour_at FROM hourly_stats")
    deleted = 0
    if hour is not None and hour["hour_at"] is not None and hour["hour_at"] < before_ms:
        deleted = await tx.run("DELETE FROM hourly_stats WHERE hour_at = :hour_at", hour_at=hour["hour_at"])
    deleted += await tx.run("DELETE FROM daily_summaries WHERE day < :before_day", before_day=before_day)
    deleted += await tx.run("DELETE FROM llm_days WHERE day < :before_day", before_day=before_day)
    deleted += await tx.run("DELETE FROM archive_days WHERE day < :before_day", before_day=before_day)
    return deleted + await tx.run("DELETE FROM receiver_hours WHERE hour_at < :before_ms", before_ms=before_ms)


async def prune_links(tx: Tx, before_ms: int) -> int:
    """Sign-ins and set-up links that are over."""
    deleted = await tx.run("DELETE FROM setup_links WHERE expires_at < :before_ms", before_ms=before_ms)
    rows = await tx.all(
        f"SELECT session_id FROM sessions WHERE expires_at < :before_ms ORDER BY expires_at LIMIT {PAGE}",
        before_ms=before_ms,
    )
    keys = [row["session_id"] for row in rows]
    if keys:
        deleted += await tx.run("DELETE FROM sessions WHERE session_id IN (:keys...)", keys=keys)
    return deleted


# ---------------------------------------------------------------------------------------------------------------
# Cameras
# ---------------------------------------------------------------------------------------------------------------


async def cameras(tx: Tx, after_key: int) -> tuple[CameraRef, ...]:
    """Cameras in the order of their keys, removed ones too."""
    rows = await tx.all(
        "SELECT camera_key, tenant_id, site_id, deleted_at FROM cameras WHERE camera_key > :after_key "
        f"ORDER BY camera_key LIMIT {PAGE}",
        after_key=after_key,
    )
    return tuple([CameraRef(row["camera_key"], row["tenant_id"], row["site_id"], row["deleted_at"]) for row in rows])


_EVIDENCE = ("frames", "events", "incidents", "clips", "case_items", "deliveries", "notifications", "drive_objects")
_GOES_WITH_CAMERA = ("cooldowns", "frame_gaps", "look_pauses", "camera_leases", "camera_usage", "llm_reviews",
                     "camera_health", "camera_state", "cameras")  # fmt: skip


async def forget_camera(tx: Tx, camera_key: int, now_ms: int) -> bool:
    """Deletes the row of a removed camera of which nothing is left."""
    row = await tx.one("SELECT deleted_at FROM cameras WHERE camera_key = :key FOR UPDATE", key=camera_key)
    if row is None or row["deleted_at"] is None or row["deleted_at"] > now_ms - REMOVED_KEPT_DAYS * DAY_MS:
        return False
    for table in _EVIDENCE:
        if await tx.one(f"SELECT camera_key FROM {table} WHERE camera_key = :key LIMIT 1", key=camera_key):
            return False
    for table in _GOES_WITH_CAMERA:
        await tx.run(f"DELETE FROM {table} WHERE camera_key = :key", key=camera_key)
    return True


async def forget_gaps(tx: Tx, camera_key: int, before_ms: int) -> int:
    return await tx.run(
        "DELETE FROM frame_gaps WHERE camera_key = :camera_key AND noted_at < :before_ms",
        camera_key=camera_key,
        before_ms=before_ms,
    )


# ---------------------------------------------------------------------------------------------------------------
# What is kept, and what went
# ---------------------------------------------------------------------------------------------------------------


async def count_usage(tx: Tx, camera_key: int, now_ms: int) -> tuple[Usage, ...]:
    """Counts a camera's pictures and clips."""
    since = now_ms - DAY_MS
    found: dict[str, list[Usage]] = {}
    for sql in (_FRAME_USAGE, _CLIP_USAGE):
        for row in await tx.all(sql, camera_key=camera_key, since=since):
            found.setdefault(row["retention_class"], []).append(usage_of(row))
    return tuple([together(name, parts) for name, parts in sorted(found.items())])


def usage_of(row: Row) -> Usage:
    pictures, taken, day_bytes = (int(row[name] or 0) for name in ("pictures", "bytes", "day_bytes"))
    return Usage(row["retention_class"], pictures, taken, day_bytes, row["oldest_at"])


def together(name: str, parts: Sequence[Usage]) -> Usage:
    return Usage(
        name,
        sum(part.pictures for part in parts),
        sum(part.bytes for part in parts),
        sum(part.day_bytes for part in parts),
        min((part.oldest_at for part in parts if part.oldest_at is not None), default=None),
    )


async def note_usage(tx: Tx, camera: CameraRef, usages: Sequence[Usage], now_ms: int) -> None:
    await tx.run("DELETE FROM camera_usage WHERE camera_key = :key", key=camera.camera_key)
    await tx.many(
        _INSERT_USAGE,
        [
            {
                "camera_key": camera.camera_key,
                "tenant_id": camera.tenant_id,
                "retention_class": usage.retention_class,
                "pictures": usage.pictures,
                "bytes": usage.bytes,
                "day_bytes": usage.day_bytes,
                "oldest_at": usage.oldest_at,
                "now_ms": now_ms,
            }
            for usage in usages
        ],
    )


async def report(tx: Tx, reports: Sequence[Report], now_ms: int) -> None:
    """Tells people what a round deleted, and why."""
    await tx.many(
        "INSERT INTO sweep_reports (tenant_id, at, what, count, bytes, reason) "
        "VALUES (:tenant_id, :now_ms, :what, :count, :bytes, :reason)",
        [
            {
                "tenant_id": one.tenant_id,
                "what": one.what,
                "count": one.count,
                "bytes": one.bytes,
                "reason": one.reason[:255],
                "now_ms": now_ms,
            }
            for one in reports
        ],
    )
    for tenant_id in sorted({one.tenant_id for one in reports}):
        tx.changed(tenant_id=tenant_id, kind="retention", at_ms=now_ms)


async def round_wanted_at(tx: Tx) -> int:
    """When somebody asked for a round; 0 when nobody did."""
    return await _moment(tx, ROUND_WANTED)


async def round_ended_at(tx: Tx) -> int:
    return await _moment(tx, ROUND_ENDED)


async def note_round(tx: Tx, now_ms: int) -> None:
    await _set_moment(tx, ROUND_ENDED, now_ms)


async def ask_round(tx: Tx, by: Principal, address: str, now_ms: int) -> None:
    await _set_moment(tx, ROUND_WANTED, now_ms)
    await audit.add_own(Scoped(tx, by), audit.Entry("retention_asked", now_ms, address))


async def _moment(tx: Tx, name: str) -> int:
    row = await tx.one(
        "SELECT value FROM settings WHERE tenant_id = :tenant_id AND name = :name", tenant_id=INSTALLATION, name=name
    )
    return 0 if row is None else int(row["value"])


async def _set_moment(tx: Tx, name: str, now_ms: int) -> None:
    await tx.run(_SET, tenant_id=INSTALLATION, name=name, value=str(now_ms), now_ms=now_ms)


OLD_DELIVERIES = f"""
SELECT d.delivery_id FROM deliveries d
WHERE d.status = :status AND d.available_at < :cutoff AND d.finished_at < :finished_before
  AND NOT EXISTS (SELECT 1 FROM deliveries p WHERE p.parent_id = d.delivery_id)
  AND NOT EXISTS (SELECT 1 FROM notifications n WHERE n.delivery_id = d.delivery_id)
ORDER BY d.available_at, d.delivery_id LIMIT {PAGE}"""
_OVER_DELIVERIES = """
SELECT delivery_id FROM deliveries
WHERE status = :status AND available_at < :cutoff AND finished_at < :before AND tenant_id = :tenant_id"""
_FRAME_USAGE = """
SELECT retention_class, count(*) AS pictures, sum(COALESCE(infer_bytes, 0) + COALESCE(full_bytes, 0)) AS bytes,
  sum(CASE WHEN captured_at < :since THEN 0 ELSE COALESCE(infer_bytes, 0) + COALESCE(full_bytes, 0) END) AS day_bytes,
  min(captured_at) AS oldest_at
FROM frames WHERE camera_key = :camera_key AND epoch_id IS NOT NULL GROUP BY retention_class"""
_CLIP_USAGE = """
SELECT e.retention_class, count(*) AS pictures, sum(k.object_bytes) AS bytes,
  sum(CASE WHEN k.begin_at >= :since THEN k.object_bytes ELSE 0 END) AS day_bytes, min(k.begin_at) AS oldest_at
FROM clips k JOIN events e ON e.event_id = k.event_id
WHERE k.camera_key = :camera_key AND k.state = 'ready' GROUP BY e.retention_class"""
_INSERT_USAGE = """
INSERT INTO camera_usage (camera_key, retention_class, tenant_id, pictures, bytes, day_bytes, oldest_at, counted_at)
VALUES (:camera_key, :retention_class, :tenant_id, :pictures, :bytes, :day_bytes, :oldest_at, :now_ms)"""
_SET = Sql(
    """
INSERT INTO settings (tenant_id, name, value, updated_at) VALUES (:tenant_id, :name, :value, :now_ms)
ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at""",
    mariadb="""
INSERT INTO settings (tenant_id, name, value, updated_at) VALUES (:tenant_id, :name, :value, :now_ms)
ON DUPLICATE KEY UPDATE value = VALUES(value), updated_at = VALUES(updated_at)""",
)
