"""Signed-in browsers. A cookie's token is kept as a hash; the row says until when it works."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from camserver.base.errors import Unauthenticated
from camserver.domain.people import Principal, Role, session_expires_at, session_needs_touch
from camserver.store import audit, grants
from camserver.store.core import unlogged
from camserver.store.tx import Row, Scoped, Tx

# Sign-ins one person may have at once; the oldest ends when one more begins.
SESSIONS_PER_USER_MAX = 50
USER_AGENT_MAX_CHARS = 255
SWEEP_BATCH = 1000


@dataclass(frozen=True, slots=True)
class NewSession:
    token_hash: str
    csrf_token: str = field(repr=False)
    session_hours: int
    address: str
    user_agent: str
    by: str = ""  # how it was proved who it is, where that was not a password
    proved_by: str | None = field(default=None, repr=False)  # the hash that the password fitted, where it was one


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who a cookie stands for."""

    principal: Principal
    csrf_token: str = field(repr=False)
    login: str
    display_name: str
    language: str
    created_at: int
    expires_at: int
    last_seen_at: int

    def needs_touch(self, now_ms: int) -> bool:
        return session_needs_touch(self.last_seen_at, now_ms)


async def begin(tx: Tx, user_id: int, tenant_id: int, session: NewSession, now_ms: int) -> None:
    """Signs somebody in who has proved who it is, and forgets their failed tries."""
    if session.proved_by is not None:
        await _refuse_former_password(tx, user_id, session.proved_by)
    await _make_room(tx, user_id)
    await tx.run(
        "INSERT INTO sessions (tenant_id, user_id, token_hash, csrf_token, created_at, expires_at, last_seen_at, "
        "address, user_agent) VALUES (:tenant_id, :user_id, :token_hash, :csrf_token, :now_ms, :expires_at, "
        ":now_ms, :address, :user_agent)",
        tenant_id=tenant_id,
        user_id=user_id,
        token_hash=session.token_hash,
        csrf_token=session.csrf_token,
        now_ms=now_ms,
        expires_at=session_expires_at(now_ms, now_ms, session.session_hours),
        address=session.address[: audit.ADDRESS_MAX_CHARS],
        user_agent=session.user_agent[:USER_AGENT_MAX_CHARS],
    )
    await tx.run("UPDATE users SET failed_logins = 0 WHERE user_id = :user_id", user_id=user_id)
    details = {"by": session.by} if session.by else None
    entry = audit.Entry("sign_in", now_ms, session.address, "user", str(user_id), details)
    await audit.add(tx, tenant_id, user_id, entry)


async def _refuse_former_password(tx: Tx, user_id: int, proved_by: str) -> None:
    """Comparing a password takes its time. Under the row's lock a new password, which ends all sign-ins, waits for
    this one and ends it, too, or was there first."""
    row = await tx.one("SELECT password_hash FROM users WHERE user_id = :user_id FOR UPDATE", user_id=user_id)
    if row is None or row["password_hash"] != proved_by:
        raise Unauthenticated("login or password is wrong; check both and try again", reason="wrong_login")


async def _make_room(tx: Tx, user_id: int) -> None:
    rows = await tx.all(
        "SELECT session_id FROM sessions WHERE user_id = :user_id ORDER BY session_id DESC LIMIT 1000",
        user_id=user_id,
    )
    surplus = [row["session_id"] for row in rows][SESSIONS_PER_USER_MAX - 1 :]
    if surplus:
        await tx.run("DELETE FROM sessions WHERE session_id IN (:surplus...)", surplus=surplus)


async def find(tx: Tx, token_hash: str, now_ms: int) -> SignedIn | None:
    """The sign-in of a cookie that works now; that of a disabled person or tenant never does."""
    row = await tx.one(
        "SELECT s.session_id, s.csrf_token, s.created_at, s.expires_at, s.last_seen_at, u.user_id, u.tenant_id, "
        "u.role, u.granted_only, u.login, u.display_name, u.language "
        "FROM sessions s JOIN users u ON u.user_id = s.user_id "
        "JOIN tenants n ON n.tenant_id = u.tenant_id AND n.disabled = 0 "
        "WHERE s.token_hash = :token_hash AND s.expires_at > :now_ms AND u.disabled = 0",
        token_hash=token_hash,
        now_ms=now_ms,
    )
    if row is None:
        return None
    (principal,) = await _principals(tx, [row])
    return SignedIn(
        principal,
        row["csrf_token"],
        row["login"],
        row["display_name"],
        row["language"],
        row["created_at"],
        row["expires_at"],
        row["last_seen_at"],
    )


