"""Small pictures, made on request and kept in memory as long as there is room."""

from camserver.services.web.drawings import Drawings
from camserver.services.web.kept_bytes import KeptBytes

# About 1,500 of them.
KEPT_MAX_BYTES = 24_000_000


class Thumbnails:
    def __init__(self, drawings: Drawings, kept_max_bytes: int = KEPT_MAX_BYTES) -> None:
        self._drawings = drawings
        self._kept = KeptBytes[str](kept_max_bytes)

    @property
    def kept_bytes(self) -> int:
        return self._kept.total

    def find(self, frame_uuid: str) -> bytes | None:
        return self._kept.find(frame_uuid)

    async def make(self, frame_uuid: str, picture: bytes) -> bytes:
        """Unavailable when too many are made at this moment; BadInput when the picture can't be read."""
        made = await self._drawings.shrink(picture)
        self._kept.keep(frame_uuid, made)
        return made
