"""The application: every route of the web service, behind the edge."""

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from camserver import __version__
from camserver.services.web.access import note_account
from camserver.services.web.answers import answer_error, unrouted
from camserver.services.web.calls import Web
from camserver.services.web.directory import Directory
from camserver.services.web.edge import App, Edge
from camserver.services.web.routes import (
    audit,
    cameras,
    cases,
    changes,
    clips,
    credentials,
    delegation,
    deliveries,
    discovery,
    errands,
    events,
    feed,
    frames,
    health,
    imports,
    incidents,
    jobs,
    llm,
    media,
    metrics,
    notifications,
    oidc,
    pages,
    probes,
    push,
    receivers,
    retention,
    rules,
    scoring,
    scoring_sheets,
    search,
    session,
    setup,
    shares,
    sites,
    snoozes,
    statistics,
    suggest,
    summaries,
    system,
    tenants,
    timeline,
    tokens,
    users,
    viewings,
    vocabulary,
    worker_identity,
)
from camserver.services.web.routing import GuardedRoute, add_routes, methods_at
from camserver.services.web.ui_files import UiFiles

SUBJECTS = (
    # What pages ask for all the time comes first: an address is held against one route after the other.
    cameras,
    frames,
    media,
    metrics,
    events,
    search,
    incidents,
    timeline,
    changes,
    feed,
    session,
    system,
    health,
    setup,
    oidc,
    users,
    tokens,
    sites,
    tenants,
    delegation,
    worker_identity,
    probes,
    discovery,
    imports,
    errands,
    clips,
    viewings,
    suggest,
    cases,
    retention,
    jobs,
    statistics,
    summaries,
    llm,
    scoring,
    scoring_sheets,
    vocabulary,
    shares,
    rules,
    snoozes,
    notifications,
    push,
    receivers,
    deliveries,
    credentials,
    audit,
    # The last one: it takes every address that no other route has.
    pages,
)


def build_api() -> FastAPI:
    """The routes without resources: enough for the OpenAPI document and for listing who may use what."""
    # FastAPI's own document and its viewers would be routes without a need.
    api = FastAPI(
        title="camserver",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    api.router.route_class = GuardedRoute
    api.router.redirect_slashes = False
    for subject in SUBJECTS:
        add_routes(api, subject.routes)
    # Raised by the router itself, before there is a route to turn them into an answer.
    api.add_exception_handler(HTTPException, _answer_unrouted)
    usual = api.router.default

    async def default(scope: Scope, receive: Receive, send: Send) -> None:
        # The usual is a 403 without a word.
        await (_refuse_socket if scope["type"] == "websocket" else usual)(scope, receive, send)

    api.router.default = default
    return api


def build_app(web: Web, ui: UiFiles) -> App:
    api = build_api()
    api.state.web = web
    api.state.ui = ui
    return Edge(Directory(api), web.settings, web.clock)


async def _answer_unrouted(request: Request, error: Exception) -> Response:
    await note_account(request.app.state.web, request)
    allowed, is_socket = methods_at(request.app, request.scope["path"])
    return answer_error(request, unrouted(error, request.method, allowed, is_socket))


async def _refuse_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Nobody opens a WebSocket at this address."""
    socket = WebSocket(scope, receive, send)
    await note_account(socket.app.state.web, socket)
    await socket.send_denial_response(answer_error(socket, HTTPException(404)))
