"""What a picture's object is called: the key follows from what its frame's row holds, so rows store no paths.

`epoch/tenant/camera/day/uuid.kind.jpg`, with the epoch first: the sweep lists one dead writer's objects at a time.
"""

from enum import StrEnum

DAY_MS = 86_400_000


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
