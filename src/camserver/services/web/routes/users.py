"""People, as administrators see and change them."""

import secrets
from typing import Annotated

from fastapi import Path, Query

from camserver.base.errors import BadInput
from camserver.domain.oidc import is_subject
from camserver.domain.people import PASSWORD_LINK_TTL_MS, Permission, Role, check_password, login_of
from camserver.services.web.access import token_hash
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat, without_secret
from camserver.services.web.routing import Routes
from camserver.store import identities, password_links, people, users
from camserver.store.grants import Granted
from camserver.store.identities import Identity
from camserver.store.people import NewPerson, Person, PersonChange
from camserver.wire import api

routes = Routes()

# A login or an id.
UserName = Annotated[str, Path(min_length=1, max_length=128)]


@routes.get("/api/users", Permission.MANAGE_PEOPLE)
async def list_users(
    call: TheCall,
    after: Annotated[str, Query(max_length=128)] = "",
    limit: Annotated[int, Query(ge=1, le=people.PAGE_MAX)] = 100,
) -> api.UserPage:
    """People of the tenant, by login."""
    found = await call.store.read(people.page, after, limit + 1)
    shown = [_shown(one) for one in found[:limit]]
    return api.UserPage(users=shown, next_after=shown[-1].login if len(found) > limit else None)


@routes.post("/api/users", Permission.MANAGE_PEOPLE, repeat=Repeat.SECRET, status_code=201)
async def add_user(call: TheCall, asked: api.UserAsked) -> api.UserAdded:
    """Adds somebody. With neither password nor subject the answer holds a link with which a password is chosen."""
    login = login_of(asked.login)
    # Asked across tenants, which the operation below can't where row-level security is on.
    await call.web.store.read(users.refuse_taken, login)
    password_hash = None
    if asked.password is not None:
        check_password(asked.password, login)
        password_hash = await call.web.passwords.hash(asked.password)
    new = NewPerson(
        login=login,
        display_name=asked.display_name.strip() or login,
        language=asked.language or call.language,
        role=Role(asked.role),
        granted=_granted(asked.grants),
        password_hash=password_hash,
        identity=await _identity(call, asked.oidc_subject),
    )
    person = await call.store.write(people.add, new, call.address, call.now_ms)
    if password_hash is not None or asked.oidc_subject:
        without_secret(call)
        return api.UserAdded(user=_shown(person), password_link=None)
    return api.UserAdded(user=_shown(person), password_link=await _make_link(call, person.user_uuid))


@routes.get("/api/users/{user}", Permission.MANAGE_PEOPLE)
async def get_user(call: TheCall, user: UserName) -> api.User:
    """Somebody, by login or id."""
    return _shown(await call.store.read(people.get, user))


@routes.patch("/api/users/{user}", Permission.MANAGE_PEOPLE, repeat=Repeat.ANSWER)
async def change_user(call: TheCall, user: UserName, asked: api.UserChange) -> api.User:
    """Changes name, role, language or reach, or switches somebody off or on. It holds from their next request on."""
    granted_only = None if asked.all_sites is None else not asked.all_sites
    if granted_only is None and asked.grants is not None:
        granted_only = True
    wanted = PersonChange(
        display_name=asked.display_name,
        language=asked.language,
        role=None if asked.role is None else Role(asked.role),
        disabled=asked.disabled,
        granted_only=granted_only,
        granted=_granted(asked.grants),
        identity=await _identity(call, asked.oidc_subject),
    )
    return _shown(await call.store.write(people.change, user, wanted, call.address, call.now_ms))


@routes.delete("/api/users/{user}", Permission.MANAGE_PEOPLE, status_code=204, repeat=Repeat.ANSWER)
async def remove_user(call: TheCall, user: UserName) -> None:
    """Removes somebody, with their sign-ins and tokens."""
    await call.store.write(people.remove, user, call.address, call.now_ms)


@routes.post("/api/users/{user}/password-link", Permission.MANAGE_PEOPLE, repeat=Repeat.SECRET, status_code=201)
async def make_password_link(call: TheCall, user: UserName) -> api.PasswordLink:
    """A one-time link with which somebody chooses a new password. Links before it stop working."""
    return await _make_link(call, user)


async def _make_link(call: Call, user: str) -> api.PasswordLink:
    token = secrets.token_urlsafe(32)
    await call.store.write(password_links.add, user, token_hash(token), call.address, call.now_ms)
    # In the fragment, which browsers never send to a server or a log by themselves.
    url = f"{call.web.public_url}/password#token={token}"
    return api.PasswordLink(url=url, expires_at=call.now_ms + PASSWORD_LINK_TTL_MS)


async def _identity(call: Call, subject: str | None) -> Identity | None:
    """Who somebody is at the configured provider; an empty subject unlinks."""
    issuer = call.web.settings.oidc.issuer
    if subject is None:
        return None
    if issuer is None:
        raise BadInput("no OpenID Connect provider is configured; set [oidc] issuer first", reason="oidc_off")
    if subject and not is_subject(subject):
        raise BadInput("a subject is 1 to 255 printable ASCII characters; copy it whole", reason="oidc_subject")
    identity = Identity(issuer, subject)
    # Across tenants, as logins above.
    await call.web.store.read(identities.refuse_elsewhere, call.principal.tenant_id, identity)
    return identity


def _granted(asked: api.Grants | None) -> Granted | None:
    return None if asked is None else Granted(tuple(asked.sites), tuple(asked.camera_ids))


def _shown(person: Person) -> api.User:
    granted = person.granted
    return api.User(
        user_uuid=person.user_uuid,
        login=person.login,
        display_name=person.display_name,
        role=person.role.value,
        language=person.language,
        disabled=person.disabled,
        grants=None
        if granted is None
        else api.GrantsShown(sites=list(granted.sites), camera_ids=list(granted.camera_ids)),
        has_password=person.has_password,
        oidc_subject=person.oidc_subject,
        created_at=person.created_at,
        last_seen_at=person.last_seen_at,
    )
