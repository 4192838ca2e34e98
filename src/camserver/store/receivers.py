"""Receivers: the places that messages and copies go to, as people manage them and as a dispatcher reads them.

Secrets are sealed before they come here and opened elsewhere; the associated data is `secrets_of`. What a kind's
config holds is checked by the web service.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from camserver.base.credentials import Sealed
from camserver.base.errors import BadInput, Conflict, NotFound
from camserver.domain.deliveries import ARCHIVES, DeliveryStatus, ReceiverKind
from camserver.domain.facts import DeliveryKind
from camserver.store import audit, deliveries
from camserver.store.deliveries import NewDelivery
from camserver.store.tx import Row, Scoped, Tx

# Of a tenant. A claim looks at each that has something to do.
RECEIVERS_MAX = 200
# Reason of a delivery by which people see whether a receiver works.
TRIAL = "trial"


@dataclass(frozen=True, slots=True)
class StoredReceiver:
    """A receiver as it is stored; `config` is JSON."""

    receiver_id: int
    receiver_uuid: str
    tenant_id: int
    name: str
    kind: str
    enabled: bool
    config: str
    sealed: Sealed | None
    language: str
    hourly_cap: int | None
    created_at: int
    updated_at: int
    last_ok_at: int | None
    last_error: str | None
    last_error_at: int | None


@dataclass(frozen=True, slots=True)
class NewReceiver:
    receiver_uuid: str
    name: str
    kind: str
    config: str  # JSON
    sealed: Sealed | None
    language: str
    hourly_cap: int | None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ReceiverChange:
    """None: stays as it is."""

    name: str | None = None
    enabled: bool | None = None
    config: str | None = None  # JSON
    sealed: Sealed | None = None
    without_secrets: bool = False
    language: str | None = None
    hourly_cap: int | None = None
    without_cap: bool = False

    def columns(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in ("name", "config", "language", "hourly_cap"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        if self.enabled is not None:
            found["enabled"] = int(self.enabled)
        if self.without_cap:
            found["hourly_cap"] = None
        if self.sealed is not None or self.without_secrets:
            found.update(_sealed_columns(self.sealed))
        return found


@dataclass(frozen=True, slots=True)
class Report:
    """How a receiver did lately."""

    receiver_id: int
    ok_at: int | None
    error: str | None
    error_at: int | None


def secrets_of(receiver_uuid: str) -> str:
    """What a receiver's secrets are bound to, besides its tenant."""
    return f"receiver:{receiver_uuid}"


# ---------------------------------------------------------------------------------------------------------------
# As people manage them
# ---------------------------------------------------------------------------------------------------------------


async def page(tx: Scoped) -> tuple[StoredReceiver, ...]:
    """All of the tenant, by name; there are at most RECEIVERS_MAX."""
    rows = await tx.all(f"{_SELECT} WHERE tenant_id = :tenant_id ORDER BY name")
    return tuple(_stored(row) for row in rows)


async def get(tx: Scoped, receiver_uuid: str) -> StoredReceiver:
    row = await tx.one(
        f"{_SELECT} WHERE tenant_id = :tenant_id AND receiver_uuid = :receiver_uuid", receiver_uuid=receiver_uuid
    )
    if row is None:
        raise missing(receiver_uuid)
    return _stored(row)


async def add(tx: Scoped, new: NewReceiver, address: str, now_ms: int) -> StoredReceiver:
    tx.principal.require_all_sites()
    count = await tx.one("SELECT count(*) AS found FROM receivers WHERE tenant_id = :tenant_id")
    if count is not None and count["found"] >= RECEIVERS_MAX:
        raise BadInput(f"there are {RECEIVERS_MAX} receivers already; remove one first", reason="receivers_full")
    await _refuse_same_name(tx, new.name, "")
    receiver_id = await tx.insert(
        """
        INSERT INTO receivers (receiver_uuid, tenant_id, name, kind, enabled, config, key_id, nonce, ciphertext,
          language, hourly_cap, created_at, updated_at)
        VALUES (:receiver_uuid, :tenant_id, :name, :kind, :enabled, :config, :key_id, :nonce, :ciphertext,
          :language, :hourly_cap, :now_ms, :now_ms) RETURNING receiver_id""",
        receiver_uuid=new.receiver_uuid,
        name=new.name,
        kind=new.kind,
        enabled=int(new.enabled),
        config=new.config,
        language=new.language,
        hourly_cap=new.hourly_cap,
        now_ms=now_ms,
        **_sealed_columns(new.sealed),
    )
    added = await get(tx, new.receiver_uuid)
    details = {"name": new.name, "kind": new.kind, **_told(added, _TOLD)}
    await _log(tx, "receiver_added", new.receiver_uuid, receiver_id, details, address, now_ms)
    return added


