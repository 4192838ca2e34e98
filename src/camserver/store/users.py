"""People who sign in. Passwords arrive here hashed."""

from dataclasses import dataclass, field

from uuid_utils import uuid7

from camserver.base.errors import Conflict
from camserver.domain.people import Role
from camserver.store import audit
from camserver.store.tx import Tx

# Why a sign-in failed, where the log can't say as whom it was tried.
UNKNOWN_LOGIN = "unknown_login"


@dataclass(frozen=True, slots=True)
class NewUser:
    login: str  # lower case
    display_name: str
    language: str  # ja or en
    password_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """What signing in needs to know."""

    user_id: int
    tenant_id: int
    password_hash: str | None = field(repr=False)
    disabled: bool = False  # the person, or the whole tenant


async def admin_exists(tx: Tx) -> bool:
    row = await tx.one("SELECT user_id FROM users WHERE role = :role LIMIT 1", role=Role.SYSTEM_ADMIN.value)
    return row is not None


async def add_admin(tx: Tx, tenant_id: int, admin: NewUser, address: str, now_ms: int) -> int:
    """The first admin, made by a set-up link; `setup_links.use` sees to it that there is one."""
    user_id = await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, display_name, role, password_hash, language, "
        "password_changed_at, created_at) VALUES (:tenant_id, :user_uuid, :login, :display_name, :role, "
        ":password_hash, :language, :now_ms, :now_ms) RETURNING user_id",
        tenant_id=tenant_id,
        user_uuid=str(uuid7()),
        login=admin.login,
        display_name=admin.display_name,
        role=Role.SYSTEM_ADMIN.value,
        password_hash=admin.password_hash,
        language=admin.language,
        now_ms=now_ms,
    )
    entry = audit.Entry("set_up", now_ms, address, "user", str(user_id), {"login": admin.login})
    await audit.add(tx, tenant_id, user_id, entry)
    return user_id


def login_taken(login: str) -> Conflict:
    return Conflict(f"there is somebody with the login {login!r}; choose another one", reason="login_taken")


async def refuse_taken(tx: Tx, login: str) -> None:
    """Conflict when somebody has it, of whichever tenant: logins are one namespace over all. Somebody's id is taken,
    too, since people are named by either."""
    if await tx.one("SELECT user_id FROM users WHERE login = :login OR user_uuid = :login", login=login):
        raise login_taken(login)


async def find_account(tx: Tx, login: str) -> Account | None:
    row = await tx.one(
        "SELECT u.user_id, u.tenant_id, u.password_hash, u.disabled, t.disabled AS tenant_disabled "
        "FROM users u JOIN tenants t ON t.tenant_id = u.tenant_id WHERE u.login = :login",
        login=login,
    )
    if row is None:
        return None
    is_disabled = bool(row["disabled"] or row["tenant_disabled"])
    return Account(row["user_id"], row["tenant_id"], row["password_hash"], is_disabled)


async def note_failed_sign_in(tx: Tx, login: str, address: str, now_ms: int) -> None:
    """Leaves an audit row, under the tenant of the login where there is one, and counts.

    An unknown login runs the same statements, so that it takes as long. It is not written down: people type their
    password into that field, and what is in this log stays there.
    """
    account = await find_account(tx, login)
    await tx.run("UPDATE users SET failed_logins = failed_logins + 1 WHERE login = :login", login=login)
    details = {"reason": UNKNOWN_LOGIN} if account is None else {"login": login}
    entry = audit.Entry("sign_in_failed", now_ms, address, details=details)
    tenant_id = audit.INSTALLATION if account is None else account.tenant_id
    await audit.add(tx, tenant_id, None if account is None else account.user_id, entry)


async def replace_hash(tx: Tx, user_id: int, old_hash: str, new_hash: str) -> bool:
    """The same password hashed with newer parameters; False: it was changed meanwhile, or hashed anew by another."""
    matched = await tx.run(
        "UPDATE users SET password_hash = :new_hash WHERE user_id = :user_id AND password_hash = :old_hash",
        new_hash=new_hash,
        user_id=user_id,
        old_hash=old_hash,
    )
    return matched == 1
