"""The product's streamer, for many viewings that nobody had to admit.

    {"viewings": {"<lease id>": "cam_000"}}

is the first line on standard input. Prints its port and ends with its standard input.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import uvloop

from bench._live_keys import KEYS, STREAMER, TENANT
from camserver.base import log as logs
from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.domain.live_links import FEED_PATH
from camserver.services.streamer.service import serve
from camserver.services.streamer.syncing import Me
from camserver.wire.live import LiveViewing, Sync, Synced


class Desk:
    """Every viewing is valid."""

    def __init__(self, viewings: dict[str, str], clock: StoreClock) -> None:
        self._clock = clock
        self._viewings = {
            lease_id: LiveViewing(
                lease_id=lease_id,
                tenant_id=TENANT,
                camera_id=camera_id,
                quality="main",
                transcode=False,
                kind="prewarm",
                expires_at=clock.now_ms() + 3_600_000,
                feed="idle",
                generation=1,
                is_held=True,
            )
            for lease_id, camera_id in viewings.items()
        }

    async def sync(self, sync: Sync) -> Synced:
        for one in sync.watched:
            self._viewings[one.lease_id] = self._viewings[one.lease_id].model_copy(update={"feed": one.feed})
        return Synced(server_time=self._clock.now_ms(), viewings=tuple(self._viewings.values()))


async def main(asked: dict[str, Any]) -> None:
    clock, ready = StoreClock(), Ready()
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as sock:
        port = sock.getsockname()[1]
        me = Me(STREAMER, "", port, f"ws://127.0.0.1:{port}{FEED_PATH}", 50)
        desk = Desk(asked["viewings"], clock)
        print(port, flush=True)
        serving = asyncio.ensure_future(serve(me, KEYS, desk, clock, ready, sock))
        await asyncio.to_thread(sys.stdin.read)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


if __name__ == "__main__":
    logs.configure("live", "json", "error")
    uvloop.run(main(json.loads(sys.stdin.readline())))
