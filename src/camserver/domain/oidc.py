"""Signing in with an OpenID Connect provider: who a checked token says somebody is, and whether they may come in.

Rules only. Asking the provider and checking signatures are the client's, cookies the web service's, rows the store's.
Somebody is recognized by issuer and subject. A login name that the provider tells is only believed where the settings
say so: at some providers people choose it themselves.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from camserver.base.errors import BadInput, Reject
from camserver.domain import names
from camserver.domain.people import RANKS, Role, login_of

# Somebody has this long to sign in at the provider.
FLOW_TTL_MS: Final = 10 * 60_000
# How far the provider's clock may be off.
LEEWAY_SEC: Final = 60
TARGET_MAX_CHARS: Final = 1024
GROUPS_MAX: Final = 1_000
NAME_MAX_CHARS: Final = 128
# A group of this name has everybody in it.
EVERYBODY: Final = "*"

Claims: TypeAlias = Mapping[str, Any]
RolesOfGroups: TypeAlias = tuple[tuple[str, Role], ...]

# Spaces at its ends would be lost in a comparison on MariaDB, so that two people could be one.
_SUBJECT: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
# Browsers drop tabs and line breaks from an address and take a backslash for a slash.
_WITHIN_SITE: Final = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


class Failure(StrEnum):
    """Why a sign-in came to nothing. The sign-in page has a text for each, in both languages."""

    OFF = "off"  # no provider is configured
    FLOW = "flow"  # begun in another browser, or too long ago
    DENIED = "denied"  # the person, or the provider on their behalf, said no
    REFUSED = "refused"  # the provider answered with an error
    AWAY = "away"  # the provider can't be reached, or makes no sense
    TOKEN = "token"  # the ID token is not acceptable
    UNKNOWN = "unknown"  # nobody here is this person
    DISABLED = "disabled"
    NO_GROUP = "no_group"  # in none of the groups that may come in
    NO_LOGIN = "no_login"  # the provider tells no usable login name
    LOGIN_TAKEN = "login_taken"  # the login name is somebody else's here
    TOO_MANY = "too_many"  # tries
    BUSY = "busy"  # the server itself


class OidcRefused(Reject):
    """A sign-in that came to nothing; `reason` in its details is the Failure. The message is for the log."""

    code = "oidc_refused"
    http_status = 403

    @property
    def failure(self) -> Failure:
        return Failure(str(self.details["reason"]))


def refused(failure: Failure, message: str) -> OidcRefused:
    return OidcRefused(message, reason=failure.value)


@dataclass(frozen=True, slots=True)
class Claimed:
    """Who somebody is at the provider, by a token that was checked."""

    issuer: str
    subject: str
    login: str | None  # None: none is told, or none that could be one here
    display_name: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class EntryRules:
    """Who may come in, by the settings."""

    link_by_login: bool = False
    create: bool = False
    create_role: Role = Role.VIEWER
    roles: RolesOfGroups = ()  # empty: roles are decided here, not by the provider


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody who has an account here."""

    user_id: int
    tenant_id: int
    login: str
    role: Role
    disabled: bool
    is_linked: bool  # to a subject of this provider


class Way(StrEnum):
    COME_IN = "come_in"
    LINK = "link"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be done. `role` None: as it is."""

    way: Way
    role: Role | None


def safe_target(wanted: str) -> str:
    """Where to go after signing in: only within this site, whatever the address said."""
    within = len(wanted) <= TARGET_MAX_CHARS and wanted.isascii() and _WITHIN_SITE.fullmatch(wanted)
    return wanted if within else "/"


def parse_roles(written: Sequence[str]) -> RolesOfGroups:
    """`group=role` each; BadInput when one is not that."""
    found = []
    for one in written:
        group, sign, name = (part.strip() for part in one.rpartition("="))
        role = next((role for role in RANKS if role.value == name), None)
        if not sign or not group or role is None:
            known = ", ".join(role.value for role in RANKS)
            raise BadInput(f"roles: {one!r} is not a group, an equals sign and one of {known}")
        found.append((group, role))
    return tuple(found)


def role_of(groups: Collection[str], roles: RolesOfGroups) -> Role | None:
    """The highest role that the groups give; None when they give none."""
    given = [role for group, role in roles if group == EVERYBODY or group in groups]
    return max(given, key=RANKS.index, default=None)


def is_meant_for(client_id: str, claims: Claims) -> bool:
    """Whether a token was made for this client: its audience, and who asked for it where that is said."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    party = claims.get("azp")
    if client_id not in audiences or (len(audiences) > 1 and party is None):
        return False
    return party is None or party == client_id


