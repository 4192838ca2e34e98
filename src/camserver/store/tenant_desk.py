"""Tenants as the people of the home tenant see and change them.

These operations go beyond their principal's tenant, so each takes the principal and asks first whether it belongs to
the home tenant. Erasing is in `erasure`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from uuid_utils import uuid7

from camserver.base.errors import Conflict, NotFound
from camserver.domain import tenants as rules
from camserver.domain.people import PASSWORD_LINK_TTL_MS, Principal, Role
from camserver.domain.tenants import Quota, Use
from camserver.store import audit, first_start, tenant_quotas, tenants, users
from camserver.store.tx import Row, Scoped, Tx

TENANTS_MAX = 10_000
PAGE_MAX = 200


@dataclass(frozen=True, slots=True)
class NewAdmin:
    """A tenant's administrator, who chooses a password with the link of this hash."""

    login: str
    display_name: str
    language: str
    link_hash: str


@dataclass(frozen=True, slots=True)
class NewTenant:
    name: str
    site: str
    timezone: str
    admin: NewAdmin
    quotas: Mapping[Quota, int | None]


@dataclass(frozen=True, slots=True)
class TenantChange:
    """What is None stays; of `quotas` those that are not named."""

    name: str | None
    disabled: bool | None
    quotas: Mapping[Quota, int | None]


@dataclass(frozen=True, slots=True)
class TenantSummary:
    tenant_id: int
    tenant_uuid: str
    name: str
    is_home: bool
    is_disabled: bool
    erasing_at: int | None
    erased_rows: int
    erased_objects: int
    created_at: int
    uses: Mapping[Quota, Use]


_SUMMARY = """
SELECT tenant_id, tenant_uuid, name, home_slot, disabled, erasing_at, erased_rows, erased_objects, created_at
FROM tenants"""


async def page(tx: Tx, principal: Principal, after: str, limit: int) -> tuple[TenantSummary, ...]:
    """By name, from behind `after`. Uses are counted for each, so a page is short."""
    await require_home(tx, principal)
    rows = await tx.all(
        f"{_SUMMARY} WHERE name > :after ORDER BY name LIMIT :limit", after=after, limit=min(limit, PAGE_MAX)
    )
    return tuple([await _summary(tx, row) for row in rows])


async def get(tx: Tx, principal: Principal, tenant: str) -> TenantSummary:
    """By name or uuid."""
    await require_home(tx, principal)
    row = await tx.one(f"{_SUMMARY} WHERE name = :wanted OR tenant_uuid = :wanted", wanted=tenant)
    if row is None:
        raise NotFound(f"there is no tenant {tenant!r}; use its name or id", reason="no_tenant", tenant=tenant)
    return await _summary(tx, row)


async def add(tx: Tx, principal: Principal, new: NewTenant, address: str, now_ms: int) -> TenantSummary:
    """A tenant with its change counter, its first site, and its first administrator, who has yet to choose a
    password."""
    home_id = await require_home(tx, principal, lock=True)
    await _refuse_taken(tx, new.name)
    row = await tx.one("SELECT count(*) AS tenants FROM tenants")
    if row is not None and row["tenants"] >= TENANTS_MAX:
        raise Conflict(f"there are {TENANTS_MAX} tenants already", reason="tenants_full", most=TENANTS_MAX)
    await users.refuse_taken(tx, new.admin.login)
    tenant_id = await tenants.ensure(tx, new.name, now_ms)
    site_id = await tenants.ensure_site(tx, tenant_id, new.site, now_ms)
    await tx.run("UPDATE sites SET timezone = :zone WHERE site_id = :site_id", zone=new.timezone, site_id=site_id)
    await _set_quotas(tx, tenant_id, new.quotas)
    await _add_admin(tx, tenant_id, new.admin, now_ms)
    details = {"admin": new.admin.login, **_told(new.quotas)}
    entry = audit.Entry("tenant_added", now_ms, address, "tenant", new.name, details)
    await audit.add_own(_home_scope(tx, principal, home_id), entry)
    return await get(tx, principal, new.name)


async def link_admin(tx: Tx, principal: Principal, tenant: str, admin: NewAdmin, address: str, now_ms: int) -> bool:
    """A new password link for an administrator of the tenant; links before it stop working. Whether the administrator
    had to be made. Both tenants' logs have it."""
    home_id = await require_home(tx, principal, lock=True)
    found = await get(tx, principal, tenant)
    if found.erasing_at is not None:
        raise being_erased(found.name)
    if found.is_disabled:
        raise Conflict(
            f"the tenant {found.name!r} is switched off, so the link would not work; switch it on first",
            reason="tenant_off",
            tenant=found.name,
        )
    within = Scoped(tx, replace(principal, tenant_id=found.tenant_id))
    await tenants.lock(within)
    user_id = await _admin_of(tx, found, admin.login)
    is_made = user_id is None
    if user_id is None:
        await users.refuse_taken(tx, admin.login)
        await tenant_quotas.require_room(within, Quota.PEOPLE)
        user_id = await _add_admin(tx, found.tenant_id, admin, now_ms)
    else:
        await tx.run("DELETE FROM password_links WHERE user_id = :user_id", user_id=user_id)
        await _add_link(tx, found.tenant_id, user_id, admin.link_hash, now_ms)
    details: dict[str, str | int] = {"login": admin.login, "made": int(is_made)}
    there = audit.Entry("admin_link_made", now_ms, address, "user", str(user_id), details)
    await audit.add_from_home(tx, principal, found.tenant_id, there)
    here = audit.Entry("tenant_admin_link_made", now_ms, address, "tenant", found.name, details)
    await audit.add_own(_home_scope(tx, principal, home_id), here)
    return is_made


