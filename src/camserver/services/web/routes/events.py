"""Events: newest first, a page at a time; one with its incident and its frames."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response

from camserver.base.records import fields_of
from camserver.domain.people import Permission
from camserver.domain.vocabulary import Vocabulary
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import (
    active_vocabulary,
    plain_cause,
    plain_issue,
    plain_tags,
    shown_review_label,
)
from camserver.services.web.looks import note_investigation, note_listed
from camserver.services.web.plain_answers import plain_answer
from camserver.services.web.routes.clips import shown_clip
from camserver.services.web.routes.filters import (
    CameraIds,
    Cursor,
    From,
    PrimaryEvents,
    SeverityMin,
    SiteNames,
    TagIds,
    To,
    check_times,
)
from camserver.services.web.routes.frames import plain_frame, shown_frame
from camserver.services.web.routes.incidents import plain_incident
from camserver.services.web.routing import Routes
from camserver.store import event_pages, event_views, frame_pages
from camserver.store.event_pages import EventFilter, EventSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50

EventUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.get("/api/events", Permission.READ, response_model=api.EventPage)
async def list_events(
    call: TheCall,
    camera_ids: CameraIds = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    primary_events: PrimaryEvents = [],  # noqa: B006 - as above
    tags: TagIds = [],  # noqa: B006 - as above
    sites: SiteNames = [],  # noqa: B006 - as above
    severity_min: SeverityMin = 0,
    state: Literal["open", "closed"] | None = None,
    incident: Annotated[str | None, Query(pattern=api.UUID_PATTERN)] = None,
    from_ms: From = None,
    to_ms: To = None,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=event_pages.PAGE_MAX)] = PAGE_USUAL,
) -> Response:
    """Events by the time they began, newest first. Filters narrow; several values of one are alternatives."""
    check_times(from_ms, to_ms)
    wanted = EventFilter(
        camera_ids=tuple(camera_ids),
        primary_events=tuple(primary_events),
        tags=tuple(tags),
        severity_min=severity_min,
        state=state,
        incident_uuid=incident,
        from_ms=from_ms,
        to_ms=to_ms,
        sites=tuple(sites),
    )
    found = await call.store.read(event_pages.page, wanted, before, limit)
    vocabulary = await active_vocabulary(call)
    shown = [plain_event(vocabulary, event) for event in found]
    await note_listed(call, "event", vocabulary, [tag for event in found for tag in event.tags])
    next_before = found[-1].cursor if len(found) == limit else None
    return plain_answer(api.EventPage, {"events": shown, "next_before": next_before})


@routes.get("/api/events/{event_uuid}", Permission.READ, response_model=api.EventDetail)
async def get_event(call: TheCall, event_uuid: EventUuid) -> Response:
    """One event with its incident, its best frame, how its clip stands and, for people who may investigate, what a
    language model said of it."""
    view = await call.store.read(event_views.get, event_uuid)
    found, clip, review = view.event, view.clip, view.review
    summary, frame = found.summary, found.best_frame
    vocabulary = await active_vocabulary(call)
    tags = [*summary.tags, *(() if frame is None else frame.tags)]
    has_opinion = review is not None or bool(view.scores)
    await note_listed(call, "event", vocabulary, tags, has_opinion, event_uuid)
    return plain_answer(
        api.EventDetail,
        {
            **plain_event(vocabulary, summary),
            "incident": None if found.incident is None else plain_incident(found.incident),
            "best_frame": None if frame is None else plain_frame(vocabulary, frame),
            "clip": None if clip is None else shown_clip(clip),
            "llm_review": None
            if review is None
            else {**fields_of(review), "label": shown_review_label(review.label)},
            "scores": view.scores,
        },
    )


@routes.get("/api/events/{event_uuid}/frames", Permission.READ)
async def list_event_frames(
    call: TheCall,
    event_uuid: EventUuid,
    after: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=frame_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.FramePage:
    """The frames of an event, oldest first, each with its boxes and tags."""
    found = await call.store.read(event_pages.frames, event_uuid, after, limit)
    vocabulary = await active_vocabulary(call)
    shown = [shown_frame(vocabulary, frame) for frame in found]
    await note_investigation(call, "event", event_uuid, [tag for frame in shown for tag in frame.tags])
    return api.FramePage(
        frames=shown,
        next_after=found[-1].cursor if len(found) == limit else None,
    )


def plain_event(vocabulary: Vocabulary, event: EventSummary) -> dict[str, Any]:
    """What `api.Event` would be, as it stands in an answer."""
    return {
        "event_uuid": event.event_uuid,
        "incident_uuid": event.incident_uuid,
        "camera_id": event.camera_id,
        "camera_name": event.camera_name,
        "site": event.site,
        "state": event.state,
        "primary_event": event.primary_event,
        "start_at": event.start_at,
        "last_seen_at": event.last_seen_at,
        "end_at": event.end_at,
        "severity_max": event.severity_max,
        "confidence_max": event.confidence_max,
        "frame_count": event.frame_count,
        "retention_class": event.retention_class,
        "best_frame_uuid": event.best_frame_uuid,
        "tags": plain_tags(vocabulary, event.tags),
        "issue": plain_issue(event.subject) if event.subject else None,
        "cause": plain_cause(event.cause),
    }
