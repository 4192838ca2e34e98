"""Everything the checker looks at: rows of the database and files of the objects folder, as they are at the end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from camserver.store.core import Store
from camserver.store.tx import Tx

Row = Mapping[str, Any]

QUERIES = {
    "cameras": "SELECT camera_key, camera_id FROM cameras",
    "frames": """
        SELECT frame_id, frame_uuid, tenant_id, camera_key, generation, seq, captured_at, received_at, late, verdict,
          analyzed, event_id, tags_json, epoch_id, infer_bytes, full_bytes FROM frames""",
    "tags": "SELECT frame_id, count(*) AS tags FROM frame_tags GROUP BY frame_id",
    "gaps": "SELECT camera_key, generation, first_seq, last_seq FROM frame_gaps",
    "leases": "SELECT camera_key, generation, worker_key, granted_at, ended_at, last_seq FROM camera_leases",
    "jobs": "SELECT job_id, frame_id, camera_key, status, attempt, last_error FROM inference_jobs",
    "events": """
        SELECT event_id, event_uuid, camera_key, incident_id, state, start_at, last_seen_at, best_frame_id,
          frame_count, subject FROM events""",
    "incidents": "SELECT incident_id, camera_key, event_count FROM incidents",
    "states": "SELECT camera_key, open_event_id FROM camera_state",
    "deliveries": "SELECT delivery_id, kind, frame_id, site_id, request FROM deliveries WHERE parent_id IS NULL",
    "changes": "SELECT seq, kind, created_at FROM changes",
    "counters": "SELECT last_seq FROM change_counters",
    "epochs": "SELECT epoch_id, swept_at FROM epochs",
}


@dataclass(slots=True)
class Records:
    """Rows by table, and the size in bytes of every object by its key."""

    cameras: list[Row] = field(default_factory=list)
    frames: list[Row] = field(default_factory=list)
    tags: list[Row] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)
    leases: list[Row] = field(default_factory=list)
    jobs: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    incidents: list[Row] = field(default_factory=list)
    states: list[Row] = field(default_factory=list)
    deliveries: list[Row] = field(default_factory=list)
    changes: list[Row] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    epochs: list[Row] = field(default_factory=list)
    objects: dict[str, int] = field(default_factory=dict)


def _sizes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


async def _all(tx: Tx, sql: str) -> list[dict[str, Any]]:
    return [dict(cast(Mapping[str, Any], row)) for row in await tx.all(sql)]


async def fetch(store: Store, objects: Path) -> Records:
    """Reads the whole of it; the store must be at rest."""
    tables = {name: await store.read(_all, sql) for name, sql in QUERIES.items()}
    files = await asyncio.to_thread(_sizes, objects)
    return Records(**tables, objects=files)  # type: ignore[arg-type]  # the names of QUERIES are those of the fields


def longest_gaps(records: Records) -> dict[str, int]:
    """The longest time in ms between two looks that showed something, by camera."""
    found = {}
    for camera in records.cameras:
        times_ms = sorted(
            row["captured_at"]
            for row in records.frames
            if row["camera_key"] == camera["camera_key"] and row["infer_bytes"] is not None
        )
        if times_ms:
            found[camera["camera_id"]] = max((b - a for a, b in pairwise(times_ms)), default=0)
    return found
