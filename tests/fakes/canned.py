"""An HTTP server that answers what it was told to, one answer after the other, and remembers what it was asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.rig.ports import listening_socket, port_of


@dataclass(frozen=True, slots=True)
class Canned:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str  # as it was sent
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class CannedServer:
    url: str
    answers: list[Canned] = field(default_factory=list)  # the last one is repeated
    asked: list[Asked] = field(default_factory=list)

    async def _handle(self, request: web.Request) -> web.Response:
        self.asked.append(Asked(request.method, request.raw_path, dict(request.headers), await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@asynccontextmanager
async def canned_server(*answers: Canned) -> AsyncIterator[CannedServer]:
    sock = listening_socket()
    server = CannedServer(f"http://127.0.0.1:{port_of(sock)}", list(answers))
    app = web.Application(client_max_size=50_000_000)
    app.router.add_route("*", "/{tail:.*}", server._handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    try:
        yield server
    finally:
        await runner.cleanup()
        sock.close()
