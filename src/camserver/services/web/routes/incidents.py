"""Incidents: newest first, a page at a time, and who reviewed them.

Their events are the list of events with `incident`.
"""

from typing import Annotated, Any

from fastapi import Path, Query, Response

from camserver.base.records import fields_of
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import plain_issue, shown_issue
from camserver.services.web.once import Repeat
from camserver.services.web.plain_answers import plain_answer
from camserver.services.web.routes.filters import CameraIds, Cursor, From, SeverityMin, SiteNames, To, check_times
from camserver.services.web.routing import Routes
from camserver.store import incident_pages, incident_reviews
from camserver.store.incident_pages import IncidentFilter, IncidentSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50

Reviewed = Annotated[
    bool | None,
    Query(description="Only what the reader has reviewed, or has not; for a program: what anybody has."),
]


@routes.get("/api/incidents", Permission.READ, response_model=api.IncidentPage)
async def list_incidents(
    call: TheCall,
    camera_ids: CameraIds = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    sites: SiteNames = [],  # noqa: B006 - as above
    severity_min: SeverityMin = 0,
    from_ms: From = None,
    to_ms: To = None,
    reviewed: Reviewed = None,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=incident_pages.PAGE_MAX)] = PAGE_USUAL,
) -> Response:
    """Incidents by the time they began, newest first. Filters narrow; several values of one are alternatives."""
    check_times(from_ms, to_ms)
    wanted = IncidentFilter(tuple(camera_ids), severity_min, from_ms, to_ms, reviewed, tuple(sites))
    found = await call.store.read(incident_pages.page, wanted, before, limit)
    shown = [plain_incident(incident) for incident in found]
    next_before = found[-1].cursor if len(found) == limit else None
    return plain_answer(api.IncidentPage, {"incidents": shown, "next_before": next_before})


# Above the route of single incidents, which would take the word for a uuid.
@routes.get("/api/incidents/counts", Permission.READ)
async def count_incidents(
    call: TheCall,
    camera_ids: CameraIds = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    sites: SiteNames = [],  # noqa: B006 - as above
    from_ms: From = None,
    to_ms: To = None,
    reviewed: Reviewed = None,
) -> api.IncidentCounts:
    """How many of the newest 1,000 incidents that fit the filters are of each severity."""
    check_times(from_ms, to_ms)
    wanted = IncidentFilter(tuple(camera_ids), 0, from_ms, to_ms, reviewed, tuple(sites))
    found = await call.store.read(incident_pages.count, wanted)
    return api.IncidentCounts(by_severity=list(found.by_severity), is_complete=found.is_complete)


@routes.get("/api/incidents/{incident_uuid}", Permission.READ)
async def get_incident(call: TheCall, incident_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)]) -> api.Incident:
    """One incident."""
    return shown_incident(await call.store.read(incident_pages.get, incident_uuid))


@routes.post("/api/incidents/{incident_uuid}/review", Permission.REVIEW, repeat=Repeat.ANSWER)
async def review_incident(
    call: TheCall, incident_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)], seen: api.ReviewAsked
) -> api.Incident:
    """Marks an incident as reviewed by the caller. More severity or another event makes it unreviewed again."""
    found = await call.store.write(
        incident_reviews.review, incident_uuid, seen.severity_max, seen.last_event_uuid, call.address, call.now_ms
    )
    return shown_incident(found)


@routes.delete("/api/incidents/{incident_uuid}/review", Permission.REVIEW, repeat=Repeat.ANSWER)
async def unreview_incident(
    call: TheCall, incident_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)]
) -> api.Incident:
    """Takes the caller's review back."""
    found = await call.store.write(incident_reviews.unreview, incident_uuid, call.address, call.now_ms)
    return shown_incident(found)


def shown_incident(incident: IncidentSummary) -> api.Incident:
    issue = None if incident.subject is None else shown_issue(incident.subject)
    return api.Incident.model_validate({**fields_of(incident), "issue": issue})


def plain_incident(incident: IncidentSummary) -> dict[str, Any]:
    """What `api.Incident` would be, as it stands in an answer."""
    shown = fields_of(incident)
    del shown["cursor"], shown["subject"]
    shown["issue"] = None if incident.subject is None else plain_issue(incident.subject)
    return shown
