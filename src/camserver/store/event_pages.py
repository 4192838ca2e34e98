"""Events as people read them: newest first, a page at a time, within the principal's tenant and sites.

Tags for investigation only are left out for those who may not investigate. Writing events is `outcomes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Permission
from camserver.domain.vocabulary import INVESTIGATION_ONLY
from camserver.store.cameras import public_camera_id, reach
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200
# Above every time and id: the cursor of the first page.
_NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class EventSummary:
    event_uuid: str
    incident_uuid: str | None
    camera_id: str
    camera_name: str
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
    tags: tuple[str, ...]
    cursor: str  # a page from here on begins with the event behind this one


_EVENTS = """
SELECT e.event_id, e.event_uuid, e.state, e.primary_event, e.start_at, e.last_seen_at, e.end_at, e.severity_max,
  e.confidence_max, e.frame_count, e.retention_class, c.camera_id, c.name AS camera_name, i.incident_uuid,
  f.frame_uuid AS best_frame_uuid
FROM events e
JOIN cameras c ON c.camera_key = e.camera_key
LEFT JOIN incidents i ON i.incident_id = e.incident_id
LEFT JOIN frames f ON f.frame_id = e.best_frame_id
WHERE e.tenant_id = :tenant_id AND (:all_sites = 1 OR e.site_id IN (:site_ids...))"""


async def page(tx: Scoped, camera_id: str | None, before: str | None, limit: int) -> tuple[EventSummary, ...]:
    """Events that began before the cursor's, of one camera or of all."""
    start_at, event_id = (_NEWEST, _NEWEST) if before is None else _parse(before)
    of_camera = ""
    params: dict[str, object] = {}
    if camera_id is not None:
        of_camera = " AND c.camera_id = :camera_id"
        params["camera_id"] = camera_id
    rows = await tx.all(
        f"{_EVENTS}{of_camera} AND (e.start_at < :start_at OR (e.start_at = :start_at AND e.event_id < :event_id)) "
        "ORDER BY e.start_at DESC, e.event_id DESC LIMIT :limit",
        start_at=start_at,
        event_id=event_id,
        limit=min(limit, PAGE_MAX),
        **params,
        **reach(tx),
    )
    return await _with_tags(tx, rows)


async def get(tx: Scoped, event_uuid: str) -> EventSummary:
    rows = await tx.all(f"{_EVENTS} AND e.event_uuid = :event_uuid", event_uuid=event_uuid, **reach(tx))
    if not rows:
        raise NotFound(f"there is no event {event_uuid}; it may be past its retention", reason="no_event")
    return (await _with_tags(tx, rows))[0]


async def _with_tags(tx: Scoped, rows: Sequence[Row]) -> tuple[EventSummary, ...]:
    hidden = "" if tx.principal.may(Permission.INVESTIGATE) else INVESTIGATION_ONLY
    tags: dict[int, list[str]] = {}
    for row in await tx.all(
        "SELECT event_id, tag_id FROM event_tags WHERE event_id IN (:event_ids...) AND tenant_id = :tenant_id "
        "AND tag_group <> :hidden ORDER BY event_id, tag_id",
        event_ids=[row["event_id"] for row in rows],
        hidden=hidden,
    ):
        tags.setdefault(row["event_id"], []).append(row["tag_id"])
    return tuple(_summary(row, tuple(tags.get(row["event_id"], ()))) for row in rows)


def _summary(row: Row, tags: tuple[str, ...]) -> EventSummary:
    return EventSummary(
        event_uuid=row["event_uuid"],
        incident_uuid=row["incident_uuid"],
        camera_id=public_camera_id(row["camera_id"]),
        camera_name=row["camera_name"],
        state=row["state"],
        primary_event=row["primary_event"],
        start_at=row["start_at"],
        last_seen_at=row["last_seen_at"],
        end_at=row["end_at"],
        severity_max=row["severity_max"],
        confidence_max=row["confidence_max"],
        frame_count=row["frame_count"],
        retention_class=row["retention_class"],
        best_frame_uuid=row["best_frame_uuid"],
        tags=tags,
        cursor=f"{row['start_at']}.{row['event_id']}",
    )


def _parse(cursor: str) -> tuple[int, int]:
    start_at, dot, event_id = cursor.partition(".")
    if not dot or not (start_at.isdecimal() and event_id.isdecimal()) or len(cursor) > 38:
        raise BadInput(
            "the cursor `before` is none that this server gave out; start again without it", reason="bad_cursor"
        )
    return min(int(start_at), _NEWEST), min(int(event_id), _NEWEST)
