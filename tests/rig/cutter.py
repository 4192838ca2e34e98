"""A TCP proxy on loopback that makes the network bad: hold, swallow, delay, cut and refuse.

async with Cutter(port) as net:
    client connects to net.port
    net.hold(Way.DOWN)     the server works, its replies stay on the road
    net.cut()              every open connection ends with a reset
"""

import asyncio
import socket
import struct
from enum import StrEnum
from types import TracebackType

from tests.rig.ports import LOOPBACK, free_port, listening_socket

CHUNK_BYTES = 64 * 1024


class Way(StrEnum):
    UP = "up"  # from client to server
    DOWN = "down"  # from server to client


BOTH = (Way.UP, Way.DOWN)


class Cutter:
    """One listening port in front of one server port. Faults hold for open and for new connections alike."""

    def __init__(self, target_port: int, target_host: str = LOOPBACK) -> None:
        self._target = (target_host, target_port)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._flowing = {way: asyncio.Event() for way in Way}
        for event in self._flowing.values():
            event.set()
        self._swallowing = dict.fromkeys(Way, False)
        self._delay_sec = dict.fromkeys(Way, 0.0)
        self._cut_at_bytes: dict[Way, int | None] = dict.fromkeys(Way, None)
        self.passed_bytes = dict.fromkeys(Way, 0)
        self.swallowed_bytes = dict.fromkeys(Way, 0)
        self.connections = 0  # ever accepted
        self.port = 0

    async def __aenter__(self) -> "Cutter":
        # Not any port: while it refuses, an outgoing connection must not get it.
        self.port = free_port()
        await self.accept()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        tasks = list(self._open)
        self.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def aim(self, target_port: int) -> None:
        """New connections go there, as behind a balancer whose server died; open ones stay where they are."""
        self._target = (self._target[0], target_port)

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def hold(self, *ways: Way) -> None:
        """Stops the bytes without losing any; connections stay open. Both ways when none is named."""
        for way in ways or BOTH:
            self._flowing[way].clear()

    def swallow(self, *ways: Way) -> None:
        """Reads bytes and throws them away, as a network does that lost its route; connections stay open."""
        for way in ways or BOTH:
            self._swallowing[way] = True

    def delay(self, seconds: float, *ways: Way) -> None:
        """Makes every piece wait; order is kept."""
        for way in ways or BOTH:
            self._delay_sec[way] = seconds

    def cut_after(self, passed_bytes: int, way: Way) -> None:
        """Cuts everything, once, when so many more bytes went this way; 0 stops the very next byte."""
        self._cut_at_bytes[way] = self.passed_bytes[way] + passed_bytes

    def heal(self) -> None:
        """Lets everything flow again; what was held arrives, what was swallowed does not."""
        for way in Way:
            self._swallowing[way] = False
            self._delay_sec[way] = 0.0
            self._cut_at_bytes[way] = None
            self._flowing[way].set()

    def cut(self) -> None:
        """Resets every open connection; new ones are welcome."""
        for writers in self._open.values():
            for writer in writers:
                _reset(writer)

    def refuse(self) -> None:
        """Lets no new connection in; open ones live on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def accept(self) -> None:
        """Ends `refuse`, on the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=listening_socket(self.port))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        self._open[task] = [writer]
        try:
            target_reader, target_writer = await asyncio.open_connection(*self._target)
            self._open[task].append(target_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, target_writer, Way.UP))
                group.create_task(self._pass(target_reader, writer, Way.DOWN))
        except* OSError:
            # Either end went away, or nobody listens at the target: the other end shall see it as hard.
            for end in self._open[task]:
                _reset(end)
        except* asyncio.CancelledError:
            # Only closing the proxy does so; asyncio would complain about a handler that was cancelled.
            assert self._server is None
        finally:
            for end in self._open.pop(task):
                end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        while piece := await reader.read(CHUNK_BYTES):
            if self._delay_sec[way]:
                await asyncio.sleep(self._delay_sec[way])
            await self._flowing[way].wait()
            if self._swallowing[way]:
                self.swallowed_bytes[way] += len(piece)
                continue
            limit = self._cut_at_bytes[way]
            if limit is not None and self.passed_bytes[way] + len(piece) > limit:
                await self._pass_last(piece[: limit - self.passed_bytes[way]], writer, way)
                return
            self.passed_bytes[way] += len(piece)
            writer.write(piece)
            await writer.drain()
        await self._flowing[way].wait()
        if not self._swallowing[way] and writer.can_write_eof():
            writer.write_eof()

    async def _pass_last(self, piece: bytes, writer: asyncio.StreamWriter, way: Way) -> None:
        self._cut_at_bytes[way] = None
        self.passed_bytes[way] += len(piece)
        if piece:
            writer.write(piece)
            await writer.drain()
        self.cut()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes at once with RST; what was still buffered is lost."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
