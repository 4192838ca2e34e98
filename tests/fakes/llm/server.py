"""The fake's HTTP server. It answers in good order until told to play a trick."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.fakes.llm.dialects import (
    ERRORS,
    REFUSED_SCHEMA,
    Asked,
    answer,
    as_body,
    lied,
    read_anthropic,
    read_gemini,
    read_openai,
)
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, listening_socket, port_of

KEY = "llm-key-0123456789"
TOKENS_IN, TOKENS_OUT = 900, 60
PATHS = {"openai": "/openai/v1", "gemini": "/gemini/v1beta", "anthropic": "/anthropic/v1"}


@dataclass(frozen=True, slots=True)
class Trick:
    """What happens instead of a good answer.

    An error of dialects.ERRORS by its name, or: hold (until released), cut (the body breaks off), reset (no answer),
    prose (words and no JSON), fenced (JSON in words), truncated, refused, huge, redirect, garbage (200, no JSON),
    wrong (200, other JSON), no_schema (a server that does not know schemas), new_bound (one that wants the newer
    name of max_tokens), said (`text` as it is), liar (a model's name that no database takes, and tokens without end).
    """

    name: str
    text: str = ""


class FakeLlm:
    """`async with FakeLlm() as llm:`, then `llm.url("gemini")` is a base address; `llm.tricks` strike in order."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.received = 0  # also those that a trick kept from being answered
        self.tricks: deque[Trick] = deque()
        self.always: Trick | None = None
        self.says: dict[str, Any] = {"label": "animal", "memo": "A cat walks along the wall."}
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> "FakeLlm":
        app = web.Application(client_max_size=64_000_000)
        app.router.add_post("/openai/v1/chat/completions", self._answer)
        app.router.add_post("/gemini/v1beta/models/{model}:generateContent", self._answer)
        app.router.add_post("/anthropic/v1/messages", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        sock = listening_socket(0)
        self._port = port_of(sock)
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()

    def url(self, provider: str) -> str:
        return f"http://{LOOPBACK}:{self._port}{PATHS[provider]}"

    def release(self) -> None:
        """Answers what is held; later ones are held again."""
        self._released.set()
        self._released = asyncio.Event()

    async def until_received(self, count: int) -> None:
        await until(lambda: self.received >= count, f"{count} questions at the model")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        provider = request.path.split("/")[1]
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(await request.read())
        if provider == "gemini":
            asked = read_gemini(request.match_info["model"], body, headers)
        else:
            asked = read_openai(body, headers) if provider == "openai" else read_anthropic(body, headers)
        self.asked.append(asked)
        self.received += 1
        trick = self.tricks.popleft() if self.tricks else self.always
        if asked.key != KEY:
            trick = Trick("bad_key")
        return await self._played(request, asked, body, trick)

    async def _played(
        self, request: web.Request, asked: Asked, body: dict[str, Any], trick: Trick | None
    ) -> web.StreamResponse:
        good = as_body(answer(asked, json.dumps(self.says), "stop", TOKENS_IN, TOKENS_OUT))
        if trick is None:
            return _json(good)
        if trick.name in ERRORS[asked.provider]:
            status, headers, document = ERRORS[asked.provider][trick.name]
            return web.Response(status=status, headers=headers, body=as_body(document))
        match trick.name:
            case "hold":
                await self._released.wait()
                return _json(good)
            case "reset":
                assert request.transport is not None
                request.transport.abort()
                return _json(b"")
            case "cut":
                return await _cut(request, good)
            case "garbage":
                return _json(b"<html>It works!</html>")
            case "wrong":
                return _json(b'{"choices": "none", "content": 3, "candidates": {}}')
            case "huge":
                return _json(b'{"pad": "' + b"x" * 5_000_000 + b'"}')
            case "redirect":
                return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/"})
            case "no_schema" if asked.schema is not None:
                return web.Response(status=400, body=as_body(REFUSED_SCHEMA[asked.provider]))
            case "new_bound" if "max_tokens" in body:
                message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
                return web.Response(status=400, body=as_body({"error": {"message": message}}))
        return _json(as_body(_twisted(asked, trick, json.dumps(self.says))))


def _twisted(asked: Asked, trick: Trick, said: str) -> dict[str, Any]:
    texts = {
        "prose": ("I see a cat on a wall. It is probably harmless.", "stop"),
        "fenced": (f"Here it is:\n```json\n{said}\n```\nAnything else?", "stop"),
        "truncated": (said[: len(said) // 2], "length"),
        "refused": ("", "refused"),
        "said": (trick.text, "stop"),
    }
    if trick.name == "liar":
        return lied(answer(asked, said, "stop", TOKENS_IN, TOKENS_OUT))
    text, finish = texts.get(trick.name, (said, "stop"))
    return answer(asked, text, finish, TOKENS_IN, TOKENS_OUT)


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


async def _cut(request: web.Request, body: bytes) -> web.StreamResponse:
    """Says how long the body is, and sends half of it."""
    response = web.StreamResponse(headers={"Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.close()
    return response
