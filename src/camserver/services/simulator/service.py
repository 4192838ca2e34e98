"""The simulator as a service: listens for RTSP clients and keeps its cameras going.

    messages    RTSP requests and answers      cameras   what a camera shows and how it misbehaves
    digest      authentication                 playing   the endless loop
    connection  one client                     rtp       packets

It stands for cameras and so is no part of the product's paths: nothing else imports it.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.services.simulator.cameras import MAIN, SUB, CameraAsked, SimulatedCamera
from camserver.services.simulator.connection import Connection
from camserver.services.simulator.digest import Login
from camserver.services.simulator.messages import LINE_MAX_BYTES

log = get_logger(__name__)

CONNECTIONS_MAX = 1000


async def run(
    cameras: Sequence[CameraAsked],
    sock: socket.socket,
    login: Login | None,
    cache_dir: Path,
    clock: Clock,
    greet: Callable[[Sequence[str]], None],
) -> None:
    """Serves until cancelled. `greet` is told the addresses once they can be opened."""
    async with Simulator(cameras, sock, login, cache_dir, clock) as simulator:
        greet([simulator.url(camera.name, stream) for camera in cameras for stream in (MAIN, SUB)])
        await asyncio.Event().wait()


class Simulator:
    """Runs within `async with`. Tests switch `camera(name).faults` and call `camera(name).cut_all()`."""

    def __init__(
        self,
        cameras: Sequence[CameraAsked],
        sock: socket.socket,
        login: Login | None,
        cache_dir: Path,
        clock: Clock,
    ) -> None:
        names = [camera.name for camera in cameras]
        if not names or len(set(names)) != len(names):
            raise BadInput("a simulator needs cameras, and each a name of its own")
        self._cameras = {camera.name: SimulatedCamera(camera, cache_dir) for camera in cameras}
        self._sock = sock
        self._login = login
        self._clock = clock
        self._serving: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()

    def camera(self, name: str) -> SimulatedCamera:
        return self._cameras[name]

    def url(self, name: str, stream: str = MAIN) -> str:
        """Where a camera is, without its login."""
        host, port = self._sock.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        return f"rtsp://{host}:{port}/{name}" + ("" if stream == MAIN else f"/{stream}")

    async def __aenter__(self) -> Self:
        server = await asyncio.start_server(self._accept, sock=self._sock, limit=LINE_MAX_BYTES)
        self._stack.callback(server.close)
        schedules = [asyncio.ensure_future(one.follow_schedule(self._clock)) for one in self._cameras.values()]
        self._stack.push_async_callback(self._end, schedules)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= CONNECTIONS_MAX:
            log.warning("simulator refuses a client: too many", connections=len(self._serving))
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await Connection(self._cameras, self._login, reader, writer).serve()
        except Exception:
            log.exception("simulator failed on a client")
        finally:
            writer.transport.abort()

    async def _end(self, schedules: Sequence["asyncio.Task[None]"]) -> None:
        for camera in self._cameras.values():
            camera.close()
        tasks = [*schedules, *self._serving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
