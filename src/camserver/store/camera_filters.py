"""Cameras and sites that a list is narrowed by: one that is not there is named, not answered with an empty list."""

from collections.abc import Sequence

from camserver.base.errors import NotFound
from camserver.store.cameras import missing, reach
from camserver.store.tx import Scoped


async def check_known(tx: Scoped, camera_ids: Sequence[str]) -> None:
    """NotFound when one of them is not within reach."""
    if not camera_ids:
        return
    rows = await tx.all(
        "SELECT camera_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id IN (:camera_ids...) "
        "AND (:all_sites = 1 OR site_id IN (:site_ids...))",
        camera_ids=sorted(set(camera_ids)),
        **reach(tx),
    )
    unknown = sorted(set(camera_ids) - {row["camera_id"] for row in rows})
    if unknown:
        raise missing(unknown[0])


async def keys_of(tx: Scoped, camera_ids: Sequence[str]) -> list[int]:
    """The keys of cameras; NotFound when one of them is not within reach."""
    if not camera_ids:
        return []
    rows = await tx.all(
        f"SELECT c.camera_key, c.camera_id FROM cameras c WHERE c.tenant_id = :tenant_id "
        f"AND c.camera_id IN (:camera_ids...) AND {within_reach('c')}",
        camera_ids=sorted(set(camera_ids)),
        **reach(tx),
    )
    unknown = sorted(set(camera_ids) - {row["camera_id"] for row in rows})
    if unknown:
        raise missing(unknown[0])
    return sorted(row["camera_key"] for row in rows)


async def keys_of_sites(tx: Scoped, sites: Sequence[str]) -> list[int]:
    """The keys of sites by their names; NotFound when one of them is not within reach."""
    if not sites:
        return []
    rows = await tx.all(
        f"SELECT s.site_id, s.name FROM sites s WHERE s.tenant_id = :tenant_id AND s.name IN (:sites...) "
        f"AND {within_reach('s')}",
        sites=sorted(set(sites)),
        **reach(tx),
    )
    unknown = sorted(set(sites) - {row["name"] for row in rows})
    if unknown:
        raise NotFound(
            f"there is no site {unknown[0]}; sites are named as in the list of cameras",
            reason="no_site",
            site=unknown[0],
        )
    return sorted(row["site_id"] for row in rows)


def within_reach(alias: str) -> str:
    """The clause that holds rows with a site to what the principal reaches; its parameters are `reach`."""
    return f"(:all_sites = 1 OR {alias}.site_id IN (:site_ids...))"
