"""Whether the process lives, and whether it is ready for work."""

from fastapi import Response

from camserver.services.web.access import Gate
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.wire import api

routes = Routes()


@routes.get("/healthz", Gate.PUBLIC)
async def alive() -> api.Health:
    """The process answers."""
    return api.Health()


@routes.get("/readyz", Gate.PUBLIC, responses={503: {"model": api.Readiness}})
async def ready(call: TheCall, response: Response) -> api.Readiness:
    """200 when every part of the process is ready, 503 with the reasons otherwise."""
    board = call.web.ready
    if not board.is_ready:
        response.status_code = 503
    return api.Readiness(ready=board.is_ready, checks=dict(board.checks()))
