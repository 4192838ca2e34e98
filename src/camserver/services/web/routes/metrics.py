"""Figures for Prometheus: of the whole installation, so for its operator only."""

from fastapi import Response

from camserver.base import figures
from camserver.services.web.access import Gate, may_read_metrics
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes

routes = Routes()


@routes.get("/metrics", Gate.PUBLIC, include_in_schema=False)
async def metrics(call: TheCall) -> Response:
    """For programs of this machine, and whoever has the token of `metrics.token`."""
    may_read_metrics(call.web, call.request)
    return Response(await call.web.figures.text(), media_type=figures.CONTENT_TYPE)
