"""The time of many cameras at a glance, from the hourly figures: whether they looked, and what they saw.

Figures outlive what they count, so a day can be shown whose frames are gone. Counting them is `hourly_stats`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from camserver.domain.statistics import HOUR_MS
from camserver.domain.timeline import (
    CELL_MS,
    CELLS,
    Gap,
    Looked,
    Pause,
    Strip,
    coarse_hour,
    counted_until,
    gaps,
    make_strip,
    shortest_gap_ms,
    with_pauses,
)
from camserver.store import camera_filters, look_pauses
from camserver.store.cameras import missing
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped

CAMERAS_MAX = 200


@dataclass(frozen=True, slots=True)
class Span:
    """Both are bounds of hours; `to_ms` is not included."""

    from_ms: int
    to_ms: int
    bucket_ms: int


@dataclass(frozen=True, slots=True)
class TimelineFilter:
    """What is left out does not narrow."""

    sites: tuple[str, ...] = ()
    camera_ids: tuple[str, ...] = ()
    after: str = ""  # cameras behind this one


@dataclass(frozen=True, slots=True)
class CameraStrip:
    camera_id: str
    name: str
    site: str
    strip: Strip


@dataclass(frozen=True, slots=True)
class Timeline:
    cameras: tuple[CameraStrip, ...]  # in the order of their ids
    next_after: str | None  # the last one, where there are more
    counted_until: int


@dataclass(frozen=True, slots=True)
class LookHour:
    """An hour of a camera. `pictures` are those that are still kept, `quiet` of them on which nothing happened."""

    hour_at: int
    looks: int
    looks_failed: int
    analyzed: int
    detected: int
    events: int
    severity_max: int
    lost: int  # looks that were made and never arrived
    pictures: int
    quiet: int


@dataclass(frozen=True, slots=True)
class Looks:
    interval_ms: int
    hours: tuple[LookHour, ...]  # all of them, also those without a look
    gaps: tuple[Gap, ...]
    pauses: tuple[Pause, ...]
    counted_until: int


async def read(tx: Scoped, wanted: TimelineFilter, span: Span, counted_to_ms: int, now_ms: int) -> Timeline:
    """`counted_to_ms` is what `hourly_stats.counted_to` says."""
    cameras = await _cameras(tx, wanted)
    shown = cameras[:CAMERAS_MAX]
    hours = await _hours(tx, [row["camera_key"] for row in shown], span.from_ms, span.to_ms)
    until = _counted_until(hours.values(), counted_to_ms, now_ms)
    pauses = await look_pauses.within(tx, [row["camera_key"] for row in shown], span.from_ms, span.to_ms, now_ms)

    def strip_of(row: Row) -> Strip:
        of_camera = hours.get(row["camera_key"], {})
        strip = make_strip(of_camera, span.from_ms, span.to_ms, span.bucket_ms, until, row["created_at"])
        return with_pauses(strip, pauses.get(row["camera_key"], ()), span.from_ms, span.bucket_ms)

    strips = tuple(CameraStrip(row["camera_id"], row["name"], row["site"], strip_of(row)) for row in shown)
    return Timeline(strips, shown[-1]["camera_id"] if len(cameras) > CAMERAS_MAX else None, until)


async def zone(tx: Scoped, sites: Sequence[str], camera_ids: Sequence[str]) -> str:
    """The time zone that a day is meant in: that of most of the cameras asked for; UTC where there is none.

    It is the same for every page of a timeline. Ties go by the alphabet, so that they don't flip."""
    clauses, named = await _narrowed(tx, sites, camera_ids)
    row = await tx.one(
        "SELECT s.timezone, COUNT(*) AS cameras FROM cameras c JOIN sites s ON s.site_id = c.site_id "
        f"WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c){clauses} "
        "GROUP BY s.timezone ORDER BY cameras DESC, s.timezone LIMIT 1",
        **named,
    )
    return "UTC" if row is None else str(row["timezone"])


