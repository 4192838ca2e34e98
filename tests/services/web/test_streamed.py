import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from camserver.services.web.streamed import Streamed

SCOPE = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}


@pytest.mark.parametrize("pieces_taken", [0, 1])
async def test_what_is_sent_from_is_let_go_when_the_reader_leaves(pieces_taken: int) -> None:
    ends: list[str] = []
    left = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"piece"
        finally:
            ends.append("closed")

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if pieces_taken == 0 or message["type"] == "http.response.body":
            left.set()
            # A connection that takes nothing any more.
            await asyncio.Event().wait()

    await Streamed(chunks(), "application/zip", {}, lambda: ends.append("let go"))(SCOPE, receive, send)
    # One that was never begun has nothing of its own to close.
    assert ends == (["closed", "let go"] if pieces_taken else ["let go"])
