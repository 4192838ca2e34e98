"""Which route an address belongs to.

The application's own router holds an address against one route after the other, some hundred of them, and passes it
through layers that ours do not need: they answer whatever goes wrong by themselves. Here routes are found by
the beginning of their path. What is not found goes to the application, which knows what to say to it.
"""

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from camserver.services.web.routing import GuardedRoute

# So many parts of a path are compared at once: /api/cameras, /api/notify.
HEAD_PARTS = 3


class Directory:
    def __init__(self, api: FastAPI) -> None:
        self._api = api
        self._whole: dict[str, list[GuardedRoute]] = {}
        self._by_head: dict[tuple[str, ...], list[GuardedRoute]] = {}
        for route in api.routes:
            if not isinstance(route, GuardedRoute):
                continue
            if "{" not in route.path:
                self._whole.setdefault(route.path, []).append(route)
                continue
            head = _head(route.path)
            # One that begins with a parameter is left to the application: it would take others' addresses.
            if not any("{" in part for part in head):
                self._by_head.setdefault(head, []).append(route)
        # For handlers that take more than the address, which FastAPI reads.
        self._stacked: ASGIApp = AsyncExitStackMiddleware(_handle)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._find(scope) if scope["type"] == "http" else None
        if route is None:
            await self._api(scope, receive, send)
            return
        scope["app"] = self._api
        scope["route"] = route
        if route.is_lean:
            await route.serve(scope, receive, send)
        else:
            await self._stacked(scope, receive, send)

    def _find(self, scope: Scope) -> GuardedRoute | None:
        path = scope["path"]
        for route in self._whole.get(path) or self._by_head.get(_head(path)) or ():
            found = route.path_regex.match(path)
            if found is not None and scope["method"] in (route.methods or ()):
                scope["path_params"] = {
                    name: route.param_convertors[name].convert(value) for name, value in found.groupdict().items()
                }
                scope["endpoint"] = route.endpoint
                return route
        return None


def _head(path: str) -> tuple[str, ...]:
    return tuple(path.split("/", HEAD_PARTS)[:HEAD_PARTS])


async def _handle(scope: Scope, receive: Receive, send: Send) -> None:
    await scope["route"].handle(scope, receive, send)
