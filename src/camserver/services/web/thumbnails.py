"""Small pictures, made on request and kept in memory as long as there is room.

Whoever asks was found to be allowed to see the frame before: the memory knows frames, not people.
"""

from collections import OrderedDict

from camserver.services.web.drawings import Drawings

# About 1,500 of them.
KEPT_MAX_BYTES = 24_000_000


class Thumbnails:
    def __init__(self, drawings: Drawings, kept_max_bytes: int = KEPT_MAX_BYTES) -> None:
        self._drawings = drawings
        self._kept_max_bytes = kept_max_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self.kept_bytes = 0

    def find(self, frame_uuid: str) -> bytes | None:
        found = self._kept.get(frame_uuid)
        if found is not None:
            self._kept.move_to_end(frame_uuid)
        return found

    async def make(self, frame_uuid: str, picture: bytes) -> bytes:
        """Unavailable when too many are made at this moment; BadInput when the picture can't be read."""
        made = await self._drawings.shrink(picture)
        if frame_uuid not in self._kept and len(made) <= self._kept_max_bytes:
            self._kept[frame_uuid] = made
            self.kept_bytes += len(made)
            while self.kept_bytes > self._kept_max_bytes:
                _, dropped = self._kept.popitem(last=False)
                self.kept_bytes -= len(dropped)
        return made
