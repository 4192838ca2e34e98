"""A webhook as an HTTP server on loopback.

It remembers a delivery only when it answers with success or cuts the connection after taking it in: what a real
receiver would have acted on. `distinct` is what is left when repeats are dropped by their id.
"""

import asyncio
import hashlib
import hmac
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.rig.ports import LOOPBACK, listening_socket, port_of

PATH = "/hook/secret-token"


@dataclass(frozen=True, slots=True)
class Act:
    """What the server does with one request instead of answering 204."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut_before: bool = False  # the connection ends before the request is taken in
    cut_after: bool = False  # it was taken in, and the answer is lost
    endless: bool = False  # the answer never ends
    held: asyncio.Event | None = None  # the answer waits for this


@dataclass(frozen=True, slots=True)
class Received:
    delivery: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    signed: bool | None  # None: no signature


@dataclass(slots=True)
class FakeWebhook:
    """`async with FakeWebhook() as hook:`. `acts` are done, one a request, before it behaves again."""

    key: str = ""
    acts: deque[Act] = field(default_factory=deque)
    always: Act | None = None
    received: list[Received] = field(default_factory=list)
    asked: int = 0
    paths: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _runner: web.AppRunner | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}{PATH}"

    @property
    def distinct(self) -> set[str]:
        return {one.delivery for one in self.received}

    async def __aenter__(self) -> "FakeWebhook":
        app = web.Application(client_max_size=5_000_000)
        app.router.add_route("*", "/{path:.*}", self._counted)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        sock = listening_socket()
        self._port = port_of(sock)
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        for act in (*self.acts, *([self.always] if self.always else [])):
            if act.held is not None:
                act.held.set()
        await self._runner.cleanup()

    async def _counted(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        self.paths.append(request.path)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._answer(request)
        finally:
            self._at_once -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        act = self.acts.popleft() if self.acts else self.always or Act()
        body = await request.read()
        if act.held is not None:
            await act.held.wait()
        if act.cut_before:
            return _cut(request)
        if act.cut_after or act.endless or 200 <= act.status < 300:
            self.received.append(self._taken_in(request, body))
        if act.cut_after:
            return _cut(request)
        if act.endless:
            return await _without_end(request)
        return web.Response(status=act.status, headers=act.headers, body=act.body)

    def _taken_in(self, request: web.Request, body: bytes) -> Received:
        signature = request.headers.get("X-Camserver-Signature")
        signed = None
        if signature is not None:
            stamp = request.headers["X-Camserver-Timestamp"]
            wanted = hmac.new(self.key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
            signed = hmac.compare_digest(signature, f"v1={wanted}")
        return Received(request.headers["X-Camserver-Delivery"], json.loads(body), dict(request.headers), signed)


def _cut(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _without_end(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    try:
        while True:
            await answer.write(b"x" * 65_536)
    except (ConnectionError, asyncio.CancelledError):
        return answer
