"""Daily summaries: the facts of a site's day, and the row that makes it happen once."""

import json
from dataclasses import dataclass
from typing import Any

import uuid_utils

from camserver.domain.deliveries import TELLING
from camserver.domain.facts import DeliveryKind
from camserver.domain.summaries import (
    IMPORTANT_SEVERITY,
    LINES_MAX,
    Happening,
    Period,
    SiteDay,
    Totals,
    merged_troubles,
)
from camserver.store import deliveries
from camserver.store.deliveries import NewDelivery
from camserver.store.paging import Listed, make_cursor, parse_cursor
from camserver.store.sql import Sql
from camserver.store.tenants import NOT_DISABLED
from camserver.store.tx import Row, Scoped, Tx

PAGE_MAX = 100
# How long before the period an issue that reaches into it may have begun.
ISSUE_MAX_MS = 31 * 86_400_000
DAILY = "daily"


@dataclass(frozen=True, slots=True)
class Site:
    tenant_id: int
    site_id: int
    name: str
    timezone: str
    created_at: int
    removed_at: int | None
    newest_day: str | None  # of its newest summary


@dataclass(frozen=True, slots=True)
class Kept:
    """A summary as it was told."""

    site: str
    day: str
    created_at: int
    body: dict[str, Any]
    cursor: str  # a page from here on begins with the one behind


async def sites(tx: Tx) -> tuple[Site, ...]:
    """Of all tenants that are not switched off; removed ones, too, whose last day is still to be told."""
    rows = await tx.all(
        f"""
        SELECT s.tenant_id, s.site_id, s.name, s.timezone, s.created_at, s.removed_at,
          (SELECT MAX(d.day) FROM daily_summaries d WHERE d.tenant_id = s.tenant_id AND d.site_id = s.site_id) AS day
        FROM sites s WHERE s.tenant_id {NOT_DISABLED} ORDER BY s.site_id"""
    )
    return tuple(
        Site(
            row["tenant_id"],
            row["site_id"],
            row["name"],
            row["timezone"],
            row["created_at"],
            row["removed_at"],
            row["day"],
        )
        for row in rows
    )


async def facts(tx: Tx, site: Site, period: Period, now_ms: int) -> SiteDay:
    """All that was counted of a site between two moments."""
    place: dict[str, object] = {
        "tenant_id": site.tenant_id,
        "site_id": site.site_id,
        "from_ms": period.from_ms,
        "to_ms": period.to_ms,
    }
    grave = await tx.all(_IMPORTANT, severity=IMPORTANT_SEVERITY, most=LINES_MAX, **place)
    counted = await tx.all(_BY_EVENT, severity=IMPORTANT_SEVERITY, **place)
    issues = await tx.all(_ISSUES, since=period.from_ms - ISSUE_MAX_MS, **place)
    ordinary = [(row["primary_event"], int(row["ordinary"])) for row in counted if row["ordinary"]]
    return SiteDay(
        site=site.name,
        period=period,
        important=tuple(
            Happening(
                row["event_uuid"],
                row["camera"],
                row["primary_event"],
                row["severity_max"],
                row["start_at"],
                row["last_seen_at"],
            )
            for row in grave
        ),
        important_count=sum(int(row["important"]) for row in counted),
        ordinary=tuple(sorted(ordinary, key=lambda pair: (-pair[1], pair[0]))),
        troubles=merged_troubles([_issue(row) for row in issues], period),
        totals=await _totals(tx, place),
        made_at=now_ms,
    )


def _issue(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("camera", "issue", "cause", "start_at", "end_at")}


async def _totals(tx: Tx, place: dict[str, object]) -> Totals:
    cameras = await tx.one(_CAMERAS, **place)
    looks = await tx.one(_LOOKS, **place)
    events = await tx.one(_EVENTS, **place)
    incidents = await tx.one(_INCIDENTS, **place)
    return Totals(
        cameras=_count(cameras, "cameras"),
        looks=_count(looks, "looks"),
        looks_failed=_count(looks, "looks_failed"),
        analyzed=_count(looks, "analyzed"),
        detected=_count(looks, "detected"),
        events=_count(events, "events"),
        incidents=_count(incidents, "incidents"),
    )


def _count(row: Row | None, column: str) -> int:
    """Sums of nothing are NULL, and a decimal on some databases."""
    return 0 if row is None else int(row[column] or 0)


async def keep(tx: Tx, site: Site, day: str, body_json: str, now_ms: int) -> bool:
    """Keeps a site's summary and has it told; False when somebody did so before."""
    kept = await tx.all(
        _INSERT, tenant_id=site.tenant_id, site_id=site.site_id, day=day, body=body_json, now_ms=now_ms
    )
    if not kept:
        return False
    await deliveries.add(
        tx,
        (
            NewDelivery(
                delivery_uuid=str(uuid_utils.uuid7()),
                tenant_id=site.tenant_id,
                kind=DeliveryKind.SUMMARY,
                reason=DAILY,
                request={"day": day},
                site_id=site.site_id,
                once_key=f"summary:{site.site_id}:{day}",
            ),
        ),
        now_ms,
    )
    tx.changed(tenant_id=site.tenant_id, kind="summary", at_ms=now_ms, site_id=site.site_id)
    return True


