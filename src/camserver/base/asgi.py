"""Runs an ASGI application on a socket that is open already, as one task among others of the process.

uvicorn on its own takes the process's signals, its logging and its listening socket. Here all three belong to
the process: cancelling the task is the one way to stop, and it is bounded in time.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn

from camserver.base.errors import Bug

# Requests under way get this long after the stop; websockets are closed at once with 1012 (service restart).
GRACE_SEC = 3


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leaves the signals to the process."""
        yield


async def serve(app: Any, sock: socket.socket, on_ready: Callable[[], None], message_max_bytes: int = 65_536) -> None:
    """Serves until cancelled. `on_ready` is called once requests are being accepted.

    `message_max_bytes` bounds one incoming WebSocket message. The application's lifespan is not run: what it
    needs is made, and let go, by the service that calls this.
    """
    server = _Server(
        uvicorn.Config(
            app,
            loop="none",
            http="httptools",
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            # Its lines hold whole addresses, and signed links are addresses that open pictures.
            access_log=False,
            server_header=False,
            ws_max_size=message_max_bytes,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=GRACE_SEC,
        ),
        on_ready,
    )
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    raise Bug("the HTTP server ended by itself")
