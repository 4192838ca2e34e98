"""Tenants: added, bounded, switched off, erased. For system administrators, who are of the home tenant only."""

import json
import secrets
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Path, Query, Response
from starlette.responses import StreamingResponse

from camserver.base.errors import BadInput, NotFound
from camserver.domain import tenants as rules
from camserver.domain.people import PASSWORD_LINK_TTL_MS, Permission, login_of
from camserver.domain.tenants import Quota, short_of
from camserver.objects.keys import check_key
from camserver.services.web.access import token_hash
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.looks import note_export
from camserver.services.web.once import Repeat
from camserver.services.web.routes.sites import check_site
from camserver.services.web.routing import Routes
from camserver.services.web.zip_stream import CHUNK_BYTES
from camserver.store import erasure, tenant_desk, tenant_export
from camserver.store.tenant_desk import NewAdmin, NewTenant, TenantChange, TenantSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 100
_NO_STORE = {"Cache-Control": "no-store"}
# A name or an id.
TenantNamed = Annotated[str, Path(min_length=1, max_length=128)]


@routes.get("/api/tenants", Permission.MANAGE_SYSTEM)
async def list_tenants(
    call: TheCall,
    after: Annotated[str, Query(max_length=128, description="The name that the page before ended with.")] = "",
    limit: Annotated[int, Query(ge=1, le=tenant_desk.PAGE_MAX)] = PAGE_USUAL,
) -> api.TenantPage:
    """Tenants by name, with their quotas and what they use of them."""
    found = await call.web.store.read(tenant_desk.page, call.principal, after, limit)
    return api.TenantPage(
        tenants=[_shown(one) for one in found], next_after=found[-1].name if len(found) == limit else None
    )


@routes.post("/api/tenants", Permission.MANAGE_SYSTEM, repeat=Repeat.SECRET, status_code=201)
async def add_tenant(call: TheCall, asked: api.TenantAsked) -> api.TenantAdded:
    """Adds a tenant with a site and an administrator, who chooses a password with the link in the answer."""
    login = login_of(asked.admin)
    check_site(asked.site, asked.timezone)
    token = secrets.token_urlsafe(32)
    new = NewTenant(
        name=rules.name_of(asked.name),
        site=asked.site.strip(),
        timezone=asked.timezone,
        admin=NewAdmin(login, asked.admin_name.strip() or login, asked.language or call.language, token_hash(token)),
        quotas=_quotas(asked.quotas),
    )
    added = await call.store.write_beyond(tenant_desk.add, new, call.address, call.now_ms)
    return api.TenantAdded(tenant=_shown(added), password_link=_link(call, token))


@routes.post("/api/tenants/{tenant}/admin-link", Permission.MANAGE_SYSTEM, repeat=Repeat.SECRET, status_code=201)
async def make_admin_link(call: TheCall, tenant: TenantNamed, asked: api.TenantAdminAsked) -> api.TenantAdminLink:
    """A one-time link with which an administrator of the tenant chooses a password; links before it stop working.

    For when everybody who looks after a tenant has lost the way in. Whom nobody knows is made an administrator.
    """
    login = login_of(asked.login)
    token = secrets.token_urlsafe(32)
    admin = NewAdmin(login, login, asked.language or call.language, token_hash(token))
    is_made = await call.store.write_beyond(tenant_desk.link_admin, tenant, admin, call.address, call.now_ms)
    return api.TenantAdminLink(login=login, made=is_made, password_link=_link(call, token))


def _link(call: Call, token: str) -> api.PasswordLink:
    url = f"{call.web.public_url}/password#token={token}"
    return api.PasswordLink(url=url, expires_at=call.now_ms + PASSWORD_LINK_TTL_MS)


@routes.get("/api/tenants/{tenant}", Permission.MANAGE_SYSTEM)
async def get_tenant(call: TheCall, tenant: TenantNamed) -> api.Tenant:
    """A tenant, by name or id."""
    return _shown(await call.web.store.read(tenant_desk.get, call.principal, tenant))


