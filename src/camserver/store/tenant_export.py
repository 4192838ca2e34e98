"""A tenant's rows for an export, page by page in the order of their keys. Secrets are left out.

A test holds the lists here against the schema, so that a new table or a new secret can't be forgotten.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Principal
from camserver.store import audit, tenant_desk
from camserver.store.erasure import TABLES, Table, pictures
from camserver.store.paging import BEYOND
from camserver.store.tx import Row, Scoped, Tx

PAGE = 200
# Without a meaning anywhere else, or made from notes and memos.
LEFT_OUT = (
    "change_counters",
    "garbage",
    "modal_leases",
    "request_keys",
    "search_texts",
    "search_tokens",
    "suggestions",
    "scoring_cache",
)
EXPORTED = {
    table.name: table for table in (Table("tenants", "tenant_id"), *reversed(TABLES)) if table.name not in LEFT_OUT
}
# Of the columns that tell rows apart, those that hold text. The others hold numbers.
TEXT_KEYS = frozenset({"tag_id", "category", "scope", "retention_class", "name", "day", "address"})
_SEALED = frozenset({"key_id", "nonce", "ciphertext"})
# What lets somebody in, hashed, sealed or not.
SECRETS: Mapping[str, frozenset[str]] = {
    "users": frozenset({"password_hash"}),
    "sessions": frozenset({"token_hash", "csrf_token"}),
    "password_links": frozenset({"token_hash"}),
    "api_tokens": frozenset({"token_hash"}),
    "shares": frozenset({"token_hash"}),
    "worker_enrolments": frozenset({"token_hash"}),
    "camera_auth": _SEALED,
    "receivers": _SEALED,
    "errands": _SEALED,
    "push_subscriptions": _SEALED | {"endpoint", "endpoint_hash", "p256dh"},
}


@dataclass(frozen=True, slots=True)
class NamedObject:
    key: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    rows: tuple[dict[str, object], ...]
    objects: tuple[NamedObject, ...]
    end: tuple[int | str, ...] | None  # the key behind which the next page begins; None: this was the last


@dataclass(frozen=True, slots=True)
class Plan:
    tenant_uuid: str
    name: str
    rows: Mapping[str, int]  # by table


async def plan(tx: Tx, principal: Principal, tenant: str) -> Plan:
    """What there is to export."""
    found = await tenant_desk.get(tx, principal, tenant)
    if found.erasing_at is not None:
        raise tenant_desk.being_erased(found.name)
    rows = {}
    for name in EXPORTED:
        row = await tx.one(
            f"SELECT count(*) AS n FROM {name} WHERE tenant_id = :tenant_id", tenant_id=found.tenant_id
        )
        rows[name] = 0 if row is None else int(row["n"])
    return Plan(found.tenant_uuid, found.name, rows)


async def note(tx: Tx, principal: Principal, tenant: str, address: str, now_ms: int) -> None:
    """Writes down that somebody exports it: at home, and in its own log, whose people it concerns. Once in some
    minutes: an export is thousands of pages and pictures."""
    found = await tenant_desk.get(tx, principal, tenant)
    details: dict[str, str | int] = {"tenant_uuid": found.tenant_uuid}
    entry = audit.Entry("tenant_exported", now_ms, address, "tenant", found.name, details)
    home = Scoped(tx, principal)
    if await audit.is_noted(home, entry):
        return
    await audit.add_own(home, entry)
    if found.tenant_id != principal.tenant_id:
        await audit.add_from_home(tx, principal, found.tenant_id, entry)


async def page(
    tx: Tx, principal: Principal, tenant: str, table: str, after: Sequence[int | str] | None, limit: int = PAGE
) -> Page:
    """Rows behind a key. `after` None: from the first one on."""
    found = await tenant_desk.get(tx, principal, tenant)
    chosen = EXPORTED.get(table)
    if chosen is None:
        raise NotFound(f"there is no table {table!r} to export", reason="no_table", table=table)
    keys = chosen.keys.split(", ")
    if after is not None:
        _check_place(keys, after)
    params = {f"k{at}": value for at, value in enumerate(after or ())}
    behind = "" if after is None else f" AND {_behind(keys)}"
    rows = await tx.all(
        f"SELECT * FROM {table} WHERE tenant_id = :tenant_id{behind} ORDER BY {chosen.keys} LIMIT :limit",
        tenant_id=found.tenant_id,
        limit=limit,
        **params,
    )
    end = tuple(rows[-1][key] for key in keys) if len(rows) == limit else None
    named = tuple([one for row in rows for one in _objects(chosen, row)])
    return Page(tuple([_plain(table, row) for row in rows]), named, end)


async def tenant_id_of(tx: Tx, principal: Principal, tenant: str) -> int:
    return (await tenant_desk.get(tx, principal, tenant)).tenant_id


def _check_place(keys: Sequence[str], after: Sequence[int | str]) -> None:
    """BadInput for what no page of the table ended with: each database would make something else of it."""
    if len(after) != len(keys) or not all(map(_is_key, keys, after)):
        raise BadInput("`after` is not what a page gave; begin without it", reason="bad_cursor")


def _is_key(name: str, value: int | str) -> bool:
    if name in TEXT_KEYS:
        return isinstance(value, str) and "\0" not in value and value.encode(errors="replace").decode() == value
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= BEYOND


def _behind(keys: Sequence[str]) -> str:
    """Written so that every database finds the place by its index, which MariaDB does not for (a, b) > (x, y)."""
    text = f"{keys[-1]} > :k{len(keys) - 1}"
    for at in range(len(keys) - 2, -1, -1):
        text = f"({keys[at]} > :k{at} OR ({keys[at]} = :k{at} AND {text}))"
    return f"{keys[0]} >= :k0 AND {text}"


def _objects(table: Table, row: Row) -> list[NamedObject]:
    if table.name == "frames":
        kept = {"full": row["full_bytes"], "infer": row["infer_bytes"]}
        return [NamedObject(key, kept[key.split(".")[-2]] or 0) for key in pictures(row)]
    if table.object_key is None or row[table.object_key] is None:
        return []
    return [NamedObject(row[table.object_key], row[table.object_bytes])]


def _plain(table: str, row: Row) -> dict[str, object]:
    hidden = SECRETS.get(table, frozenset())
    return {
        name: base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else value
        for name, value in dict(row).items()
        if name not in hidden
    }