def is_subject(text: str) -> bool:
    return _SUBJECT.fullmatch(text) is not None


def claimed(claims: Claims, issuer: str, login_claim: str, groups_claim: str | None) -> Claimed:
    """Who the claims of a checked token name."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not is_subject(subject):
        raise refused(Failure.TOKEN, "the ID token names no subject of 1 to 255 printable characters")
    login = _login(claims, login_claim)
    return Claimed(
        issuer,
        subject,
        login,
        _display_name(claims) or login or subject[:NAME_MAX_CHARS],
        _groups(claims, groups_claim),
    )


def _login(claims: Claims, login_claim: str) -> str | None:
    told = claims.get(login_claim)
    if not isinstance(told, str):
        return None
    # An address that nobody proved to be theirs is nobody's name.
    if login_claim == "email" and claims.get("email_verified") is not True:
        return None
    try:
        return login_of(told)
    except BadInput:
        return None


def _display_name(claims: Claims) -> str:
    told = claims.get("name")
    if not isinstance(told, str):
        return ""
    return names.plain(told)[:NAME_MAX_CHARS]


def _groups(claims: Claims, groups_claim: str | None) -> frozenset[str]:
    """The claim itself, or, where its name has dots and there is none, the way down that they describe."""
    if groups_claim is None:
        return frozenset()
    told: Any = claims.get(groups_claim)
    if told is None:
        told = claims
        for part in groups_claim.split("."):
            told = told.get(part) if isinstance(told, Mapping) else None
    told = [told] if isinstance(told, str) else told
    if not isinstance(told, list):
        return frozenset()
    return frozenset(one for one in told[:GROUPS_MAX] if isinstance(one, str) and one != EVERYBODY)


def decide(who: Claimed, rules: EntryRules, linked: Known | None, namesake: Known | None) -> Entry:
    """What becomes of somebody who has shown who they are; OidcRefused when they may not come in.

    `linked` is the account that belongs to issuer and subject; `namesake`, asked for only without one, is the account
    whose login is the one that the provider tells.
    """
    role = role_of(who.groups, rules.roles)
    if linked is not None:
        _refuse_disabled(linked)
    if rules.roles and role is None:
        raise refused(Failure.NO_GROUP, "the person is in none of the groups that [oidc] roles names")
    if linked is not None:
        return Entry(Way.COME_IN, role)
    if namesake is not None and rules.link_by_login:
        if namesake.is_linked:
            raise refused(Failure.LOGIN_TAKEN, f"the login {namesake.login} belongs to another subject")
        _refuse_disabled(namesake)
        return Entry(Way.LINK, role)
    if not rules.create:
        raise refused(Failure.UNKNOWN, "nobody here is linked to this subject")
    if who.login is None:
        raise refused(
            Failure.NO_LOGIN, "the token holds no login name that could be one here; see [oidc] login_claim"
        )
    if namesake is not None:
        raise refused(Failure.LOGIN_TAKEN, f"the login {namesake.login} is somebody's who is not linked")
    return Entry(Way.CREATE, role or rules.create_role)


def _refuse_disabled(known: Known) -> None:
    if known.disabled:
        raise refused(Failure.DISABLED, f"the account {known.login} is switched off")
