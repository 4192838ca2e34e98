"""The fake's HTTP server: OpenAI's chat completions, answered after a while by what it knows to be true."""

import asyncio
import contextlib
import json
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.fakes.scoring_llm.capacity import ByConcurrency, Capacity
from tests.fakes.scoring_llm.truth import asked_of, truth
from tests.rig.ports import LOOPBACK, listening_socket, port_of

# What may come instead of a good answer, beside the statuses 400, 401, 429, 500, 503 as words.
TWISTS = (
    "fenced", "prose", "commas", "words", "short", "long", "outside", "nan", "empty", "garbage", "reset", "quota",
    "refused",
)  # fmt: skip
TOKENS_IN, TOKENS_OUT = 200, 40
_ANCHORS = {"Core": 0.95, "Strong": 0.80, "Reasonable": 0.55, "Weak": 0.25, "None": 0.05}


@dataclass
class Behaviour:
    """`chances` are shares of calls by the name of a twist or a status; `script` strikes first, in order; a text in
    `always` meets its twist whenever it is asked about."""

    latency_sec: float = 0.0
    jitter_sec: float = 0.0
    chances: dict[str, float] = field(default_factory=dict)
    script: deque[str] = field(default_factory=deque)
    always: dict[str, str] = field(default_factory=dict)
    straggler_share: float = 0.0
    straggler_sec: float = 1.0
    capacity: Capacity = field(default_factory=lambda: ByConcurrency(1_000_000))


class ScoringLlm:
    """`async with ScoringLlm(Behaviour(...)) as llm:`, then `llm.url` is the base address."""

    def __init__(self, behaviour: Behaviour | None = None, seed: int = 1, port: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.calls = 0  # whatever became of them
        self.refused = 0
        self.in_flight = 0
        self.in_flight_most = 0
        self.billed: Counter[tuple[str, str]] = Counter()  # good answers by text and first category
        self.models: Counter[str] = Counter()
        self.systems: set[str] = set()
        self.pictured = 0  # questions with a picture
        self.hold: asyncio.Event | None = None  # set by a test: answers wait for it
        self.hold_after: int | None = None  # from so many calls on they do by themselves
        self._chance = random.Random(seed)
        self._runner: web.AppRunner | None = None
        self._port = port

    async def __aenter__(self) -> "ScoringLlm":
        app = web.Application(client_max_size=8_000_000)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_get("/counts", self._counts)
        app.router.add_post("/counts", self._reset)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        sock = listening_socket(self._port)
        self._port = port_of(sock)
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.hold is not None:
            self.hold.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def release(self) -> None:
        """Lets answers go that wait."""
        if self.hold is not None:
            self.hold.set()
        self.hold = self.hold_after = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}/v1"

    async def _counts(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "calls": self.calls,
                "refused": self.refused,
                "billed": sum(self.billed.values()),
                "twice": sum(count - 1 for count in self.billed.values()),
                "in_flight_most": self.in_flight_most,
            }
        )

    async def _reset(self, request: web.Request) -> web.Response:
        """Counts anew, with another capacity if one is named."""
        self.calls = self.refused = self.in_flight_most = 0
        self.billed.clear()
        return web.json_response({})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.calls += 1
        self.models[body["model"]] += 1
        self.pictured += any(part["type"] != "text" for part in body["messages"][1]["content"])
        system = body["messages"][0]["content"]
        user = "".join(part["text"] for part in body["messages"][1]["content"] if part["type"] == "text")
        text, categories = asked_of(system, user)
        behaviour = self.behaviour
        wait_sec = behaviour.capacity.take(TOKENS_IN + TOKENS_OUT)
        if wait_sec is not None:
            self.refused += 1
            headers = {"Retry-After": f"{wait_sec:.3f}"} if wait_sec else {}
            return _error(429, "too many", headers=headers | behaviour.capacity.headers())
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        try:
            await self._think()
            twist = self._twist(text)
            if twist is not None and (answer := self._misbehaved(request, twist)) is not None:
                return answer
            scores: list[float | str] = [truth(text, one) for one in categories]
            if '"Core"' in json.dumps(body.get("response_format", {})):
                scores = [_phrase(float(one)) for one in scores]
            said = _said(scores, twist)
            if twist in (None, "fenced", "prose", "commas", "words"):
                self.billed[text, categories[0]] += 1
            return web.json_response(_document(body["model"], said), headers=behaviour.capacity.headers())
        finally:
            self.in_flight -= 1
            behaviour.capacity.give_back()

    async def _think(self) -> None:
        behaviour = self.behaviour
        if self.hold is None and self.hold_after is not None and self.calls >= self.hold_after:
            self.hold = asyncio.Event()
        if self.hold is not None:
            await self.hold.wait()
        seconds = behaviour.latency_sec + self._chance.uniform(-behaviour.jitter_sec, behaviour.jitter_sec)
        if behaviour.straggler_share and self._chance.random() < behaviour.straggler_share:
            seconds += behaviour.straggler_sec
        if seconds > 0:
            await asyncio.sleep(seconds)

    def _twist(self, text: str) -> str | None:
        if text in self.behaviour.always:
            return self.behaviour.always[text]
        if self.behaviour.script:
            return self.behaviour.script.popleft()
        if not self.behaviour.chances:
            return None
        drawn = self._chance.random()
        for name, share in self.behaviour.chances.items():
            drawn -= share
            if drawn < 0:
                return name
        return None

    def _misbehaved(self, request: web.Request, twist: str) -> web.StreamResponse | None:
        if twist.isdigit():
            headers = {"Retry-After": "0.05"} if twist == "429" else {}
            return _error(int(twist), f"status {twist}", headers=headers)
        if twist == "quota":
            return _error(429, "You exceeded your current quota", code="insufficient_quota")
        if twist == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if twist == "garbage":
            return web.Response(body=b"<html>It works!</html>", content_type="application/json")
        if twist == "refused":
            document = _document("fake", "")
            document["choices"][0]["finish_reason"] = "content_filter"
            return web.json_response(document)
        return None


def _phrase(score: float) -> str:
    """The anchor that is nearest."""
    return min(_ANCHORS, key=lambda one: abs(_ANCHORS[one] - score))


def _said(scores: list[float | str], twist: str | None) -> str:
    plain = json.dumps({"scores": scores})
    match twist:
        case "fenced":
            return f"```json\n{plain}\n```"
        case "prose":
            return f"Here are the scores: {plain} I hope this helps!"
        case "commas":
            return plain.replace("]}", ",],}")
        case "words":
            return json.dumps({"scores": [f"{float(score):.2f}" for score in scores]})
        case "short":
            return json.dumps({"scores": scores[:-1]})
        case "long":
            return json.dumps({"scores": [*scores, 0.5]})
        case "outside":
            return json.dumps({"scores": [*scores[:-1], 1.7]})
        case "nan":
            return json.dumps({"scores": [*scores[:-1], float("nan")]})
        case "empty":
            return ""
    return plain


def _document(model: str, text: str) -> dict[str, Any]:
    return {
        "model": model,
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT},
    }


def _error(status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"message": message, "code": code}}, status=status, headers=headers)


async def serve_forever(llm: ScoringLlm) -> None:
    """As a process of its own: says its address, then answers until it is killed."""
    async with llm:
        print(llm.url, flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
