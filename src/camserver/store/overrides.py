"""A camera's own values: where one is not set, the configured default holds. The row is `camera_overrides`.

Polygons, zones and hints are JSON text, as they are stored; what is good in them is checked where they come in.
"""

import json
from collections.abc import Mapping
from dataclasses import fields

from camserver.base.records import record
from camserver.store import audit
from camserver.store.tx import Row, Scoped


@record
class Overrides:
    """None = the configured one."""

    polling_interval_sec: float | None = None
    connect_timeout_sec: float | None = None
    infer_width: int | None = None
    diff_width: int | None = None
    force_infer_every_n: int | None = None
    detect_every_n_frames: int | None = None
    job_priority: int | None = None
    transport: str | None = None
    tls_pin: str | None = None
    rotation: int | None = None
    ignore_masks: str | None = None  # JSON
    privacy_masks: str | None = None  # JSON
    zones: str | None = None  # JSON
    mask_clock: int | None = None  # 0 or 1
    device: str | None = None
    streams_max: int | None = None
    clip_sec: float | None = None
    hints: str | None = None  # JSON: what the analyzer is told
    suggest_weight: int | None = None  # 0..10: how readily it is suggested for watching
    live_sound: int | None = None  # 0 or 1: whether those who watch live may hear


NAMES = tuple(field.name for field in fields(Overrides))
# For a SELECT whose `camera_overrides` goes by the name of `o`.
COLUMNS = ", ".join(f"o.{name}" for name in NAMES)


def from_row(row: Row) -> Overrides:
    return Overrides(**{name: row[name] for name in NAMES})


async def insert(tx: Scoped, camera_key: int, values: Overrides, now_ms: int) -> None:
    names, places = ", ".join(NAMES), ", ".join(f":{name}" for name in NAMES)
    await tx.run(
        f"INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, {names}) "
        f"VALUES (:camera_key, :tenant_id, :now_ms, {places})",
        camera_key=camera_key,
        now_ms=now_ms,
        **{name: getattr(values, name) for name in NAMES},
    )


async def change(tx: Scoped, camera_key: int, values: Mapping[str, object], now_ms: int) -> None:
    """Sets what is named, and only that."""
    if not values:
        return
    if unknown := values.keys() - set(NAMES):
        raise KeyError(f"a camera has no values named {sorted(unknown)}")
    changes = ", ".join(f"{name} = :{name}" for name in values)
    matched = await tx.run(
        f"UPDATE camera_overrides SET {changes}, updated_at = :now_ms "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
        now_ms=now_ms,
        **values,
    )
    if not matched:
        await insert(tx, camera_key, Overrides(), now_ms)
        await change(tx, camera_key, values, now_ms)


def told(name: str, value: object) -> str | int:
    """For the log; nothing: the configured one. Of zones it has the names, of masks how many they are."""
    match name:
        case "zones":
            return audit.listed(zone["name"] for zone in json.loads(str(value or "[]")))
        case "ignore_masks" | "privacy_masks":
            return len(json.loads(str(value or "[]")))
    return value if isinstance(value, int) else "" if value is None else str(value)[: audit.NAMES_MAX_CHARS]