async def change(tx: Scoped, receiver_uuid: str, wanted: ReceiverChange, address: str, now_ms: int) -> StoredReceiver:
    tx.principal.require_all_sites()
    found = await get(tx, receiver_uuid)
    if wanted.name is not None:
        await _refuse_same_name(tx, wanted.name, receiver_uuid)
    columns = wanted.columns()
    if columns:
        assigned = ", ".join(f"{name} = :{name}" for name in columns)
        await tx.run(
            f"UPDATE receivers SET {assigned}, updated_at = :now_ms "
            "WHERE tenant_id = :tenant_id AND receiver_uuid = :receiver_uuid",
            receiver_uuid=receiver_uuid,
            # Later than before also within a millisecond: dispatchers see by it that something changed.
            now_ms=max(now_ms, found.updated_at + 1),
            **columns,
        )
        what = ", ".join("secrets" if name == "ciphertext" else name for name in columns if name not in _HIDDEN)
        changed = await get(tx, receiver_uuid)
        details: dict[str, str | int] = {"name": changed.name, "what": what, **_told(changed, columns)}
        if changed.name != found.name:
            details["name_before"] = found.name
        await _log(tx, "receiver_changed", receiver_uuid, found.receiver_id, details, address, now_ms)
        return changed
    return found


async def remove(tx: Scoped, receiver_uuid: str, address: str, now_ms: int) -> None:
    """Removes a receiver. What was on its way to it is dead, what it got stays known."""
    tx.principal.require_all_sites()
    found = await get(tx, receiver_uuid)
    for table in ("cooldowns", "receiver_hours", "archive_days"):
        await tx.run(
            f"DELETE FROM {table} WHERE receiver_id = :receiver_id AND tenant_id = :tenant_id",
            receiver_id=found.receiver_id,
        )
    await tx.run(
        """
        UPDATE deliveries SET status = :dead, finished_at = :now_ms, last_error = :reason
        WHERE receiver_id = :receiver_id AND status IN ('queued','delayed') AND tenant_id = :tenant_id""",
        dead=DeliveryStatus.DEAD.value,
        receiver_id=found.receiver_id,
        now_ms=now_ms,
        reason="the receiver was removed",
    )
    await tx.run(
        "DELETE FROM receivers WHERE receiver_id = :receiver_id AND tenant_id = :tenant_id",
        receiver_id=found.receiver_id,
    )
    await _log(tx, "receiver_removed", receiver_uuid, found.receiver_id, {"name": found.name}, address, now_ms)


async def queue_trial(tx: Scoped, receiver_uuid: str, delivery_uuid: str, address: str, now_ms: int) -> None:
    """Queues what shows whether a receiver works: a message, or for an archive a copy of nothing in particular."""
    tx.principal.require_all_sites()
    found = await get(tx, receiver_uuid)
    new = NewDelivery(
        delivery_uuid=delivery_uuid,
        tenant_id=tx.principal.tenant_id,
        kind=DeliveryKind.COPY if ReceiverKind(found.kind) in ARCHIVES else DeliveryKind.MESSAGE,
        reason=TRIAL,
        request={TRIAL: True},
        receiver_id=found.receiver_id,
    )
    await deliveries.add_own(tx, (new,), now_ms)
    await audit.add_own(
        tx, audit.Entry("receiver_tried", now_ms, address, "receiver", receiver_uuid, {"name": found.name})
    )


def missing(receiver_uuid: str) -> NotFound:
    return NotFound(f"there is no receiver {receiver_uuid}; list them anew", reason="no_receiver")


