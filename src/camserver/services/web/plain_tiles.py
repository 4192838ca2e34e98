"""A camera of a list as everybody is shown it, plain: what `wire.api.Camera` is without what managers see."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from camserver.services.web.labels import plain_cause, plain_issue, shown_fault
from camserver.services.web.written_rows import WrittenRows
from camserver.store.camera_tiles import CameraTile
from camserver.store.cameras import LatestPicture, open_issues
from camserver.store.worker_news import parse_fault


def shown_tiles(
    tiles: Sequence[CameraTile], older: Mapping[int, LatestPicture], default_interval_sec: float
) -> list[dict[str, Any]] | list[orjson.Fragment]:
    """`older` are the newest pictures of those whose newest look has none, by camera_key."""
    if not older:
        return _written(default_interval_sec).of(tiles)
    return [plain_tile(tile, older.get(tile.camera_key), default_interval_sec) for tile in tiles]


@lru_cache(maxsize=1)
def _written(default_interval_sec: float) -> WrittenRows[CameraTile]:
    return WrittenRows(lambda tile: plain_tile(tile, None, default_interval_sec))


def plain_tile(tile: CameraTile, older: LatestPicture | None, default_interval_sec: float) -> dict[str, Any]:
    """`older` is the newest picture where the newest look has none.

    The tile is taken apart at once: by name, each field would be looked for, and walls ask for all tiles.
    """
    (
        _,
        camera_id,
        name,
        enabled,
        created_at,
        site,
        do_not_process,
        _,
        caps,
        last_probe_at,
        state,
        reason,
        frame_uuid,
        captured_at,
        received_at,
        collector_status,
        error_code,
        detected,
        primary_event,
        severity,
        infer_bytes,
        event_uuid,
        event_primary,
        event_severity,
        event_start_at,
        health,
        health_cause,
        health_since,
        issues,
        stream_fault,
        polling_interval_sec,
    ) = tile
    has_picture = infer_bytes is not None
    return {
        "camera_id": camera_id,
        "name": name,
        "site": site,
        "enabled": enabled == 1,
        "state": state or "",
        "state_reason": reason or "",
        "worker_id": None,
        "polling_interval_sec": float(polling_interval_sec or default_interval_sec),
        "source": None,
        "sub": None,
        "own": None,
        "do_not_process": do_not_process == 1,
        "caps": None if caps is None else json.loads(caps),
        "last_probe_at": last_probe_at,
        "created_at": created_at,
        "latest": None
        if frame_uuid is None
        else {
            "frame_uuid": frame_uuid,
            "captured_at": captured_at,
            "received_at": received_at,
            "status": collector_status,
            "error_code": error_code,
            "detected": detected == 1,
            "primary_event": primary_event,
            "severity": severity,
            "has_picture": has_picture,
        },
        "latest_picture": {"frame_uuid": frame_uuid, "captured_at": captured_at} if has_picture else _older(older),
        "open_event": None
        if event_uuid is None
        else {
            "event_uuid": event_uuid,
            "primary_event": event_primary,
            "severity_max": event_severity,
            "start_at": event_start_at,
        },
        "health": {
            "state": health or "unknown",
            "since": health_since,
            "cause": plain_cause(health_cause or ""),
            "issues": _issues(issues),
        },
        "stream_fault": None if stream_fault is None else _fault(stream_fault),
        "unknown_hints": None,
    }


def _older(picture: LatestPicture | None) -> dict[str, Any] | None:
    return None if picture is None else {"frame_uuid": picture.frame_uuid, "captured_at": picture.captured_at}


def _fault(kept: str) -> dict[str, Any] | None:
    shown = shown_fault(parse_fault(kept), manages=False)
    return None if shown is None else shown.model_dump()


def _issues(kept: str | None) -> list[dict[str, Any]]:
    return [
        {**plain_issue(issue.kind), "since": issue.since, "event_uuid": issue.event_uuid}
        for issue in open_issues(kept)
    ]
