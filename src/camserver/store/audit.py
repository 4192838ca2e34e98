"""The audit log: who did what, when, from where. Rows are only ever added here.

Reading is in audit_pages.py, sealing in audit_seals.py. Looks at evidence are folded: the same person who opens the
same thing again within some minutes is one entry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from camserver.domain.audit import LOOK_FOLDED_MS
from camserver.domain.people import LINK, Principal
from camserver.store.tx import Row, Scoped, Tx

# Rows about the installation as a whole, such as a sign-in under a name nobody has.
INSTALLATION = 0
ADDRESS_MAX_CHARS = 64
OBJECT_ID_MAX_CHARS = 64
UNREADABLE_MAX_CHARS = 200
ID_MAX_DIGITS = 19
# Of a list of names in one entry.
NAMES_MAX_CHARS = 500
# A look is held against so many newest entries about its object, to find whether it is a repeat.
LOOKED_BACK = 200
# Somebody of the home tenant who did something in another tenant, in the log of that one.
OPERATOR = "operator"

_INSERT = """
INSERT INTO audit_log (tenant_id, at, actor_kind, actor_id, action, object_kind, object_id, details, address)
VALUES (:tenant_id, :now_ms, :actor_kind, :actor_id, :action, :object_kind, :object_id, :details, :address)"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was done. `details` never holds a secret."""

    action: str
    now_ms: int
    address: str = ""
    object_kind: str = ""
    object_id: str = ""
    details: Mapping[str, str | int] | None = None

    def columns(self) -> dict[str, object]:
        return {
            "action": self.action,
            "now_ms": self.now_ms,
            "address": _clean(self.address)[:ADDRESS_MAX_CHARS],
            "object_kind": self.object_kind,
            "object_id": _clean(self.object_id)[:OBJECT_ID_MAX_CHARS],
            "details": None if self.details is None else _written(self.details),
        }


def number_of(text: str) -> int | None:
    """The id that stands in a column of the log, or in a request for it. What is longer than any is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= ID_MAX_DIGITS else None


def _written(details: Mapping[str, str | int]) -> str:
    # A name may be an enumeration's.
    clean = {str(name): _clean(value) if isinstance(value, str) else value for name, value in details.items()}
    return orjson.dumps(clean).decode()


def listed(names: Iterable[str]) -> str:
    """Several names as one text for `details`. Where they are too many it ends with how many are left out."""
    left = list(names)
    text = ""
    while left:
        longer = f"{text}, {left[0]}" if text else left[0]
        if len(longer) > NAMES_MAX_CHARS:
            return f"{text} (+{len(left)})".strip()
        text = longer
        del left[0]
    return text


def read_details(details: str | None) -> dict[str, Any] | None:
    """For people and comparisons. What can't be read, which camserver does not write, is told by how it begins."""
    if details is None:
        return None
    try:
        found = orjson.loads(details)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": details[:UNREADABLE_MAX_CHARS]}


def _ordered(details: Mapping[str, str | int] | None) -> str | None:
    """To compare by: databases space and order JSON as they like."""
    return None if details is None else _written(dict(sorted(details.items())))


def _clean(text: str) -> str:
    """Without what some database refuses: an entry must never be what keeps a failed sign-in from being noted."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


async def add(tx: Tx, tenant_id: int, user_id: int | None, entry: Entry) -> None:
    """Where nobody is signed in yet. `user_id` None: it is not known who."""
    kind, actor_id = ("system", "") if user_id is None else ("user", str(user_id))
    await tx.run(_INSERT, tenant_id=tenant_id, actor_kind=kind, actor_id=actor_id, **entry.columns())


async def add_own(tx: Scoped, entry: Entry) -> None:
    """In the principal's name; the local admin token has no user and counts as the system."""
    await tx.run(_INSERT, **own_row(tx.principal, entry))
    tx.logged = True


def own_row(principal: Principal, entry: Entry) -> dict[str, object]:
    """An entry in the principal's name, as `add_rows` writes it."""
    kind, actor_id = actor(principal)
    return {"actor_kind": kind, "actor_id": actor_id, **_with_token(principal, entry).columns()}


async def add_rows(tx: Scoped, rows: Sequence[Mapping[str, object]]) -> None:
    """Entries of several people of the principal's tenant."""
    await tx.many(_INSERT, rows)
    tx.logged = True


async def add_from_home(tx: Tx, principal: Principal, tenant_id: int, entry: Entry) -> None:
    """What the home tenant's principal did to another tenant, in that one's log."""
    kind, actor_id = actor(principal)
    entry = _with_token(principal, entry)
    kind = OPERATOR if kind == "user" else kind
    await tx.run(_INSERT, tenant_id=tenant_id, actor_kind=kind, actor_id=actor_id, **entry.columns())


async def add_by_link(tx: Tx, tenant_id: int, entry: Entry) -> None:
    """What whoever has a link or a share did, of whom only the address is known."""
    await tx.run(_INSERT, tenant_id=tenant_id, actor_kind=LINK, actor_id="", **entry.columns())