@routes.patch("/api/tenants/{tenant}", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def change_tenant(call: TheCall, tenant: TenantNamed, asked: api.TenantChange) -> api.Tenant:
    """Renames a tenant, sets its quotas, or switches it off or on. It holds from its people's next request on."""
    wanted = TenantChange(
        name=None if asked.name is None else rules.name_of(asked.name),
        disabled=asked.disabled,
        quotas=_quotas(asked.quotas),
    )
    changed = await call.store.write_beyond(tenant_desk.change, tenant, wanted, call.address, call.now_ms)
    return _shown(changed)


@routes.delete("/api/tenants/{tenant}", Permission.MANAGE_SYSTEM, status_code=202, repeat=Repeat.ANSWER)
async def erase_tenant(call: TheCall, tenant: TenantNamed, asked: api.TenantErased) -> api.Tenant:
    """Erases a tenant with everything it has; it can't be undone.

    From now on nobody of it signs in. A dispatcher deletes it bit by bit; when it is gone, the audit log says so.
    """
    copies = await call.web.store.read(erasure.copies_elsewhere, call.principal, tenant)
    wanted = erasure.Wanted(tenant, asked.confirm, asked.also_held, copies)
    return _shown(await call.store.write_beyond(erasure.begin, wanted, call.address, call.now_ms))


@routes.post("/api/tenants/{tenant}/export", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def begin_tenant_export(call: TheCall, tenant: TenantNamed) -> api.ExportPlan:
    """What there is to export of a tenant. `camserver tenant export` fetches it and makes a file of it."""
    # Apart from the note: counting takes its time, and other writers would wait for it.
    plan = await call.web.store.read(tenant_export.plan, call.principal, tenant)
    await note_export(call, plan.tenant_uuid)
    return api.ExportPlan(tenant_uuid=plan.tenant_uuid, name=plan.name, tables=dict(plan.rows))


@routes.get("/api/tenants/{tenant}/export/tables/{table}", Permission.MANAGE_SYSTEM)
async def export_tenant_rows(
    call: TheCall,
    tenant: TenantNamed,
    table: Annotated[str, Path(pattern=r"^[a-z_]{1,64}$")],
    after: Annotated[str | None, Query(max_length=500)] = None,
) -> api.ExportPage:
    """A page of a table: its rows without secrets, and which objects they name."""
    place = None if after is None else _place(after)
    await note_export(call, tenant)
    found = await call.web.store.read(tenant_export.page, call.principal, tenant, table, place)
    return api.ExportPage(
        rows=list(found.rows),
        objects=[api.ExportedObject(key=one.key, bytes=one.bytes) for one in found.objects],
        next_after=None if found.end is None else json.dumps(found.end, ensure_ascii=False),
    )


@routes.get(
    "/api/tenants/{tenant}/export/object",
    Permission.MANAGE_SYSTEM,
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def export_tenant_object(
    call: TheCall, tenant: TenantNamed, key: Annotated[str, Query(min_length=1, max_length=255)]
) -> Response:
    """A picture or clip, by the key that a page named."""
    tenant_id = await call.web.store.read(tenant_export.tenant_id_of, call.principal, tenant)
    check_key(key)
    size = await call.web.objects.size_bytes(key) if f"/t{tenant_id}/" in key else None
    if size is None:
        raise NotFound("there is no such object of the tenant", reason="no_object")
    await note_export(call, tenant)
    return StreamingResponse(_chunks(call, key, size), media_type="application/octet-stream", headers=_NO_STORE)


async def _chunks(call: Call, key: str, size: int) -> AsyncIterator[bytes]:
    begin = 0
    while begin < size:
        part = await call.web.objects.get_range(key, begin, CHUNK_BYTES)
        if not part:
            raise NotFound("the object ended early", reason="no_object")
        begin += len(part)
        yield part


def _place(after: str) -> list[int | str]:
    try:
        parts = json.loads(after)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, (int, str)) for part in parts):
        raise BadInput("`after` is not what a page gave", reason="bad_cursor")
    return parts


def _quotas(asked: api.QuotasAsked) -> dict[Quota, int | None]:
    """Those that were named, null too."""
    return {Quota(name): getattr(asked, name) for name in asked.model_fields_set}


def _shown(tenant: TenantSummary) -> api.Tenant:
    short = short_of(tenant.uses)
    return api.Tenant(
        tenant_uuid=tenant.tenant_uuid,
        name=tenant.name,
        is_home=tenant.is_home,
        disabled=tenant.is_disabled,
        erasing_at=tenant.erasing_at,
        erased_rows=tenant.erased_rows,
        erased_objects=tenant.erased_objects,
        created_at=tenant.created_at,
        quotas=[
            api.QuotaUse(quota=quota.value, used=use.used, most=use.most, is_short=quota in short)
            for quota, use in tenant.uses.items()
        ],
    )
