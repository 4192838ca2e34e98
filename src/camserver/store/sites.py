"""Sites as people see and change them, within the principal's tenant and reach.

A removed site keeps its row and its name, which evidence from there still carries; one that is added under that name
is the same site again.
"""

from dataclasses import dataclass

from uuid_utils import uuid7

from camserver.base.errors import Conflict, NotFound
from camserver.store import audit, tenant_quotas, tenants
from camserver.store.tx import Row, Scoped

SITES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class SiteSummary:
    site_id: int
    site_uuid: str
    name: str
    timezone: str
    cameras: int
    workers: int
    created_at: int


_SUMMARY = """
SELECT s.site_id, s.site_uuid, s.name, s.timezone, s.created_at,
  (SELECT count(*) FROM cameras c WHERE c.site_id = s.site_id AND c.deleted_at IS NULL AND IN_REACH(c)) AS cameras,
  (SELECT count(*) FROM workers w WHERE w.site_id = s.site_id AND IN_SITE_REACH(w)) AS workers
FROM sites s WHERE s.tenant_id = :tenant_id AND s.removed_at IS NULL"""
# Of sites `s`: whoever reaches a camera sees where it is.
SEEN = """(IN_SITE_REACH(s) OR s.site_id IN
  (SELECT c.site_id FROM cameras c WHERE c.camera_key IN (:camera_keys...) AND c.deleted_at IS NULL))"""


async def every(tx: Scoped) -> tuple[SiteSummary, ...]:
    """The sites the principal reaches, wholly or in part, by name."""
    rows = await tx.all(f"{_SUMMARY} AND {SEEN} ORDER BY s.name LIMIT :most", most=SITES_MAX)
    return tuple(_summary(row) for row in rows)


async def get(tx: Scoped, site: str) -> SiteSummary:
    """By uuid or name."""
    row = await tx.one(f"{_SUMMARY} AND {SEEN} AND (s.site_uuid = :wanted OR s.name = :wanted)", wanted=site)
    if row is None:
        raise NotFound(f"there is no site {site!r}; use its name or id", reason="no_site", site=site)
    return _summary(row)


async def add(tx: Scoped, name: str, timezone: str, address: str, now_ms: int) -> SiteSummary:
    tx.principal.require_all_sites()
    await tenants.lock(tx)
    await tenant_quotas.require_room(tx, "sites_max")
    removed = await tx.one(
        "SELECT site_uuid FROM sites WHERE tenant_id = :tenant_id AND name = :name AND removed_at IS NOT NULL",
        name=name,
    )
    if removed is not None:
        await tx.run(
            "UPDATE sites SET removed_at = NULL WHERE site_uuid = :site_uuid AND tenant_id = :tenant_id",
            site_uuid=removed["site_uuid"],
        )
        return await change(tx, removed["site_uuid"], name, timezone, address, now_ms)
    await _refuse_taken(tx, name, 0)
    row = await tx.one("SELECT count(*) AS sites FROM sites WHERE tenant_id = :tenant_id")
    if row is not None and row["sites"] >= SITES_MAX:
        raise Conflict(f"there are {SITES_MAX} sites already; remove some first", reason="sites_full", most=SITES_MAX)
    site_uuid = str(uuid7())
    site_id = await tx.insert(
        "INSERT INTO sites (tenant_id, site_uuid, name, timezone, created_at) "
        "VALUES (:tenant_id, :site_uuid, :name, :timezone, :now_ms) RETURNING site_id",
        site_uuid=site_uuid,
        name=name,
        timezone=timezone,
        now_ms=now_ms,
    )
    await _note(tx, "site_added", site_id, site_uuid, {"name": name, "timezone": timezone}, address, now_ms)
    return await get(tx, site_uuid)


