"""How a command asks the server."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from camserver.commands.root import Chosen
from camserver.commands.shown import reader_language

if TYPE_CHECKING:
    from camserver.base.secrets import Secret
    from camserver.clients.local_server import LocalServer

T = TypeVar("T")


def with_server(chosen: Chosen, call: Callable[["LocalServer"], Awaitable[T]]) -> T:
    """Calls the API of the running server, or of one that is there just for this call."""
    from camserver.care.ownership import handed_over
    from camserver.tool_server import tool_server

    settings = chosen.settings()

    async def work() -> T:
        async with tool_server(settings, reader_language()) as server:
            return await call(server)

    # One that is there for this call makes files, such as SQLite's log.
    with handed_over(settings, with_objects=False):
        return asyncio.run(work())


def with_running_server(chosen: Chosen, call: Callable[["LocalServer"], Awaitable[T]]) -> T:
    """The same for what only running services can do, such as reaching a camera or sending a message."""
    from camserver.base.errors import Unavailable
    from camserver.tool_server import local_server

    async def work() -> T:
        settings = chosen.settings()
        server = local_server(settings, settings.web.host, settings.web.port, reader_language())
        if not await server.is_there():
            raise Unavailable(
                "no camserver runs here, and only a running one can do this; start it with: camserver up"
            )
        return await call(server)

    return asyncio.run(work())


def password_from_stdin(wanted: bool) -> "Secret | None":
    """The first line of standard input; never an argument, which others on the machine can read."""
    from camserver.base.secrets import Secret

    return Secret(sys.stdin.readline().rstrip("\r\n")) if wanted else None


def revealed(source: dict[str, Any]) -> dict[str, Any]:
    """A source as it is sent, its password in the clear."""
    password = source["password"]
    return source | {"password": None if password is None else password.reveal()}
