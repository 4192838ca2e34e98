"""Tenants and their sites. A tenant never exists without its change counter."""

from dataclasses import dataclass

from uuid_utils import uuid7

from camserver.base.errors import NotFound
from camserver.store.sql import Sql
from camserver.store.tx import Scoped, Tx

# How the tenant that an installation begins with, its home, is called at first. It is never switched off or erased.
HOME_NAME = "default"
DEFAULT_SITE = "main"


# For statements that nobody's tenant holds, such as those of signed links: what is switched off shows nothing.
NOT_DISABLED = "NOT IN (SELECT n.tenant_id FROM tenants n WHERE n.disabled = 1)"


@dataclass(frozen=True, slots=True)
class Site:
    site_id: int
    site_uuid: str
    name: str


def _insert_if_absent(text: str) -> Sql:
    return Sql(text.format("INSERT") + " ON CONFLICT DO NOTHING", mariadb=text.format("INSERT IGNORE"))


_INSERT_TENANT = _insert_if_absent(
    "{} INTO tenants (tenant_uuid, name, home_slot, created_at) VALUES (:tenant_uuid, :name, :home_slot, :now_ms)"
)
_INSERT_COUNTER = _insert_if_absent("{} INTO change_counters (tenant_id, last_seq) VALUES (:tenant_id, 0)")
_INSERT_SITE = _insert_if_absent(
    "{} INTO sites (tenant_id, site_uuid, name, created_at) VALUES (:tenant_id, :site_uuid, :name, :now_ms)"
)


async def ensure(tx: Tx, name: str, now_ms: int) -> int:
    """The tenant of that name with its change counter; made when there is none, by several callers at once too."""
    tenant_id = await find(tx, name)
    if tenant_id is None:
        await tx.run(_INSERT_TENANT, tenant_uuid=str(uuid7()), name=name, home_slot=None, now_ms=now_ms)
        tenant_id = await find(tx, name)
        assert tenant_id is not None
    await _ensure_counter(tx, tenant_id)
    return tenant_id


async def ensure_home(tx: Tx, now_ms: int) -> int:
    """The tenant that the installation begins with, whatever it is called by now; made when there is none."""
    tenant_id = await home(tx)
    if tenant_id is None:
        await tx.run(_INSERT_TENANT, tenant_uuid=str(uuid7()), name=HOME_NAME, home_slot=1, now_ms=now_ms)
        tenant_id = await home(tx)
        assert tenant_id is not None
    await _ensure_counter(tx, tenant_id)
    return tenant_id


async def home(tx: Tx) -> int | None:
    row = await tx.one("SELECT tenant_id FROM tenants WHERE home_slot = 1")
    return None if row is None else int(row["tenant_id"])


async def _ensure_counter(tx: Tx, tenant_id: int) -> None:
    if await tx.one("SELECT last_seq FROM change_counters WHERE tenant_id = :tenant_id", tenant_id=tenant_id) is None:
        await tx.run(_INSERT_COUNTER, tenant_id=tenant_id)


async def find(tx: Tx, name: str) -> int | None:
    row = await tx.one("SELECT tenant_id FROM tenants WHERE name = :name", name=name)
    return None if row is None else int(row["tenant_id"])


async def ensure_site(tx: Tx, tenant_id: int, name: str, now_ms: int) -> int:
    """The tenant's site of that name; made when there is none."""
    find_site = "SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND name = :name"
    row = await tx.one(find_site, tenant_id=tenant_id, name=name)
    if row is None:
        await tx.run(_INSERT_SITE, tenant_id=tenant_id, site_uuid=str(uuid7()), name=name, now_ms=now_ms)
        row = await tx.one(find_site, tenant_id=tenant_id, name=name)
        assert row is not None
    return int(row["site_id"])


async def is_home(tx: Scoped) -> bool:
    """Whether the principal's tenant is the one that the installation began with."""
    row = await tx.one("SELECT home_slot FROM tenants WHERE tenant_id = :tenant_id")
    return row is not None and row["home_slot"] == 1


async def lock(tx: Scoped) -> None:
    """Lets one transaction at a time past that changes what the tenant is made of, until it ends."""
    await tx.one("SELECT tenant_id FROM tenants WHERE tenant_id = :tenant_id FOR UPDATE")


async def first_site(tx: Tx, tenant_id: int, now_ms: int) -> int:
    """The tenant's oldest site, whatever it is called by now; made when there is none."""
    row = await tx.one(
        "SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND removed_at IS NULL ORDER BY site_id LIMIT 1",
        tenant_id=tenant_id,
    )
    return await ensure_site(tx, tenant_id, DEFAULT_SITE, now_ms) if row is None else int(row["site_id"])


async def find_site(tx: Scoped, name_or_uuid: str | None) -> Site:
    """A site within the principal's reach; None: the oldest of them."""
    if name_or_uuid is None:
        first = await tx.one(
            "SELECT site_id, site_uuid, name FROM sites WHERE tenant_id = :tenant_id AND removed_at IS NULL "
            "AND IN_SITE_REACH() ORDER BY site_id LIMIT 1"
        )
        if first is None:
            raise NotFound("there is no site that you reach; name one, or add one first", reason="no_site", site="")
        return Site(first["site_id"], first["site_uuid"], first["name"])
    row = await tx.one(
        "SELECT site_id, site_uuid, name FROM sites "
        "WHERE tenant_id = :tenant_id AND removed_at IS NULL AND (name = :wanted OR site_uuid = :wanted)",
        wanted=name_or_uuid,
    )
    if row is None or not tx.principal.reaches(row["site_id"]):
        raise NotFound(f"there is no site {name_or_uuid!r}; use its name or id", reason="no_site", site=name_or_uuid)
    return Site(row["site_id"], row["site_uuid"], row["name"])
