"""Switches by tenant and site, and the tenant's quota of running cameras. What they do is in `assignment`."""

from dataclasses import dataclass

from camserver.base.errors import Forbidden
from camserver.store import audit, tenants
from camserver.store.assignment import ALL_SITES
from camserver.store.sql import Sql
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class FlagSummary:
    name: str
    site: str | None  # None: all sites of the tenant
    value: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class QuotaSummary:
    cameras_running_max: int | None  # None: any number
    running: int


async def flags(tx: Scoped) -> tuple[FlagSummary, ...]:
    rows = await tx.all(
        """
        SELECT f.name, f.value, f.updated_at, i.name AS site FROM feature_flags f
        LEFT JOIN sites i ON i.site_id = f.site_id
        WHERE f.tenant_id = :tenant_id AND (f.site_id = :everywhere OR IN_SITE_REACH(f))
        ORDER BY f.name, f.site_id""",
        everywhere=ALL_SITES,
    )
    return tuple(FlagSummary(row["name"], row["site"], row["value"], row["updated_at"]) for row in rows)


async def set_flag(
    tx: Scoped, name: str, site: str | None, value: str | None, address: str, now_ms: int
) -> tuple[FlagSummary, ...]:
    """Sets a flag for one site or for all; None clears it."""
    site_id = ALL_SITES
    if site is not None:
        site_id = (await tenants.find_site(tx, site)).site_id
    else:
        _require_all_sites(tx)
    if value is None:
        await tx.run(
            "DELETE FROM feature_flags WHERE tenant_id = :tenant_id AND site_id = :site_id AND name = :name",
            site_id=site_id,
            name=name,
        )
    else:
        await tx.run(_UPSERT, site_id=site_id, name=name, value=value, now_ms=now_ms)
    details = {"value": value or "", "site": site or ""}
    await audit.add_own(tx, audit.Entry("flag_changed", now_ms, address, "flag", name, details))
    return await flags(tx)


async def quota(tx: Scoped) -> QuotaSummary:
    row = await tx.one(
        """
        SELECT t.cameras_running_max, (SELECT count(*) FROM camera_sessions s WHERE s.tenant_id = t.tenant_id
          AND s.worker_key IS NOT NULL AND s.state <> 'ORPHANED') AS running
        FROM tenants t WHERE t.tenant_id = :tenant_id"""
    )
    assert row is not None
    return QuotaSummary(row["cameras_running_max"], row["running"])


async def set_quota(tx: Scoped, most: int | None, address: str, now_ms: int) -> QuotaSummary:
    """Those that run go on running when the quota falls below them."""
    _require_all_sites(tx)
    await tx.run("UPDATE tenants SET cameras_running_max = :most WHERE tenant_id = :tenant_id", most=most)
    details = {"cameras_running_max": "" if most is None else most}
    await audit.add_own(tx, audit.Entry("quota_changed", now_ms, address, "tenant", "", details))
    return await quota(tx)


def _require_all_sites(tx: Scoped) -> None:
    if tx.principal.site_ids is not None:
        raise Forbidden("this concerns all sites and you manage only some; name one of yours", reason="all_sites")


_INSERT = """INSERT INTO feature_flags (tenant_id, site_id, name, value, updated_at)
VALUES (:tenant_id, :site_id, :name, :value, :now_ms)"""
_UPSERT = Sql(
    _INSERT
    + """
ON CONFLICT (tenant_id, site_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at""",
    mariadb=_INSERT + " ON DUPLICATE KEY UPDATE value = VALUES(value), updated_at = VALUES(updated_at)",
)
