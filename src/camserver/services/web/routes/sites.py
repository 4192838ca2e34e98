"""Sites: where cameras and workers are."""

from typing import Annotated

from fastapi import Path

from camserver.base.errors import BadInput
from camserver.domain.names import is_name
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import check_zone
from camserver.services.web.routing import Routes
from camserver.store import sites
from camserver.store.sites import SiteSummary
from camserver.wire import api

routes = Routes()

# A name or an id.
SiteNamed = Annotated[str, Path(min_length=1, max_length=128)]


@routes.get("/api/sites", Permission.READ)
async def list_sites(call: TheCall) -> api.SiteList:
    """Sites within reach, by name. Cameras and workers out of reach are not counted."""
    return api.SiteList(sites=[_shown(one) for one in await call.store.read(sites.every)])


@routes.post("/api/sites", Permission.MANAGE_PEOPLE, repeat=Repeat.ANSWER, status_code=201)
async def add_site(call: TheCall, asked: api.SiteAsked) -> api.Site:
    """Adds a site."""
    check_site(asked.name, asked.timezone)
    added = await call.store.write(sites.add, asked.name.strip(), asked.timezone, call.address, call.now_ms)
    return _shown(added)


@routes.get("/api/sites/{site}", Permission.READ)
async def get_site(call: TheCall, site: SiteNamed) -> api.Site:
    """A site, by name or id."""
    return _shown(await call.store.read(sites.get, site))


@routes.patch("/api/sites/{site}", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def change_site(call: TheCall, site: SiteNamed, asked: api.SiteChange) -> api.Site:
    """Renames a site or sets its time zone."""
    check_site(asked.name, asked.timezone)
    name = None if asked.name is None else asked.name.strip()
    return _shown(await call.store.write(sites.change, site, name, asked.timezone, call.address, call.now_ms))


@routes.delete("/api/sites/{site}", Permission.MANAGE_PEOPLE, status_code=204, repeat=Repeat.ANSWER)
async def remove_site(call: TheCall, site: SiteNamed) -> None:
    """Removes a site without cameras and running workers. Evidence from there stays as long as it is kept."""
    await call.store.write(sites.remove, site, call.address, call.now_ms)


def check_site(name: str | None, timezone: str | None) -> None:
    """BadInput when a site can't have that name or time zone; None is nothing to check."""
    if name is not None and not is_name(name.strip()):
        raise BadInput(
            "a site's name is empty or holds characters that can't be shown; change it", reason="site_name"
        )
    check_zone(timezone)


def _shown(site: SiteSummary) -> api.Site:
    return api.Site(
        site_uuid=site.site_uuid,
        name=site.name,
        timezone=site.timezone,
        cameras=site.cameras,
        workers=site.workers,
        created_at=site.created_at,
    )
