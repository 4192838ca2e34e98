"""Events as people read them: newest first, a page at a time, within the principal's tenant and sites.

Tags for investigation only are left out for those who may not investigate. Writing events is `outcomes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from camserver.base.errors import NotFound
from camserver.base.records import record
from camserver.store import camera_filters, frame_pages, incident_pages
from camserver.store.cameras import public_camera_id
from camserver.store.event_walks import Shown
from camserver.store.frame_pages import FrameDetail
from camserver.store.hidden_tags import hidden_group, is_shown
from camserver.store.incident_pages import REVIEW_HOLDS, IncidentSummary
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Scoped, shown_again

PAGE_MAX = 200


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are asked for; what is left out does not narrow. Times are of an event's beginning."""

    camera_ids: tuple[str, ...] = ()
    primary_events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    severity_min: int = 0
    state: str | None = None  # open, closed
    incident_uuid: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None  # not included
    sites: tuple[str, ...] = ()  # their names


@record
class EventSummary:
    event_uuid: str
    incident_uuid: str | None
    camera_id: str
    camera_name: str
    site: str
    state: str  # open, closed
    primary_event: str
    start_at: int
    last_seen_at: int
    end_at: int | None
    severity_max: int
    confidence_max: float
    frame_count: int
    retention_class: str
    best_frame_uuid: str | None
    subject: str  # '' or the kind of the camera's own issue
    cause: str  # of the issue, where it is known
    tags: tuple[str, ...]
    cursor: str  # a page from here on begins with the event behind this one


@dataclass(frozen=True, slots=True)
class EventDetail:
    summary: EventSummary
    incident: IncidentSummary | None
    best_frame: FrameDetail | None


@shown_again
class EventRow(NamedTuple):
    """The columns of `_EVENTS`; the last three only where they are asked for."""

    event_id: int
    event_uuid: str
    state: str
    primary_event: str
    start_at: int
    last_seen_at: int
    end_at: int | None
    severity_max: int
    confidence_max: float
    frame_count: int
    retention_class: str
    subject: str
    cause: str
    camera_id: str
    camera_name: str
    site: str
    incident_uuid: str | None
    best_frame_uuid: str | None
    unknown_flag: int
    reviewed_at: int | None  # when the reader reviewed its incident, if that holds
    tags: str | None  # parted by commas, in any order

    @property
    def tag_ids(self) -> list[str]:
        return sorted(self.tags.split(",")) if self.tags else []


_UNASKED = "0 AS unknown_flag, NULL AS reviewed_at, NULL AS tags"
_REVIEWED = f"""(SELECT r.reviewed_at FROM incident_reviews r WHERE r.incident_id = i.incident_id
    AND r.user_id = :user_id AND {REVIEW_HOLDS})"""
_COLUMNS = f"""e.event_id, e.event_uuid, e.state, e.primary_event, e.start_at, e.last_seen_at, e.end_at,
  e.severity_max, e.confidence_max, e.frame_count, e.retention_class, e.subject, e.cause, c.camera_id,
  c.name AS camera_name, s.name AS site, i.incident_uuid, f.frame_uuid AS best_frame_uuid, {_UNASKED}"""
JOINS = """
JOIN cameras c ON c.camera_key = e.camera_key
JOIN sites s ON s.site_id = e.site_id
LEFT JOIN incidents i ON i.incident_id = e.incident_id
LEFT JOIN frames f ON f.frame_id = e.best_frame_id"""
_EVENTS = f"SELECT {_COLUMNS} FROM events e {JOINS} WHERE e.tenant_id = :tenant_id AND IN_REACH(e)"


def _tags(joined: str) -> str:
    return f"(SELECT {joined} FROM event_tags g WHERE g.event_id = e.event_id AND {is_shown('g')})"


# Of `events e`, parted by commas; needs `:hidden`. Of one, or of what is bounded already: as a statement of its own
# it would cost a way to the database, and telling it which events.
TAGS = Sql(_tags("GROUP_CONCAT(g.tag_id)"), postgres=_tags("STRING_AGG(g.tag_id, ',')"))
_FOUND = {
    dialect: _COLUMNS.replace(_UNASKED, f"e.unknown_flag, {_REVIEWED} AS reviewed_at, {TAGS.on(dialect)} AS tags")
    for dialect in Dialect
}
# What `EventRow` takes of one event; needs `:hidden`.
ONE_COLUMNS = {dialect: _COLUMNS.replace("NULL AS tags", f"{TAGS.on(dialect)} AS tags") for dialect in Dialect}
_ONE = {
    dialect: f"{_EVENTS.replace(_COLUMNS, columns, 1)} AND e.event_uuid = :event_uuid"
    for dialect, columns in ONE_COLUMNS.items()
}


def found(tx: Scoped) -> Shown[EventRow]:
    """What is shown of events that are searched for."""
    return Shown(
        EventRow,
        _FOUND[tx.dialect],
        lambda row: (row.start_at, row.event_id),
        JOINS,
        {"user_id": tx.principal.user_id or 0, "hidden": hidden_group(tx)},
    )


# Only by tags that the reader may see: else a search would tell what the list does not.
_TAGGED = f"""EXISTS (SELECT 1 FROM event_tags g WHERE g.event_id = e.event_id AND g.tag_id IN (:tag_ids...)
  AND {is_shown("g")})"""