async def _cameras(tx: Scoped, wanted: TimelineFilter) -> Sequence[Row]:
    clauses, named = await _narrowed(tx, wanted.sites, wanted.camera_ids)
    return await tx.all(
        "SELECT c.camera_key, c.camera_id, c.name, c.created_at, s.name AS site FROM cameras c "
        "JOIN sites s ON s.site_id = c.site_id WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL "
        f"AND IN_REACH(c){clauses} AND c.camera_id > :after ORDER BY c.camera_id LIMIT {CAMERAS_MAX + 1}",
        after=wanted.after,
        **named,
    )


async def _narrowed(tx: Scoped, sites: Sequence[str], camera_ids: Sequence[str]) -> tuple[str, dict[str, list[int]]]:
    """What holds a statement about cameras `c` to those asked for, and its values; none asked for means all."""
    keys = await camera_filters.keys_of(tx, camera_ids)
    site_ids = await camera_filters.keys_of_sites(tx, sites)
    clauses = " AND c.camera_key IN (:wanted_cameras...)" if keys else ""
    clauses += " AND c.site_id IN (:wanted_sites...)" if site_ids else ""
    return clauses, {"wanted_cameras": keys, "wanted_sites": site_ids}


async def _hours(tx: Scoped, camera_keys: Sequence[int], from_ms: int, to_ms: int) -> dict[int, dict[int, str]]:
    """Hours as text, by camera and when they began."""
    rows = await tx.all(_PACKED, camera_keys=list(camera_keys), from_ms=from_ms, to_ms=to_ms)
    return {row["camera_key"]: _unpacked(row["hours"]) for row in rows}


def _unpacked(text: str) -> dict[int, str]:
    words = text.replace(";", ":").split(":")
    hours = dict(zip(map(int, words[0::2]), words[1::2], strict=True))
    if "=" not in text:
        return hours
    # Hours from before there were cells have their figures only.
    return {
        hour_at: coarse_hour(*map(int, cells[1:].split(","))) if cells[0] == "=" else cells
        for hour_at, cells in hours.items()
    }


# A row a camera: thousands of small rows cost more than what they say.
_FIGURES_OF_HOUR = ("looks", "looks_failed", "severity_max", "events")
_PACKED_FROM = """
FROM hourly_stats WHERE tenant_id = :tenant_id AND camera_key IN (:camera_keys...) AND hour_at >= :from_ms
  AND hour_at < :to_ms GROUP BY camera_key"""
_COARSE = " || ',' || ".join(_FIGURES_OF_HOUR)
_COARSE_MARIADB = ", ',', ".join(_FIGURES_OF_HOUR)
_PACKED = Sql(
    sqlite=f"SELECT camera_key, GROUP_CONCAT(hour_at || ':' || COALESCE(cells, '=' || {_COARSE}), ';') AS hours"
    f"{_PACKED_FROM}",
    postgres=f"SELECT camera_key, STRING_AGG(hour_at || ':' || COALESCE(cells, '=' || {_COARSE}), ';') AS hours"
    f"{_PACKED_FROM}",
    mariadb="SELECT camera_key, GROUP_CONCAT(CONCAT(hour_at, ':', COALESCE(cells, CONCAT('=', "
    f"{_COARSE_MARIADB}))) SEPARATOR ';') AS hours{_PACKED_FROM}",
)


def _counted_until(hours: Iterable[Mapping[int, str]], counted_to_ms: int, now_ms: int) -> int:
    """The end of the newest cell in which anybody looked, or what must have been counted by now; no later than what
    has been."""
    newest = 0
    for of_camera in hours:
        last = max(of_camera)
        if last + HOUR_MS > newest:
            looked = of_camera[last][0::3]
            cells = CELLS - next((n for n, letter in enumerate(reversed(looked)) if letter != Looked.NONE), CELLS)
            newest = max(newest, last + cells * CELL_MS)
    return min(counted_until(newest, now_ms), counted_to_ms, now_ms)


