"""An event with all that its page shows, in as few statements as there can be."""

from dataclasses import dataclass

from camserver.store import clips, event_pages, event_scores, frame_pages, incident_pages, llm_reviews
from camserver.store.event_pages import EventDetail, EventRow
from camserver.store.hidden_tags import hidden_group
from camserver.store.incident_pages import IncidentRow
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class EventView:
    event: EventDetail
    clip: clips.ClipDetail | None
    review: llm_reviews.ShownReview | None  # None also for people who may not investigate
    scores: tuple[event_scores.ShownScore, ...]


# The event, its incident and its clip. An incident is of its events' camera, but may have begun at another site.
_ONE = {
    dialect: f"""
SELECT {columns}, {incident_pages.columns("si", "le", "lf")}, {clips.COLUMNS},
  CASE WHEN IN_REACH(i) THEN 1 ELSE 0 END AS is_incident_reached
FROM events e {event_pages.JOINS}
LEFT JOIN sites si ON si.site_id = i.site_id
LEFT JOIN events le ON le.event_id = i.last_event_id
LEFT JOIN frames lf ON lf.frame_id = le.best_frame_id
LEFT JOIN clips k ON k.event_id = e.event_id
WHERE e.tenant_id = :tenant_id AND IN_REACH(e) AND e.event_uuid = :event_uuid"""
    for dialect, columns in event_pages.ONE_COLUMNS.items()
}
_INCIDENT = len(EventRow._fields)
_CLIP = _INCIDENT + len(IncidentRow._fields)


async def get(tx: Scoped, event_uuid: str) -> EventView:
    found = await tx.values(
        _ONE[tx.dialect],
        event_uuid=event_uuid,
        hidden=hidden_group(tx),
        user_id=incident_pages.reader(tx),
    )
    if found is None:
        raise event_pages.missing(event_uuid)
    event, incident = EventRow._make(found[:_INCIDENT]), IncidentRow._make(found[_INCIDENT:_CLIP])
    has_incident = event.incident_uuid is not None and found[-1]
    return EventView(
        EventDetail(
            event_pages.summary_of(event),
            incident_pages.summary_of(incident) if has_incident else None,
            await frame_pages.find(tx, event.best_frame_uuid),
        ),
        clips.detail_of(tx, event.retention_class, found[_CLIP:-1]),
        await llm_reviews.of_event(tx, event_uuid),
        await event_scores.of_event(tx, event_uuid),
    )
