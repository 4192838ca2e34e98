"""Signed links to pictures and clips: whether one may be given out."""

from camserver.store import archive_links, clips, frame_pages
from camserver.store.tx import Scoped

CLIP = "clip"


async def check(tx: Scoped, frame_uuid: str, kind: str, archive_file_id: str | None) -> None:
    """NotFound or Forbidden when there is no such picture of the frame, clip of its event or copy at an archive, or
    none that may be given out. Whoever opens the link is held to the same again."""
    if archive_file_id is not None:
        await archive_links.linkable(tx, frame_uuid, archive_file_id)
    elif kind == CLIP:
        await clips.linkable(tx, frame_uuid)
    else:
        await frame_pages.linkable_picture(tx, frame_uuid, kind)
