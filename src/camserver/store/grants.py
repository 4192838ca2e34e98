"""What somebody reaches: all sites of the tenant, or those sites and cameras that were granted."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from camserver.base.errors import BadInput
from camserver.domain.people import GRANTED_ROLES, Principal
from camserver.store import tenants
from camserver.store.cameras import find_key
from camserver.store.tx import Row, Scoped, Tx

GRANTS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Granted:
    """By the names that people use."""

    sites: tuple[str, ...] = ()
    camera_ids: tuple[str, ...] = ()


async def narrowed(tx: Tx, principals: Sequence[Principal], granted_only: Set[int]) -> tuple[Principal, ...]:
    """The principals with their present reach; `granted_only` holds the users who reach only what was granted.

    Whose role reaches everything is held to nothing, but may have been before groups at a provider gave it to them.
    """
    held = granted_only & {one.user_id for one in principals if one.role in GRANTED_ROLES}
    if not held:
        return tuple(principals)
    rows = await tx.all(
        "SELECT user_id, site_id, camera_key FROM grants WHERE user_id IN (:user_ids...)",
        user_ids=sorted(held),
    )
    return tuple(_with_reach(one, rows) if one.user_id in held else one for one in principals)


def _with_reach(principal: Principal, rows: Sequence[Row]) -> Principal:
    own = [row for row in rows if row["user_id"] == principal.user_id]
    return replace(
        principal,
        site_ids=frozenset(row["site_id"] for row in own if row["site_id"] is not None),
        camera_keys=frozenset(row["camera_key"] for row in own if row["camera_key"] is not None),
    )


async def put(tx: Scoped, user_id: int, granted: Granted) -> None:
    """Replaces what the user was granted. Each site and camera must be one that the principal reaches."""
    if len(granted.sites) + len(granted.camera_ids) > GRANTS_MAX:
        raise BadInput(
            f"at most {GRANTS_MAX} sites and cameras can be granted one by one; grant whole sites",
            reason="grants_full",
            most=GRANTS_MAX,
        )
    sites = {(await tenants.find_site(tx, one)).site_id for one in granted.sites}
    cameras = {await find_key(tx, one) for one in granted.camera_ids}
    await tx.run("DELETE FROM grants WHERE user_id = :user_id AND tenant_id = :tenant_id", user_id=user_id)
    rows = [{"user_id": user_id, "site_id": one, "camera_key": None} for one in sorted(sites)]
    rows += [{"user_id": user_id, "site_id": None, "camera_key": one} for one in sorted(cameras)]
    if rows:
        await tx.many(
            "INSERT INTO grants (tenant_id, user_id, site_id, camera_key) "
            "VALUES (:tenant_id, :user_id, :site_id, :camera_key)",
            rows,
        )


async def of_users(tx: Scoped, user_ids: Sequence[int]) -> dict[int, Granted]:
    """What was granted, by names; removed cameras and sites are left out."""
    if not user_ids:
        return {}
    rows = await tx.all(
        """
        SELECT g.user_id, s.name AS site, c.camera_id FROM grants g
        LEFT JOIN sites s ON s.site_id = g.site_id AND s.removed_at IS NULL
        LEFT JOIN cameras c ON c.camera_key = g.camera_key AND c.deleted_at IS NULL
        WHERE g.tenant_id = :tenant_id AND g.user_id IN (:user_ids...) ORDER BY s.name, c.camera_id""",
        user_ids=list(user_ids),
    )
    return {
        user_id: Granted(
            tuple(row["site"] for row in rows if row["user_id"] == user_id and row["site"] is not None),
            tuple(row["camera_id"] for row in rows if row["user_id"] == user_id and row["camera_id"] is not None),
        )
        for user_id in user_ids
    }
