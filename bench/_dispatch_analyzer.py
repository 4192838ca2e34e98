"""An analyzer that does nothing but take its time: `asked` is {"port", "parallel", "took_ms"}.

It keeps the contract, reads every picture to its end, and works on `parallel` of them at once; further ones wait.
Prints a line when it listens, and ends when its standard input does.
"""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
# All of our fields stand before the first picture.
HEAD_BYTES = 2_000
FIELD = re.compile(rb'name="(\w+)"\r\n\r\n([^\r]*)\r\n')
ANSWER = {
    "analyzed": True,
    "detected": True,
    "primary_event": "human",
    "tags": ["carry.bag", "count.single", "behavior.running", "top_color.red"],
    "severity": 1,
    "unknown_flag": False,
    "confidence": 0.8,
    "count_hint": 1,
    "bboxes": [{"x1": 0.1, "y1": 0.2, "x2": 0.3, "y2": 0.9, "label": "person", "conf": 0.8}],
    "model_info": {"name": "bench", "version": "1"},
}


class Sleepy:
    """The application."""

    def __init__(self, parallel: int, took_sec: float) -> None:
        self._places = asyncio.Semaphore(parallel)
        self._took_sec = took_sec

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if scope["path"] == "/v1/analyze":
            async with self._places:
                await asyncio.sleep(self._took_sec)
            fields = {name.decode(): value.decode() for name, value in FIELD.findall(body[:HEAD_BYTES])}
            echoed = ("schema_version", "camera_id", "captured_at", "request_id")
            said: dict[str, object] = {**ANSWER, **{name: fields[name] for name in echoed}}
        elif scope["path"] == "/v1/capabilities":
            said = {"api_version": "v1", "runtime": "bench", "model": {"name": "bench", "version": "1"}}
        else:
            said = {"status": "ok"}
        payload = json.dumps(said).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": payload})


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def main() -> None:
    asked = json.loads(sys.stdin.readline())
    app = Sleepy(asked["parallel"], asked["took_ms"] / 1000)
    config = uvicorn.Config(
        app, port=asked["port"], log_level="warning", access_log=False, lifespan="off", backlog=4096
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.01)
    print("listening", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
