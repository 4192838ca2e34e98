"""A picture of now: the newest keyframe as a JPEG.

The camera's worker makes it, which has all that decodes video at hand for its looks; here that would have to be
loaded first, and take half as much memory again. Only where the worker does not answer soon it is made here, in a
thread.
"""

import asyncio
from concurrent.futures import Executor

from camserver.base.errors import Unavailable
from camserver.base.log import get_logger
from camserver.media.packets import Packet, Stream
from camserver.services.streamer.stream import Feed, LiveStream
from camserver.wire.live import FeedStream

log = get_logger(__name__)

# A worker beside takes a twentieth of it; one far away may have a line that is full of pictures.
WORKER_SEC = 1.0
_JPEG = b"\xff\xd8"


class Snapshots:
    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    async def of(self, stream: LiveStream) -> bytes:
        """Unavailable when there is none; BadInput when it can't be decoded."""
        if stream.keyframe is None:
            raise Unavailable("there is no picture yet; try again")
        if stream.feed is not None and (jpeg := await self._by_worker(stream.feed)):
            return jpeg
        about, data, boot_ms = stream.keyframe
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _jpeg, about, data, boot_ms)

    async def _by_worker(self, feed: Feed) -> bytes:
        """Empty when it makes none, or not in time."""
        try:
            async with asyncio.timeout(WORKER_SEC):
                # Others may wait for the same one.
                jpeg = await asyncio.shield(feed.picture())
        except TimeoutError:
            log.info("a worker makes no picture in time; it is made here")
            return b""
        return jpeg if jpeg.startswith(_JPEG) else b""


def _jpeg(about: FeedStream, data: bytes, boot_ms: int) -> bytes:
    # Only here: most streamers never decode anything.
    from camserver.media.video_picture import decode

    stream = Stream(about.codec, about.extradata, about.time_base)
    return decode((Packet(stream, None, None, True, data, boot_ms),)).full()
