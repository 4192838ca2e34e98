"""Streamers: their reports, what they carried, and how they stand. One row each, whatever tenants they serve."""

from collections.abc import Mapping
from dataclasses import dataclass

from camserver.domain.admission import (
    AWAY_AFTER_MS,
    METRICS_EVERY_MS,
    METRICS_KEPT_MS,
    AdmissionPolicy,
    Guard,
    Held,
    Kind,
    Load,
    Quality,
    is_available,
    judged,
)
from camserver.store.sql import Sql
from camserver.store.tx import Row, Tx

STREAMERS_MAX = 200
# A streamer that was silent for so long is not coming back under that name.
FORGOTTEN_AFTER_MS = 7 * 86_400_000
PRUNE_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class StreamerReport:
    """What a streamer says of itself. `load` is None between reports of it."""

    streamer_id: str
    public_url: str
    port: int
    feed_url: str
    total_units: int
    load: Load | None = None


@dataclass(frozen=True, slots=True)
class StreamerState:
    streamer_id: str
    available: bool
    overloaded: bool
    load: Load
    total_units: int
    held: tuple[Held, ...]  # valid viewings, by kind, camera and quality


@dataclass(frozen=True, slots=True)
class Asked:
    """Live views that were asked for over some time, and those of them that were refused."""

    requests: int
    rejections: int


async def check_in(tx: Tx, report: StreamerReport, policy: AdmissionPolicy, now_ms: int) -> None:
    """Notes a streamer's report; the guard judges its load. Nothing is written where nothing new is said."""
    row = await tx.one(_ONE, streamer_id=report.streamer_id)
    if row is None:
        await tx.run(_INSERT, streamer_id=report.streamer_id)
    elif report.load is None and row["reported_at"] is not None and _is_same(row, report):
        return
    locked = await lock(tx, report.streamer_id)
    if locked is None:
        return
    load = report.load or Load(locked["cpu_percent"], locked["memory_percent"], locked["swap_mb"])
    guard = guard_of(locked)
    if report.load is not None:
        guard = judged(guard, report.load, now_ms, policy)
    await tx.run(
        _UPDATE,
        streamer_id=report.streamer_id,
        public_url=report.public_url[:255],
        port=report.port,
        feed_url=report.feed_url[:255],
        total_units=report.total_units,
        cpu_percent=load.cpu_percent,
        memory_percent=load.memory_percent,
        swap_mb=load.swap_mb,
        overloaded=int(guard.overloaded),
        overload_at=guard.overload_at,
        now_ms=now_ms,
    )
    if locked["metrics_at"] is None or now_ms - locked["metrics_at"] >= METRICS_EVERY_MS:
        await _measure(tx, locked, load, now_ms)


def _is_same(row: Row, report: StreamerReport) -> bool:
    said = (report.public_url[:255], report.port, report.feed_url[:255], report.total_units)
    return (row["public_url"], row["port"], row["feed_url"], row["total_units"]) == said


async def _measure(tx: Tx, streamer: Row, load: Load, now_ms: int) -> None:
    count = await tx.one(
        "SELECT COUNT(CASE WHEN kind = 'modal' THEN 1 END) AS modals, COUNT(CASE WHEN kind <> 'modal' THEN 1 END) "
        "AS suggested FROM modal_leases WHERE streamer_id = :streamer_id AND valid_until >= :now_ms",
        streamer_id=streamer["streamer_id"],
        now_ms=now_ms,
    )
    await tx.run(
        "INSERT INTO admission_metrics (streamer_id, recorded_at, active_modals, active_suggest, cpu_percent, "
        "memory_percent, requests_total, rejections_total) VALUES (:streamer_id, :now_ms, :modals, :suggested, :cpu, "
        ":memory, :requests, :rejections)",
        streamer_id=streamer["streamer_id"],
        now_ms=now_ms,
        modals=0 if count is None else count["modals"],
        suggested=int(count is not None and count["suggested"] > 0),
        cpu=load.cpu_percent,
        memory=load.memory_percent,
        requests=streamer["requests_total"],
        rejections=streamer["rejections_total"],
    )
    await tx.run(
        "UPDATE streamers SET metrics_at = :now_ms WHERE streamer_id = :streamer_id",
        streamer_id=streamer["streamer_id"],
        now_ms=now_ms,
    )


async def stopped(tx: Tx, streamer_id: str) -> None:
    """A streamer says that it stops: it gets no more viewings, and those it had are over."""
    await tx.run("UPDATE streamers SET reported_at = NULL WHERE streamer_id = :streamer_id", streamer_id=streamer_id)
    await tx.run("DELETE FROM modal_leases WHERE streamer_id = :streamer_id", streamer_id=streamer_id)


async def lock(tx: Tx, streamer_id: str) -> Row | None:
    """The streamer's row, locked: whoever admits on it or changes its viewings' cost waits here for its turn."""
    return await tx.one(f"{_ONE} FOR UPDATE", streamer_id=streamer_id)


def guard_of(row: Row) -> Guard:
    return Guard(bool(row["overloaded"]), row["overload_at"])


