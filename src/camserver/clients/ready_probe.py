"""Asks a web service on this machine whether it is ready, without an HTTP library.

The supervisor asks nothing else and lives as long as the product: the library would be a third of its memory and half
of the CPU of its start.
"""

import asyncio
import contextlib

from camserver.base.hosts import in_address, reached_at

TIMEOUT_SEC = 5.0
LINE_MAX_BYTES = 1024


async def is_ready(host: str, port: int) -> bool:
    """Whether /readyz answers 200; `host` and `port` are what it listens on."""
    host = reached_at(host)
    try:
        async with asyncio.timeout(TIMEOUT_SEC):
            return await _status(host, port) == b"200"
    except (OSError, ValueError, TimeoutError):
        return False


async def _status(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, limit=LINE_MAX_BYTES)
    try:
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {in_address(host)}:{port}\r\nConnection: close\r\n\r\n".encode())
        first_line = await reader.readline()
        return b" ".join(first_line.split()[1:2])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
