"""The audit log as people read it: newest first, with filters, and with logins instead of ids."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from camserver.domain.audit import LoggedEntry
from camserver.domain.people import LINK, LOCAL_ADMIN, SOMEBODY_GONE, SYSTEM
from camserver.store.audit import number_of, read_details
from camserver.store.audit_seals import ENTRY_COLUMNS, entry_of
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.tx import Row, Scoped

PAGE_MAX = 500
# Both who did something, and whom something was done to.
_PERSON = "user"
_LOCAL_ADMIN_ID = "local_admin_token"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are asked for; what is left out does not narrow."""

    who: str | None = None  # a login, or one of the names of those who have none
    action: str | None = None
    object_kind: str | None = None
    object_id: str | None = None  # of a person the login, the uuid or the number
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    entry_id: int
    at: int
    who: str
    actor_kind: str
    action: str
    object_kind: str
    object_id: str
    object_name: str | None  # the login of the person it is about
    details: dict[str, Any] | None
    address: str
    batch_no: int | None  # None: not sealed yet
    cursor: str


async def page(tx: Scoped, wanted: AuditFilter, before: str | None, limit: int) -> tuple[AuditLine, ...]:
    """Newest first, from behind the cursor."""
    at_ms, entry_id = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.AUDIT, before)
    clauses, params = await _narrowed(tx, wanted)
    if clauses is None:
        return ()
    rows = await tx.all(
        f"SELECT {ENTRY_COLUMNS}, batch_no FROM audit_log WHERE tenant_id = :tenant_id{clauses} "
        "AND at <= :before_at AND (at < :same_at OR entry_id < :before_id) "
        "ORDER BY at DESC, entry_id DESC LIMIT :limit",
        before_at=at_ms,
        same_at=at_ms,
        before_id=entry_id,
        limit=min(limit, PAGE_MAX),
        **params,
    )
    found = [(row, entry_of(row)) for row in rows]
    about = [(_PERSON, entry.object_id) for _, entry in found if entry.object_kind == _PERSON]
    logins = await names(tx, [*((entry.actor_kind, entry.actor_id) for _, entry in found), *about])
    return tuple([_line(row, entry, logins) for row, entry in found])


async def _narrowed(tx: Scoped, wanted: AuditFilter) -> tuple[str | None, dict[str, object]]:
    """None: nobody of that name is known, so nothing fits."""
    clauses = ""
    params: dict[str, object] = {}
    if wanted.who is not None:
        actor = await _actor(tx, wanted.who)
        if actor is None:
            return None, {}
        clauses += " AND actor_kind = :actor_kind AND actor_id IN (:actor_ids...)"
        params |= {"actor_kind": actor[0], "actor_ids": actor[1]}
    for column in ("action", "object_kind"):
        value = getattr(wanted, column)
        if value is not None:
            clauses += f" AND {column} = :{column}"
            params[column] = value
    if wanted.object_id is not None:
        clauses += " AND object_id IN (:object_ids...)"
        params["object_ids"] = await _object_ids(tx, wanted.object_kind, wanted.object_id)
    if wanted.from_ms is not None:
        clauses += " AND at >= :from_ms"
        params["from_ms"] = wanted.from_ms
    if wanted.to_ms is not None:
        clauses += " AND at < :to_ms"
        params["to_ms"] = wanted.to_ms
    return clauses, params


async def _actor(tx: Scoped, who: str) -> tuple[str, tuple[str, ...]] | None:
    """The kind of who did something, and the numbers: of somebody who is there, and of removed ones of that name."""
    if who in (LOCAL_ADMIN, SYSTEM, LINK):
        return {LOCAL_ADMIN: ("system", (_LOCAL_ADMIN_ID,)), SYSTEM: ("system", ("",)), LINK: (LINK, ("",))}[who]
    user_ids = await _of_login(tx, who)
    return (_PERSON, user_ids) if user_ids else None


async def _object_ids(tx: Scoped, kind: str | None, object_id: str) -> tuple[str, ...]:
    """A person is in the log by a number that is shown nowhere else."""
    if kind != _PERSON:
        return (object_id,)
    row = await tx.one(
        "SELECT user_id FROM users WHERE tenant_id = :tenant_id AND user_uuid = :user_uuid", user_uuid=object_id
    )
    if row is not None:
        return (str(row["user_id"]),)
    return await _of_login(tx, object_id) or (object_id,)


async def _of_login(tx: Scoped, login: str) -> tuple[str, ...]:
    rows = await tx.all(
        "SELECT user_id FROM users WHERE tenant_id = :tenant_id AND login = :login "
        "UNION ALL SELECT user_id FROM removed_users WHERE tenant_id = :tenant_id AND login = :login",
        login=login.strip().lower(),
    )
    return tuple(str(row["user_id"]) for row in rows)


async def names(tx: Scoped, actors: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """How those who did something are called."""
    wanted = set(actors)
    numbers = {number_of(one) for kind, one in wanted if kind == "user"}
    user_ids = sorted([one for one in numbers if one is not None and one <= BEYOND])
    rows = await tx.all(
        "SELECT user_id, login FROM users WHERE tenant_id = :tenant_id AND user_id IN (:user_ids...) UNION ALL "
        "SELECT user_id, login FROM removed_users WHERE tenant_id = :tenant_id AND user_id IN (:user_ids...)",
        user_ids=user_ids,
    )
    logins = {str(row["user_id"]): str(row["login"]) for row in rows}
    return {one: _name(one, logins) for one in wanted}


def _name(actor: tuple[str, str], logins: dict[str, str]) -> str:
    match actor:
        case "user", user_id:
            return logins.get(user_id, SOMEBODY_GONE)
        case "system", actor_id:
            return LOCAL_ADMIN if actor_id == _LOCAL_ADMIN_ID else SYSTEM
        case kind, actor_id:
            return f"{kind} {actor_id}".strip()


def _line(row: Row, entry: LoggedEntry, logins: dict[tuple[str, str], str]) -> AuditLine:
    return AuditLine(
        entry_id=entry.entry_id,
        at=entry.at,
        who=logins[entry.actor_kind, entry.actor_id],
        actor_kind=entry.actor_kind,
        action=entry.action,
        object_kind=entry.object_kind,
        object_id=entry.object_id,
        object_name=logins[_PERSON, entry.object_id] if entry.object_kind == _PERSON else None,
        details=read_details(entry.details),
        address=entry.address,
        batch_no=row["batch_no"] if isinstance(row["batch_no"], int) else None,
        # On SQLite somebody may have written a part of a millisecond; the page goes on behind it all the same.
        cursor=make_cursor(Listed.AUDIT, int(row["at"]), entry.entry_id),
    )
