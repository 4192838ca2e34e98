"""Who may do what: roles, principals, passwords, set-up links and sign-ins (decision 43).

Rules only. Hashing, cookies and rows are elsewhere.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from camserver.base.errors import BadInput, Forbidden

PASSWORD_MIN_CHARS = 10
# argon2 would hash any length; a bound keeps a request from buying CPU time with megabytes.
PASSWORD_MAX_CHARS = 256
SETUP_LINK_TTL_MS = 3_600_000
# A link with which somebody chooses a password goes by mail or by hand to a person who may be off today.
PASSWORD_LINK_TTL_MS = 3 * 86_400_000
# Tokens of programs: at most so long, so that a forgotten one ends by itself.
TOKEN_DAYS_MAX = 3 * 366
TOKEN_DAYS = 90
# A sign-in's last use is written at most this often, so that reading pages writes few rows.
SESSION_TOUCH_MS = 60_000
# A sign-in that nobody uses ends after this, also when its hours are not over.
SESSION_IDLE_MS = 2 * 3_600_000


# How whoever uses the local admin token is called, as the command line does: no login may hold a space.
LOCAL_ADMIN = "local admin"
# A login that is no more.
SOMEBODY_GONE = "removed user"
# How the audit log calls the program itself, and whoever opened a link. Nobody's login is one of these: what that
# person did would look as if nobody had done it, and would not be found by the name.
SYSTEM = "system"
LINK = "link"


def who_did(user_id: int | None, login: str | None) -> str:
    """Who did something, by the user it is noted with."""
    return LOCAL_ADMIN if user_id is None else login or SOMEBODY_GONE


class Role(StrEnum):
    SYSTEM_ADMIN = "system_admin"
    TENANT_ADMIN = "tenant_admin"
    SITE_MANAGER = "site_manager"
    VIEWER = "viewer"
    WORKER = "worker"  # a machine


class Permission(StrEnum):
    """What a route can ask for."""

    READ = "read"  # cameras, frames, events and their pictures
    REVIEW = "review"  # mark incidents as reviewed
    INVESTIGATE = "investigate"  # see investigation_only tags and case media
    MANAGE_CAMERAS = "manage_cameras"
    MANAGE_WORKERS = "manage_workers"
    MANAGE_PEOPLE = "manage_people"
    MANAGE_DELIVERIES = "manage_deliveries"  # receivers, rules of telling, what is on its way to them, scoring
    READ_AUDIT = "read_audit"
    MANAGE_SYSTEM = "manage_system"  # vocabulary, settings, tenants
    CAPTURE = "capture"  # hold leases and upload looks


_VIEWER = frozenset({Permission.READ, Permission.REVIEW})
_SITE_MANAGER = _VIEWER | {Permission.MANAGE_CAMERAS, Permission.MANAGE_WORKERS}
_TENANT_ADMIN = _SITE_MANAGER | {
    Permission.INVESTIGATE,
    Permission.MANAGE_PEOPLE,
    Permission.MANAGE_DELIVERIES,
    Permission.READ_AUDIT,
}
PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.SITE_MANAGER: _SITE_MANAGER,
    Role.TENANT_ADMIN: _TENANT_ADMIN,
    Role.SYSTEM_ADMIN: _TENANT_ADMIN | {Permission.MANAGE_SYSTEM},
    Role.WORKER: frozenset({Permission.CAPTURE}),
}


# From least to most. Nobody makes, changes or stands for somebody above.
RANKS = (Role.VIEWER, Role.SITE_MANAGER, Role.TENANT_ADMIN, Role.SYSTEM_ADMIN)
# Those whose reach can be narrowed to sites and cameras; admins reach everything of their tenant.
GRANTED_ROLES = frozenset({Role.VIEWER, Role.SITE_MANAGER})

# What these let people change holds for all sites: receivers, the rules of telling (the first rule decides for every
# site that none is named for), the system itself. So whoever reaches only some sites changes nothing of it.
TENANT_WIDE = frozenset({Permission.MANAGE_DELIVERIES, Permission.MANAGE_PEOPLE, Permission.MANAGE_SYSTEM})


@dataclass(frozen=True, slots=True)
class Principal:
    """In whose name something is done. Always within one tenant."""

    tenant_id: int
    user_id: int | None  # None for a machine and for the local admin token
    role: Role
    site_ids: frozenset[int] | None = None  # None: all sites of the tenant
    session_id: int | None = None  # the sign-in, for people
    token_id: int | None = None  # the token, for machines and programs
    camera_keys: frozenset[int] = frozenset()  # single cameras, besides the sites
    scopes: frozenset[Permission] | None = None  # of a token: what it is good for; None: all that the role may

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions

    @property
    def permissions(self) -> frozenset[Permission]:
        of_role = PERMISSIONS[self.role]
        return of_role if self.scopes is None else of_role & self.scopes

    def reaches(self, site_id: int, camera_key: int | None = None) -> bool:
        """The site as a whole, or the camera."""
        return self.site_ids is None or site_id in self.site_ids or camera_key in self.camera_keys

    @property
    def reach(self) -> tuple[int, frozenset[int] | None, frozenset[int]]:
        """Those for whom it is equal see the same rows."""
        return self.tenant_id, self.site_ids, self.camera_keys

    @property
    def reaches_nothing(self) -> bool:
        return self.site_ids == frozenset() and not self.camera_keys

    def require(self, permission: Permission) -> None:
        if self.may(permission):
            return
        if permission in PERMISSIONS[self.role]:
            raise Forbidden(
                f"The token's scopes lack the permission {permission}. Use a token that has it among its scopes.",
                reason="lacks_scope",
                permission=permission.value,
            )
        raise Forbidden(
            f"The role {self.role} lacks the permission {permission}. Ask an administrator for it.",
            reason="lacks_permission",
            permission=permission.value,
        )

    def require_all_sites(self) -> None:
        if self.site_ids is not None:
            raise Forbidden(
                "this would hold for sites you do not reach; ask an administrator of all sites for it",
                reason="whole_tenant",
            )


_LOGIN = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,127}")


def login_of(written: str) -> str:
    """A login as it is kept; BadInput when it can't be one."""
    login = written.strip().lower()
    if not _LOGIN.fullmatch(login):
        raise BadInput("a login name holds only letters a-z, digits and . _ @ + - ; change it", reason="login_form")
    if login in (SYSTEM, LINK):
        raise BadInput(
            f"{login!r} stands in the audit log for what nobody did who was signed in; choose another login name",
            reason="login_reserved",
            login=login,
        )
    return login