async def change(
    tx: Scoped, site: str, name: str | None, timezone: str | None, address: str, now_ms: int
) -> SiteSummary:
    await tenants.lock(tx)
    found = await _managed(tx, site)
    new_name = found.name if name is None else name
    new_timezone = found.timezone if timezone is None else timezone
    await _refuse_taken(tx, new_name, found.site_id)
    await tx.run(
        "UPDATE sites SET name = :name, timezone = :timezone WHERE site_id = :site_id AND tenant_id = :tenant_id",
        site_id=found.site_id,
        name=new_name,
        timezone=new_timezone,
    )
    details: dict[str, str | int] = {"before": found.name, "name": new_name, "timezone": new_timezone}
    await _note(tx, "site_changed", found.site_id, found.site_uuid, details, address, now_ms)
    return await get(tx, found.site_uuid)


async def remove(tx: Scoped, site: str, address: str, now_ms: int) -> None:
    """Removes a site that has neither cameras nor workers that run. Evidence from there stays as long as it is kept;
    tokens with which workers were to enroll there work no more. Workers that ran there are not listed any more."""
    tx.principal.require_all_sites()
    await tenants.lock(tx)
    found = await _managed(tx, site)
    # A worker that signs in there holds it until it is seen to run (store/workers.py).
    await tx.one(
        "SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND site_id = :site_id FOR UPDATE",
        site_id=found.site_id,
    )
    running = await tx.one(
        "SELECT count(*) AS workers FROM workers WHERE tenant_id = :tenant_id AND site_id = :site_id "
        "AND status NOT IN ('UNHEALTHY', 'STOPPED')",
        site_id=found.site_id,
    )
    workers = 0 if running is None else int(running["workers"])
    if found.cameras or workers:
        raise Conflict(
            f"the site {found.name!r} still has {found.cameras} cameras and {workers} workers that run; move or "
            "remove the cameras and stop the workers first",
            reason="site_in_use",
            site=found.name,
            cameras=found.cameras,
            workers=workers,
        )
    others = await tx.one(
        "SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND removed_at IS NULL AND site_id <> :site_id "
        "LIMIT 1",
        site_id=found.site_id,
    )
    if others is None:
        raise Conflict("this is the only site, and cameras need one; rename it instead", reason="last_site")
    await tx.run(
        "UPDATE sites SET removed_at = :now_ms WHERE site_id = :site_id AND tenant_id = :tenant_id",
        site_id=found.site_id,
        now_ms=now_ms,
    )
    # One that was silent for a while and speaks again is told to connect anew, and then that its site is gone.
    await tx.run(
        "UPDATE workers SET connected_epoch = NULL WHERE tenant_id = :tenant_id AND site_id = :site_id",
        site_id=found.site_id,
    )
    await tx.run("DELETE FROM grants WHERE site_id = :site_id AND tenant_id = :tenant_id", site_id=found.site_id)
    await tx.run(
        "DELETE FROM worker_enrolments WHERE site_id = :site_id AND tenant_id = :tenant_id AND used_at IS NULL",
        site_id=found.site_id,
    )
    await _note(tx, "site_removed", found.site_id, found.site_uuid, {"name": found.name}, address, now_ms)


async def _managed(tx: Scoped, site: str) -> SiteSummary:
    """The site, which the principal must reach as a whole."""
    found = await get(tx, site)
    if not tx.principal.reaches(found.site_id):
        raise NotFound(f"there is no site {site!r} that you manage", reason="no_site", site=site)
    return found


async def _refuse_taken(tx: Scoped, name: str, but_site_id: int) -> None:
    """Also for a name that is another site's id: whatever is asked for by that id would be of either."""
    row = await tx.one(
        "SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND (name = :name OR site_uuid = :name) "
        "AND site_id <> :site_id",
        name=name,
        site_id=but_site_id,
    )
    if row is not None:
        raise Conflict(
            f"there is, or was, a site named {name!r}; choose another name", reason="site_taken", site=name
        )


async def _note(
    tx: Scoped,
    action: str,
    site_id: int,
    site_uuid: str,
    details: dict[str, str | int],
    address: str,
    now_ms: int,
) -> None:
    tx.changed(kind="site", at_ms=now_ms, site_id=site_id)
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "site", site_uuid, details))


def _summary(row: Row) -> SiteSummary:
    return SiteSummary(
        row["site_id"],
        row["site_uuid"],
        row["name"],
        row["timezone"],
        row["cameras"],
        row["workers"],
        row["created_at"],
    )
