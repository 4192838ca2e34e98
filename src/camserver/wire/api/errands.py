"""Short tasks for a worker."""

from typing import Literal

from pydantic import JsonValue

from camserver.wire.api.shapes import Answer

ERRAND_WAIT_MAX_SEC = 25


class Errand(Answer):
    """A short task for a worker. Ask for it again, with wait_sec, until `state` is neither waiting nor sent."""

    errand_uuid: str
    kind: Literal["probe", "discover", "look", "explain", "clip"]
    camera_id: str | None
    state: Literal["waiting", "sent", "done", "failed", "expired"]
    message: str  # what is wrong, or what was found
    result: dict[str, JsonValue] | None
    has_picture: bool  # at /api/errands/{errand_uuid}/picture
    created_at: int
    expires_at: int
    done_at: int | None
