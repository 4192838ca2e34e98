"""Routes that can't be added without saying who may use them.

`Routes` collects a module's endpoints. `GuardedRoute` and, for WebSockets, `GuardedSocket` are the only kinds of
route in the application: they refuse to be built without a need, admit the caller before the body is read or the
socket accepted, and turn every error into an answer. The need is in the OpenAPI document too, as `x-permission`. One
that writes also says what a repeat of it is answered with (`x-repeat`): where it is declared, or in `unkeyed.py`.
"""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.utils import is_body_allowed_for_status_code
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketState

from camserver.base.errors import Bug
from camserver.base.http_answers import WHOLE, Whole
from camserver.domain.people import Permission
from camserver.services.web.access import Gate, Needs, admit, admit_socket
from camserver.services.web.answers import answer_error
from camserver.services.web.calls import Call, with_call, without_request
from camserver.services.web.once import HEADER, Repeat, answer_once
from camserver.services.web.parameters import JSON, Parameters, QueryNames, body_type, reads_address_only, reads_body
from camserver.services.web.requests import ReadRequest
from camserver.services.web.unkeyed import UNKEYED
from camserver.wire import api

Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
SocketHandler = Callable[[WebSocket, Call], Awaitable[None]]
NEED = "x-permission"
WITHIN_SITES = "x-within-sites"
REPEAT = "x-repeat"
REPEAT_WHY = "x-repeat-why"
# Those whose body is there, and not only made when it is sent.
_WHOLE_RESPONSES = frozenset({Response, JSONResponse})
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Whatever goes wrong, the body has this shape.
_ERRORS: dict[int | str, dict[str, Any]] = {"default": {"model": api.ErrorAnswer, "description": "what went wrong"}}


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    needs: Needs
    handler: Handler
    options: dict[str, Any]
    within_sites: bool = False
    repeat: Repeat | None = None


@dataclass(frozen=True, slots=True)
class SocketEndpoint:
    path: str
    needs: Needs
    handler: SocketHandler


class Routes:
    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.sockets: list[SocketEndpoint] = []

    def get(self, path: str, needs: Needs, **options: Any) -> Callable[[H], H]:
        return self._add("GET", path, needs, options)

    def post(
        self, path: str, needs: Needs, *, within_sites: bool = False, repeat: Repeat | None = None, **options: Any
    ) -> Callable[[H], H]:
        """`within_sites`: it keeps within the caller's sites by itself, though its permission is tenant-wide.

        `repeat`: it takes an Idempotency-Key, and does what it does in its first write.
        """
        return self._add("POST", path, needs, options, within_sites, repeat)

    def patch(self, path: str, needs: Needs, *, repeat: Repeat, **options: Any) -> Callable[[H], H]:
        return self._add("PATCH", path, needs, options, repeat=repeat)

    def delete(self, path: str, needs: Needs, *, repeat: Repeat | None = None, **options: Any) -> Callable[[H], H]:
        return self._add("DELETE", path, needs, options, repeat=repeat)

    def socket(self, path: str, needs: Needs) -> Callable[[SocketHandler], SocketHandler]:
        """A WebSocket. Its handler accepts; what it raises before that is the answer to the handshake."""

        def keep(handler: SocketHandler) -> SocketHandler:
            self.sockets.append(SocketEndpoint(path, needs, handler))
            return handler

        return keep

    def _add(
        self,
        method: str,
        path: str,
        needs: Needs,
        options: dict[str, Any],
        within_sites: bool = False,
        repeat: Repeat | None = None,
    ) -> Callable[[H], H]:
        def keep(handler: H) -> H:
            self.endpoints.append(Endpoint(method, path, needs, handler, options, within_sites, repeat))
            return handler

        return keep


class GuardedRoute(APIRoute):
    def __init__(self, path: str, endpoint: Handler, **options: Any) -> None:
        self.needs = _need_of(path, options.get("openapi_extra"))
        extra = options.get("openapi_extra") or {}
        self.within_sites = bool(extra.get(WITHIN_SITES))
        self.repeat = Repeat(extra[REPEAT]) if REPEAT in extra else None
        if self.repeat is None and WRITES & set(options.get("methods") or ()):
            raise Bug(f"the route {path} writes and does not say what a repeat is answered with; see unkeyed.py")
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        self.reads_address_only = self.methods == {"GET"} and reads_address_only(self.dependant)
        handler = _lean_handler(self) if self.reads_address_only else super().get_route_handler()
        self.is_lean = self.reads_address_only
        if reads_body(self.dependant):
            self.is_lean = True
            handler = _lean_handler(self, _stacked(handler))

        # What is not JSON is opened by browsers, players and mail programs too, some of which add to an address.
        is_for_programs = self.path.startswith("/api/") and isinstance(self.response_class, DefaultPlaceholder)
        known = QueryNames(self.dependant) if is_for_programs else None
        # A key is not looked at where a repeat changes nothing.
        repeat = None if self.repeat is Repeat.SAME else self.repeat
        asked = body_type(self.dependant)

        async def guarded(request: Request) -> Response:
            try:
                call = await admit(request.app.state.web, request, self.needs, self.within_sites)
                request.state.call = call
                if known is not None and (query := request.scope["query_string"]):
                    known.check(query)
                if repeat is None:
                    response = await handler(request)
                else:
                    response = await answer_once(call, request, repeat, handler)
            except Exception as error:
                return answer_error(request, error, asked)
            if response.status_code == 204:
                # FastAPI names the type of what is not there.
                del response.headers["Content-Type"]
            return response

        self._guarded = guarded
        return guarded

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request that was found to be this route's, where it `is_lean`."""
        response = await self._guarded(ReadRequest(scope, receive, send))
        if type(response) in _WHOLE_RESPONSES:
            whole: Whole | None = scope.get("extensions", {}).get(WHOLE)
            if whole is not None and whole(response.status_code, response.raw_headers, bytes(response.body)):
                if response.background is not None:
                    await response.background()
                return
        await response(scope, receive, send)


