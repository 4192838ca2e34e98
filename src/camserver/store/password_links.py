"""One-time links with which somebody chooses a password. Only hashes of their tokens are kept."""

from dataclasses import dataclass

from camserver.base.errors import Forbidden
from camserver.domain.people import PASSWORD_LINK_TTL_MS, Principal, Role, require_rank
from camserver.store import audit, people
from camserver.store.people import Person
from camserver.store.tx import Scoped, Tx


@dataclass(frozen=True, slots=True)
class Chooser:
    """Whose password a link chooses."""

    principal: Principal
    login: str
    display_name: str


async def add(tx: Scoped, user_uuid: str, token_hash: str, address: str, now_ms: int) -> Person:
    """A new link; those before it stop working. The password and the sign-ins stay until it is used."""
    person = await people.get(tx, user_uuid)
    require_rank(tx.principal, person.role)
    await people.drop_links(tx, person.user_id)
    await tx.run(
        "INSERT INTO password_links (tenant_id, user_id, token_hash, created_at, expires_at) "
        "VALUES (:tenant_id, :user_id, :token_hash, :now_ms, :expires_at)",
        user_id=person.user_id,
        token_hash=token_hash,
        now_ms=now_ms,
        expires_at=now_ms + PASSWORD_LINK_TTL_MS,
    )
    entry = audit.Entry("password_link_made", now_ms, address, "user", str(person.user_id), {"login": person.login})
    await audit.add_own(tx, entry)
    return person


async def find(tx: Tx, token_hash: str, now_ms: int) -> Chooser | None:
    row = await tx.one(
        "SELECT u.user_id, u.tenant_id, u.role, u.login, u.display_name FROM password_links l "
        "JOIN users u ON u.user_id = l.user_id "
        "JOIN tenants n ON n.tenant_id = u.tenant_id AND n.disabled = 0 "
        "WHERE l.token_hash = :token_hash AND l.expires_at > :now_ms AND u.disabled = 0",
        token_hash=token_hash,
        now_ms=now_ms,
    )
    if row is None:
        return None
    return Chooser(Principal(row["tenant_id"], row["user_id"], Role(row["role"])), row["login"], row["display_name"])


async def use(tx: Scoped, token_hash: str, password_hash: str, address: str, now_ms: int) -> None:
    """Sets the password and uses the link up, together. Of any number of racing calls one succeeds."""
    used = await tx.run(
        "DELETE FROM password_links WHERE token_hash = :token_hash AND user_id = :user_id "
        "AND tenant_id = :tenant_id AND expires_at > :now_ms",
        token_hash=token_hash,
        user_id=tx.principal.user_id,
        now_ms=now_ms,
    )
    if not used:
        raise unknown()
    assert tx.principal.user_id is not None
    await people.set_password(tx, tx.principal.user_id, password_hash, None, address, now_ms)


def unknown() -> Forbidden:
    return Forbidden(
        "the link is not right, was used already or is too old; ask an administrator for a new one",
        reason="password_link",
    )


async def sweep(tx: Tx, now_ms: int) -> int:
    """Removes links that are over; answers how many."""
    return await tx.run("DELETE FROM password_links WHERE expires_at <= :now_ms", now_ms=now_ms)
