"""Cameras that a list is narrowed by: one that is not there is named, not answered with an empty list."""

from collections.abc import Sequence

from camserver.store.cameras import missing
from camserver.store.tx import Scoped


async def check_known(tx: Scoped, camera_ids: Sequence[str]) -> None:
    """NotFound when one of them is not within reach."""
    if not camera_ids:
        return
    rows = await tx.all(
        "SELECT camera_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id IN (:camera_ids...) AND IN_REACH()",
        camera_ids=sorted(set(camera_ids)),
    )
    unknown = sorted(set(camera_ids) - {row["camera_id"] for row in rows})
    if unknown:
        raise missing(unknown[0])
