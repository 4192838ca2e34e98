"""Which tenants somebody asked to erase, by the home tenant's audit log.

That a tenant is marked, or gone, is no proof of it: whoever can write to the database can mark one, and dispatchers
do the rest in good faith.
"""

import json
from collections.abc import Collection

from camserver.store import tenants
from camserver.store.tx import Tx

ASKED = "tenant_erasure_asked"
# Newest entries that are looked at; more tenants are not erased in the time that such an entry is kept.
LOOKED_BACK = 10_000


async def asked(tx: Tx, tenant_ids: Collection[int], only_sealed: bool = False) -> set[int]:
    """Those of these numbers; `only_sealed`: whose entry can't be taken away again without a seal telling."""
    rows = await tx.all(
        "SELECT details FROM audit_log WHERE tenant_id = :home_id AND action = :action "
        f"{'AND batch_no IS NOT NULL ' if only_sealed else ''}ORDER BY at DESC, entry_id DESC LIMIT {LOOKED_BACK}",
        home_id=await tenants.home(tx),
        action=ASKED,
    )
    return {_number_in(row["details"]) for row in rows} & set(tenant_ids)


def _number_in(details: str | None) -> int:
    """0, which no tenant has, where there is none."""
    try:
        number = json.loads(details or "{}").get("tenant_id")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return 0
    return number if isinstance(number, int) else 0
