"""Events: newest first, a page at a time."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import event_pages
from camserver.store.event_pages import EventSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50


@routes.get("/api/events", Permission.READ)
async def list_events(
    call: TheCall,
    camera_id: Annotated[str | None, Query(pattern=api.CAMERA_ID_PATTERN)] = None,
    before: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=event_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.EventPage:
    """Events by the time they began, newest first; of one camera or of all."""
    found = await call.store.read(event_pages.page, camera_id, before, limit)
    return api.EventPage(
        events=[_shown(event) for event in found], next_before=found[-1].cursor if len(found) == limit else None
    )


@routes.get("/api/events/{event_uuid}", Permission.READ)
async def get_event(call: TheCall, event_uuid: Annotated[str, Path(max_length=36)]) -> api.Event:
    """One event."""
    return _shown(await call.store.read(event_pages.get, event_uuid))


def _shown(event: EventSummary) -> api.Event:
    return api.Event.model_validate({**asdict(event), "tags": list(event.tags)})
