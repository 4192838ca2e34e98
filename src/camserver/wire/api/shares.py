"""Shares: addresses that open an event or a frame without signing in."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api.shapes import UUID_PATTERN, Answer, Asked

SHARE_TTL_MAX_SEC = 366 * 86_400
ShareKind = Literal["event", "frame"]


class ShareAsked(Asked):
    """`note` says what it is for, to those who list shares; whoever opens it does not see it."""

    kind: ShareKind
    uuid: Annotated[str, Field(pattern=UUID_PATTERN)]
    ttl_sec: Annotated[int, Field(ge=60, le=SHARE_TTL_MAX_SEC)] | None = None  # null: until it is revoked
    note: Annotated[str, Field(max_length=500)] = ""


class Share(Answer):
    share_uuid: str
    kind: ShareKind
    uuid: str
    camera_id: str
    camera_name: str
    site: str
    by: str  # login, or `local admin`
    note: str
    created_at: int
    expires_at: int | None
    opened_count: int
    last_opened_at: int | None


class ShareAdded(Answer):
    """`url` is in this answer and nowhere else: only a hash of it is kept."""

    share: Share
    url: str


class SharePage(Answer):
    """Newest first. `next_before` asks for what comes after; null: that was all."""

    shares: list[Share]
    next_before: str | None
