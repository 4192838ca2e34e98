"""The seals of the audit log: put, read for checking, and kept when retention deletes their entries.

An entry gets its batch in the transaction that adds the seal. Ids may become visible out of their order, so a batch
is whatever has none yet: an entry that commits late is in the next one, and none is ever left out. Two who seal at
once would give the same number, which the database refuses to the second.

SQLite keeps in any column whatever it is given. A value that is not of its column's kind was written by somebody else
and is read as one that is: then it is sealed like others, or a check tells that it was changed.
"""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from camserver.base.errors import Conflict
from camserver.domain.audit import BATCH_MAX, PRUNED, LoggedEntry, Seal
from camserver.store import audit
from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Row, Tx

# Batches that one transaction of retention deletes.
PRUNE_BATCHES = 5
# Old entries are counted up to so many, for people who ask what would go.
COUNTED_MAX = 100_000

_COLUMNS = (
    "tenant_id, batch_no, first_entry_id, last_entry_id, entries, first_at, last_at, body, previous_hash, hash, "
    "key_id, mac, sealed_at, leaves, pruned_at, pruned_key_id, pruned_mac"
)
ENTRY_COLUMNS = "entry_id, at, actor_kind, actor_id, action, object_kind, object_id, details, address"


def _numbered(text: str) -> Sql:
    """A statement about seals. One without a whole number is none."""
    return Sql(text.format(numbered=""), sqlite=text.format(numbered=" AND typeof(batch_no) = 'integer'"))


_SEALS = "FROM audit_seals WHERE tenant_id = :tenant_id{numbered}"
_SOME = f"SELECT {_COLUMNS} {_SEALS}"


@dataclass(frozen=True, slots=True)
class Unsealed:
    """What waits to be sealed, and the seal it goes behind."""

    last: Seal | None
    entries: tuple[LoggedEntry, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    seal: Seal
    entries: tuple[LoggedEntry, ...]  # that claim it


@dataclass(frozen=True, slots=True)
class Chain:
    """How a tenant's chain stands."""

    tenant_id: int
    tenant: str  # empty: the installation's
    batches: int
    entries: int  # sealed and still there
    unsealed: int
    last_hash: str
    last_sealed_at: int | None
    oldest_unsealed_at: int | None


async def tenants(tx: Tx) -> tuple[int, ...]:
    """Whose entries are sealed, the installation's first. A tenant that is being erased has none to speak of."""
    rows = await tx.all(
        "SELECT tenant_id FROM tenants UNION SELECT tenant_id FROM audit_seals WHERE batch_no = 1 "
        "EXCEPT SELECT tenant_id FROM tenants WHERE erasing_at IS NOT NULL ORDER BY tenant_id"
    )
    return tuple(dict.fromkeys([audit.INSTALLATION, *(row["tenant_id"] for row in rows)]))


async def unsealed(tx: Tx, tenant_id: int) -> Unsealed:
    """The next batch. An entry never changes, so it may be read before it is sealed."""
    rows = await tx.all(
        f"SELECT {ENTRY_COLUMNS} FROM audit_log WHERE tenant_id = :tenant_id AND batch_no IS NULL "
        f"ORDER BY entry_id LIMIT {BATCH_MAX}",
        tenant_id=tenant_id,
    )
    return Unsealed(await last(tx, tenant_id), tuple([entry_of(row) for row in rows]))


async def last(tx: Tx, tenant_id: int) -> Seal | None:
    row = await tx.one(
        _numbered(f"{_SOME} ORDER BY batch_no DESC LIMIT 1"),
        tenant_id=tenant_id,
    )
    return None if row is None else _seal(row)


async def put(tx: Tx, seal: Seal, entry_ids: Sequence[int]) -> None:
    """Adds a seal and gives its entries their batch; Conflict when somebody else sealed meanwhile."""
    before = await last(tx, seal.tenant_id)
    if (0 if before is None else before.batch_no) != seal.batch_no - 1:
        raise _sealed_meanwhile(seal)
    await tx.run(_INSERT, **asdict(seal))
    given = await tx.run(
        "UPDATE audit_log SET batch_no = :batch_no WHERE tenant_id = :tenant_id AND entry_id IN (:entry_ids...) "
        "AND batch_no IS NULL",
        batch_no=seal.batch_no,
        tenant_id=seal.tenant_id,
        entry_ids=list(entry_ids),
    )
    if given != seal.entries:
        raise _sealed_meanwhile(seal)


def _sealed_meanwhile(seal: Seal) -> Conflict:
    return Conflict(f"batch {seal.batch_no} of tenant {seal.tenant_id} was sealed by somebody else meanwhile")


# ---------------------------------------------------------------------------------------------------------------
# Reading for a check
# ---------------------------------------------------------------------------------------------------------------


async def batches(tx: Tx, tenant_id: int, after_no: int, limit: int) -> tuple[Batch, ...]:
    """Batches behind one, with the entries that claim them.

    Retention may delete a batch between two statements. So the seals are read once more after their entries: of one
    that says nothing of it then, the entries were all there before.
    """
    numbers = [row["batch_no"] for row in await tx.all(
        _numbered(f"SELECT batch_no {_SEALS} AND batch_no > :after_no ORDER BY batch_no LIMIT {int(limit)}"),
        tenant_id=tenant_id,
        after_no=after_no,
    )]  # fmt: skip
    if not numbers:
        return ()
    found: dict[int, list[LoggedEntry]] = {}
    rows = await tx.all(
        f"SELECT {ENTRY_COLUMNS}, batch_no FROM audit_log WHERE tenant_id = :tenant_id "
        # An entry more than a batch holds is enough to tell that something was added.
        f"AND batch_no IN (:numbers...) ORDER BY batch_no, entry_id LIMIT {(BATCH_MAX + 1) * int(limit)}",
        tenant_id=tenant_id,
        numbers=numbers,
    )
    for row in rows:
        found.setdefault(row["batch_no"], []).append(entry_of(row))
    seals = await tx.all(
        f"SELECT {_COLUMNS} FROM audit_seals WHERE tenant_id = :tenant_id AND batch_no IN (:numbers...) "
        "ORDER BY batch_no",
        tenant_id=tenant_id,
        numbers=numbers,
    )
    return tuple(
        [
            # What was read before retention deleted it is no remainder.
            Batch(seal, () if seal.pruned_at is not None and len(entries) == seal.entries else entries)
            for seal in [_seal(row) for row in seals]
            for entries in [tuple(found.get(seal.batch_no, ()))]
        ]
    )


async def seal_of(tx: Tx, tenant_id: int, batch_no: int) -> Seal | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM audit_seals WHERE tenant_id = :tenant_id AND batch_no = :batch_no",
        tenant_id=tenant_id,
        batch_no=batch_no,
    )
    return None if row is None else _seal(row)


