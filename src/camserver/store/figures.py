"""Figures of the whole installation, from rows: the same whichever web service is asked, and true after a restart.

For Prometheus, so across all tenants, and never with anybody's name: sites, cameras and people are counted, not told.
Workers, analyzers and streamers are few and told by their names.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from camserver.base.zones import zone_of
from camserver.domain.availability import AvailabilityPolicy, Share, business_hours, share_of
from camserver.domain.timeline import COUNTED_AFTER_MS, coarse_hour
from camserver.store import hourly_stats
from camserver.store.tx import Tx

NAMED_MAX = 1_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One number. `labels` are pairs of name and value."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Figures:
    samples: list[Sample] = field(default_factory=list)

    def add(self, name: str, value: float | int | None, **labels: str) -> None:
        if value is not None:
            self.samples.append(Sample(name, float(value), tuple(sorted(labels.items()))))


async def read(tx: Tx, now_ms: int, missed_ms: int) -> tuple[Sample, ...]:
    """Everything but availability. `missed_ms` without a heartbeat make a worker silent."""
    found = Figures()
    await _cameras(tx, found, now_ms)
    await _workers(tx, found, now_ms, missed_ms)
    await _queues(tx, found, now_ms)
    await _analyzers(tx, found, now_ms)
    await _live(tx, found, now_ms)
    await _kept(tx, found)
    await _scoring(tx, found)
    return tuple(found.samples)


async def _count(tx: Tx, rows: str, **params: object) -> int:
    row = await tx.one(f"SELECT count(*) AS n FROM {rows}", **params)
    return 0 if row is None else int(row["n"])


async def _cameras(tx: Tx, found: Figures, now_ms: int) -> None:
    for row in await tx.all(
        "SELECT h.health AS health, count(*) AS n FROM camera_state h JOIN cameras c ON c.camera_key = h.camera_key "
        "WHERE c.deleted_at IS NULL AND c.enabled = 1 GROUP BY h.health"
    ):
        found.add("cameras", row["n"], health=row["health"])
    for row in await tx.all("SELECT state, count(*) AS n FROM camera_sessions GROUP BY state"):
        found.add("camera_sessions", row["n"], state=row["state"])
    held = "camera_sessions WHERE worker_key IS NOT NULL AND lease_expires_at > :now_ms"
    found.add("leases_active", await _count(tx, held, now_ms=now_ms))
    found.add("events_open", await _count(tx, "events WHERE open_key IS NOT NULL OR issue_key IS NOT NULL"))


async def _workers(tx: Tx, found: Figures, now_ms: int, missed_ms: int) -> None:
    rows = await tx.all(
        "SELECT worker_key, worker_id, status, version, last_seen_at, metrics FROM workers "
        f"WHERE last_seen_at > :since ORDER BY worker_key LIMIT {NAMED_MAX}",
        since=now_ms - 7 * DAY_MS,
    )
    held = {
        row["worker_key"]: row["n"]
        for row in await tx.all(
            "SELECT worker_key, count(*) AS n FROM camera_sessions WHERE worker_key IS NOT NULL GROUP BY worker_key"
        )
    }
    silent = 0
    for row in rows:
        worker = row["worker_id"]
        away = now_ms - row["last_seen_at"] > missed_ms
        silent += away
        found.add("worker_up", int(not away), worker=worker, version=row["version"])
        found.add("worker_state", 1, worker=worker, state=row["status"])
        found.add("worker_cameras_held", held.get(row["worker_key"], 0), worker=worker)
        for name, value in (json.loads(row["metrics"]) if row["metrics"] and not away else {}).items():
            found.add(f"worker_{name}", value, worker=worker)
    found.add("workers_silent", silent)


async def _queues(tx: Tx, found: Figures, now_ms: int) -> None:
    for table, name in (("inference_jobs", "jobs"), ("deliveries", "deliveries")):
        oldest: int | None = None
        counted = dict.fromkeys(("queued", "delayed", "running"), 0)
        for row in await tx.all(
            f"SELECT status, count(*) AS n, min(created_at) AS oldest_at FROM {table} "
            "WHERE status IN ('queued','delayed','running') GROUP BY status"
        ):
            counted[row["status"]] = row["n"]
            oldest = min(oldest or row["oldest_at"], row["oldest_at"])
        for status, number in counted.items():
            found.add(f"{name}_waiting", number, status=status)
        found.add(f"{name}_oldest_seconds", 0 if oldest is None else max(now_ms - oldest, 0) / 1000)
        found.add(f"{name}_dead", await _count(tx, f"{table} WHERE status = 'dead'"))


async def _analyzers(tx: Tx, found: Figures, now_ms: int) -> None:
    for row in await tx.all(
        "SELECT dispatcher, url, state, in_flight, concurrency, latency_ms FROM analyzers WHERE seen_at > :since "
        f"ORDER BY dispatcher, url LIMIT {NAMED_MAX}",
        since=now_ms - 300_000,
    ):
        named = {"dispatcher": row["dispatcher"], "analyzer": row["url"]}
        found.add("analyzer_state", 1, state=row["state"], **named)
        found.add("analyzer_in_flight", row["in_flight"], **named)
        found.add("analyzer_concurrency", row["concurrency"], **named)
        found.add("analyzer_latency_seconds", _seconds(row["latency_ms"]), **named)


def _seconds(length_ms: int | None) -> float | None:
    return None if length_ms is None else length_ms / 1000


async def _live(tx: Tx, found: Figures, now_ms: int) -> None:
    units = {
        row["streamer_id"]: (row["n"], row["units"])
        for row in await tx.all(
            "SELECT streamer_id, count(*) AS n, sum(units + transcode_units) AS units FROM modal_leases "
            "WHERE valid_until > :now_ms GROUP BY streamer_id",
            now_ms=now_ms,
        )
    }
    for row in await tx.all(
        "SELECT streamer_id, total_units, cpu_percent, memory_percent, overloaded, requests_total, rejections_total, "
        f"reported_at FROM streamers ORDER BY streamer_id LIMIT {NAMED_MAX}"
    ):
        streamer = row["streamer_id"]
        viewings, used = units.get(streamer, (0, 0))
        is_up = row["reported_at"] is not None and now_ms - row["reported_at"] < 15_000
        found.add("streamer_up", int(is_up), streamer=streamer)
        found.add("admission_viewings", viewings, streamer=streamer)
        found.add("admission_units_used", int(used), streamer=streamer)
        found.add("admission_units", row["total_units"], streamer=streamer)
        found.add("admission_requests_total", row["requests_total"], streamer=streamer)
        found.add("admission_rejections_total", row["rejections_total"], streamer=streamer)
        found.add("streamer_overloaded", row["overloaded"], streamer=streamer)
        found.add("streamer_cpu_ratio", row["cpu_percent"] / 100, streamer=streamer)


async def _kept(tx: Tx, found: Figures) -> None:
    for row in await tx.all(
        "SELECT retention_class, sum(bytes) AS bytes, sum(pictures) AS pictures, sum(day_bytes) AS day_bytes "
        "FROM camera_usage GROUP BY retention_class"
    ):
        named = {"retention_class": row["retention_class"]}
        found.add("kept_bytes", int(row["bytes"]), **named)
        found.add("kept_pictures", int(row["pictures"]), **named)
        found.add("kept_day_bytes", int(row["day_bytes"]), **named)
    found.add("garbage_objects", await _count(tx, "garbage"))


async def _scoring(tx: Tx, found: Figures) -> None:
    for row in await tx.all(
        "SELECT status, count(*) AS n, sum(calls) AS calls, sum(cost_micro) AS cost, sum(refused) AS refused, "
        "sum(cache_hits) + sum(same_hits) AS reused, sum(busy_ms) AS busy_ms FROM scoring_runs GROUP BY status"
    ):
        status = row["status"]
        found.add("scoring_runs", row["n"], status=status)
        found.add("scoring_calls", int(row["calls"]), status=status)
        found.add("scoring_refused", int(row["refused"]), status=status)
        found.add("scoring_reused", int(row["reused"]), status=status)
        found.add("scoring_busy_seconds", int(row["busy_ms"]) / 1000, status=status)
        found.add("scoring_cost_usd", int(row["cost"]) / 1_000_000, status=status)
    now = await tx.one(
        "SELECT sum(places) AS places, max(write_delay_ms) AS delay_ms FROM scoring_runs WHERE status = 'running'"
    )
    found.add("scoring_limit", (now and now["places"]) or 0)
    found.add("scoring_write_delay_seconds", ((now and now["delay_ms"]) or 0) / 1000)


async def availability(tx: Tx, policy: AvailabilityPolicy, now_ms: int) -> tuple[Share, int]:
    """Of all cameras that run, together; and how many of them missed the objective."""
    to_ms = min(now_ms - COUNTED_AFTER_MS, await hourly_stats.counted_to(tx, now_ms))
    from_ms = to_ms - policy.window_days * DAY_MS
    whole, short = Share(), 0
    after = 0
    while True:
        cameras = await tx.all(
            "SELECT c.camera_key, c.created_at, s.timezone FROM cameras c JOIN sites s ON s.site_id = c.site_id "
            "WHERE c.camera_key > :after AND c.enabled = 1 AND c.deleted_at IS NULL ORDER BY c.camera_key LIMIT 200",
            after=after,
        )
        if not cameras:
            return whole, short
        after = cameras[-1]["camera_key"]
        written = await _hours(tx, [row["camera_key"] for row in cameras], from_ms, to_ms)
        for row in cameras:
            begin = max(from_ms, row["created_at"])
            wanted = business_hours(begin, to_ms, zone_of(row["timezone"]), policy)
            share = share_of(written.get((row["camera_key"], hour_at)) for hour_at in wanted)
            whole = whole.plus(share)
            short += share.ratio is not None and share.ratio < policy.objective


async def _hours(tx: Tx, camera_keys: Sequence[int], from_ms: int, to_ms: int) -> dict[tuple[int, int], str]:
    found: dict[tuple[int, int], str] = {}
    for row in await tx.all(
        "SELECT camera_key, hour_at, cells, looks, looks_failed FROM hourly_stats "
        "WHERE hour_at >= :from_ms AND hour_at < :to_ms AND camera_key IN (:camera_keys...)",
        from_ms=from_ms,
        to_ms=to_ms,
        camera_keys=list(camera_keys),
    ):
        cells = row["cells"] or coarse_hour(row["looks"], row["looks_failed"], 0, 0)
        found[row["camera_key"], row["hour_at"]] = cells
    return found
