"""The change feed."""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from camserver.domain.change_kinds import ChangeKind
from camserver.wire.api.shapes import Answer


class Change(Answer):
    """That something changed, never its content. `object` is the uuid of a frame, an event, an incident
    or a case."""

    seq: int
    kind: ChangeKind
    at: int
    site: str | None
    camera_id: str | None
    object: str | None


class ChangePage(Answer):
    """`resync`: the cursor is older than what is kept. Read everything anew and go on from `last_seq`."""

    changes: list[Change]
    last_seq: int
    resync: bool


class FeedChanges(Answer):
    """Changes on the feed's socket. `live` is false for those that happened before it was opened."""

    type: Literal["changes"] = "changes"
    changes: list[Change]
    last_seq: int
    live: bool


class FeedResync(Answer):
    """Changes were missed for good: read everything anew. The feed goes on behind `last_seq`."""

    type: Literal["resync"] = "resync"
    last_seq: int


class FeedSystem(Answer):
    """What `GET /api/system/status` answers is another one in something that people should see."""

    type: Literal["system"] = "system"
    last_seq: int


class FeedPing(Answer):
    """The connection lives. Nothing is expected in return."""

    type: Literal["ping"] = "ping"
    last_seq: int


class FeedMessage(
    RootModel[Annotated[FeedChanges | FeedResync | FeedSystem | FeedPing, Field(discriminator="type")]]
):
    """What the server sends on the feed's socket; clients send nothing."""
