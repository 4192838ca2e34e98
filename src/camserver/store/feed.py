"""The change feed as a principal may see it: public ids instead of keys, other sites' changes left out."""

from dataclasses import dataclass

from camserver.store import changes
from camserver.store.cameras import public_camera_id
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class Item:
    seq: int
    kind: str
    at: int
    camera_id: str | None
    event_uuid: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """`last_seq` is the next cursor, also behind changes that were left out."""

    items: tuple[Item, ...]
    last_seq: int
    resync: bool


async def after(tx: Scoped, seq: int, limit: int) -> Page:
    found = await changes.after(tx, seq, limit)
    seen = [row for row in found.changes if row.site_id is None or tx.principal.reaches(row.site_id)]
    camera_ids = await _camera_ids(tx, {row.camera_key for row in seen if row.camera_key is not None})
    event_uuids = await _event_uuids(
        tx, {row.object_id for row in seen if row.kind == "event" and row.object_id is not None}
    )
    items = tuple(
        Item(
            seq=row.seq,
            kind=row.kind,
            at=row.created_at,
            camera_id=None if row.camera_key is None else camera_ids.get(row.camera_key),
            event_uuid=event_uuids.get(row.object_id) if row.kind == "event" and row.object_id else None,
        )
        for row in seen
    )
    return Page(items, found.last_seq, found.resync)


async def _camera_ids(tx: Scoped, camera_keys: set[int]) -> dict[int, str]:
    rows = await tx.all(
        "SELECT camera_key, camera_id FROM cameras WHERE tenant_id = :tenant_id AND camera_key IN (:camera_keys...)",
        camera_keys=sorted(camera_keys),
    )
    return {row["camera_key"]: public_camera_id(row["camera_id"]) for row in rows}


async def _event_uuids(tx: Scoped, event_ids: set[int]) -> dict[int, str]:
    rows = await tx.all(
        "SELECT event_id, event_uuid FROM events WHERE tenant_id = :tenant_id AND event_id IN (:event_ids...)",
        event_ids=sorted(event_ids),
    )
    return {row["event_id"]: row["event_uuid"] for row in rows}
