"""Cameras and sites that a list is narrowed by: one that is not there is named, not answered with an empty list."""

from collections.abc import Sequence

from camserver.base.errors import NotFound
from camserver.store.cameras import missing
from camserver.store.sites import SEEN
from camserver.store.tx import Scoped


async def check_known(tx: Scoped, camera_ids: Sequence[str]) -> None:
    """NotFound when one of them is not within reach."""
    if not camera_ids:
        return
    rows = await tx.all(
        "SELECT camera_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id IN (:camera_ids...) AND IN_REACH()",
        camera_ids=sorted(set(camera_ids)),
    )
    unknown = sorted(set(camera_ids) - {row["camera_id"] for row in rows})
    if unknown:
        raise missing(unknown[0])


async def keys_of(tx: Scoped, camera_ids: Sequence[str]) -> list[int]:
    """The keys of cameras; NotFound when one of them is not within reach."""
    if not camera_ids:
        return []
    rows = await tx.all(
        "SELECT c.camera_key, c.camera_id FROM cameras c WHERE c.tenant_id = :tenant_id "
        "AND c.camera_id IN (:camera_ids...) AND IN_REACH(c)",
        camera_ids=sorted(set(camera_ids)),
    )
    unknown = sorted(set(camera_ids) - {row["camera_id"] for row in rows})
    if unknown:
        raise missing(unknown[0])
    return sorted(row["camera_key"] for row in rows)


async def keys_of_sites(tx: Scoped, sites: Sequence[str]) -> list[int]:
    """The keys of sites by their names; NotFound when one of them is reached neither as a whole nor in part. What is
    narrowed by them must ask for reach itself."""
    if not sites:
        return []
    rows = await tx.all(
        f"SELECT s.site_id, s.name FROM sites s WHERE s.tenant_id = :tenant_id AND s.name IN (:sites...) AND {SEEN}",
        sites=sorted(set(sites)),
    )
    unknown = sorted(set(sites) - {row["name"] for row in rows})
    if unknown:
        raise NotFound(
            f"there is no site {unknown[0]}; sites are named as in the list of cameras",
            reason="no_site",
            site=unknown[0],
        )
    return sorted(row["site_id"] for row in rows)
