"""Slack as an HTTP server on loopback. It checks what Slack checks: token, lengths, number and form of blocks."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.rig.ports import LOOPBACK, listening_socket, port_of

HOOK_PATH = "/services/T000/B000/hook-secret"


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    body: Any  # the parsed JSON or form, or bytes
    headers: dict[str, str]


@dataclass(slots=True)
class FakeSlack:
    """`async with FakeSlack() as slack:`. `answers` are given, one each, instead of what the next calls deserve."""

    token: str = "xoxb-token"
    answers: deque[tuple[int, dict[str, str], str]] = field(default_factory=deque)
    calls: list[Call] = field(default_factory=list)
    hang_up: bool = False
    held: asyncio.Event | None = None  # calls wait for it
    files: dict[str, bytes] = field(default_factory=dict)
    _runner: web.AppRunner | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def hook_url(self) -> str:
        return self.url + HOOK_PATH

    @property
    def api_url(self) -> str:
        return f"{self.url}/api"

    def called(self, method: str) -> list[Any]:
        """The bodies of the calls of a method."""
        return [call.body for call in self.calls if call.path == f"/api/{method}"]

    async def __aenter__(self) -> "FakeSlack":
        app = web.Application(client_max_size=5_000_000)
        app.router.add_route("*", "/{path:.*}", self._answer)
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
        if self.held is not None:
            self.held.set()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(Call(request.path, await _read(request), dict(request.headers)))
        if self.held is not None:
            await self.held.wait()
        if self.hang_up:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if self.answers:
            status, headers, text = self.answers.popleft()
            return web.Response(status=status, headers=headers, text=text)
        if request.path == HOOK_PATH:
            why = _wrong(self.calls[-1].body)
            return web.Response(status=400 if why else 200, text=why or "ok")
        if request.path.startswith("/upload/"):
            self.files[request.path.rpartition("/")[2]] = self.calls[-1].body
            return web.Response(text="OK")
        return self._method(request)

    def _method(self, request: web.Request) -> web.Response:
        body = self.calls[-1].body
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        match request.path.removeprefix("/api/"):
            case "chat.postMessage":
                why = _wrong(body)
                if why or not body.get("channel"):
                    return web.json_response({"ok": False, "error": why or "channel_not_found"})
                return web.json_response({"ok": True, "channel": "C1", "ts": f"17.{len(self.calls)}"})
            case "files.getUploadURLExternal":
                if not isinstance(body, dict) or not body.get("filename") or not int(body.get("length", 0)):
                    return web.json_response({"ok": False, "error": "invalid_arguments"})
                name = f"F{len(self.calls)}"
                return web.json_response({"ok": True, "upload_url": f"{self.url}/upload/{name}", "file_id": name})
            case "files.completeUploadExternal":
                known = all(one["id"] in self.files for one in body["files"])
                return web.json_response({"ok": known, **({} if known else {"error": "file_not_found"})})
        return web.json_response({"ok": False, "error": "unknown_method"})


async def _read(request: web.Request) -> Any:
    kind = request.content_type
    if kind == "application/json":
        return json.loads(await request.read())
    if kind == "application/x-www-form-urlencoded":
        return dict(await request.post())
    return await request.read()


def _wrong(message: Any) -> str:
    """What Slack would say about a message; '' when nothing."""
    blocks = message.get("blocks", []) if isinstance(message, dict) else None
    if not isinstance(blocks, list) or len(blocks) > 50:
        return "invalid_blocks"
    for block in blocks:
        if not 0 < len(block["text"]["text"]) <= 3000:
            return "invalid_blocks"
    return "" if message.get("text") else "no_text"