async def choose(tx: Tx, camera_key: int, tried: frozenset[str], now_ms: int) -> tuple[str | None, bool]:
    """The streamer to ask for a viewing: one that shows the camera already, else the one with the most room.

    Judged without a lock, so the one chosen may prove full; it is then left out by `tried`. None: none is there. The
    second answer is whether there is but one.
    """
    rows = await tx.all(
        "SELECT streamer_id, overloaded, total_units FROM streamers WHERE reported_at >= :since "
        f"ORDER BY streamer_id LIMIT {STREAMERS_MAX}",
        since=now_ms - AWAY_AFTER_MS,
    )
    there = [row for row in rows if row["streamer_id"] not in tried]
    if len(there) < 2:
        return there[0]["streamer_id"] if there else None, len(rows) == 1
    carried = {row["streamer_id"]: row for row in await tx.all(_CARRIED, camera_key=camera_key)}

    def order(row: Row) -> tuple[bool, bool, int, str]:
        use = carried.get(row["streamer_id"])
        shows, units = (False, 0) if use is None else (use["shows"] > 0, use["units"])
        return bool(row["overloaded"]), not shows, int(units) - int(row["total_units"]), str(row["streamer_id"])

    return str(min(there, key=order)["streamer_id"]), False


async def held_on(tx: Tx, streamer_id: str) -> tuple[tuple[Held, ...], int | None]:
    """What the rows of a streamer's viewings hold, valid or not, and until when the first of them is valid."""
    rows = await tx.all(_HELD, streamer_id=streamer_id)
    first = min((int(row["valid_until"]) for row in rows), default=None)
    return tuple(held_of(row) for row in rows), first


def held_of(row: Row) -> Held:
    return Held(
        Kind(row["kind"]),
        row["camera_key"],
        Quality(row["quality"]),
        int(row["units"]),
        int(row["transcode_units"]),
    )


async def states(tx: Tx, now_ms: int) -> tuple[StreamerState, ...]:
    """Every streamer that is not stopped, in the order of their names."""
    rows = await tx.all(
        f"SELECT * FROM streamers WHERE reported_at IS NOT NULL ORDER BY streamer_id LIMIT {STREAMERS_MAX}"
    )
    held: dict[str, list[Held]] = {}
    for row in await tx.all(_HELD_ALL, now_ms=now_ms):
        held.setdefault(row["streamer_id"], []).append(held_of(row))
    return tuple(_state(row, held, now_ms) for row in rows)


async def asked_since(tx: Tx, since_ms: int) -> Asked:
    """Of the streamers that are not stopped; as long ago as they are measured, see METRICS_KEPT_MS."""
    row = await tx.one(_ASKED, since_ms=since_ms)
    return Asked(0, 0) if row is None else Asked(int(row["requests"] or 0), int(row["rejections"] or 0))


def _state(row: Row, held: Mapping[str, list[Held]], now_ms: int) -> StreamerState:
    return StreamerState(
        streamer_id=row["streamer_id"],
        available=is_available(row["reported_at"], now_ms),
        overloaded=bool(row["overloaded"]),
        load=Load(row["cpu_percent"], row["memory_percent"], row["swap_mb"]),
        total_units=row["total_units"],
        held=tuple(held.get(row["streamer_id"], ())),
    )


async def prune(tx: Tx, now_ms: int) -> int:
    """Deletes what admission measured longer ago than it is kept, and streamers that are no more."""
    rows = await tx.all(
        "SELECT metric_id FROM admission_metrics WHERE recorded_at < :before ORDER BY recorded_at LIMIT :batch",
        before=now_ms - METRICS_KEPT_MS,
        batch=PRUNE_BATCH,
    )
    if rows:
        await tx.run(
            "DELETE FROM admission_metrics WHERE metric_id IN (:metric_ids...)",
            metric_ids=[row["metric_id"] for row in rows],
        )
    # `metrics_at` also tells when one was last there that has stopped since.
    await tx.run(
        "DELETE FROM streamers WHERE COALESCE(reported_at, metrics_at, 0) < :before",
        before=now_ms - FORGOTTEN_AFTER_MS,
    )
    return len(rows)


_ONE = "SELECT * FROM streamers WHERE streamer_id = :streamer_id"
_INSERT = Sql(
    "INSERT INTO streamers (streamer_id) VALUES (:streamer_id) ON CONFLICT DO NOTHING",
    mariadb="INSERT INTO streamers (streamer_id) VALUES (:streamer_id) ON DUPLICATE KEY UPDATE streamer_id = "
    "streamer_id",
)
_UPDATE = """
UPDATE streamers SET public_url = :public_url, port = :port, feed_url = :feed_url, total_units = :total_units,
  cpu_percent = :cpu_percent, memory_percent = :memory_percent, swap_mb = :swap_mb, overloaded = :overloaded,
  overload_at = :overload_at, reported_at = :now_ms
WHERE streamer_id = :streamer_id"""
_CARRIED = """
SELECT streamer_id, SUM(units) AS units, SUM(CASE WHEN camera_key = :camera_key THEN 1 ELSE 0 END) AS shows
FROM modal_leases GROUP BY streamer_id"""
_HELD = """
SELECT kind, camera_key, quality, SUM(units) AS units, MAX(transcode_units) AS transcode_units,
  MIN(valid_until) AS valid_until
FROM modal_leases WHERE streamer_id = :streamer_id GROUP BY kind, camera_key, quality"""
_HELD_ALL = """
SELECT streamer_id, kind, camera_key, quality, SUM(units) AS units, MAX(transcode_units) AS transcode_units
FROM modal_leases WHERE valid_until >= :now_ms GROUP BY streamer_id, kind, camera_key, quality"""
# Totals only grow: what was added since is what is above the first that was measured.
_ASKED = """
SELECT SUM(s.requests_total - m.requests) AS requests, SUM(s.rejections_total - m.rejections) AS rejections
FROM streamers s JOIN (
  SELECT streamer_id, MIN(requests_total) AS requests, MIN(rejections_total) AS rejections
  FROM admission_metrics WHERE recorded_at >= :since_ms GROUP BY streamer_id
) m ON m.streamer_id = s.streamer_id
WHERE s.reported_at IS NOT NULL"""
