"""The supervisor's one question, put to servers that are ready, not ready, strange and silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from camserver.clients import ready_probe
from camserver.clients.ready_probe import is_ready
from tests.rig.ports import LOOPBACK, listening_socket, port_of


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that says this to whoever comes, or nothing at all; its port, and what it was asked."""
    asked: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is None:
            await over.wait()
        else:
            writer.write(answer)
        writer.close()

    with listening_socket() as sock:
        server = await asyncio.start_server(serve, sock=sock)
        yield port_of(sock), asked
        over.set()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1 2000\r\n\r\n", False),
        (b"", False),
        (b"\r\n", False),
        (b"x" * 10_000 + b" 200\r\n", False),
    ],
    ids=["ready", "not-ready", "strange", "closed", "empty-line", "endless"],
)
async def test_only_200_is_ready(answer: bytes, ready: bool) -> None:
    async with answering(answer) as (port, asked):
        assert await is_ready(LOOPBACK, port) is ready
    assert asked[0].startswith(b"GET /readyz HTTP/1.1\r\n")
    assert f"Host: {LOOPBACK}:{port}\r\n".encode() in asked[0]


async def test_every_address_of_the_machine_is_asked_at_loopback() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n") as (port, _):
        assert await is_ready("0.0.0.0", port)


async def test_silence_and_nobody_are_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_probe, "TIMEOUT_SEC", 0.05)
    async with answering(None) as (port, _):
        assert not await is_ready(LOOPBACK, port)
    assert not await is_ready(LOOPBACK, port)
