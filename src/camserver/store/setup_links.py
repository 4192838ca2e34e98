"""One-time links that make the first admin. Only hashes of their tokens are kept."""

from enum import StrEnum

from camserver.domain.people import SETUP_LINK_TTL_MS, Principal, setup_link_works
from camserver.store import audit, users
from camserver.store.first_start import lock_home
from camserver.store.tx import Scoped, Tx

# Every start makes one while there is no admin; the oldest go when a program restarts over and over.
LINKS_MAX = 20


class Standing(StrEnum):
    WORKS = "works"
    UNKNOWN = "unknown"
    USED = "used"
    EXPIRED = "expired"
    ADMIN_EXISTS = "admin_exists"


async def add(
    tx: Tx, token_hash: str, now_ms: int, *, alone: bool = False, by: Principal | None = None, address: str = ""
) -> bool:
    """Adds a link; False when there is an admin already, so that no link can make a second one.

    `alone`: the links before it stop working. Servers that start beside each other leave them to each other.
    `by`: who asked for it; None when a server starts.
    """
    await lock_home(tx)
    if await users.admin_exists(tx):
        return False
    rows = await tx.all("SELECT link_id, expires_at FROM setup_links ORDER BY link_id DESC LIMIT 1000")
    keep = [row["link_id"] for row in rows if row["expires_at"] > now_ms][: 0 if alone else LINKS_MAX - 1]
    await tx.run("DELETE FROM setup_links WHERE link_id NOT IN (:keep...)", keep=keep or [0])
    await tx.run(
        "INSERT INTO setup_links (token_hash, created_at, expires_at) VALUES (:token_hash, :now_ms, :expires_at)",
        token_hash=token_hash,
        now_ms=now_ms,
        expires_at=now_ms + SETUP_LINK_TTL_MS,
    )
    if by is not None:
        await audit.add_own(Scoped(tx, by), audit.Entry("setup_link_made", now_ms, address))
    return True


async def standing(tx: Tx, token_hash: str, now_ms: int) -> Standing:
    """Whether a link works now."""
    # The link first: whoever uses it makes the admin with it, so a used one is never seen without its admin.
    row = await tx.one(
        "SELECT created_at, used_at FROM setup_links WHERE token_hash = :token_hash", token_hash=token_hash
    )
    if await users.admin_exists(tx):
        return Standing.ADMIN_EXISTS
    if row is None:
        return Standing.UNKNOWN
    if setup_link_works(row["created_at"], row["used_at"], now_ms):
        return Standing.WORKS
    return Standing.EXPIRED if row["used_at"] is None else Standing.USED


async def use(tx: Tx, token_hash: str, admin: users.NewUser, address: str, now_ms: int) -> Standing:
    """Makes the admin and uses the link up, together. Of any number of racing calls one gets WORKS."""
    tenant_id = await lock_home(tx)
    found = await standing(tx, token_hash, now_ms)
    if found is not Standing.WORKS:
        return found
    await tx.run(
        "UPDATE setup_links SET used_at = :now_ms WHERE token_hash = :token_hash",
        now_ms=now_ms,
        token_hash=token_hash,
    )
    await users.add_admin(tx, tenant_id, admin, address, now_ms)
    return Standing.WORKS
