"""Small pictures, made on request and kept in memory as long as there is room.

What many ask for at once is made once: everybody who opens the same page asks for the same ones.
"""

import asyncio
from collections.abc import Awaitable, Callable

from camserver.services.web.drawings import Drawings
from camserver.services.web.kept_bytes import KeptBytes

# About 1,500 of them.
KEPT_MAX_BYTES = 24_000_000


class Thumbnails:
    def __init__(self, drawings: Drawings, kept_max_bytes: int = KEPT_MAX_BYTES) -> None:
        self._drawings = drawings
        self._kept = KeptBytes[str](kept_max_bytes)
        self._under_way: dict[str, asyncio.Task[bytes]] = {}

    @property
    def kept_bytes(self) -> int:
        return self._kept.total

    def find(self, frame_uuid: str) -> bytes | None:
        return self._kept.find(frame_uuid)

    async def make(self, frame_uuid: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """Unavailable when too many are made at this moment; BadInput when the picture can't be read.

        `read` gives the picture, once for all who ask meanwhile.
        """
        task = self._under_way.get(frame_uuid)
        if task is None:
            task = self._under_way[frame_uuid] = asyncio.create_task(self._make(frame_uuid, read))
            task.add_done_callback(lambda made: self._forget(frame_uuid, made))
        # Whoever goes away does not end it for the others.
        return await asyncio.shield(task)

    async def _make(self, frame_uuid: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        made = await self._drawings.shrink(await read())
        self._kept.keep(frame_uuid, made)
        return made

    def _forget(self, frame_uuid: str, made: asyncio.Task[bytes]) -> None:
        del self._under_way[frame_uuid]
        # Taken note of, also when all who asked have gone.
        if not made.cancelled():
            made.exception()