async def page(tx: Scoped, wanted: EventFilter, before: str | None, limit: int) -> tuple[EventSummary, ...]:
    """Events that began before the cursor's; NotFound when a camera, site or incident that is asked for is not
    within reach."""
    start_at, event_id = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.EVENTS, before)
    await camera_filters.check_known(tx, wanted.camera_ids)
    await camera_filters.keys_of_sites(tx, wanted.sites)
    if wanted.incident_uuid is not None:
        await incident_pages.check_known(tx, wanted.incident_uuid)
    clauses, params = _narrowed(tx, wanted)
    rows = await tx.flat(
        EventRow,
        f"{_EVENTS}{clauses} "
        "AND (e.start_at < :start_at OR (e.start_at = :start_at AND e.event_id < :event_id)) "
        "ORDER BY e.start_at DESC, e.event_id DESC LIMIT :limit",
        start_at=start_at,
        event_id=event_id,
        limit=min(limit, PAGE_MAX),
        **params,
    )
    return await _with_tags(tx, rows)


def _narrowed(tx: Scoped, wanted: EventFilter) -> tuple[str, dict[str, object]]:
    """Only what was asked for is in the statement, so that the databases plan for it. `+`: SQLite would take the
    index of severities, and then sort all it found there."""
    chosen: list[tuple[str, str, object]] = [
        ("c.camera_id IN (:camera_ids...)", "camera_ids", list(wanted.camera_ids) or None),
        ("e.primary_event IN (:primary_events...)", "primary_events", list(wanted.primary_events) or None),
        (_TAGGED, "tag_ids", list(wanted.tags) or None),
        ("+e.severity_max >= :severity_min", "severity_min", wanted.severity_min or None),
        ("e.state = :state", "state", wanted.state),
        ("i.incident_uuid = :incident_uuid", "incident_uuid", wanted.incident_uuid),
        ("e.start_at >= :from_ms", "from_ms", wanted.from_ms),
        ("e.start_at < :to_ms", "to_ms", wanted.to_ms),
        ("s.name IN (:sites...)", "sites", list(wanted.sites) or None),
    ]
    used = [(clause, name, value) for clause, name, value in chosen if value is not None]
    params = {name: value for _, name, value in used}
    if wanted.tags:
        params["hidden"] = hidden_group(tx)
    return "".join(f" AND {clause}" for clause, _, _ in used), params


async def get(tx: Scoped, event_uuid: str) -> EventDetail:
    rows = await tx.flat(EventRow, _ONE[tx.dialect], event_uuid=event_uuid, hidden=hidden_group(tx))
    if not rows:
        raise missing(event_uuid)
    summary = summary_of(rows[0])
    return EventDetail(
        summary,
        await incident_pages.find(tx, summary.incident_uuid),
        await frame_pages.find(tx, summary.best_frame_uuid),
    )


async def check_known(tx: Scoped, event_uuid: str) -> None:
    """NotFound when the event is not within reach."""
    row = await tx.one(
        "SELECT e.event_id FROM events e WHERE e.tenant_id = :tenant_id AND IN_REACH(e) "
        "AND e.event_uuid = :event_uuid",
        event_uuid=event_uuid,
    )
    if row is None:
        raise missing(event_uuid)


def missing(event_uuid: str) -> NotFound:
    return NotFound(f"there is no event {event_uuid}; it may be past its retention", reason="no_event")


async def frames(tx: Scoped, event_uuid: str, after: str | None, limit: int) -> tuple[FrameDetail, ...]:
    """The event's frames, oldest first, from behind the cursor."""
    row = await tx.one(
        "SELECT event_id, camera_key, start_at, last_seen_at FROM events e WHERE e.tenant_id = :tenant_id "
        "AND IN_REACH(e) AND e.event_uuid = :event_uuid",
        event_uuid=event_uuid,
    )
    if row is None:
        raise missing(event_uuid)
    span = frame_pages.Span(row["event_id"], row["camera_key"], row["start_at"], row["last_seen_at"])
    return await frame_pages.of_event(tx, span, after, limit)


class _Tag(NamedTuple):
    event_id: int
    tag_id: str


async def _with_tags(tx: Scoped, rows: Sequence[EventRow]) -> tuple[EventSummary, ...]:
    # For an empty list MariaDB would read all there is, and find nothing.
    if not rows:
        return ()
    tags: dict[int, list[str]] = {}
    for event_id, tag_id in await tx.flat(
        _Tag,
        # By key, whatever SQLite may think of an index that begins with the tenant: the plus takes it out of the
        # choice.
        "SELECT event_id, tag_id FROM event_tags WHERE event_id IN (:event_ids...) AND +tenant_id = :tenant_id "
        f"AND {is_shown()} ORDER BY event_id, tag_id",
        event_ids=[row.event_id for row in rows],
        hidden=hidden_group(tx),
    ):
        tags.setdefault(event_id, []).append(tag_id)
    return tuple([_summary(row, tuple(tags.get(row.event_id, ()))) for row in rows])


def summary_of(row: EventRow) -> EventSummary:
    """Of a row that has its tags."""
    return _summary(row, tuple(row.tag_ids))


def _summary(row: EventRow, tags: tuple[str, ...]) -> EventSummary:
    return EventSummary(
        event_uuid=row.event_uuid,
        incident_uuid=row.incident_uuid,
        camera_id=public_camera_id(row.camera_id),
        camera_name=row.camera_name,
        site=row.site,
        state=row.state,
        primary_event=row.primary_event,
        start_at=row.start_at,
        last_seen_at=row.last_seen_at,
        end_at=row.end_at,
        severity_max=row.severity_max,
        confidence_max=row.confidence_max,
        frame_count=row.frame_count,
        retention_class=row.retention_class,
        best_frame_uuid=row.best_frame_uuid,
        subject=row.subject,
        cause=row.cause,
        tags=tags,
        cursor=make_cursor(Listed.EVENTS, row.start_at, row.event_id),
    )