async def told_to(tx: Tx, tenant_id: int) -> tuple[int, ...]:
    """The receivers that want summaries."""
    rows = await tx.all(
        """
        SELECT receiver_id, config FROM receivers
        WHERE tenant_id = :tenant_id AND enabled = 1 AND kind IN (:kinds...) ORDER BY receiver_id""",
        tenant_id=tenant_id,
        kinds=sorted(kind.value for kind in TELLING),
    )
    return tuple(row["receiver_id"] for row in rows if json.loads(row["config"]).get("summaries") is True)


async def find(tx: Tx, tenant_id: int, site_id: int, day: str) -> dict[str, Any] | None:
    """A summary's facts and texts, see domain/summaries.py."""
    row = await tx.one(
        "SELECT body FROM daily_summaries WHERE tenant_id = :tenant_id AND site_id = :site_id AND day = :day",
        tenant_id=tenant_id,
        site_id=site_id,
        day=day,
    )
    return None if row is None else dict(json.loads(row["body"]))


async def page(tx: Scoped, site: str | None, day: str | None, before: str | None, limit: int) -> tuple[Kept, ...]:
    """Newest first, within a day in the order of the sites."""
    clauses, params = "", dict[str, object]()
    if site is not None:
        clauses, params = clauses + " AND s.name = :site", {**params, "site": site}
    if day is not None:
        clauses, params = clauses + " AND d.day = :day", {**params, "day": day}
    if before is not None:
        number, last_site = parse_cursor(Listed.SUMMARIES, before)
        last_day = f"{number // 10_000:04}-{number // 100 % 100:02}-{number % 100:02}"[:10]
        clauses += " AND (d.day < :last_day OR (d.day = :last_day AND d.site_id > :last_site))"
        params |= {"last_day": last_day, "last_site": last_site}
    rows = await tx.all(
        f"""
        SELECT d.site_id, s.name AS site, d.day, d.created_at, d.body
        FROM daily_summaries d JOIN sites s ON s.site_id = d.site_id
        WHERE d.tenant_id = :tenant_id AND IN_SITE_REACH(d){clauses}
        ORDER BY d.day DESC, d.site_id LIMIT :limit""",
        limit=min(limit, PAGE_MAX),
        **params,
    )
    return tuple(
        Kept(
            row["site"],
            row["day"],
            row["created_at"],
            json.loads(row["body"]),
            make_cursor(Listed.SUMMARIES, int(row["day"].replace("-", "")), row["site_id"]),
        )
        for row in rows
    )


_SPAN = "e.tenant_id = :tenant_id AND e.site_id = :site_id AND e.start_at >= :from_ms AND e.start_at < :to_ms"
# What cameras saw; their own issues have a section of their own.
_IMPORTANT = f"""
SELECT e.event_uuid, c.name AS camera, e.primary_event, e.severity_max, e.start_at, e.last_seen_at
FROM events e JOIN cameras c ON c.camera_key = e.camera_key
WHERE {_SPAN} AND e.subject = '' AND +e.severity_max >= :severity
ORDER BY +e.severity_max DESC, e.start_at, e.event_id LIMIT :most"""
_BY_EVENT = f"""
SELECT e.primary_event, SUM(CASE WHEN e.severity_max >= :severity THEN 1 ELSE 0 END) AS important,
  SUM(CASE WHEN e.severity_max >= :severity THEN 0 ELSE 1 END) AS ordinary
FROM events e WHERE {_SPAN} AND e.subject = '' GROUP BY e.primary_event"""
_ISSUES = """
SELECT c.name AS camera, e.subject AS issue, e.cause, e.start_at, e.end_at
FROM events e JOIN cameras c ON c.camera_key = e.camera_key
WHERE e.tenant_id = :tenant_id AND e.site_id = :site_id AND e.subject <> '' AND c.deleted_at IS NULL
  AND e.start_at >= :since AND e.start_at < :to_ms AND (e.end_at IS NULL OR e.end_at > :from_ms)
ORDER BY e.start_at, e.event_id LIMIT 2000"""
_CAMERAS = """
SELECT COUNT(*) AS cameras FROM cameras
WHERE tenant_id = :tenant_id AND site_id = :site_id AND deleted_at IS NULL AND enabled = 1"""
_LOOKS = """
SELECT COUNT(*) AS looks, SUM(CASE WHEN f.collector_status <> 'ok' THEN 1 ELSE 0 END) AS looks_failed,
  SUM(f.analyzed) AS analyzed, SUM(f.detected) AS detected
FROM cameras c JOIN frames f ON f.camera_key = c.camera_key AND f.captured_at >= :from_ms AND f.captured_at < :to_ms
WHERE c.tenant_id = :tenant_id AND f.site_id = :site_id"""
_EVENTS = f"SELECT COUNT(*) AS events FROM events e WHERE {_SPAN}"
_INCIDENTS = f"SELECT COUNT(*) AS incidents FROM incidents e WHERE {_SPAN}"
_INSERT = Sql(
    """
INSERT INTO daily_summaries (tenant_id, site_id, day, body, created_at)
VALUES (:tenant_id, :site_id, :day, :body, :now_ms) ON CONFLICT DO NOTHING RETURNING day""",
    mariadb="""
INSERT IGNORE INTO daily_summaries (tenant_id, site_id, day, body, created_at)
VALUES (:tenant_id, :site_id, :day, :body, :now_ms) RETURNING day""",
)
