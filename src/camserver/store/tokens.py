"""Tokens of programs. Each stands for a user, within its scopes and never beyond what that user may do now."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from uuid_utils import uuid7

from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Permission, Principal, Role, check_scopes, require_no_token, require_rank
from camserver.store import audit, grants, people, tenants
from camserver.store.core import unlogged
from camserver.store.tx import Row, Scoped, Tx

TOKENS_PER_USER_MAX = 50
PAGE_MAX = 500
# Its last use is written at most this often.
TOUCH_MS = 60_000


@dataclass(frozen=True, slots=True)
class NewToken:
    user: str  # uuid or login of whom it stands for
    name: str
    scopes: frozenset[Permission]
    expires_at: int
    token_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenSummary:
    token_uuid: str
    name: str
    login: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int
    last_used_at: int | None
    last_address: str


@dataclass(frozen=True, slots=True)
class Known:
    """Whom a token stands for."""

    principal: Principal
    login: str
    display_name: str
    language: str
    expires_at: int
    last_used_at: int | None

    def needs_touch(self, now_ms: int) -> bool:
        return self.last_used_at is None or now_ms - self.last_used_at >= TOUCH_MS


async def find(tx: Tx, token_hash: str, now_ms: int) -> Known | None:
    """A token that works now; that of a disabled person or tenant never does."""
    row = await tx.one(
        "SELECT t.token_id, t.scopes, t.expires_at, t.last_used_at, u.user_id, u.tenant_id, u.role, u.granted_only, "
        "u.login, u.display_name, u.language FROM api_tokens t JOIN users u ON u.user_id = t.user_id "
        "JOIN tenants n ON n.tenant_id = u.tenant_id AND n.disabled = 0 "
        "WHERE t.token_hash = :token_hash AND t.expires_at > :now_ms AND t.revoked_at IS NULL AND u.disabled = 0",
        token_hash=token_hash,
        now_ms=now_ms,
    )
    if row is None:
        return None
    (principal,) = await _principals(tx, [row])
    return Known(
        principal,
        row["login"],
        row["display_name"],
        row["language"],
        row["expires_at"],
        row["last_used_at"],
    )


async def principals(tx: Tx, token_ids: tuple[int, ...], now_ms: int) -> dict[int, Principal]:
    """Whom those tokens stand for now; one that is over is not among them."""
    rows = await tx.all(
        "SELECT t.token_id, t.scopes, u.user_id, u.tenant_id, u.role, u.granted_only "
        "FROM api_tokens t JOIN users u ON u.user_id = t.user_id "
        "JOIN tenants n ON n.tenant_id = u.tenant_id AND n.disabled = 0 "
        "WHERE t.token_id IN (:token_ids...) AND t.expires_at > :now_ms AND t.revoked_at IS NULL AND u.disabled = 0",
        token_ids=token_ids,
        now_ms=now_ms,
    )
    return {one.token_id: one for one in await _principals(tx, rows) if one.token_id is not None}


async def _principals(tx: Tx, rows: Sequence[Row]) -> tuple[Principal, ...]:
    wide = [
        Principal(row["tenant_id"], row["user_id"], Role(row["role"]), token_id=row["token_id"], scopes=_scopes(row))
        for row in rows
    ]
    return await grants.narrowed(tx, wide, {row["user_id"] for row in rows if row["granted_only"]})


@unlogged("a use of a token, noted once a minute; what it was used for is logged")
async def touch(tx: Scoped, address: str, now_ms: int) -> None:
    await tx.run(
        "UPDATE api_tokens SET last_used_at = :now_ms, last_address = :address "
        "WHERE token_id = :token_id AND tenant_id = :tenant_id",
        token_id=tx.principal.token_id,
        address=address[: audit.ADDRESS_MAX_CHARS],
        now_ms=now_ms,
    )


async def add(tx: Scoped, new: NewToken, address: str, now_ms: int) -> TokenSummary:
    """For oneself, or, by those who manage people, for somebody not above them."""
    require_no_token(tx.principal)
    await tenants.lock(tx)
    owner = await people.get(tx, new.user)
    if owner.user_id != tx.principal.user_id:
        tx.principal.require(Permission.MANAGE_PEOPLE)
        require_rank(tx.principal, owner.role)
    check_scopes(tx.principal, owner.role, new.scopes)
    row = await tx.one(
        "SELECT count(*) AS tokens FROM api_tokens WHERE user_id = :user_id AND tenant_id = :tenant_id "
        "AND revoked_at IS NULL AND expires_at > :now_ms",
        user_id=owner.user_id,
        now_ms=now_ms,
    )
    if row is not None and row["tokens"] >= TOKENS_PER_USER_MAX:
        raise Conflict(
            f"{owner.login} has {TOKENS_PER_USER_MAX} tokens already; revoke one first",
            reason="api_tokens_full",
            most=TOKENS_PER_USER_MAX,
        )
    token_uuid = str(uuid7())
    await tx.run(
        "INSERT INTO api_tokens (tenant_id, user_id, token_uuid, name, token_hash, scopes, created_at, expires_at) "
        "VALUES (:tenant_id, :user_id, :token_uuid, :name, :token_hash, :scopes, :now_ms, :expires_at)",
        user_id=owner.user_id,
        token_uuid=token_uuid,
        name=new.name,
        token_hash=new.token_hash,
        scopes=json.dumps(sorted(new.scopes)),
        expires_at=new.expires_at,
        now_ms=now_ms,
    )
    details: dict[str, str | int] = {
        "name": new.name,
        "login": owner.login,
        "scopes": " ".join(sorted(new.scopes)),
        "expires_at": new.expires_at,
    }
    await audit.add_own(tx, audit.Entry("token_added", now_ms, address, "token", token_uuid, details))
    return await _get(tx, token_uuid)


async def page(tx: Scoped, user: str | None, after: str, limit: int, now_ms: int) -> tuple[TokenSummary, ...]:
    """Tokens that work: one's own, or, for those who manage people, everybody's; in the order in which they were
    made, from behind the token `after`."""
    only = tx.principal.user_id
    if tx.principal.may(Permission.MANAGE_PEOPLE):
        only = None if user is None else (await people.get(tx, user)).user_id
    elif user is not None:
        await _refuse_others(tx, user)
    rows = await tx.all(
        f"{_SUMMARY} AND t.revoked_at IS NULL AND t.expires_at > :now_ms "
        "AND (:everybody = 1 OR t.user_id = :user_id) AND t.token_uuid > :after ORDER BY t.token_uuid LIMIT :limit",
        everybody=int(only is None),
        after=after,
        limit=min(limit, PAGE_MAX),
        user_id=only or 0,
        now_ms=now_ms,
    )
    return tuple(_summary(row) for row in rows)


async def _refuse_others(tx: Scoped, user: str) -> None:
    """Somebody else is not there for those who manage nobody, whether there is such a login or not."""
    own = await people.oneself(tx)
    if user not in (own.login, own.user_uuid):
        raise people.missing(user)


async def revoke(tx: Scoped, token_uuid: str, address: str, now_ms: int) -> None:
    """It works no more from the next request on. A program may end its own token; those of somebody above stay."""
    row = await tx.one(f"{_SUMMARY} AND t.token_uuid = :token_uuid AND t.revoked_at IS NULL", token_uuid=token_uuid)
    if row is None or not _may_revoke(tx, row):
        raise NotFound("there is no such token, or it was revoked already", reason="no_token", token=token_uuid)
    if row["token_id"] != tx.principal.token_id:
        require_no_token(tx.principal)
    if row["user_id"] != tx.principal.user_id:
        require_rank(tx.principal, Role(row["role"]))
    await tx.run(
        "UPDATE api_tokens SET revoked_at = :now_ms WHERE token_uuid = :token_uuid AND tenant_id = :tenant_id",
        token_uuid=token_uuid,
        now_ms=now_ms,
    )
    details: dict[str, str | int] = {"name": row["name"], "login": row["login"]}
    await audit.add_own(tx, audit.Entry("token_revoked", now_ms, address, "token", token_uuid, details))


def _may_revoke(tx: Scoped, row: Row) -> bool:
    return row["user_id"] == tx.principal.user_id or tx.principal.may(Permission.MANAGE_PEOPLE)


_SUMMARY = """
SELECT t.token_id, t.token_uuid, t.name, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.last_address,
  t.user_id, u.login, u.role
FROM api_tokens t JOIN users u ON u.user_id = t.user_id WHERE t.tenant_id = :tenant_id"""


async def _get(tx: Scoped, token_uuid: str) -> TokenSummary:
    row = await tx.one(f"{_SUMMARY} AND t.token_uuid = :token_uuid", token_uuid=token_uuid)
    assert row is not None
    return _summary(row)


def _summary(row: Row) -> TokenSummary:
    return TokenSummary(
        row["token_uuid"],
        row["name"],
        row["login"],
        tuple(sorted(_scopes(row))),
        row["created_at"],
        row["expires_at"],
        row["last_used_at"],
        row["last_address"],
    )


def _scopes(row: Row) -> frozenset[Permission]:
    names: Collection[str] = json.loads(row["scopes"])
    # One that this version does not know is good for nothing.
    return frozenset(Permission(name) for name in names if name in set(Permission))
