"""What a database needs before anything runs on it: a tenant, a site, a vocabulary. Safe to run at every start.

Several processes may start at once: rows are inserted if absent, and the tenant's row is the lock under which a
vocabulary is activated.
"""

from dataclasses import dataclass

from camserver.base.errors import Bug
from camserver.store import tenants, vocabularies
from camserver.store.core import Store
from camserver.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Home:
    """The tenant and site that an installation starts with."""

    tenant_id: int
    site_id: int


async def prepare(tx: Tx, shipped: vocabularies.Document, schema_version: str | None, now_ms: int) -> Home:
    """Makes what is missing and activates the wanted vocabulary; BadSettings when there is no such version.

    None wants none in particular: what people chose stays; where nothing is active yet, the shipped one becomes so.
    """
    tenant_id = await tenants.ensure_home(tx, now_ms)
    await lock_home(tx)
    site_id = await tenants.first_site(tx, tenant_id, now_ms)
    await vocabularies.add(tx, shipped, now_ms)
    if schema_version is not None or not await vocabularies.is_any_active(tx):
        await vocabularies.activate(tx, schema_version or shipped.version, now_ms)
    return Home(tenant_id, site_id)


async def lock_home(tx: Tx) -> int:
    """Lets one transaction at a time past, on every database, until it ends. Answers the home tenant."""
    row = await tx.one("SELECT tenant_id FROM tenants WHERE home_slot = 1 FOR UPDATE")
    if row is None:
        raise Bug("the home tenant is missing; first_start.prepare has not run on this database")
    return int(row["tenant_id"])


async def prepare_store(store: Store, schema_version: str | None, now_ms: int) -> Home:
    """`prepare` with the vocabulary that comes with the program."""
    return await store.write(prepare, vocabularies.shipped(), schema_version, now_ms)
