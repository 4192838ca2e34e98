"""Cameras as walls and lists show them to everybody: what `cameras` has, without what only managers are shown.

Pages ask for it all the time, so rows go out as they come.
"""

from collections.abc import Sequence
from typing import NamedTuple

from camserver.store.camera_narrowing import EVERY, CameraFilter
from camserver.store.cameras import FROM, IN_REACH, PAGE_MAX, SHOWN, LatestPicture, investigates, older_pictures
from camserver.store.tx import Scoped, shown_again


@shown_again
class CameraTile(NamedTuple):
    """The columns of `cameras.SHOWN`, then the camera's own interval."""

    camera_key: int
    camera_id: str
    name: str
    enabled: int
    created_at: int
    site: str
    do_not_process: int
    network_zone: str
    caps: str | None
    last_probe_at: int | None
    state: str | None
    reason: str | None
    frame_uuid: str | None
    captured_at: int | None
    received_at: int | None
    collector_status: str | None
    error_code: str | None
    detected: int | None
    primary_event: str | None
    severity: int | None
    infer_bytes: int | None
    event_uuid: str | None
    event_primary: str | None
    event_severity: int | None
    event_start_at: int | None
    health: str | None
    health_cause: str | None
    health_since: int | None
    issues: str | None
    stream_fault: str | None
    polling_interval_sec: float | None


_TILES = f"SELECT {SHOWN}, o.polling_interval_sec {FROM} WHERE {IN_REACH}"


async def page(
    tx: Scoped, after: str, limit: int, wanted: CameraFilter = EVERY
) -> tuple[Sequence[CameraTile], dict[int, LatestPicture]]:
    """Cameras in the order of their ids, from behind `after`; and the newest pictures of those whose newest look has
    none."""
    conditions, values = await wanted.narrowing(tx)
    tiles = await tx.flat(
        CameraTile,
        f"{_TILES}{conditions} AND c.camera_id > :after ORDER BY c.camera_id LIMIT :limit",
        after=after,
        limit=min(limit, PAGE_MAX),
        investigates=investigates(tx),
        **values,
    )
    without = [tile.camera_key for tile in tiles if tile.frame_uuid is not None and tile.infer_bytes is None]
    return tiles, await older_pictures(tx, without)
