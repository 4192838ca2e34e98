"""The change feed, asked for: what changed since a cursor, without its content. Pushed, it is `feed`."""

from typing import Annotated

from fastapi import Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.following import shown_change
from camserver.services.web.routing import Routes
from camserver.store import feed
from camserver.store.changes import PAGE_MAX
from camserver.wire import api

routes = Routes()


@routes.get("/api/changes", Permission.READ)
async def changes_after(
    call: TheCall,
    after: Annotated[int, Query(ge=0, lt=2**62)],
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_MAX,
) -> api.ChangePage:
    """Changes behind `after`, oldest first; ask again with `last_seq`."""
    page = await call.store.read(feed.after, after, limit)
    return api.ChangePage(
        changes=[shown_change(item) for item in page.items],
        last_seq=page.last_seq,
        resync=page.resync,
    )
