import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.rig.cutter import Cutter, Way
from tests.rig.polling import until
from tests.rig.ports import listening_socket, port_of

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that sends back every line and remembers it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.ended = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                self.lines.append(line)
                writer.write(line)
                await writer.drain()
        self.ended.set()
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    served = Echo()
    sock = listening_socket()
    served.port = port_of(sock)
    server = await asyncio.start_server(served.serve, sock=sock)
    yield served
    server.close()


@pytest.fixture
async def net(echo: Echo) -> AsyncIterator[Cutter]:
    async with Cutter(echo.port) as cutter:
        yield cutter


@pytest.fixture
async def client(net: Cutter) -> AsyncIterator[Ends]:
    reader, writer = await asyncio.open_connection("127.0.0.1", net.port)
    yield reader, writer
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def line(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readline(), 60)


async def test_it_passes_bytes_both_ways(net: Cutter, client: Ends) -> None:
    reader, writer = client
    writer.write(b"hello\n")
    assert await line(reader) == b"hello\n"
    assert net.passed_bytes == {Way.UP: 6, Way.DOWN: 6}
    assert net.connections == 1


async def test_a_large_transfer_arrives_whole(net: Cutter, client: Ends) -> None:
    reader, writer = client
    sent = [b"%d" % number * 50 + b"\n" for number in range(5000)]

    async def send() -> None:
        for piece in sent:
            writer.write(piece)
            await writer.drain()

    sending = asyncio.create_task(send())
    for piece in sent:
        assert await line(reader) == piece
    await sending


async def test_an_end_is_passed_on(net: Cutter, echo: Echo, client: Ends) -> None:
    reader, writer = client
    writer.write(b"last\n")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 60) == b"last\n"
    await until(lambda: net.open_connections == 0, "the connection's end")


async def test_held_bytes_arrive_after_healing(net: Cutter, echo: Echo, client: Ends) -> None:
    reader, writer = client
    net.hold(Way.DOWN)
    writer.write(b"held\n")
    await until(lambda: echo.lines == [b"held\n"], "the line at the server")
    assert net.passed_bytes[Way.DOWN] == 0
    net.heal()
    assert await line(reader) == b"held\n"


async def test_swallowed_bytes_are_lost_and_the_connection_lives(net: Cutter, echo: Echo, client: Ends) -> None:
    reader, writer = client
    net.swallow(Way.DOWN)
    writer.write(b"lost\n")
    await until(lambda: echo.lines == [b"lost\n"], "the line at the server")
    writer.write(b"lost too\n")
    await until(lambda: len(echo.lines) == 2, "the second line at the server")
    # The answers are on their way to the proxy; a third one after healing shows that they were thrown away.
    await until(lambda: net.swallowed_bytes[Way.DOWN] == 14, "the swallowed answers")
    net.heal()
    writer.write(b"heard\n")
    assert await line(reader) == b"heard\n"


async def test_a_cut_resets_both_ends_and_lets_new_connections_in(net: Cutter, echo: Echo, client: Ends) -> None:
    reader, writer = client
    writer.write(b"before\n")
    await line(reader)
    net.cut()
    with pytest.raises(ConnectionResetError):
        await line(reader)
    await asyncio.wait_for(echo.ended.wait(), 60)
    again_reader, again_writer = await asyncio.open_connection("127.0.0.1", net.port)
    again_writer.write(b"after\n")
    assert await line(again_reader) == b"after\n"
    again_writer.close()


async def test_it_cuts_in_the_middle_of_an_answer(net: Cutter, echo: Echo, client: Ends) -> None:
    reader, writer = client
    net.cut_after(3, Way.DOWN)
    writer.write(b"hello\n")
    with pytest.raises(ConnectionResetError):
        await line(reader)
    assert echo.lines == [b"hello\n"]
    assert net.passed_bytes[Way.DOWN] == 3


async def test_refusing_keeps_open_connections_and_the_port(net: Cutter, client: Ends) -> None:
    reader, writer = client
    writer.write(b"one\n")
    assert await line(reader) == b"one\n"
    net.refuse()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", net.port)
    writer.write(b"two\n")
    assert await line(reader) == b"two\n"
    await net.accept()
    _, again = await asyncio.open_connection("127.0.0.1", net.port)
    again.close()


async def test_delay_keeps_the_order(net: Cutter, client: Ends) -> None:
    reader, writer = client
    net.delay(0.02)
    for number in range(5):
        writer.write(b"%d\n" % number)
    assert [await line(reader) for _ in range(5)] == [b"%d\n" % number for number in range(5)]


async def test_a_dead_target_looks_like_a_reset() -> None:
    sock = listening_socket()
    port = port_of(sock)
    sock.close()
    async with Cutter(port) as net:
        reader, writer = await asyncio.open_connection("127.0.0.1", net.port)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 60)
        writer.close()
