"""Coming in with an OpenID Connect provider: whose account it is. Tokens were checked before they arrive here."""

from dataclasses import dataclass

from uuid_utils import uuid7

from camserver.base.errors import Conflict
from camserver.base.log import get_logger
from camserver.domain.oidc import Claimed, EntryRules, Failure, Known, Way, decide, refused
from camserver.domain.people import Principal, Role
from camserver.domain.tenants import Quota
from camserver.store import audit, people, tenant_quotas
from camserver.store.first_start import lock_home
from camserver.store.identities import LINK
from camserver.store.tx import Row, Scoped, Tx

log = get_logger(__name__)

_KNOWN = """
SELECT u.user_id, u.tenant_id, u.login, u.role, u.disabled, n.disabled AS tenant_disabled,
  (SELECT COUNT(*) FROM user_identities own WHERE own.user_id = u.user_id AND own.issuer = :issuer) AS linked
FROM users u JOIN tenants n ON n.tenant_id = u.tenant_id"""


@dataclass(frozen=True, slots=True)
class Entered:
    """Whose sign-in begins."""

    user_id: int
    tenant_id: int
    login: str


async def enter(tx: Tx, who: Claimed, rules: EntryRules, language: str, address: str, now_ms: int) -> Entered:
    """Finds, links or makes the account of somebody the provider vouches for; OidcRefused when nobody may come in."""
    # Two first sign-ins of one person at once must not both find nobody.
    home_id = await lock_home(tx)
    linked = await _linked(tx, who)
    namesake = None if linked is not None or who.login is None else await _namesake(tx, who)
    entry = decide(who, rules, linked, namesake)
    if entry.way is Way.CREATE:
        return await _create(tx, home_id, who, entry.role or rules.create_role, language, address, now_ms)
    known = linked or namesake
    assert known is not None
    if entry.way is Way.LINK:
        details: dict[str, str | int] = {"login": known.login, "issuer": who.issuer, "subject": who.subject}
        await _link(tx, known.tenant_id, known.user_id, who, now_ms)
        await _note(tx, known, "identity_linked", details, address, now_ms)
    if entry.role is not None and entry.role is not known.role:
        await _set_role(tx, known, entry.role, home_id, address, now_ms)
    return Entered(known.user_id, known.tenant_id, known.login)


async def note_failed(tx: Tx, failure: Failure, who: Claimed | None, address: str, now_ms: int) -> None:
    """Leaves an audit row, under the tenant of the person where it is known who that is."""
    known = None if who is None else await _linked(tx, who)
    details: dict[str, str | int] = {"by": "oidc", "reason": failure.value}
    if who is not None:
        details |= {"login": who.login or "", "subject": who.subject}
    entry = audit.Entry("sign_in_failed", now_ms, address, details=details)
    tenant_id = audit.INSTALLATION if known is None else known.tenant_id
    await audit.add(tx, tenant_id, None if known is None else known.user_id, entry)


async def _linked(tx: Tx, who: Claimed) -> Known | None:
    row = await tx.one(
        f"{_KNOWN} JOIN user_identities i ON i.user_id = u.user_id WHERE i.issuer = :issuer AND i.subject = :subject",
        issuer=who.issuer,
        subject=who.subject,
    )
    return None if row is None else _known(row)


async def _namesake(tx: Tx, who: Claimed) -> Known | None:
    row = await tx.one(f"{_KNOWN} WHERE u.login = :login", issuer=who.issuer, login=who.login)
    return None if row is None else _known(row)


def _known(row: Row) -> Known:
    return Known(
        row["user_id"],
        row["tenant_id"],
        row["login"],
        Role(row["role"]),
        bool(row["disabled"] or row["tenant_disabled"]),
        bool(row["linked"]),
    )


async def _link(tx: Tx, tenant_id: int, user_id: int, who: Claimed, now_ms: int) -> None:
    await tx.run(LINK, tenant_id=tenant_id, user_id=user_id, issuer=who.issuer, subject=who.subject, now_ms=now_ms)


async def _create(
    tx: Tx, tenant_id: int, who: Claimed, role: Role, language: str, address: str, now_ms: int
) -> Entered:
    row = await tx.one("SELECT COUNT(*) AS people FROM users WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    if row is not None and row["people"] >= people.PEOPLE_MAX:
        raise refused(Failure.UNKNOWN, f"there are {people.PEOPLE_MAX} people already; remove some first")
    try:
        await tenant_quotas.require_room(Scoped(tx, Principal(tenant_id, None, Role.SYSTEM_ADMIN)), Quota.PEOPLE)
    except Conflict as error:
        raise refused(Failure.UNKNOWN, error.message) from error
    login = str(who.login)
    user_id = await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, display_name, role, language, created_at) VALUES "
        "(:tenant_id, :user_uuid, :login, :display_name, :role, :language, :now_ms) RETURNING user_id",
        tenant_id=tenant_id,
        user_uuid=str(uuid7()),
        login=login,
        display_name=who.display_name,
        role=role.value,
        language=language,
        now_ms=now_ms,
    )
    await _link(tx, tenant_id, user_id, who, now_ms)
    details: dict[str, str | int] = {"login": login, "role": role.value, "by": "oidc", "subject": who.subject}
    known = Known(user_id, tenant_id, login, role, disabled=False, is_linked=True)
    await _note(tx, known, "user_added", details, address, now_ms)
    return Entered(user_id, tenant_id, login)


async def _set_role(tx: Tx, known: Known, role: Role, home_id: int, address: str, now_ms: int) -> None:
    """The role that the person's groups give. The last system administrator stays one, and only the home tenant has
    any.

    Grants stay, also with a role that they say nothing of: groups that give it for a while must not leave behind
    somebody who reaches more than an administrator granted.
    """
    if role is Role.SYSTEM_ADMIN and known.tenant_id != home_id:
        log.warning("no system administrator beyond the home tenant", login=known.login, kept=known.role.value)
        return
    if known.role is Role.SYSTEM_ADMIN and await _is_last_admin(tx, known):
        log.warning("the last system administrator keeps the role", login=known.login, given=role.value)
        return
    await tx.run("UPDATE users SET role = :role WHERE user_id = :user_id", role=role.value, user_id=known.user_id)
    # Whoever was given a link before might not have been given one to what the account is now.
    await tx.run("DELETE FROM password_links WHERE user_id = :user_id", user_id=known.user_id)
    details: dict[str, str | int] = {
        "login": known.login,
        "changed": "role",
        "role": role.value,
        "role_before": known.role.value,
        "by": "oidc",
    }
    await _note(tx, known, "user_changed", details, address, now_ms)


async def _is_last_admin(tx: Tx, known: Known) -> bool:
    other = await tx.one(
        "SELECT user_id FROM users WHERE tenant_id = :tenant_id AND role = :role AND disabled = 0 "
        "AND user_id <> :user_id LIMIT 1",
        tenant_id=known.tenant_id,
        role=Role.SYSTEM_ADMIN.value,
        user_id=known.user_id,
    )
    return other is None


async def _note(tx: Tx, known: Known, action: str, details: dict[str, str | int], address: str, now_ms: int) -> None:
    entry = audit.Entry(action, now_ms, address, "user", str(known.user_id), details)
    await audit.add(tx, known.tenant_id, known.user_id, entry)
