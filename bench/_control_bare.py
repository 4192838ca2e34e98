"""The limit of a worker's socket: the same WebSocket server, each message sent back as it came. Nothing is read.

Run as a program: python -m bench._control_bare PORT
"""

import sys

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from camserver.base import asgi, ports
from camserver.wire.worker import SOCKET_PATH


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        return


async def healthz(_: Request) -> Response:
    return Response(b"ok")


async def main(port: int) -> None:
    app = Starlette(routes=[WebSocketRoute(SOCKET_PATH, echo), Route("/healthz", healthz)])
    with ports.listen("127.0.0.1", port, "control.port") as sock:
        await asgi.serve(app, sock, lambda: None)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
