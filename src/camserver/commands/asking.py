"""How a command asks the server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from camserver.commands.root import Chosen

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

T = TypeVar("T")


def with_server(chosen: Chosen, call: Callable[["LocalServer"], Awaitable[T]]) -> T:
    """Calls the API of the running server, or of one that is there just for this call."""
    from camserver.tool_server import tool_server

    async def work() -> T:
        async with tool_server(chosen.settings()) as server:
            return await call(server)

    return asyncio.run(work())
