"""The state of the installation as far as its tenant goes, and the API's own description."""

from dataclasses import asdict
from typing import Any

from camserver import __version__
from camserver.domain.people import Permission
from camserver.services.web.access import Gate
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import counts
from camserver.wire import api

routes = Routes()


@routes.get("/api/system/status", Permission.READ)
async def status(call: TheCall) -> api.SystemStatus:
    """Counts of cameras, sessions and jobs, and whether this process is ready."""
    found = await call.store.read(counts.count)
    return api.SystemStatus.model_validate(
        {
            **asdict(found),
            "now": call.now_ms,
            "version": __version__,
            "store": call.web.store.dialect.value,
            "ready": call.web.ready.is_ready,
            "checks": dict(call.web.ready.checks()),
        }
    )


@routes.get("/api/openapi.json", Gate.SIGNED_IN, include_in_schema=False)
async def openapi(call: TheCall) -> dict[str, Any]:
    """The description of this API."""
    described: dict[str, Any] = call.request.app.openapi()
    return described