_Answers = Callable[[Request], Coroutine[Any, Any, Response]]


def _stacked(whole: _Answers) -> _Answers:
    """FastAPI's own handler with what it finds in a scope."""

    async def handle(request: Request) -> Response:
        async with AsyncExitStack() as inner, AsyncExitStack() as function:
            stacks = {"fastapi_middleware_astack": inner, "fastapi_inner_astack": inner}
            request.scope.update(stacks, fastapi_function_astack=function)
            return await whole(request)

    return handle


def _lean_handler(route: APIRoute, whole: _Answers | None = None) -> _Answers:
    """What FastAPI makes of a handler, for one that only reads the address and answers with a model or a response.

    With `whole`, FastAPI's own, for one that reads a body as well: that one gets what is not plain JSON, and where
    something is wrong: it knows what to say to it.
    """
    takes_call = without_request(route.endpoint)
    parameters = Parameters(route.dependant, gives_call=takes_call is not None)
    endpoint = takes_call or route.endpoint
    status_code = route.status_code or 200
    has_body = is_body_allowed_for_status_code(status_code)

    async def handle(request: Request) -> Response:
        if whole is None:
            values = await parameters.read(request)
        elif request.headers.get("content-type") != JSON:
            return await whole(request)
        else:
            try:
                values = await parameters.read(request)
            except (RequestValidationError, ValueError, RecursionError):
                return await whole(request)
        found = await endpoint(**values)
        if isinstance(found, Response):
            return found
        if not has_body:
            return Response(status_code=status_code)
        body = (
            found.__pydantic_serializer__.to_json(found, by_alias=True)
            if isinstance(found, BaseModel)
            else to_json(found, by_alias=True)
        )
        return Response(body, status_code, media_type="application/json")

    return handle


class GuardedSocket(WebSocketRoute):
    def __init__(self, path: str, needs: Needs, handler: SocketHandler) -> None:
        self.needs = needs
        self.handler = handler
        super().__init__(path, self._guarded, name=getattr(handler, "__name__", path))

    async def _guarded(self, socket: WebSocket) -> None:
        try:
            call = await admit_socket(socket.app.state.web, socket, self.needs)
            socket.state.call = call
            await self.handler(socket, call)
        except Exception as error:
            if socket.application_state is not WebSocketState.CONNECTING:
                raise
            await socket.send_denial_response(answer_error(socket, error))


def _need_of(path: str, extra: dict[str, Any] | None) -> Needs:
    need = (extra or {}).get(NEED)
    if need in set(Gate):
        return Gate(need)
    if need in set(Permission):
        return Permission(need)
    raise Bug(f"the route {path} does not say who may use it; add it with Routes and a need")


def _extra(endpoint: Endpoint) -> dict[str, Any]:
    extra: dict[str, Any] = {**endpoint.options.get("openapi_extra", {}), NEED: endpoint.needs.value}
    if endpoint.within_sites:
        extra[WITHIN_SITES] = True
    if endpoint.repeat is not None:
        extra[REPEAT] = endpoint.repeat.value
        extra["parameters"] = [*extra.get("parameters", ()), _REPEAT_PARAMETER]
    elif (endpoint.method, endpoint.path) in UNKEYED:
        repeat, extra[REPEAT_WHY] = UNKEYED[endpoint.method, endpoint.path]
        extra[REPEAT] = repeat.value
    return extra


_REPEAT_PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A repeat with the same key and body within a day is not done again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
}


def methods_at(app: FastAPI, path: str) -> tuple[set[str], bool]:
    """What an address is asked with, and whether that is to open a socket."""
    routes = [one for one in app.routes if isinstance(one, GuardedRoute) and one.path_regex.match(path)]
    methods = {method for route in routes for method in route.methods or ()}
    is_socket = any(isinstance(one, GuardedSocket) and one.path_regex.match(path) for one in app.routes)
    if is_socket:
        methods.add("GET")
    # The edge answers the one as the other.
    return methods | ({"HEAD"} if "GET" in methods else set()), is_socket


def add_routes(app: FastAPI, routes: Routes) -> None:
    for endpoint in routes.endpoints:
        app.router.add_api_route(
            endpoint.path,
            with_call(endpoint.handler),
            methods=[endpoint.method],
            route_class_override=GuardedRoute,
            **{
                **endpoint.options,
                "openapi_extra": _extra(endpoint),
                "responses": {**_ERRORS, **endpoint.options.get("responses", {})},
            },
        )
    for socket in routes.sockets:
        app.router.routes.append(GuardedSocket(socket.path, socket.needs, socket.handler))
