"""Signed links to pictures and clips."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.shapes import UUID_PATTERN, Answer, Asked, MediaKind

LINK_TTL_MAX_SEC = 604_800


class MediaLinkAsked(Asked):
    frame_uuid: Annotated[str, Field(pattern=UUID_PATTERN)]
    kind: MediaKind = "infer"
    ttl_sec: Annotated[int, Field(ge=1, le=LINK_TTL_MAX_SEC)] | None = None  # None: media.link_ttl_sec


class MediaLink(Answer):
    """Whoever has the address can open the picture or clip until then."""

    url: str
    expires_at: int