async def seals(tx: Tx, tenant_id: int, before_no: int, limit: int) -> tuple[Seal, ...]:
    """Newest first."""
    rows = await tx.all(
        _numbered(f"{_SOME} AND batch_no < :before_no ORDER BY batch_no DESC LIMIT :limit"),
        tenant_id=tenant_id,
        before_no=before_no,
        limit=limit,
    )
    return tuple([_seal(row) for row in rows])


async def strays(tx: Tx, tenant_id: int) -> tuple[tuple[int, int], ...]:
    """(batch, entry) of some entries that claim a batch beyond the last seal, or one before the first. What is no
    number counts as such a one.

    The seal is read after the entries: what is sealed meanwhile is no stray.
    """
    conditions = ["batch_no < 1", "batch_no > :last_no"]
    if tx.dialect is Dialect.SQLITE:
        conditions.append("typeof(batch_no) NOT IN ('integer', 'null')")
    rows = [
        row
        for condition in conditions
        for row in await tx.all(
            f"SELECT batch_no, entry_id FROM audit_log WHERE tenant_id = :tenant_id AND {condition} "
            "ORDER BY batch_no DESC LIMIT 20",
            tenant_id=tenant_id,
            last_no=await _last_no(tx, tenant_id),
        )
    ]
    last_no = await _last_no(tx, tenant_id)
    claimed = {row["entry_id"]: _number(row["batch_no"]) for row in rows}
    return tuple([(batch_no, entry_id) for entry_id, batch_no in claimed.items() if not 1 <= batch_no <= last_no])


async def _last_no(tx: Tx, tenant_id: int) -> int:
    row = await tx.one(_numbered(f"SELECT max(batch_no) AS last_no {_SEALS}"), tenant_id=tenant_id)
    return 0 if row is None else int(row["last_no"] or 0)


async def pruned_up_to(tx: Tx, tenant_id: int) -> int | None:
    """How far retention deleted, by what it wrote into the log itself; the newest such entry always stays."""
    row = await tx.one(
        "SELECT object_id FROM audit_log WHERE tenant_id = :tenant_id AND action = :action AND actor_kind = 'system' "
        "ORDER BY at DESC, entry_id DESC LIMIT 1",
        tenant_id=tenant_id,
        action=PRUNED,
    )
    return None if row is None else audit.number_of(_text(row["object_id"]))


async def pruned(tx: Tx, tenant_id: int) -> tuple[int, int]:
    """How many batches retention deleted, and the number of the last one."""
    row = await tx.one(
        _numbered(f"SELECT count(*) AS batches, max(batch_no) AS last_no {_SEALS} AND pruned_at IS NOT NULL"),
        tenant_id=tenant_id,
    )
    return (0, 0) if row is None else (int(row["batches"]), int(row["last_no"] or 0))


async def chains(tx: Tx, tenant_ids: Sequence[int]) -> tuple[Chain, ...]:
    names = {
        row["tenant_id"]: row["name"]
        for row in await tx.all(
            "SELECT tenant_id, name FROM tenants WHERE tenant_id IN (:tenant_ids...)", tenant_ids=list(tenant_ids)
        )
    }
    return tuple([await _chain(tx, one, names.get(one, "")) for one in tenant_ids])


