"""Routes that can't be added without saying who may use them.

`Routes` collects a module's endpoints. `GuardedRoute` and, for WebSockets, `GuardedSocket` are the only kinds of
route in the application: they refuse to be built without a need, admit the caller before the body is read or the
socket accepted, and turn every error into an answer. The need is in the OpenAPI document too, as `x-permission`.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketState

from camserver.base.errors import Bug
from camserver.domain.people import Permission
from camserver.services.web.access import Gate, Needs, admit, admit_socket
from camserver.services.web.answers import answer_error
from camserver.services.web.calls import Call
from camserver.wire import api

Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
SocketHandler = Callable[[WebSocket, Call], Awaitable[None]]
NEED = "x-permission"
WITHIN_SITES = "x-within-sites"
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

    def post(self, path: str, needs: Needs, *, within_sites: bool = False, **options: Any) -> Callable[[H], H]:
        """`within_sites`: it keeps within the caller's sites by itself, though its permission is tenant-wide."""
        return self._add("POST", path, needs, options, within_sites)

    def patch(self, path: str, needs: Needs, **options: Any) -> Callable[[H], H]:
        return self._add("PATCH", path, needs, options)

    def delete(self, path: str, needs: Needs, **options: Any) -> Callable[[H], H]:
        return self._add("DELETE", path, needs, options)

    def socket(self, path: str, needs: Needs) -> Callable[[SocketHandler], SocketHandler]:
        """A WebSocket. Its handler accepts; what it raises before that is the answer to the handshake."""

        def keep(handler: SocketHandler) -> SocketHandler:
            self.sockets.append(SocketEndpoint(path, needs, handler))
            return handler

        return keep

    def _add(
        self, method: str, path: str, needs: Needs, options: dict[str, Any], within_sites: bool = False
    ) -> Callable[[H], H]:
        def keep(handler: H) -> H:
            self.endpoints.append(Endpoint(method, path, needs, handler, options, within_sites))
            return handler

        return keep


class GuardedRoute(APIRoute):
    def __init__(self, path: str, endpoint: Handler, **options: Any) -> None:
        self.needs = _need_of(path, options.get("openapi_extra"))
        self.within_sites = bool((options.get("openapi_extra") or {}).get(WITHIN_SITES))
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                request.state.call = await admit(request.app.state.web, request, self.needs, self.within_sites)
                return await handler(request)
            except Exception as error:
                return answer_error(request, error)

        return guarded


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


def add_routes(app: FastAPI, routes: Routes) -> None:
    for endpoint in routes.endpoints:
        app.router.add_api_route(
            endpoint.path,
            endpoint.handler,
            methods=[endpoint.method],
            route_class_override=GuardedRoute,
            openapi_extra={NEED: endpoint.needs.value, **({WITHIN_SITES: True} if endpoint.within_sites else {})},
            **{**endpoint.options, "responses": {**_ERRORS, **endpoint.options.get("responses", {})}},
        )
    for socket in routes.sockets:
        app.router.routes.append(GuardedSocket(socket.path, socket.needs, socket.handler))
