"""Pictures with their boxes drawn on them, and small ones: in threads of their own, few at a time.

A large picture takes some tens of milliseconds and up to 120 MB while it is drawn on, so what waits is bounded too.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from camserver.base.errors import Unavailable
from camserver.domain.analysis import Box
from camserver.media.box_picture import draw_boxes
from camserver.media.thumbnails import listed

THREADS = 2
# Waiting and running together; each holds its encoded picture meanwhile.
WAITING_MAX = 32


class Drawings:
    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="drawings")
        self._waiting_max = waiting_max
        self._under_way = 0

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def draw(self, jpeg: bytes, boxes: Sequence[Box], *, with_words: bool) -> bytes:
        """Unavailable when too many are drawn at this moment."""
        return await self._run(lambda: draw_boxes(jpeg, boxes, with_words=with_words))

    async def shrink(self, picture: bytes) -> bytes:
        """A small picture of it; Unavailable as above."""
        return await self._run(lambda: listed(picture))

    async def _run(self, work: Callable[[], bytes]) -> bytes:
        if self._under_way >= self._waiting_max:
            raise Unavailable(
                "too many pictures are drawn at this moment; try again in a few seconds",
                reason="drawing_busy",
                retry_after_sec=2,
            )
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1
