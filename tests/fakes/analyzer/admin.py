"""Steering a fake analyzer over HTTP, for when it runs as a process of its own.

GET /requests · DELETE /requests · POST /faults (a rule) · DELETE /faults · POST /refuse · /accept · /release
· /forget-vocabulary
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from aiohttp import web

from tests.fakes.analyzer.faults import Rule

if TYPE_CHECKING:
    from tests.fakes.analyzer.server import FakeAnalyzer


def admin_app(analyzer: "FakeAnalyzer") -> web.Application:
    async def requests(request: web.Request) -> web.Response:
        records = [asdict(record) for record in analyzer.requests]
        return web.json_response({"received": analyzer.received, "requests": records})

    async def forget_requests(request: web.Request) -> web.Response:
        analyzer.requests.clear()
        return web.json_response({})

    async def add_fault(request: web.Request) -> web.Response:
        analyzer.add_fault(Rule.from_json(await request.json()))
        return web.json_response({})

    async def heal(request: web.Request) -> web.Response:
        analyzer.heal()
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/requests", requests)
    app.router.add_delete("/requests", forget_requests)
    app.router.add_post("/faults", add_fault)
    app.router.add_delete("/faults", heal)
    app.router.add_post("/refuse", _does(analyzer.refuse))
    app.router.add_post("/accept", _does(analyzer.accept))
    app.router.add_post("/release", _does(analyzer.release))
    app.router.add_post("/forget-vocabulary", _does(analyzer.forget_vocabulary))
    return app


def _does(action: Callable[[], Awaitable[None] | None]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        done = action()
        if done is not None:
            await done
        return web.json_response({})

    return handle
