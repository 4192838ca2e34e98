"""People as administrators see and change them, within the principal's tenant. Passwords arrive here hashed.

Nobody changes somebody of a higher role, nobody takes away their own rights, and the last system administrator stays.
"""

from dataclasses import dataclass, field
from typing import Any

from uuid_utils import uuid7

from camserver.base.errors import BadInput, Conflict, Forbidden, NotFound
from camserver.domain.people import GRANTED_ROLES, Role, check_grants, check_role_in_tenant, require_rank
from camserver.store import audit, grants, identities, tenant_quotas, tenants, users
from camserver.store.grants import Granted
from camserver.store.identities import Identity
from camserver.store.tx import Row, Scoped

PEOPLE_MAX = 10_000
PAGE_MAX = 500


@dataclass(frozen=True, slots=True)
class NewPerson:
    login: str
    display_name: str
    language: str
    role: Role
    granted: Granted | None  # None: reaches all sites
    password_hash: str | None = field(default=None, repr=False)
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class PersonChange:
    """What is None stays. `granted_only` False: reaches all sites."""

    display_name: str | None = None
    language: str | None = None
    role: Role | None = None
    disabled: bool | None = None
    granted_only: bool | None = None
    granted: Granted | None = None
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Person:
    user_id: int
    user_uuid: str
    login: str
    display_name: str
    language: str
    role: Role
    disabled: bool
    granted: Granted | None
    has_password: bool
    oidc_subject: str | None  # at the provider that was linked last
    created_at: int
    last_seen_at: int | None


_PERSON = """
SELECT u.user_id, u.user_uuid, u.login, u.display_name, u.language, u.role, u.disabled, u.granted_only,
  u.password_hash, u.created_at,
  (SELECT i.subject FROM user_identities i WHERE i.user_id = u.user_id
    ORDER BY i.identity_id DESC LIMIT 1) AS oidc_subject,
  (SELECT MAX(s.last_seen_at) FROM sessions s WHERE s.user_id = u.user_id) AS seen_at
FROM users u WHERE u.tenant_id = :tenant_id"""
_INSERT = """
INSERT INTO users (tenant_id, user_uuid, login, display_name, role, password_hash, language, granted_only,
  password_changed_at, created_at)
VALUES (:tenant_id, :user_uuid, :login, :display_name, :role, :password_hash, :language, :granted_only,
  :changed_at, :now_ms) RETURNING user_id"""


async def page(tx: Scoped, after: str, limit: int) -> tuple[Person, ...]:
    """By login, from behind `after`."""
    rows = await tx.all(
        f"{_PERSON} AND u.login > :after ORDER BY u.login LIMIT :limit", after=after, limit=min(limit, PAGE_MAX)
    )
    return await _people(tx, rows)


async def get(tx: Scoped, user_uuid: str) -> Person:
    """By uuid or login."""
    rows = await tx.all(f"{_PERSON} AND (u.user_uuid = :wanted OR u.login = :wanted)", wanted=user_uuid)
    if not rows:
        raise missing(user_uuid)
    return (await _people(tx, rows))[0]


async def oneself(tx: Scoped) -> Person:
    """Whoever asks; for those who have an account."""
    rows = await tx.all(f"{_PERSON} AND u.user_id = :user_id", user_id=tx.principal.user_id)
    if not rows:
        raise missing("")
    return (await _people(tx, rows))[0]


async def add(tx: Scoped, new: NewPerson, address: str, now_ms: int) -> Person:
    require_rank(tx.principal, new.role)
    check_grants(new.role, new.granted is not None)
    await _lock_people(tx)
    await _check_role(tx, new.role)
    await _refuse_beyond_max(tx)
    # Logins are one namespace over all tenants, so the answer may tell of somebody elsewhere; it tells no more than
    # that the name is taken.
    taken = """
        SELECT user_id FROM users
        WHERE (login = :login OR user_uuid = :login) AND (tenant_id = :tenant_id OR tenant_id <> :tenant_id)"""
    if await tx.one(taken, login=new.login):
        raise users.login_taken(new.login)
    user_uuid = str(uuid7())
    user_id = await tx.insert(
        _INSERT,
        user_uuid=user_uuid,
        login=new.login,
        display_name=new.display_name,
        role=new.role.value,
        password_hash=new.password_hash,
        language=new.language,
        granted_only=int(new.granted is not None),
        changed_at=None if new.password_hash is None else now_ms,
        now_ms=now_ms,
    )
    if new.granted is not None:
        await grants.put(tx, user_id, new.granted)
    if new.identity is not None:
        await identities.put(tx, user_id, new.identity, now_ms)
    added = await get(tx, user_uuid)
    details: dict[str, str | int] = {"login": new.login, "role": new.role.value, **_reach(added)}
    if new.identity is not None:
        details["oidc_subject"] = new.identity.subject
    await _note(tx, "user_added", user_id, details, address, now_ms)
    return added