def require_rank(principal: Principal, role: Role) -> None:
    """Forbidden unless the principal may make, change or remove somebody of that role. Through an account of that
    role everything can be done that the role may, so a token decides only about roles that its scopes cover."""
    if role not in RANKS or RANKS.index(role) > RANKS.index(principal.role):
        raise Forbidden(
            f"the role {principal.role} does not decide about a {role}; ask somebody who has that role",
            reason="role_above",
            role=role.value,
        )
    beyond = sorted(PERMISSIONS[role] - principal.permissions)
    if beyond:
        raise Forbidden(
            f"a {role} may do {beyond[0]}, which is not among the token's scopes; use one that has all of the role's",
            reason="role_beyond_scopes",
            role=role.value,
            scope=beyond[0].value,
        )


def check_role_in_tenant(role: Role, is_home: bool) -> None:
    """The system is looked after from the tenant that the installation began with, and from no other."""
    if role is Role.SYSTEM_ADMIN and not is_home:
        raise Forbidden(
            f"a {role} belongs to the tenant that the installation began with; make a {Role.TENANT_ADMIN} here",
            reason="role_not_here",
            role=role.value,
        )


def check_grants(role: Role, is_granted_only: bool) -> None:
    if is_granted_only and role not in GRANTED_ROLES:
        raise BadInput(
            f"a {role} reaches every site; only {', '.join(sorted(GRANTED_ROLES))} can be held to sites and cameras",
            reason="role_reaches_all",
            role=role.value,
        )


def check_scopes(principal: Principal, owner_role: Role, scopes: Collection[Permission]) -> None:
    """A token is good for something, and for nothing that its maker or its owner may not do."""
    if not scopes:
        raise BadInput("name at least one thing that the token is good for", reason="no_scope")
    beyond = sorted(set(scopes) - (PERMISSIONS[owner_role] & principal.permissions))
    if beyond:
        raise Forbidden(
            f"the token would be good for {beyond[0]}, which its owner or you may not do; leave it out",
            reason="scope_beyond",
            scope=beyond[0],
        )


def require_no_token(principal: Principal) -> None:
    """Forbidden for a program that is not there to manage people: what it made would outlive its own token."""
    if principal.token_id is not None and not principal.may(Permission.MANAGE_PEOPLE):
        raise Forbidden(
            "a token makes and revokes other tokens only with manage_people among its scopes; sign in to do it",
            reason="token_by_token",
        )


def check_password(password: str, login: str) -> None:
    """Raises BadInput, saying why, when a password is not acceptable."""
    if len(password) < PASSWORD_MIN_CHARS:
        raise BadInput(
            f"The password is too short: at least {PASSWORD_MIN_CHARS} characters. Choose a longer one.",
            reason="password_short",
            chars_min=PASSWORD_MIN_CHARS,
        )
    if len(password) > PASSWORD_MAX_CHARS:
        raise BadInput(
            f"The password is too long: at most {PASSWORD_MAX_CHARS} characters. Choose a shorter one.",
            reason="password_long",
            chars_max=PASSWORD_MAX_CHARS,
        )
    if password.strip().casefold() == login.strip().casefold():
        raise BadInput("The password equals the login name. Choose another one.", reason="password_is_login")
    if len(set(password)) < 4:
        raise BadInput(
            "The password repeats the same few characters. Choose one with at least 4 different ones.",
            reason="password_repeats",
        )


def setup_link_works(created_at: int, used_at: int | None, now_ms: int) -> bool:
    """A set-up link works once, within its hour."""
    return used_at is None and created_at <= now_ms < created_at + SETUP_LINK_TTL_MS


def session_expires_at(created_at: int, used_at: int, session_hours: int) -> int:
    """When a sign-in last used then ends: use moves the end, but never past its hours."""
    return min(used_at + SESSION_IDLE_MS, created_at + session_hours * 3_600_000)


def session_needs_touch(last_used_at: int, now_ms: int) -> bool:
    return now_ms - last_used_at >= SESSION_TOUCH_MS
