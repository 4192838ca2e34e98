"""Incidents as people read them: newest first, a page at a time, within the principal's tenant and sites."""

from dataclasses import dataclass
from typing import NamedTuple

from camserver.base.errors import NotFound
from camserver.base.records import record
from camserver.store import camera_filters
from camserver.store.cameras import public_camera_id
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.tx import Scoped

PAGE_MAX = 200
# So many of the newest are counted, so that a count costs the same in every house.
COUNTED_MAX = 1000


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents are asked for; what is left out does not narrow. Times are of an incident's beginning."""

    camera_ids: tuple[str, ...] = ()
    severity_min: int = 0
    from_ms: int | None = None
    to_ms: int | None = None  # not included
    reviewed: bool | None = None  # by the reader; where that is a program, by anybody
    sites: tuple[str, ...] = ()  # their names


@record
class IncidentSummary:
    incident_uuid: str
    camera_id: str
    camera_name: str
    site: str
    start_at: int
    last_seen_at: int
    severity_max: int
    event_count: int
    last_event_uuid: str | None
    best_frame_uuid: str | None  # of its last event
    primary_event: str | None  # of its last event
    subject: str | None  # of its last event, where that is about the camera itself
    is_ongoing: bool  # its last event is not over
    reviewed_at: int | None  # when the reader reviewed it; None when they did not, or more came since
    reviewers: int  # how many people's reviews hold
    cursor: str


@dataclass(frozen=True, slots=True)
class IncidentCounts:
    """How many incidents of each severity, 0 to 3."""

    by_severity: tuple[int, ...]
    is_complete: bool  # all were counted, not only the newest


# A review holds while nothing was added to what was seen. Events come to an incident in the order of their keys.
REVIEW_HOLDS = "r.severity >= i.severity_max AND COALESCE(r.last_event_id, 0) >= COALESCE(i.last_event_id, 0)"
_MINE = f"""EXISTS (
  SELECT 1 FROM incident_reviews r WHERE r.incident_id = i.incident_id AND r.user_id = :user_id AND {REVIEW_HOLDS})"""
_ANYBODYS = f"EXISTS (SELECT 1 FROM incident_reviews r WHERE r.incident_id = i.incident_id AND {REVIEW_HOLDS})"


class IncidentRow(NamedTuple):
    incident_id: int
    incident_uuid: str
    start_at: int
    last_seen_at: int
    severity_max: int
    event_count: int
    camera_id: str
    camera_name: str
    site: str
    event_uuid: str | None
    primary_event: str | None
    subject: str | None
    state: str | None
    frame_uuid: str | None
    reviewers: int
    reviewed_at: int | None


def columns(site: str = "s", last_event: str = "e", frame: str = "f") -> str:
    """What `IncidentRow` takes of an incident `i`, its camera `c`, its site, its last event and the best frame of
    that; needs `:user_id`, the reader."""
    return f"""i.incident_id, i.incident_uuid, i.start_at, i.last_seen_at, i.severity_max, i.event_count, c.camera_id,
  c.name AS camera_name, {site}.name AS site, {last_event}.event_uuid, {last_event}.primary_event,
  {last_event}.subject, {last_event}.state, {frame}.frame_uuid,
  (SELECT COUNT(*) FROM incident_reviews r WHERE r.incident_id = i.incident_id AND {REVIEW_HOLDS}) AS reviewers,
  (SELECT r.reviewed_at FROM incident_reviews r
   WHERE r.incident_id = i.incident_id AND r.user_id = :user_id AND {REVIEW_HOLDS}) AS reviewed_at"""


_INCIDENTS = f"""
SELECT {columns()}
FROM incidents i
JOIN cameras c ON c.camera_key = i.camera_key
JOIN sites s ON s.site_id = i.site_id
LEFT JOIN events e ON e.event_id = i.last_event_id
LEFT JOIN frames f ON f.frame_id = e.best_frame_id
WHERE i.tenant_id = :tenant_id AND IN_REACH(i)"""
_ONE = f"{_INCIDENTS} AND i.incident_uuid = :incident_uuid"


async def page(tx: Scoped, wanted: IncidentFilter, before: str | None, limit: int) -> tuple[IncidentSummary, ...]:
    """Incidents that began before the cursor's; NotFound when a camera or site that is asked for is not within
    reach."""
    start_at, incident_id = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.INCIDENTS, before)
    await _check_known(tx, wanted)
    clauses, params = _narrowed(tx, wanted)
    rows = await tx.flat(
        IncidentRow,
        f"{_INCIDENTS}{clauses} "
        "AND (i.start_at < :start_at OR (i.start_at = :start_at AND i.incident_id < :incident_id)) "
        "ORDER BY i.start_at DESC, i.incident_id DESC LIMIT :limit",
        start_at=start_at,
        incident_id=incident_id,
        limit=min(limit, PAGE_MAX),
        user_id=reader(tx),
        **params,
    )
    return tuple([summary_of(row) for row in rows])