async def change(tx: Scoped, user_uuid: str, wanted: PersonChange, address: str, now_ms: int) -> Person:
    """Sign-ins stay, with the new rights from the next request on; those of somebody disabled are over."""
    await _lock_people(tx)
    person = await get(tx, user_uuid)
    require_rank(tx.principal, person.role)
    role = person.role if wanted.role is None else wanted.role
    require_rank(tx.principal, role)
    granted_only = person.granted is not None if wanted.granted_only is None else wanted.granted_only
    if wanted.granted is not None and not granted_only:
        raise BadInput(
            "sites and cameras are granted to somebody who does not reach all sites; leave out either `grants` or "
            "`all_sites`",
            reason="granted_to_all",
        )
    check_grants(role, granted_only)
    await _check_role(tx, role)
    is_less = role is not person.role or wanted.disabled is True or granted_only > (person.granted is not None)
    if is_less:
        _refuse_oneself(tx, person)
    if person.role is Role.SYSTEM_ADMIN and (role is not Role.SYSTEM_ADMIN or wanted.disabled):
        await _refuse_last_admin(tx, person)
    await tx.run(
        "UPDATE users SET display_name = :display_name, language = :language, role = :role, disabled = :disabled, "
        "granted_only = COALESCE(:granted_only, granted_only) WHERE user_id = :user_id AND tenant_id = :tenant_id",
        user_id=person.user_id,
        display_name=person.display_name if wanted.display_name is None else wanted.display_name,
        language=person.language if wanted.language is None else wanted.language,
        role=role.value,
        disabled=int(person.disabled if wanted.disabled is None else wanted.disabled),
        # Of whom nothing is said stays as it was, also below a role that reaches everything.
        granted_only=None if wanted.granted_only is None else int(wanted.granted_only),
    )
    if wanted.granted is not None or wanted.granted_only is False:
        await grants.put(tx, person.user_id, wanted.granted or Granted())
    if wanted.identity is not None:
        await identities.put(tx, person.user_id, wanted.identity, now_ms)
    if wanted.disabled:
        await _end_sessions(tx, person.user_id)
    if wanted.disabled or role is not person.role:
        # Whoever was given a link before might not have been given one to what the account is now.
        await drop_links(tx, person.user_id)
    changed = await get(tx, person.user_uuid)
    await _note(tx, "user_changed", person.user_id, _told(person, changed, wanted), address, now_ms)
    return changed


def _told(before: Person, after: Person, wanted: PersonChange) -> dict[str, str | int]:
    """For the log: what was asked to change, and the rights that came of it."""
    names = [name for name in PersonChange.__dataclass_fields__ if getattr(wanted, name) is not None]
    told: dict[str, str | int] = {"login": after.login, "changed": " ".join(names), "role": after.role.value}
    if after.role is not before.role:
        told["role_before"] = before.role.value
    if wanted.disabled is not None:
        told["disabled"] = int(after.disabled)
    if after.role is not before.role or wanted.granted_only is not None or wanted.granted is not None:
        told |= _reach(after)
    if wanted.identity is not None:
        told["oidc_subject"] = wanted.identity.subject
    return told


def _reach(person: Person) -> dict[str, str | int]:
    if person.granted is None:
        return {"all_sites": 1}
    sites, camera_ids = audit.listed(person.granted.sites), audit.listed(person.granted.camera_ids)
    return {"all_sites": 0, "sites": sites, "camera_ids": camera_ids}


async def remove(tx: Scoped, user_uuid: str, address: str, now_ms: int) -> None:
    """Removes somebody with sign-ins, tokens and grants. What they did stays, under the name they had."""
    await _lock_people(tx)
    person = await get(tx, user_uuid)
    require_rank(tx.principal, person.role)
    _refuse_oneself(tx, person)
    if person.role is Role.SYSTEM_ADMIN:
        await _refuse_last_admin(tx, person)
    await _note(tx, "user_removed", person.user_id, {"login": person.login}, address, now_ms)
    await tx.run(
        "INSERT INTO removed_users (user_id, tenant_id, login, removed_at) "
        "VALUES (:user_id, :tenant_id, :login, :now_ms)",
        user_id=person.user_id,
        login=person.login,
        now_ms=now_ms,
    )
    await tx.run("DELETE FROM users WHERE user_id = :user_id AND tenant_id = :tenant_id", user_id=person.user_id)


