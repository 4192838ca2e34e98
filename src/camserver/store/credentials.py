"""Values sealed with a key (camera logins, secrets of receivers, of browsers that are pushed to), all tenants', while
that key is replaced. Sealing is not done here: what is written is decided by whoever has the keys.

Errands and the progress of deliveries are sealed too, but live shorter than a key.
"""

from dataclasses import dataclass
from typing import Final

from camserver.base.credentials import Sealed
from camserver.domain.people import Principal
from camserver.store import audit
from camserver.store.receivers import secrets_of
from camserver.store.tx import Scoped, Tx


@dataclass(frozen=True, slots=True)
class Kept:
    """A sealed value and what it is bound to."""

    place: str
    row_id: int
    tenant_id: int
    owner: str
    sealed: Sealed


@dataclass(frozen=True, slots=True)
class _Place:
    table: str
    key: str
    owner: str  # the column that names the owner
    source: str


_PLACES: Final = {
    "cameras": _Place(
        "camera_auth", "camera_key", "c.camera_id", "camera_auth t JOIN cameras c ON c.camera_key = t.camera_key"
    ),
    "receivers": _Place("receivers", "receiver_id", "t.receiver_uuid", "receivers t"),
    "browsers": _Place("push_subscriptions", "subscription_id", "t.subscription_uuid", "push_subscriptions t"),
}
PLACES: Final = tuple(_PLACES)


async def of_other_keys(tx: Tx, place: str, key_id: str, after: int, limit: int) -> tuple[Kept, ...]:
    """Values that another key sealed, in the order of their rows, from behind `after`."""
    where = _PLACES[place]
    rows = await tx.all(
        f"""
        SELECT t.{where.key} AS row_id, t.tenant_id, {where.owner} AS owner, t.key_id, t.nonce, t.ciphertext
        FROM {where.source}
        WHERE t.key_id IS NOT NULL AND t.key_id <> :key_id AND t.{where.key} > :after
        ORDER BY t.{where.key} LIMIT :limit""",
        key_id=key_id,
        after=after,
        limit=limit,
    )
    return tuple(
        Kept(
            place,
            row["row_id"],
            row["tenant_id"],
            _owner(place, row["owner"]),
            Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"])),
        )
        for row in rows
    )


async def count_of_other_keys(tx: Tx, key_id: str) -> int:
    count = 0
    for where in _PLACES.values():
        row = await tx.one(
            f"SELECT count(*) AS found FROM {where.table} WHERE key_id IS NOT NULL AND key_id <> :key_id",
            key_id=key_id,
        )
        count += 0 if row is None else row["found"]
    return count


async def count_of_keys(tx: Tx, key_ids: tuple[str, ...]) -> int:
    """How many values these keys sealed."""
    count = 0
    for where in _PLACES.values():
        row = await tx.one(
            f"SELECT count(*) AS found FROM {where.table} WHERE key_id IN (:key_ids...)", key_ids=list(key_ids)
        )
        count += 0 if row is None else row["found"]
    return count


async def reseal(tx: Tx, moves: tuple[tuple[Kept, Sealed], ...], by: Principal, address: str, now_ms: int) -> int:
    """Replaces values by the same ones under another key; how many. What changed meanwhile is left as it is."""
    moved = 0
    for kept, sealed in moves:
        where = _PLACES[kept.place]
        moved += await tx.run(
            f"""
            UPDATE {where.table} SET key_id = :key_id, nonce = :nonce, ciphertext = :ciphertext
            WHERE {where.key} = :row_id AND key_id = :old_key_id AND nonce = :old_nonce""",
            key_id=sealed.key_id,
            nonce=sealed.nonce,
            ciphertext=sealed.ciphertext,
            row_id=kept.row_id,
            old_key_id=kept.sealed.key_id,
            old_nonce=kept.sealed.nonce,
        )
    entry = audit.Entry("credentials_moved", now_ms, address, "key", moves[0][1].key_id, {"count": moved})
    await audit.add_own(Scoped(tx, by), entry)
    return moved


async def note_new_key(tx: Scoped, key_id: str, address: str, now_ms: int) -> None:
    await audit.add_own(tx, audit.Entry("credential_key_replaced", now_ms, address, "key", key_id))


def _owner(place: str, name: str) -> str:
    if place == "receivers":
        return secrets_of(name)
    return f"push:{name}" if place == "browsers" else name