async def _chain(tx: Tx, tenant_id: int, tenant: str) -> Chain:
    waiting = await tx.one(
        "SELECT count(*) AS n, min(at) AS oldest_at FROM audit_log WHERE tenant_id = :tenant_id AND batch_no IS NULL",
        tenant_id=tenant_id,
    )
    sealed = await tx.one(
        _numbered(
            "SELECT count(*) AS batches, "
            "sum(CASE WHEN pruned_at IS NULL AND entries BETWEEN 1 AND :most THEN entries ELSE 0 END) "
            f"AS n {_SEALS}"
        ),
        tenant_id=tenant_id,
        most=BATCH_MAX,
    )
    newest = await last(tx, tenant_id)
    assert waiting is not None
    assert sealed is not None
    return Chain(
        tenant_id=tenant_id,
        tenant=tenant,
        batches=sealed["batches"],
        entries=int(sealed["n"] or 0),
        unsealed=waiting["n"],
        last_hash="" if newest is None else newest.hash,
        last_sealed_at=None if newest is None else newest.sealed_at,
        oldest_unsealed_at=None if waiting["oldest_at"] is None else _number(waiting["oldest_at"]),
    )


# ---------------------------------------------------------------------------------------------------------------
# Retention
# ---------------------------------------------------------------------------------------------------------------


async def prunable(tx: Tx, tenant_id: int, cutoff: int) -> tuple[Seal, ...]:
    """The oldest batches, some of them, whose entries are all older than `cutoff`."""
    rows = await tx.all(_numbered(f"SELECT {_COLUMNS} {_OLDEST_KEPT} LIMIT {PRUNE_BATCHES}"), tenant_id=tenant_id)
    return tuple(itertools.takewhile(lambda seal: seal.last_at < cutoff, [_seal(row) for row in rows]))


async def prune(tx: Tx, gone: Sequence[Seal], now_ms: int) -> int:
    """Deletes the entries of the oldest batches; how many. Their seals stay as they are given, signed (`pruned`), and
    the log says that they went. None where somebody else deleted meanwhile."""
    tenant_id, numbers = gone[0].tenant_id, [seal.batch_no for seal in gone]
    rows = await tx.all(
        _numbered(f"SELECT batch_no {_OLDEST_KEPT} LIMIT {len(numbers)} FOR UPDATE"), tenant_id=tenant_id
    )
    if [row["batch_no"] for row in rows] != numbers:
        return 0
    await tx.many(
        "UPDATE audit_seals SET pruned_at = :pruned_at, leaves = '', pruned_key_id = :pruned_key_id, "
        "pruned_mac = :pruned_mac WHERE tenant_id = :tenant_id AND batch_no = :batch_no",
        [
            {
                "pruned_at": seal.pruned_at,
                "pruned_key_id": seal.pruned_key_id,
                "pruned_mac": seal.pruned_mac,
                "tenant_id": tenant_id,
                "batch_no": seal.batch_no,
            }
            for seal in gone
        ],
    )
    deleted = await tx.run(
        "DELETE FROM audit_log WHERE tenant_id = :tenant_id AND batch_no IN (:numbers...)",
        tenant_id=tenant_id,
        numbers=numbers,
    )
    entry = audit.Entry(PRUNED, now_ms, "", "batch", str(numbers[-1]), {"from": numbers[0], "entries": deleted})
    await audit.add(tx, tenant_id, None, entry)
    return deleted


async def count_old(tx: Tx, tenant_id: int, cutoff: int) -> int:
    """How many entries `prune` would delete in the end, up to a bound."""
    row = await tx.one(
        _numbered(
            f"SELECT sum(o.entries) AS n FROM (SELECT last_at, entries {_OLDEST_KEPT} LIMIT {COUNTED_MAX}) o "
            "WHERE o.last_at < :cutoff"
        ),
        tenant_id=tenant_id,
        cutoff=cutoff,
    )
    return 0 if row is None else int(row["n"] or 0)


_OLDEST_KEPT = f"{_SEALS} AND pruned_at IS NULL ORDER BY batch_no"
_INSERT = f"""
INSERT INTO audit_seals ({_COLUMNS})
VALUES ({", ".join(f":{name}" for name in _COLUMNS.split(", "))})"""


def entry_of(row: Row) -> LoggedEntry:
    return LoggedEntry(
        row["entry_id"],
        _number(row["at"]),
        _text(row["actor_kind"]),
        _text(row["actor_id"]),
        _text(row["action"]),
        _text(row["object_kind"]),
        _text(row["object_id"]),
        None if row["details"] is None else _text(row["details"]),
        _text(row["address"]),
    )


def _seal(row: Row) -> Seal:
    return Seal(**{name: _READ[kind](row[name]) for name, kind in _KINDS.items()})


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


_READ: dict[Any, Any] = {
    int: _number,
    str: _text,
    int | None: lambda value: None if value is None else _number(value),
}
_KINDS = {one.name: one.type for one in fields(Seal)}