async def change_own_password(
    tx: Scoped, proved_by: str | None, password_hash: str, address: str, now_ms: int
) -> None:
    """By somebody signed in whose present password fitted `proved_by`. Hashing takes its time, so it is looked at
    again that both still hold."""
    row = await tx.one(
        "SELECT password_hash FROM users WHERE user_id = :user_id AND tenant_id = :tenant_id FOR UPDATE",
        user_id=tx.principal.user_id,
    )
    session = await tx.one(
        "SELECT session_id FROM sessions WHERE session_id = :session_id AND tenant_id = :tenant_id",
        session_id=tx.principal.session_id,
    )
    if row is None or session is None or row["password_hash"] != proved_by:
        raise Forbidden(
            "the password was changed, or this sign-in ended, at the same moment; sign in again",
            reason="password_moved",
        )
    assert tx.principal.user_id is not None
    await set_password(tx, tx.principal.user_id, password_hash, tx.principal.session_id, address, now_ms)


async def set_password(
    tx: Scoped, user_id: int, password_hash: str, keep_session_id: int | None, address: str, now_ms: int
) -> None:
    """A new password: every other sign-in of the person ends, and links to choose one work no more."""
    await tx.run(
        "UPDATE users SET password_hash = :password_hash, password_changed_at = :now_ms, failed_logins = 0 "
        "WHERE user_id = :user_id AND tenant_id = :tenant_id",
        user_id=user_id,
        password_hash=password_hash,
        now_ms=now_ms,
    )
    await _end_sessions(tx, user_id, keep_session_id)
    await drop_links(tx, user_id)
    await _note(tx, "password_changed", user_id, {}, address, now_ms)


async def drop_links(tx: Scoped, user_id: int) -> None:
    """Links to choose a password work no more."""
    await tx.run("DELETE FROM password_links WHERE user_id = :user_id AND tenant_id = :tenant_id", user_id=user_id)


async def password_hash_of(tx: Scoped, user_id: int) -> str | None:
    row = await tx.one(
        "SELECT password_hash FROM users WHERE user_id = :user_id AND tenant_id = :tenant_id", user_id=user_id
    )
    return None if row is None else row["password_hash"]


def missing(user: str) -> NotFound:
    return NotFound(f"there is nobody {user!r} here; use the login or the id", reason="no_user", user=user)


async def _people(tx: Scoped, rows: Any) -> tuple[Person, ...]:
    granted = await grants.of_users(
        tx, [row["user_id"] for row in rows if row["granted_only"] and row["role"] in GRANTED_ROLES]
    )
    return tuple(_person(row, granted.get(row["user_id"])) for row in rows)


def _person(row: Row, granted: Granted | None) -> Person:
    return Person(
        row["user_id"],
        row["user_uuid"],
        row["login"],
        row["display_name"],
        row["language"],
        Role(row["role"]),
        bool(row["disabled"]),
        granted,
        row["password_hash"] is not None,
        row["oidc_subject"],
        row["created_at"],
        row["seen_at"],
    )


async def _lock_people(tx: Scoped) -> None:
    """One change of people at a time, so that two administrators can't remove each other."""
    await tenants.lock(tx)


async def _check_role(tx: Scoped, role: Role) -> None:
    if role is Role.SYSTEM_ADMIN:
        check_role_in_tenant(role, await tenants.is_home(tx))


async def _refuse_beyond_max(tx: Scoped) -> None:
    row = await tx.one("SELECT count(*) AS people FROM users WHERE tenant_id = :tenant_id")
    if row is not None and row["people"] >= PEOPLE_MAX:
        raise Conflict(
            f"there are {PEOPLE_MAX} people already; remove some first", reason="users_full", most=PEOPLE_MAX
        )
    await tenant_quotas.require_room(tx, "people_max")


def _refuse_oneself(tx: Scoped, person: Person) -> None:
    if person.user_id == tx.principal.user_id:
        raise Conflict("nobody takes away their own rights; ask another administrator", reason="user_is_self")


async def _refuse_last_admin(tx: Scoped, person: Person) -> None:
    row = await tx.one(
        "SELECT user_id FROM users WHERE tenant_id = :tenant_id AND role = :role AND disabled = 0 "
        "AND user_id <> :user_id LIMIT 1",
        role=Role.SYSTEM_ADMIN.value,
        user_id=person.user_id,
    )
    if row is None:
        raise Conflict(
            "this is the last system administrator; make another one first", reason="last_admin", login=person.login
        )


async def _end_sessions(tx: Scoped, user_id: int, but_session_id: int | None = None) -> None:
    await tx.run(
        "DELETE FROM sessions WHERE user_id = :user_id AND tenant_id = :tenant_id AND session_id <> :kept",
        user_id=user_id,
        kept=but_session_id or 0,
    )


async def _note(
    tx: Scoped, action: str, user_id: int, details: dict[str, str | int], address: str, now_ms: int
) -> None:
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "user", str(user_id), details))
