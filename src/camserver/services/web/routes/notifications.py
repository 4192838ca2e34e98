"""Messages that were sent, newest first, a page at a time."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.routes.filters import CameraIds, Cursor
from camserver.services.web.routing import Routes
from camserver.store import notifications
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50


@routes.get("/api/notifications", Permission.READ)
async def list_notifications(
    call: TheCall,
    camera_ids: CameraIds = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=notifications.PAGE_MAX)] = PAGE_USUAL,
) -> api.NotificationPage:
    """What people were told, newest first; several cameras are alternatives."""
    found = await call.store.read(notifications.page, tuple(camera_ids), before, limit)
    return api.NotificationPage(
        notifications=[api.Notification.model_validate(asdict(one)) for one in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )
