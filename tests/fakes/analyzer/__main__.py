"""python -m tests.fakes.analyzer --state-file FILE [--port N] [--admin-port N]

Prints its two addresses as one line of JSON and serves until SIGTERM.
"""

import argparse
import asyncio
import json
import signal
from pathlib import Path

from tests.fakes.analyzer.server import FakeAnalyzer


async def serve(state_file: Path, port: int, admin_port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with FakeAnalyzer(state_file, port=port, admin_port=admin_port) as analyzer:
        print(json.dumps({"url": analyzer.url, "admin_url": analyzer.admin_url}), flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake analyzer that conforms until told otherwise.")
    parser.add_argument("--state-file", type=Path, required=True, help="where the vocabulary is kept")
    parser.add_argument("--port", type=int, default=0, help="the contract's port (default: any free one)")
    parser.add_argument("--admin-port", type=int, default=0, help="the steering port (default: any free one)")
    options = parser.parse_args()
    asyncio.run(serve(options.state_file, options.port, options.admin_port))


if __name__ == "__main__":
    main()