async def _admin_of(tx: Tx, tenant: TenantSummary, login: str) -> int | None:
    """Who has that login there, if anybody has; Conflict unless an administrator that the link would let in."""
    row = await tx.one(
        "SELECT user_id, role, disabled FROM users WHERE tenant_id = :tenant_id AND login = :login",
        tenant_id=tenant.tenant_id,
        login=login,
    )
    if row is None:
        return None
    if Role(row["role"]) is not Role.TENANT_ADMIN:
        raise Conflict(
            f"{login} is a {row['role']} of the tenant {tenant.name!r} and no administrator of it; name one, or a "
            "login that nobody has yet",
            reason="not_tenant_admin",
            login=login,
            role=row["role"],
        )
    if row["disabled"]:
        raise Conflict(
            f"{login} is switched off, so the link would not work; name another administrator, or a login that "
            "nobody has yet",
            reason="admin_off",
            login=login,
        )
    return int(row["user_id"])


async def _add_admin(tx: Tx, tenant_id: int, admin: NewAdmin, now_ms: int) -> int:
    user_id = await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, display_name, role, language, created_at) "
        "VALUES (:tenant_id, :user_uuid, :login, :display_name, :role, :language, :now_ms) RETURNING user_id",
        tenant_id=tenant_id,
        user_uuid=str(uuid7()),
        login=admin.login,
        display_name=admin.display_name,
        role=Role.TENANT_ADMIN.value,
        language=admin.language,
        now_ms=now_ms,
    )
    await _add_link(tx, tenant_id, user_id, admin.link_hash, now_ms)
    return user_id


async def _add_link(tx: Tx, tenant_id: int, user_id: int, link_hash: str, now_ms: int) -> None:
    await tx.run(
        "INSERT INTO password_links (tenant_id, user_id, token_hash, created_at, expires_at) "
        "VALUES (:tenant_id, :user_id, :token_hash, :now_ms, :expires_at)",
        tenant_id=tenant_id,
        user_id=user_id,
        token_hash=link_hash,
        now_ms=now_ms,
        expires_at=now_ms + PASSWORD_LINK_TTL_MS,
    )


async def change(
    tx: Tx, principal: Principal, tenant: str, wanted: TenantChange, address: str, now_ms: int
) -> TenantSummary:
    """A disabled tenant's sign-ins and tokens work no more from the next request on, and its cameras stop."""
    home_id = await require_home(tx, principal, lock=True)
    found = await get(tx, principal, tenant)
    if found.erasing_at is not None:
        raise being_erased(found.name)
    if wanted.name is not None and wanted.name != found.name:
        await _refuse_taken(tx, wanted.name)
        await tx.run(
            "UPDATE tenants SET name = :name WHERE tenant_id = :tenant_id",
            name=wanted.name,
            tenant_id=found.tenant_id,
        )
    if wanted.disabled is not None and wanted.disabled != found.is_disabled:
        rules.refuse_home(found.is_home, "switched off")
        await tx.run(
            "UPDATE tenants SET disabled = :disabled WHERE tenant_id = :tenant_id",
            disabled=int(wanted.disabled),
            tenant_id=found.tenant_id,
        )
    await _set_quotas(tx, found.tenant_id, wanted.quotas)
    details = _told(wanted.quotas)
    if wanted.name is not None:
        details["name"] = wanted.name
    if wanted.disabled is not None:
        details["disabled"] = int(wanted.disabled)
    entry = audit.Entry("tenant_changed", now_ms, address, "tenant", found.name, details)
    await audit.add_own(_home_scope(tx, principal, home_id), entry)
    return await get(tx, principal, found.tenant_uuid)


def _told(quotas: Mapping[Quota, int | None]) -> dict[str, str | int]:
    return {quota: "" if most is None else most for quota, most in quotas.items()}


async def _set_quotas(tx: Tx, tenant_id: int, quotas: Mapping[Quota, int | None]) -> None:
    for quota, most in quotas.items():
        await tx.run(
            f"UPDATE tenants SET {quota} = :most WHERE tenant_id = :tenant_id", most=most, tenant_id=tenant_id
        )


async def require_home(tx: Tx, principal: Principal, lock: bool = False) -> int:
    """Forbidden unless the principal belongs to the home tenant, whose id is answered. With `lock` one transaction at
    a time gets past."""
    if lock:
        home_id = await first_start.lock_home(tx)
    else:
        home_id = await tenants.home(tx) or 0
    rules.require_home(principal.tenant_id, home_id)
    return home_id


def being_erased(name: str) -> Conflict:
    return Conflict(f"the tenant {name!r} is being erased; nothing of it changes any more", reason="tenant_erasing")


def _home_scope(tx: Tx, principal: Principal, home_id: int) -> Scoped:
    """For the audit log, whose entries are about the home tenant's people."""
    rules.require_home(principal.tenant_id, home_id)
    return Scoped(tx, principal)


async def _refuse_taken(tx: Tx, name: str) -> None:
    if await tx.one("SELECT tenant_id FROM tenants WHERE name = :name OR tenant_uuid = :name", name=name):
        raise Conflict(f"there is a tenant named {name!r}; choose another name", reason="tenant_taken", tenant=name)


async def _summary(tx: Tx, row: Row) -> TenantSummary:
    return TenantSummary(
        tenant_id=row["tenant_id"],
        tenant_uuid=row["tenant_uuid"],
        name=row["name"],
        is_home=row["home_slot"] == 1,
        is_disabled=bool(row["disabled"]),
        erasing_at=row["erasing_at"],
        erased_rows=row["erased_rows"],
        erased_objects=row["erased_objects"],
        created_at=row["created_at"],
        uses=await tenant_quotas.uses(tx, row["tenant_id"]),
    )
