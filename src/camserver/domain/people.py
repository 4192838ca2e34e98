"""Who may do what: roles, principals, passwords, set-up links and sign-ins (decision 43).

Rules only. Hashing, cookies and rows are elsewhere.
"""

from dataclasses import dataclass
from enum import StrEnum

from camserver.base.errors import BadInput, Forbidden

PASSWORD_MIN_CHARS = 10
# argon2 would hash any length; a bound keeps a request from buying CPU time with megabytes.
PASSWORD_MAX_CHARS = 256
SETUP_LINK_TTL_MS = 3_600_000
# A sign-in's last use is written at most this often, so that reading pages writes few rows.
SESSION_TOUCH_MS = 60_000
# A sign-in that nobody uses ends after this, also when its hours are not over.
SESSION_IDLE_MS = 2 * 3_600_000


# How whoever uses the local admin token is called, as the command line does: no login may hold a space.
LOCAL_ADMIN = "local admin"
# A login that is no more.
SOMEBODY_GONE = "removed user"


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
    MANAGE_DELIVERIES = "manage_deliveries"  # receivers, rules of telling, and what is on its way to them
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

    def may(self, permission: Permission) -> bool:
        return permission in PERMISSIONS[self.role]

    def reaches(self, site_id: int) -> bool:
        return self.site_ids is None or site_id in self.site_ids

    def require(self, permission: Permission) -> None:
        if not self.may(permission):
            raise Forbidden(
                f"The role {self.role} lacks the permission {permission}. Ask an administrator for it.",
                permission=permission.value,
            )

    def require_all_sites(self) -> None:
        if self.site_ids is not None:
            raise Forbidden(
                "this would hold for sites you do not reach; ask an administrator of all sites for it",
                reason="whole_tenant",
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
