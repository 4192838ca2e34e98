"""Where a picture lies: the key follows from what its frame's row holds, so rows of frames store no paths.

`epoch/tenant/camera/day/uuid.kind.jpg`, with the epoch first: the sweep lists one dead writer's objects at a time.
"""

import secrets
from enum import StrEnum

DAY_MS = 86_400_000
# In the name of an object that is still being written.
DRAFT_MARK = ".draft-"


class Kind(StrEnum):
    FULL = "full"
    INFER = "infer"


def epoch_prefix(epoch_id: int) -> str:
    return f"e{epoch_id}/"


def frame_key(
    epoch_id: int, tenant_id: int, camera_key: int, captured_at_ms: int, frame_uuid: str, kind: Kind
) -> str:
    day = captured_at_ms // DAY_MS
    return f"{epoch_prefix(epoch_id)}t{tenant_id}/c{camera_key}/d{day}/{frame_uuid}.{kind}.jpg"


def errand_key(epoch_id: int, tenant_id: int, now_ms: int, errand_uuid: str, content_type: str) -> str:
    """Where the answer to an errand lies; a new place each time. Rows of errands and clips store their keys."""
    suffix = {"image/jpeg": "jpg", "video/mp4": "mp4"}[content_type]
    mark = secrets.token_hex(4)
    return f"{epoch_prefix(epoch_id)}t{tenant_id}/errands/d{now_ms // DAY_MS}/{errand_uuid}.{mark}.{suffix}"


def is_draft(key: str) -> bool:
    return DRAFT_MARK in key


def frame_uuid_of(key: str) -> str:
    """The frame a key belongs to."""
    return key.rpartition("/")[2].partition(".")[0]