async def _refuse_same_name(tx: Scoped, name: str, but_uuid: str) -> None:
    row = await tx.one(
        "SELECT receiver_uuid FROM receivers WHERE tenant_id = :tenant_id AND name = :name AND receiver_uuid <> :but",
        name=name,
        but=but_uuid,
    )
    if row is not None:
        raise Conflict(f"there is a receiver named {name!r} already; choose another name", reason="receiver_exists")


async def _log(
    tx: Scoped,
    action: str,
    receiver_uuid: str,
    receiver_id: int,
    details: Mapping[str, str | int],
    address: str,
    now_ms: int,
) -> None:
    tx.changed(kind="receiver", at_ms=now_ms, object_id=receiver_id)
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "receiver", receiver_uuid, details))


def _told(receiver: StoredReceiver, given: Collection[str]) -> dict[str, str | int]:
    """What became of those values that can hold no secret."""
    told: dict[str, str | int] = {}
    for name in _TOLD:
        if name in given:
            value = getattr(receiver, name)
            told[name] = "" if value is None else value if isinstance(value, str) else int(value)
    return told


# ---------------------------------------------------------------------------------------------------------------
# As a dispatcher reads them
# ---------------------------------------------------------------------------------------------------------------


async def version(tx: Tx) -> tuple[int, int, int]:
    """Changes when any receiver does."""
    row = await tx.one(
        "SELECT count(*) AS found, COALESCE(max(updated_at), 0) AS newest, COALESCE(max(receiver_id), 0) AS last_id, "
        "COALESCE(sum(updated_at % 1000000007), 0) AS mixed FROM receivers"
    )
    assert row is not None
    return int(row["found"]), int(row["newest"]) + int(row["last_id"]), int(row["mixed"])


async def everywhere(tx: Tx) -> tuple[StoredReceiver, ...]:
    """Those of all tenants."""
    return tuple(_stored(row) for row in await tx.all(f"{_SELECT} ORDER BY receiver_id"))


async def stored_by_id(tx: Tx, receiver_id: int) -> StoredReceiver | None:
    row = await tx.one(f"{_SELECT} WHERE receiver_id = :receiver_id", receiver_id=receiver_id)
    return None if row is None else _stored(row)


async def report(tx: Tx, reports: tuple[Report, ...]) -> None:
    """Notes how receivers did. No change of theirs, so `version` stays."""
    await tx.many(
        """
        UPDATE receivers SET last_ok_at = COALESCE(:ok_at, last_ok_at), last_error = COALESCE(:error, last_error),
          last_error_at = COALESCE(:error_at, last_error_at)
        WHERE receiver_id = :receiver_id""",
        [
            {
                "receiver_id": one.receiver_id,
                "ok_at": one.ok_at,
                "error": None if one.error is None else one.error[:255],
                "error_at": one.error_at,
            }
            for one in sorted(reports, key=lambda one: one.receiver_id)
        ],
    )


def _stored(row: Row) -> StoredReceiver:
    sealed = None if row["key_id"] is None else Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"]))
    return StoredReceiver(
        receiver_id=row["receiver_id"],
        receiver_uuid=row["receiver_uuid"],
        tenant_id=row["tenant_id"],
        name=row["name"],
        kind=row["kind"],
        enabled=bool(row["enabled"]),
        config=row["config"] if isinstance(row["config"], str) else json.dumps(row["config"]),
        sealed=sealed,
        language=row["language"],
        hourly_cap=row["hourly_cap"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        last_ok_at=row["last_ok_at"],
        last_error=row["last_error"],
        last_error_at=row["last_error_at"],
    )


def _sealed_columns(sealed: Sealed | None) -> dict[str, object]:
    return {
        "key_id": None if sealed is None else sealed.key_id,
        "nonce": None if sealed is None else sealed.nonce,
        "ciphertext": None if sealed is None else sealed.ciphertext,
    }


_HIDDEN = ("key_id", "nonce")
_TOLD = ("enabled", "language", "hourly_cap")
_SELECT = """
SELECT receiver_id, receiver_uuid, tenant_id, name, kind, enabled, config, key_id, nonce, ciphertext, language,
  hourly_cap, created_at, updated_at, last_ok_at, last_error, last_error_at
FROM receivers"""
