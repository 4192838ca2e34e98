"""The API for command-line tools, whether a server runs or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from camserver.base import folders, ports
from camserver.base import log as logs
from camserver.base.clock import StoreClock
from camserver.base.hosts import in_address, reached_at
from camserver.base.ready import Ready
from camserver.parts import Resources, add_store, add_web_store

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer
    from camserver.config import Settings


@asynccontextmanager
async def tool_server(settings: "Settings", language: str = "en") -> AsyncIterator["LocalServer"]:
    """The API for a command-line tool: of the server that runs, or of one that lives as long as it is needed.

    The latter owns the store meanwhile, so a server that is started beside it waits or is refused, as beside any
    other.
    """
    from camserver.services.web import service

    running = local_server(settings, settings.web.host, settings.web.port, language)
    if await running.is_there():
        yield running
        return
    logs.configure("tool", settings.log.format, "warning")
    own = Resources(settings, StoreClock(), Ready())
    async with AsyncExitStack() as stack:
        folders.make_usable(settings.server.data_dir, "server.data_dir")
        sock = stack.enter_context(ports.listen("127.0.0.1", 0, "web.port"))
        await add_store(own, stack)
        await add_web_store(own, stack)
        own.ready.expect("web")
        web = asyncio.create_task(
            service.run(own.web_store, own.objects, own.clock, settings, own.ready, sock, for_people=False)
        )
        stack.push_async_callback(cancelled, web)
        while not own.ready.is_ready and not web.done():  # noqa: ASYNC110 - the board is read, it wakes nobody
            await asyncio.sleep(0.01)
        if web.done():
            await web
        host, port = sock.getsockname()[:2]
        yield local_server(settings, host, port, language)


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def local_server(settings: "Settings", host: str, port: int, language: str = "en") -> "LocalServer":
    """The client of a web service on this machine; its messages are in `language`."""
    from camserver.clients.local_server import LocalServer
    from camserver.config.secret_files import LOCAL_ADMIN_TOKEN

    url = f"http://{in_address(reached_at(host))}:{port}"
    return LocalServer(url, settings.server.secrets_dir / LOCAL_ADMIN_TOKEN, language)
