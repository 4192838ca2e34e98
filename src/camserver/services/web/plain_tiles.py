"""A camera of a list as everybody is shown it, plain: what `wire.api.Camera` is without what managers see."""

import json
from typing import Any

from camserver.services.web.labels import plain_cause, plain_issue
from camserver.store.camera_tiles import CameraTile
from camserver.store.cameras import LatestPicture, open_issues


def plain_tile(tile: CameraTile, older: LatestPicture | None, default_interval_sec: float) -> dict[str, Any]:
    """`older` is the newest picture where the newest look has none."""
    return {
        "camera_id": tile.camera_id,
        "name": tile.name,
        "site": tile.site,
        "enabled": tile.enabled == 1,
        "state": tile.state or "",
        "state_reason": tile.reason or "",
        "worker_id": None,
        "polling_interval_sec": float(tile.polling_interval_sec or default_interval_sec),
        "source": None,
        "sub": None,
        "own": None,
        "do_not_process": tile.do_not_process == 1,
        "caps": None if tile.caps is None else json.loads(tile.caps),
        "last_probe_at": tile.last_probe_at,
        "created_at": tile.created_at,
        "latest": None if tile.frame_uuid is None else _look(tile),
        "latest_picture": _picture(tile, older),
        "open_event": None if tile.event_uuid is None else _open_event(tile),
        "health": _health(tile),
        "stream_fault": None,
    }


def _look(tile: CameraTile) -> dict[str, Any]:
    return {
        "frame_uuid": tile.frame_uuid,
        "captured_at": tile.captured_at,
        "received_at": tile.received_at,
        "status": tile.collector_status,
        "error_code": tile.error_code,
        "detected": tile.detected == 1,
        "primary_event": tile.primary_event,
        "severity": tile.severity,
        "has_picture": tile.infer_bytes is not None,
    }


def _picture(tile: CameraTile, older: LatestPicture | None) -> dict[str, Any] | None:
    if tile.infer_bytes is not None:
        return {"frame_uuid": tile.frame_uuid, "captured_at": tile.captured_at}
    return None if older is None else {"frame_uuid": older.frame_uuid, "captured_at": older.captured_at}


def _open_event(tile: CameraTile) -> dict[str, Any]:
    return {
        "event_uuid": tile.event_uuid,
        "primary_event": tile.event_primary,
        "severity_max": tile.event_severity,
        "start_at": tile.event_start_at,
    }


def _health(tile: CameraTile) -> dict[str, Any]:
    return {
        "state": tile.health or "unknown",
        "since": tile.health_since,
        "cause": plain_cause(tile.health_cause or ""),
        "issues": [
            {**plain_issue(issue.kind), "since": issue.since, "event_uuid": issue.event_uuid}
            for issue in open_issues(tile.issues)
        ],
    }
