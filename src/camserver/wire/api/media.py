"""Signed links to pictures and clips."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.shapes import UUID_PATTERN, Answer, Asked, MediaKind

LINK_TTL_MAX_SEC = 604_800


class MediaLinkAsked(Asked):
    frame_uuid: Annotated[str, Field(pattern=UUID_PATTERN)]
    kind: MediaKind = "infer"
    # A copy at an archive, see GET /api/frames/{frame_uuid}/copies; then `kind` says nothing.
    archive_file_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+/-]{1,255}$")] | None = None
    ttl_sec: Annotated[int, Field(ge=1, le=LINK_TTL_MAX_SEC)] | None = None  # None: media.link_ttl_sec


class ArchivedCopy(Answer):
    """A copy of a frame, or of the clip of the event whose best frame it is, at an archive."""

    archive_file_id: str  # the archive's own name of it
    receiver_uuid: str | None  # null: the receiver was removed
    receiver_name: str | None
    path: str
    bytes: int
    sha256: str
    in_case: bool  # no link opens it
    archived_at: int
    expires_at: int | None  # null while a case keeps it


class ArchivedCopies(Answer):
    copies: list[ArchivedCopy]


class MediaLink(Answer):
    """Whoever has the address can open the picture or clip until then."""

    url: str
    expires_at: int
