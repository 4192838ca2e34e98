"""Looks of a house of cameras as they come in, as rows: importable, for the store's writer."""

from dataclasses import dataclass

import uuid_utils

from camserver.store import Tx

# What the house was filled with, by its columns of time.
_TIMES = {
    "frames": ("captured_at", "worker_at", "received_at"),
    "events": ("start_at", "last_seen_at", "end_at"),
    "incidents": ("start_at", "last_seen_at"),
    "event_tags": ("start_at",),
    "hourly_stats": ("hour_at",),
}


@dataclass(frozen=True, slots=True)
class Place:
    camera_key: int
    site_id: int
    epoch_id: int


async def bring_to(tx: Tx, by_ms: int) -> None:
    """Moves everything back in time by so much: the house is filled as of a moment that is fixed."""
    for table, columns in _TIMES.items():
        moved = ", ".join(f"{column} = {column} - :by_ms" for column in columns)
        await tx.run(f"UPDATE {table} SET {moved}", by_ms=by_ms)


async def places_of(tx: Tx, tenant_id: int) -> tuple[Place, ...]:
    """Cameras in the order of the wall."""
    rows = await tx.all(
        "SELECT c.camera_key, c.site_id, MAX(f.epoch_id) AS epoch_id FROM cameras c "
        "JOIN frames f ON f.camera_key = c.camera_key WHERE c.tenant_id = :tenant_id "
        "GROUP BY c.camera_key, c.site_id, c.camera_id ORDER BY c.camera_id",
        tenant_id=tenant_id,
    )
    return tuple(Place(row["camera_key"], row["site_id"], row["epoch_id"]) for row in rows)


async def best_pictures(tx: Tx, tenant_id: int, count: int) -> tuple[tuple[str, int, int, int], ...]:
    """Of the newest events: the frame's name, its time, epoch and camera."""
    rows = await tx.all(
        "SELECT f.frame_uuid, f.captured_at, f.epoch_id, f.camera_key FROM events e "
        "JOIN frames f ON f.frame_id = e.best_frame_id WHERE e.tenant_id = :tenant_id "
        "ORDER BY e.start_at DESC LIMIT :count",
        tenant_id=tenant_id,
        count=count,
    )
    return tuple((row["frame_uuid"], row["captured_at"], row["epoch_id"], row["camera_key"]) for row in rows)


async def look(tx: Tx, tenant_id: int, places: tuple[Place, ...], seq: int, now_ms: int) -> list[str]:
    """A look of each of these cameras, with a picture; the names of the frames."""
    made: list[str] = []
    for place in places:
        uuid = str(uuid_utils.uuid7())
        made.append(uuid)
        await tx.run(
            "INSERT INTO frames (frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, "
            "worker_at, received_at, collector_status, verdict, diff_ratio, luma_delta, blur_score, analyzed, "
            "detected, primary_event, severity, full_w, full_h, infer_w, infer_h, infer_hash64_hex, epoch_id, "
            "infer_bytes) VALUES (:uuid, :tenant_id, :site_id, :camera_key, 2, :seq, :now_ms, :now_ms, :now_ms, "
            "'ok', 'skip', 0.01, 0.5, 12.5, 0, 0, 'none', 0, 1920, 1080, 640, 360, '0123456789abcdef', :epoch_id, "
            "24000)",
            uuid=uuid,
            tenant_id=tenant_id,
            site_id=place.site_id,
            camera_key=place.camera_key,
            seq=seq,
            now_ms=now_ms,
            epoch_id=place.epoch_id,
        )
        tx.changed(
            tenant_id=tenant_id, kind="frame", at_ms=now_ms, site_id=place.site_id, camera_key=place.camera_key
        )
    return made
