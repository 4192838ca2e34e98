"""A picture of now: the newest cached keyframe as a JPEG, made in a thread."""

import asyncio
from concurrent.futures import Executor

from camserver.base.errors import Unavailable
from camserver.media.packets import Packet, Stream
from camserver.services.streamer.stream import LiveStream
from camserver.wire.live import FeedStream


class Snapshots:
    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    async def of(self, stream: LiveStream) -> bytes:
        """Unavailable when there is none; BadInput when it can't be decoded."""
        if stream.keyframe is None:
            raise Unavailable("there is no picture yet; try again")
        about, data, boot_ms = stream.keyframe
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _jpeg, about, data, boot_ms)


def _jpeg(about: FeedStream, data: bytes, boot_ms: int) -> bytes:
    # Only here: most streamers never decode anything.
    from camserver.media.video_picture import decode

    stream = Stream(about.codec, about.extradata, about.time_base)
    return decode((Packet(stream, None, None, True, data, boot_ms),)).full()