async def looks(
    tx: Scoped, camera_id: str, from_ms: int, to_ms: int, default_sec: int, counted_to_ms: int, now_ms: int
) -> Looks:
    """A camera's hours, looked at or not, so that "nothing happened here" can be told from "nobody looked"."""
    camera = await tx.one(
        "SELECT c.camera_key, c.created_at, o.polling_interval_sec FROM cameras c "
        "LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key "
        "WHERE c.tenant_id = :tenant_id AND c.camera_id = :camera_id AND c.deleted_at IS NULL "
        "AND IN_REACH(c)",
        camera_id=camera_id,
    )
    if camera is None:
        raise missing(camera_id)
    span = {"camera_key": camera["camera_key"], "from_ms": from_ms, "to_ms": to_ms}
    figures = {row["hour_at"]: row for row in await tx.all(_FIGURES, **span)}
    pictures = {row["hour_at"]: row for row in await tx.all(_PICTURES, **span)}
    lost = {row["hour_at"]: int(row["lost"]) for row in await tx.all(_LOST, **span)}
    cells = await _hours(tx, [camera["camera_key"]], from_ms, to_ms)
    until = _counted_until(cells.values(), counted_to_ms, now_ms)
    strip = make_strip(cells.get(camera["camera_key"], {}), from_ms, to_ms, CELL_MS, until, camera["created_at"])
    interval_ms = round((camera["polling_interval_sec"] or default_sec) * 1000)
    hours = tuple(
        _hour(hour_at, figures.get(hour_at), pictures.get(hour_at), lost.get(hour_at, 0))
        for hour_at in range(from_ms, to_ms, HOUR_MS)
    )
    found = await look_pauses.within(tx, [camera["camera_key"]], from_ms, to_ms, now_ms)
    pauses = found.get(camera["camera_key"], ())
    missed = gaps(strip, from_ms, shortest_gap_ms(interval_ms), pauses)
    return Looks(interval_ms, hours, missed, pauses, until)


def _hour(hour_at: int, figures: Row | None, pictures: Row | None, lost: int) -> LookHour:
    def figure(name: str) -> int:
        return 0 if figures is None else int(figures[name])

    return LookHour(
        hour_at=hour_at,
        looks=figure("looks"),
        looks_failed=figure("looks_failed"),
        analyzed=figure("analyzed"),
        detected=figure("detected"),
        events=figure("events"),
        severity_max=figure("severity_max"),
        lost=lost,
        pictures=0 if pictures is None else int(pictures["pictures"]),
        quiet=0 if pictures is None else int(pictures["quiet"]),
    )


_FIGURES = """
SELECT hour_at, looks, looks_failed, analyzed, detected, events, severity_max FROM hourly_stats
WHERE tenant_id = :tenant_id AND camera_key = :camera_key AND hour_at >= :from_ms AND hour_at < :to_ms"""
_PICTURES = f"""
SELECT captured_at - captured_at % {HOUR_MS} AS hour_at, COUNT(*) AS pictures,
  SUM(CASE WHEN verdict = 'skip' AND analyzed = 0 AND event_id IS NULL THEN 1 ELSE 0 END) AS quiet
FROM frames WHERE tenant_id = :tenant_id AND camera_key = :camera_key AND captured_at >= :from_ms
  AND captured_at < :to_ms AND infer_bytes IS NOT NULL
GROUP BY captured_at - captured_at % {HOUR_MS}"""
_LOST = f"""
SELECT noted_at - noted_at % {HOUR_MS} AS hour_at, SUM(last_seq - first_seq + 1) AS lost
FROM frame_gaps WHERE tenant_id = :tenant_id AND camera_key = :camera_key AND noted_at >= :from_ms
  AND noted_at < :to_ms
GROUP BY noted_at - noted_at % {HOUR_MS}"""
