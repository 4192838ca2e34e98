"""Signed links to pictures and clips that are given out: whether they may be, and that they were, at once."""

from camserver.store import archive_links, audit, clips, frame_pages
from camserver.store.tx import Scoped

CLIP = "clip"


async def give(tx: Scoped, frame_uuid: str, kind: str, archive_file_id: str | None, entry: audit.Entry) -> None:
    """Notes a link to a picture of a frame, the clip of its event or a copy at an archive; NotFound or Forbidden when
    there is none, or none may be given out."""
    if archive_file_id is not None:
        await archive_links.linkable(tx, frame_uuid, archive_file_id)
    elif kind == CLIP:
        await clips.linkable(tx, frame_uuid)
    else:
        await frame_pages.linkable_picture(tx, frame_uuid, kind)
    await audit.add_own(tx, entry)