def actor(principal: Principal) -> tuple[str, str]:
    """How whoever does something is named in the log: kind and id. What a program does is its user's deed."""
    return ("system", "local_admin_token") if principal.user_id is None else ("user", str(principal.user_id))


def _with_token(principal: Principal, entry: Entry) -> Entry:
    if principal.token_id is None:
        return entry
    return replace(entry, details={**(entry.details or {}), "token_id": principal.token_id})


async def look(tx: Scoped, entry: Entry) -> None:
    """Notes that the principal opened evidence, unless they did a few minutes ago."""
    if await is_noted(tx, entry):
        tx.logged = True
    else:
        await add_own(tx, entry)


async def is_noted(tx: Scoped, entry: Entry) -> bool:
    """Whether the principal opened the same a few minutes ago, so that it need not be noted again."""
    kind, actor_id = actor(tx.principal)
    since = entry.now_ms - LOOK_FOLDED_MS
    recent = await tx.all(_RECENT, actor_kind=kind, actor_id=actor_id, since=since, **entry.columns())
    return _is_repeat(recent, _with_token(tx.principal, entry))


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody's entry about something they opened. Two are the same when the second need not be noted."""

    tenant_id: int
    actor_kind: str
    actor_id: str
    action: str
    object_kind: str
    object_id: str
    details: str | None
    address: str
    now_ms: int = field(compare=False)

    @classmethod
    def of(cls, principal: Principal, entry: Entry) -> "Look":
        kind, actor_id = actor(principal)
        entry = _with_token(principal, entry)
        columns = {**entry.columns(), "details": _ordered(entry.details)}
        return cls(principal.tenant_id, kind, actor_id, **columns)  # type: ignore[arg-type]  # as Entry has them


async def noted(tx: Tx, looks: Sequence[Look]) -> set[Look]:
    """Which of these, made at about the same time, are repeats of something that was opened a few minutes ago."""
    groups: dict[tuple[int, str, str], list[Look]] = {}
    for one in looks:
        groups.setdefault((one.tenant_id, one.action, one.object_kind), []).append(one)
    found: set[Look] = set()
    for (tenant_id, action, object_kind), same in groups.items():
        now_ms = max(one.now_ms for one in same)
        rows = await tx.all(
            _NOTED,
            tenant_id=tenant_id,
            action=action,
            object_kind=object_kind,
            object_ids=sorted({one.object_id for one in same}),
            actor_ids=sorted({one.actor_id for one in same}),
            since=now_ms - LOOK_FOLDED_MS,
            most=LOOKED_BACK * len(same),
        )
        found |= {
            Look(
                tenant_id,
                row["actor_kind"],
                row["actor_id"],
                action,
                object_kind,
                row["object_id"],
                _ordered(read_details(row["details"])),
                row["address"],
                now_ms,
            )
            for row in rows
        }
    return found


async def add_looks(tx: Tx, looks: Sequence[Look]) -> None:
    await tx.many(_INSERT, [{name: getattr(one, name) for name in Look.__slots__} for one in looks])


async def link_opened(tx: Tx, frame_uuid: str, what: str, address: str, now_ms: int) -> None:
    """Notes that somebody opened a signed link, of whom only the address is known. A repeat from there is folded."""
    frame = await tx.one("SELECT tenant_id FROM frames WHERE frame_uuid = :frame_uuid", frame_uuid=frame_uuid)
    if frame is None:
        return
    entry = Entry("media_link_opened", now_ms, address, "frame", frame_uuid, {"kind": what})
    columns = entry.columns() | {"tenant_id": frame["tenant_id"], "actor_kind": LINK, "actor_id": ""}
    if not _is_repeat(await tx.all(_RECENT, since=now_ms - LOOK_FOLDED_MS, **columns), entry):
        await tx.run(_INSERT, **columns)


def _is_repeat(recent: Sequence[Row], entry: Entry) -> bool:
    # Databases space and order JSON as they like.
    details = read_details(None if entry.details is None else _written(entry.details))
    return any(read_details(row["details"]) == details for row in recent)


_RECENT = f"""
SELECT r.details FROM (
  SELECT at, action, actor_kind, actor_id, details, address FROM audit_log
  WHERE tenant_id = :tenant_id AND object_kind = :object_kind AND object_id = :object_id
  ORDER BY entry_id DESC LIMIT {LOOKED_BACK}
) r WHERE r.action = :action AND r.actor_kind = :actor_kind AND r.actor_id = :actor_id AND r.address = :address
  AND r.at > :since"""
_NOTED = """
SELECT actor_kind, actor_id, object_id, details, address FROM audit_log
WHERE tenant_id = :tenant_id AND action = :action AND at > :since AND object_kind = :object_kind
  AND object_id IN (:object_ids...) AND actor_id IN (:actor_ids...)
ORDER BY at DESC LIMIT :most"""
