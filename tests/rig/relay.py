"""A TCP relay as a program: `relay.py LISTEN_HOST LISTEN_PORT TARGET_HOST TARGET_PORT`. Standard library only.

One at each end of a link between network namespaces makes the other end's loopback port its own: what is in between
can be cut, and both ends still speak with an address of their own machine.
"""

import asyncio
import contextlib
import sys

CHUNK_BYTES = 65_536


async def main(host: str, port: int, target_host: str, target_port: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(target_host, target_port)
            ends.append(far_writer)
            tasks = [asyncio.ensure_future(pump(reader, far_writer)), asyncio.ensure_future(pump(far_reader, writer))]
            # Whichever end closes, closes both: nobody here keeps a connection half open.
            _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        except OSError as error:
            print(f"relay: {error}", file=sys.stderr)
        finally:
            for end in ends:
                end.close()

    async with await asyncio.start_server(serve, host, port) as server:
        print("ready", flush=True)
        await server.serve_forever()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(CHUNK_BYTES):
        writer.write(piece)
        await writer.drain()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
