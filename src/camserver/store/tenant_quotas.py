"""What a tenant is bounded in, and how much of it is taken. Whose tenant it is, the caller knows."""

from camserver.domain import tenants as rules
from camserver.domain.tenants import Quota, Use
from camserver.store import tenants
from camserver.store.tx import Scoped, Tx

# By tenant_id, each found by an index.
_USED = {
    Quota.CAMERAS_RUNNING: "SELECT count(*) AS used FROM camera_sessions WHERE tenant_id = :tenant_id "
    "AND worker_key IS NOT NULL AND state <> 'ORPHANED'",
    Quota.CAMERAS: "SELECT count(*) AS used FROM cameras WHERE tenant_id = :tenant_id AND deleted_at IS NULL",
    Quota.PEOPLE: "SELECT count(*) AS used FROM users WHERE tenant_id = :tenant_id",
    Quota.SITES: "SELECT count(*) AS used FROM sites WHERE tenant_id = :tenant_id AND removed_at IS NULL",
    # As retention last counted them.
    Quota.KEPT_BYTES: "SELECT COALESCE(sum(bytes), 0) AS used FROM camera_usage WHERE tenant_id = :tenant_id",
}
COLUMNS = ", ".join(Quota)


async def require_room(tx: Scoped, name: str) -> None:
    """Conflict when one more of the principal's tenant would be beyond its quota. Racing callers go one by one."""
    quota = Quota(name)
    bound = f"SELECT {quota} AS most FROM tenants WHERE tenant_id = :tenant_id"
    row = await tx.one(bound)
    if row is None or row["most"] is None:
        return
    await tenants.lock(tx)
    row, used = await tx.one(bound), await tx.one(_USED[quota])
    assert row is not None
    assert used is not None
    rules.require_room(quota, Use(int(used["used"]), row["most"]))


async def uses(tx: Tx, tenant_id: int) -> dict[Quota, Use]:
    bounds = await tx.one(f"SELECT {COLUMNS} FROM tenants WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    assert bounds is not None
    found = {}
    for quota, sql in _USED.items():
        row = await tx.one(sql, tenant_id=tenant_id)
        assert row is not None
        found[quota] = Use(int(row["used"]), bounds[quota.value])
    return found


async def own_kept_bytes(tx: Scoped) -> int | None:
    """The principal's quota of kept bytes, if there is one."""
    row = await tx.one("SELECT kept_bytes_max FROM tenants WHERE tenant_id = :tenant_id")
    return None if row is None else row["kept_bytes_max"]


async def kept_bytes(tx: Tx) -> dict[int, int]:
    """Quotas of kept bytes, of the tenants that have one."""
    rows = await tx.all("SELECT tenant_id, kept_bytes_max FROM tenants WHERE kept_bytes_max IS NOT NULL")
    return {row["tenant_id"]: row["kept_bytes_max"] for row in rows}