async def principals(tx: Tx, session_ids: tuple[int, ...], now_ms: int) -> dict[int, Principal]:
    """Who those sign-ins stand for now, with their present grants; one that is over is not among them."""
    rows = await tx.all(
        "SELECT s.session_id, u.user_id, u.tenant_id, u.role, u.granted_only "
        "FROM sessions s JOIN users u ON u.user_id = s.user_id "
        "JOIN tenants n ON n.tenant_id = u.tenant_id AND n.disabled = 0 "
        "WHERE s.session_id IN (:session_ids...) AND s.expires_at > :now_ms AND u.disabled = 0",
        session_ids=session_ids,
        now_ms=now_ms,
    )
    return {one.session_id: one for one in await _principals(tx, rows) if one.session_id is not None}


async def _principals(tx: Tx, rows: Sequence[Row]) -> tuple[Principal, ...]:
    wide = [
        Principal(row["tenant_id"], row["user_id"], Role(row["role"]), session_id=row["session_id"]) for row in rows
    ]
    return await grants.narrowed(tx, wide, {row["user_id"] for row in rows if row["granted_only"]})


@unlogged("a use of a sign-in, noted once a minute; what it was used for is logged")
async def touch(tx: Scoped, session_hours: int, now_ms: int) -> None:
    """Notes that the principal's sign-in was used, which keeps it for longer, up to its absolute end."""
    row = await tx.one(
        "SELECT created_at FROM sessions WHERE session_id = :session_id AND tenant_id = :tenant_id",
        session_id=tx.principal.session_id,
    )
    if row is None:
        return
    await tx.run(
        "UPDATE sessions SET last_seen_at = :now_ms, expires_at = :expires_at "
        "WHERE session_id = :session_id AND tenant_id = :tenant_id AND last_seen_at < :now_ms",
        session_id=tx.principal.session_id,
        now_ms=now_ms,
        expires_at=session_expires_at(row["created_at"], now_ms, session_hours),
    )


async def end(tx: Scoped, address: str, now_ms: int) -> None:
    """Signs the principal out."""
    await tx.run(
        "DELETE FROM sessions WHERE session_id = :session_id AND tenant_id = :tenant_id",
        session_id=tx.principal.session_id,
    )
    await audit.add_own(tx, audit.Entry("sign_out", now_ms, address, "user", str(tx.principal.user_id)))


@dataclass(frozen=True, slots=True)
class SignInSeen:
    session_id: int
    created_at: int
    last_seen_at: int
    address: str
    user_agent: str


async def own(tx: Scoped, now_ms: int) -> tuple[SignInSeen, ...]:
    """The principal's sign-ins that are not over, the last one used first."""
    rows = await tx.all(
        "SELECT session_id, created_at, last_seen_at, address, user_agent FROM sessions "
        "WHERE user_id = :user_id AND tenant_id = :tenant_id AND expires_at > :now_ms "
        "ORDER BY last_seen_at DESC, session_id DESC LIMIT :most",
        user_id=tx.principal.user_id,
        now_ms=now_ms,
        most=SESSIONS_PER_USER_MAX,
    )
    return tuple(
        SignInSeen(row["session_id"], row["created_at"], row["last_seen_at"], row["address"], row["user_agent"])
        for row in rows
    )


async def end_others(tx: Scoped, address: str, now_ms: int) -> None:
    """Signs the principal out everywhere but here."""
    ended = await tx.run(
        "DELETE FROM sessions WHERE user_id = :user_id AND tenant_id = :tenant_id AND session_id <> :session_id",
        user_id=tx.principal.user_id,
        session_id=tx.principal.session_id,
    )
    entry = audit.Entry(
        "signed_out_elsewhere", now_ms, address, "user", str(tx.principal.user_id), {"sign_ins": ended}
    )
    await audit.add_own(tx, entry)


async def sweep(tx: Tx, now_ms: int) -> int:
    """Removes sign-ins that are over; answers how many."""
    rows = await tx.all(
        "SELECT session_id FROM sessions WHERE expires_at <= :now_ms ORDER BY expires_at LIMIT :batch",
        now_ms=now_ms,
        batch=SWEEP_BATCH,
    )
    if not rows:
        return 0
    return await tx.run(
        "DELETE FROM sessions WHERE session_id IN (:ended...)", ended=[row["session_id"] for row in rows]
    )
