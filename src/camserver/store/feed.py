"""The change feed as people see it: public ids instead of keys, changes of sites out of reach left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from camserver.domain.change_kinds import CHANGE_KINDS, ChangeKind, concerns
from camserver.domain.people import Principal
from camserver.store import changes
from camserver.store.cameras import public_camera_id
from camserver.store.changes import ChangeRow
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class Item:
    """One change. `site_id` and `camera_key` say whom it is for and are told to nobody."""

    seq: int
    kind: ChangeKind
    at: int
    site_id: int | None
    site: str | None
    camera_id: str | None
    object: str | None  # uuid of the frame, event, incident or case
    camera_key: int | None = None

    def is_for(self, principal: Principal) -> bool:
        return concerns(self.kind, self.site_id, self.camera_key, principal)


@dataclass(frozen=True, slots=True)
class Page:
    """`last_seq` is the next cursor, also behind changes that were left out."""

    items: tuple[Item, ...]
    last_seq: int
    resync: bool


# How the objects of a kind of change are found by key; the plus keeps SQLite from walking through the whole tenant.
_OBJECTS: Mapping[str, str] = {
    "frame": "SELECT frame_id AS id, frame_uuid AS uuid FROM frames "
    "WHERE +tenant_id = :tenant_id AND frame_id IN (:ids...)",
    "event": "SELECT event_id AS id, event_uuid AS uuid FROM events "
    "WHERE +tenant_id = :tenant_id AND event_id IN (:ids...)",
    "incident": "SELECT incident_id AS id, incident_uuid AS uuid FROM incidents "
    "WHERE +tenant_id = :tenant_id AND incident_id IN (:ids...)",
    "case": "SELECT case_id AS id, case_uuid AS uuid FROM cases "
    "WHERE +tenant_id = :tenant_id AND case_id IN (:ids...)",
}


async def newest(tx: Scoped) -> int:
    """The number of the tenant's newest change."""
    row = await tx.one("SELECT last_seq FROM change_counters WHERE tenant_id = :tenant_id")
    return 0 if row is None else int(row["last_seq"])


async def after(tx: Scoped, seq: int, limit: int) -> Page:
    """Changes behind `seq` that the principal may see, oldest first."""
    found = await changes.after(tx, seq, limit)
    seen = [
        row
        for row in found.changes
        # While an installation is upgraded, a newer process may tell of what this one has no word for.
        if row.kind in CHANGE_KINDS and concerns(row.kind, row.site_id, row.camera_key, tx.principal)
    ]
    return Page(await _described(tx, seen), found.last_seq, found.resync)


async def _described(tx: Scoped, rows: Sequence[ChangeRow]) -> tuple[Item, ...]:
    sites = await _sites(tx, {row.site_id for row in rows if row.site_id is not None})
    cameras = await _camera_ids(tx, {row.camera_key for row in rows if row.camera_key is not None})
    objects: dict[tuple[str, int], str] = {}
    for kind, statement in _OBJECTS.items():
        ids = sorted({row.object_id for row in rows if row.kind == kind and row.object_id is not None})
        if ids:
            objects |= {(kind, found["id"]): found["uuid"] for found in await tx.all(statement, ids=ids)}
    return tuple(
        Item(
            seq=row.seq,
            kind=cast(ChangeKind, row.kind),
            at=row.created_at,
            site_id=row.site_id,
            site=None if row.site_id is None else sites.get(row.site_id),
            camera_key=row.camera_key,
            camera_id=None if row.camera_key is None else cameras.get(row.camera_key),
            object=None if row.object_id is None else objects.get((row.kind, row.object_id)),
        )
        for row in rows
    )


async def _sites(tx: Scoped, site_ids: Iterable[int]) -> dict[int, str]:
    wanted = sorted(site_ids)
    if not wanted:
        return {}
    rows = await tx.all(
        "SELECT site_id, name FROM sites WHERE tenant_id = :tenant_id AND site_id IN (:site_ids...)", site_ids=wanted
    )
    return {row["site_id"]: row["name"] for row in rows}


async def _camera_ids(tx: Scoped, camera_keys: Iterable[int]) -> dict[int, str]:
    wanted = sorted(camera_keys)
    if not wanted:
        return {}
    rows = await tx.all(
        "SELECT camera_key, camera_id FROM cameras WHERE tenant_id = :tenant_id AND camera_key IN (:camera_keys...)",
        camera_keys=wanted,
    )
    return {row["camera_key"]: public_camera_id(row["camera_id"]) for row in rows}
