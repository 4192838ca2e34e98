"""A port that tells the figures of this process and nothing else, for services without pages of their own."""

import asyncio
import secrets
import socket

from camserver.base import figures
from camserver.base.log import get_logger
from camserver.base.secrets import Secret

log = get_logger(__name__)

HEAD_MAX_BYTES = 8_192
TIMEOUT_SEC = 10.0


async def serve(sock: socket.socket, token: Secret | None) -> None:
    """Answers `GET /metrics` until cancelled; with a token, only to whoever sends it as a bearer."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SEC):
                status, body = _answered(await reader.readuntil(b"\r\n\r\n"), token)
                kind = figures.CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
                head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("a request for figures broke off", cause=type(error).__name__)
        finally:
            writer.close()

    server = await asyncio.start_server(answer, sock=sock, limit=HEAD_MAX_BYTES)
    async with server:
        await server.serve_forever()


def _answered(head: bytes, token: Secret | None) -> tuple[str, bytes]:
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    if rest.partition(" ")[0].partition("?")[0] != "/metrics":
        return "404 Not Found", b"there is only /metrics\n"
    if method != "GET":
        return "405 Method Not Allowed", b"only GET\n"
    if token is not None and not _has(lines[1:], token):
        return "401 Unauthorized", b"the bearer token of metrics.token is needed\n"
    return "200 OK", figures.own_text()


def _has(headers: list[str], token: Secret) -> bool:
    for line in headers:
        name, _, value = line.partition(":")
        if name.strip().lower() == "authorization":
            kind, _, given = value.strip().partition(" ")
            return kind.lower() == "bearer" and secrets.compare_digest(
                given.strip().encode(), token.reveal().encode()
            )
    return False
