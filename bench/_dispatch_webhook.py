"""A webhook that does nothing but answer 204: `asked` is {"port"}. Prints a line when it listens, and ends when its
standard input does. Told a line, it answers with how many requests it took.
"""

import asyncio
import json
import sys

ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n"


class Hook(asyncio.Protocol):
    taken = 0

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _length(self._buffer[:end])
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            Hook.taken += 1
            assert self._transport is not None
            self._transport.write(ANSWER)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def main() -> None:
    asked = json.loads(await asyncio.to_thread(sys.stdin.readline))
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", asked["port"])
    print("listening", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(Hook.taken, flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
