"""How a tenant's cameras stand right now, for those who follow them from outside (MQTT). It only reads."""

import json
from dataclasses import dataclass
from typing import Final

from camserver.base.errors import NotFound
from camserver.domain.links import may_be_linked
from camserver.domain.mqtt_topics import LastEvent, Picture, Standing
from camserver.store import changes
from camserver.store.tx import Row, Scoped

PAGE: Final = 200
# What health can be, with why nothing is known of it.
_UNKNOWN_CAUSES: Final = ("unattended", "off")


@dataclass(frozen=True, slots=True)
class Changed:
    """Whose standing may be another one since a change. `camera_keys` None: too much has happened, read all."""

    last_seq: int
    camera_keys: frozenset[int] | None


_STANDINGS = """
SELECT c.camera_key, c.camera_id, c.name, s.name AS site, h.health, h.health_cause, h.issues,
  o.primary_event AS open_event, o.severity_max AS open_severity,
  l.event_uuid, l.primary_event, l.severity_max, l.start_at, l.last_seen_at, l.state,
  f.captured_at AS looked_at, b.epoch_id, b.infer_bytes, b.captured_at, b.frame_uuid, b.retention_class
FROM cameras c
JOIN sites s ON s.site_id = c.site_id
LEFT JOIN camera_state h ON h.camera_key = c.camera_key
LEFT JOIN events o ON o.open_key = c.camera_key
LEFT JOIN events l ON l.event_id = (
  SELECT n.event_id FROM events n WHERE n.camera_key = c.camera_key ORDER BY n.start_at DESC, n.event_id DESC LIMIT 1)
LEFT JOIN events p ON p.event_id = (
  SELECT n.event_id FROM events n WHERE n.camera_key = c.camera_key AND n.subject = ''
  ORDER BY n.start_at DESC, n.event_id DESC LIMIT 1)
LEFT JOIN frames b ON b.frame_id = p.best_frame_id
LEFT JOIN frames f ON f.frame_id = (
  SELECT n.frame_id FROM frames n WHERE n.camera_key = c.camera_key ORDER BY n.captured_at DESC LIMIT 1)
WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NULL"""


async def tenant_uuid(tx: Scoped) -> str:
    row = await tx.one("SELECT tenant_uuid FROM tenants WHERE tenant_id = :tenant_id")
    if row is None:
        raise NotFound("the tenant is gone", reason="no_tenant")
    return str(row["tenant_uuid"])


async def page(tx: Scoped, after_key: int) -> tuple[Standing, ...]:
    """All cameras by their keys, PAGE of them behind `after_key`."""
    rows = await tx.all(
        f"{_STANDINGS} AND c.camera_key > :after_key ORDER BY c.camera_key LIMIT {PAGE}", after_key=after_key
    )
    return tuple(_standing(row) for row in rows)


async def some(tx: Scoped, camera_keys: tuple[int, ...]) -> tuple[Standing, ...]:
    """Those of the cameras that there are."""
    rows = await tx.all(
        f"{_STANDINGS} AND c.camera_key IN (:camera_keys...) ORDER BY c.camera_key", camera_keys=list(camera_keys)
    )
    return tuple(_standing(row) for row in rows)


async def changed(tx: Scoped, seq: int) -> Changed:
    """What the change feed names behind `seq`."""
    found = await changes.after(tx, seq)
    keys = None if found.resync else frozenset(row.camera_key for row in found.changes if row.camera_key is not None)
    return Changed(found.last_seq, keys)


def _standing(row: Row) -> Standing:
    health, cause = row["health"] or "unknown", row["health_cause"] or ""
    return Standing(
        camera_key=row["camera_key"],
        camera_id=row["camera_id"],
        name=row["name"],
        site=row["site"],
        health=cause if health == "unknown" and cause in _UNKNOWN_CAUSES else health,
        cause=cause,
        issues=tuple(issue["kind"] for issue in json.loads(row["issues"])) if row["issues"] else (),
        last_look_at=row["looked_at"],
        open_event=row["open_event"],
        open_severity=row["open_severity"] or 0,
        last_event=None if row["event_uuid"] is None else _last_event(row),
        picture=_picture(row),
    )


def _last_event(row: Row) -> LastEvent:
    return LastEvent(
        event_uuid=row["event_uuid"],
        primary_event=row["primary_event"],
        severity=row["severity_max"],
        start_at=row["start_at"],
        last_seen_at=row["last_seen_at"],
        open=row["state"] == "open",
    )


def _picture(row: Row) -> Picture | None:
    """Pictures of cases leave the server for nobody, as with links."""
    if row["epoch_id"] is None or row["infer_bytes"] is None or not may_be_linked(row["retention_class"]):
        return None
    return Picture(row["epoch_id"], row["captured_at"], row["frame_uuid"])
