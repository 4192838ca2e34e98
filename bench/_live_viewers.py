"""Browsers as far as the network goes: sockets that take what comes and count fragments.

    {"urls": ["ws://…"], "asks_for_mse": false, "announces": false}

is the first line on standard input. If asked to, prints a line when it could connect, and does at the next line it
gets. Prints how long each took to its first fragment, in ms; then, for every further line, how many fragments each
got since the line before.
"""

import asyncio
import json
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import uvloop

from camserver.base import websocket

PATIENCE_SEC = 60.0
# go2rtc sends what is asked for on its socket.
MSE = json.dumps({"type": "mse", "value": "avc1.640029,avc1.64002A,avc1.640033,mp4a.40.2,mp4a.40.5,flac,opus"})


class Viewer(asyncio.Protocol):
    def __init__(self, asks_for_mse: bool) -> None:
        self._asks_for_mse = asks_for_mse
        self._transport: Any = None
        self._is_open = False
        self.began = time.perf_counter()
        self.first: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.fragments = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def ask(self, url: str) -> None:
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}"
        self._transport.write(websocket.request(parts.netloc, target, websocket.new_key(), {}))

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            self._is_open = True
            if self._asks_for_mse:
                text = MSE.encode()
                self._transport.write(websocket.client_head(websocket.TEXT, len(text)) + text)
        found = data.count(b"moof")
        self.fragments += found
        if found and not self.first.done():
            self.first.set_result((time.perf_counter() - self.began) * 1000)

    def close(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.first.done():
            self.first.set_exception(RuntimeError("closed before the first fragment"))


async def view(url: str, asks_for_mse: bool) -> Viewer:
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    assert parts.hostname is not None
    assert parts.port is not None
    _, viewer = await loop.create_connection(lambda: Viewer(asks_for_mse), parts.hostname, parts.port)
    viewer.ask(url)
    return viewer


async def main(asked: dict[str, Any]) -> None:
    if asked.get("announces"):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    async with asyncio.timeout(PATIENCE_SEC):
        viewers = [await view(url, asked["asks_for_mse"]) for url in asked["urls"]]
        print(json.dumps([round(await viewer.first, 1) for viewer in viewers]), flush=True)
    counted = [0] * len(viewers)
    while await asyncio.to_thread(sys.stdin.readline):
        now = [viewer.fragments for viewer in viewers]
        print(json.dumps([one - before for one, before in zip(now, counted, strict=True)]), flush=True)
        counted = now


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