async def _check_known(tx: Scoped, wanted: IncidentFilter) -> None:
    await camera_filters.check_known(tx, wanted.camera_ids)
    await camera_filters.keys_of_sites(tx, wanted.sites)


def _narrowed(tx: Scoped, wanted: IncidentFilter) -> tuple[str, dict[str, object]]:
    chosen: list[tuple[str, str, object]] = [
        ("c.camera_id IN (:camera_ids...)", "camera_ids", list(wanted.camera_ids) or None),
        ("i.severity_max >= :severity_min", "severity_min", wanted.severity_min or None),
        ("i.start_at >= :from_ms", "from_ms", wanted.from_ms),
        ("i.start_at < :to_ms", "to_ms", wanted.to_ms),
        ("s.name IN (:sites...)", "sites", list(wanted.sites) or None),
    ]
    used = [(clause, name, value) for clause, name, value in chosen if value is not None]
    clauses = "".join(f" AND {clause}" for clause, _, _ in used)
    if wanted.reviewed is not None:
        holds = _ANYBODYS if tx.principal.user_id is None else _MINE
        clauses += f" AND {holds}" if wanted.reviewed else f" AND NOT {holds}"
    return clauses, {name: value for _, name, value in used}


async def count(tx: Scoped, wanted: IncidentFilter) -> IncidentCounts:
    """How many of the newest are of each severity; NotFound as for a page."""
    await _check_known(tx, wanted)
    clauses, params = _narrowed(tx, wanted)
    rows = await tx.all(
        f"""SELECT n.severity_max, COUNT(*) AS incidents FROM (
          SELECT i.severity_max FROM incidents i
          JOIN cameras c ON c.camera_key = i.camera_key
          JOIN sites s ON s.site_id = i.site_id
          WHERE i.tenant_id = :tenant_id AND IN_REACH(i){clauses}
          ORDER BY i.start_at DESC, i.incident_id DESC LIMIT :most) n
        GROUP BY n.severity_max""",
        most=COUNTED_MAX,
        **({} if wanted.reviewed is None or tx.principal.user_id is None else {"user_id": reader(tx)}),
        **params,
    )
    found = {row["severity_max"]: row["incidents"] for row in rows}
    return IncidentCounts(tuple(found.get(step, 0) for step in range(4)), sum(found.values()) < COUNTED_MAX)


async def find(tx: Scoped, incident_uuid: str | None) -> IncidentSummary | None:
    if incident_uuid is None:
        return None
    rows = await tx.flat(IncidentRow, _ONE, incident_uuid=incident_uuid, user_id=reader(tx))
    return summary_of(rows[0]) if rows else None


async def get(tx: Scoped, incident_uuid: str) -> IncidentSummary:
    found = await find(tx, incident_uuid)
    if found is None:
        raise missing(incident_uuid)
    return found


async def check_known(tx: Scoped, incident_uuid: str) -> None:
    """NotFound when the incident is not within reach."""
    row = await tx.one(
        "SELECT i.incident_id FROM incidents i WHERE i.tenant_id = :tenant_id AND IN_REACH(i) "
        "AND i.incident_uuid = :incident_uuid",
        incident_uuid=incident_uuid,
    )
    if row is None:
        raise missing(incident_uuid)


def missing(incident_uuid: str) -> NotFound:
    return NotFound(f"there is no incident {incident_uuid}; it may be past its retention", reason="no_incident")


def reader(tx: Scoped) -> int:
    """The person who reads; 0, which is nobody's, for a program."""
    return tx.principal.user_id or 0


def summary_of(row: IncidentRow) -> IncidentSummary:
    return IncidentSummary(
        incident_uuid=row.incident_uuid,
        camera_id=public_camera_id(row.camera_id),
        camera_name=row.camera_name,
        site=row.site,
        start_at=row.start_at,
        last_seen_at=row.last_seen_at,
        severity_max=row.severity_max,
        event_count=row.event_count,
        last_event_uuid=row.event_uuid,
        best_frame_uuid=row.frame_uuid,
        primary_event=row.primary_event,
        subject=row.subject or None,
        is_ongoing=row.state == "open",
        reviewed_at=row.reviewed_at,
        reviewers=row.reviewers,
        cursor=make_cursor(Listed.INCIDENTS, row.start_at, row.incident_id),
    )
