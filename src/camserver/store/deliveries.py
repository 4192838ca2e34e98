"""The outbox: claiming under a fence, keeping claims (decision 23).

Rows are claimed per receiver, so a long queue of one never hides the others; what has no receiver yet is claimed per
kind. A claim's token is its fence: whoever lost it writes nothing. How attempts end is `delivery_endings`, how people
read deliveries `delivery_pages`.
"""

import json
from dataclasses import dataclass, replace

from camserver.domain.deliveries import Claimed, JsonObject
from camserver.domain.facts import DeliveryKind
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped, Tx

SWEEP_BATCH = 500
# Receivers that one claim looks at; the next claim goes on behind them.
RECEIVERS_MAX = 32


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a claim may take: how many altogether, of each kind without a receiver, and of each receiver."""

    total: int
    kinds: tuple[tuple[DeliveryKind, int], ...]
    each_receiver: int
    # Those that may take fewer, e.g. none because they are away.
    receivers: tuple[tuple[int, int], ...] = ()
    after_receiver: int = 0  # where the round goes on


@dataclass(frozen=True, slots=True)
class Claim:
    deliveries: tuple[Claimed, ...]
    after_receiver: int  # for the next one


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery that does not come from a job: a trial, a summary. Without a camera it concerns the tenant."""

    delivery_uuid: str
    tenant_id: int
    kind: DeliveryKind
    reason: str
    request: JsonObject
    site_id: int | None = None
    camera_key: int | None = None
    frame_id: int | None = None
    event_id: int | None = None
    incident_id: int | None = None
    receiver_id: int | None = None
    parent_id: int | None = None
    once_key: str | None = None
    available_at: int | None = None  # None: at once


async def add(tx: Tx, new: tuple[NewDelivery, ...], now_ms: int) -> None:
    """Queues deliveries. One whose once_key is there already is left out."""
    await tx.at_once(_INSERT, [_columns(one, now_ms) for one in new])


async def add_own(tx: Scoped, new: tuple[NewDelivery, ...], now_ms: int) -> None:
    """As `add`, in a principal's name."""
    rows = [_columns(one, now_ms) for one in new]
    for row in rows:
        del row["tenant_id"]
    await tx.many(_INSERT, rows)


def _columns(new: NewDelivery, now_ms: int) -> dict[str, object]:
    available_at = now_ms if new.available_at is None else new.available_at
    return {
        "delivery_uuid": new.delivery_uuid,
        "tenant_id": new.tenant_id,
        "site_id": new.site_id,
        "camera_key": new.camera_key,
        "kind": new.kind.value,
        "reason": new.reason,
        "frame_id": new.frame_id,
        "event_id": new.event_id,
        "incident_id": new.incident_id,
        "receiver_id": new.receiver_id,
        "parent_id": new.parent_id,
        "once_key": new.once_key,
        "request": json_text(new.request),
        "status": "delayed" if available_at > now_ms else "queued",
        "available_at": available_at,
        "now_ms": now_ms,
    }


# ---------------------------------------------------------------------------------------------------------------
# Claiming
# ---------------------------------------------------------------------------------------------------------------


async def claim(tx: Tx, dispatcher: str, token: str, wanted: Wanted, locked_until: int) -> Claim:
    """Takes what is wanted, oldest first within a kind or receiver."""
    chosen: list[int] = []
    for kind, most in wanted.kinds:
        room = min(most, wanted.total - len(chosen))
        if room > 0:
            rows = await tx.all(_heads_of_kind(room), kind=kind.value)
            chosen += [row["delivery_id"] for row in rows]
    after = wanted.after_receiver
    if len(chosen) < wanted.total:
        found, after = await _choose_by_receiver(tx, wanted, wanted.total - len(chosen))
        chosen += found
    if not chosen:
        return Claim((), after)
    await tx.run(_LOCK, dispatcher=dispatcher, token=token, locked_until=locked_until, delivery_ids=sorted(chosen))
    rows = await tx.all(_CLAIMED, delivery_ids=sorted(chosen), token=token)
    return Claim(tuple([_claimed(row) for row in rows]), after)


async def _choose_by_receiver(tx: Tx, wanted: Wanted, room: int) -> tuple[list[int], int]:
    """Deliveries of the receivers whose turn it is, each an equal share of the room."""
    bounds = dict(wanted.receivers)
    rows = await tx.all(_RECEIVERS, after=wanted.after_receiver)
    waiting = [row["receiver_id"] for row in rows]
    if wanted.after_receiver and not waiting:
        return await _choose_by_receiver(tx, replace(wanted, after_receiver=0), room)
    after = waiting[-1] if len(waiting) == RECEIVERS_MAX else 0
    # Passed over here and not in the statement: there it would walk through all that waits for those that are away.
    open_ones = [one for one in waiting if bounds.get(one, wanted.each_receiver) > 0]
    chosen: list[int] = []
    for index, receiver_id in enumerate(open_ones):
        left = room - len(chosen)
        if left <= 0:
            return chosen, open_ones[index - 1]
        share = max(1, left // (len(open_ones) - index))
        most = min(bounds.get(receiver_id, wanted.each_receiver), share)
        heads = await tx.all(_heads_of_receiver(most), receiver_id=receiver_id)
        chosen += [row["delivery_id"] for row in heads]
    return chosen, after


def _heads_of_kind(limit: int) -> Sql:
    return _heads("ix_deliveries_kind", "receiver_id IS NULL AND kind >= :kind AND kind <= :kind", "kind", limit)


def _heads_of_receiver(limit: int) -> Sql:
    between = "receiver_id >= :receiver_id AND receiver_id <= :receiver_id"
    return _heads("ix_deliveries_receiver", between, "receiver_id", limit)


def _heads(index: str, condition: str, first: str, limit: int) -> Sql:
    """The oldest that are queued, by the index that was made for it.

    Conditions go from and to one value, and the order begins with it: said as an equation, PostgreSQL may walk
    through the whole table by its key, because it can't know that the oldest rows are done. SQLite is told the
    index. A literal LIMIT: as a parameter it doubles PostgreSQL's planning cost.
    """
    text = f"""
    SELECT delivery_id FROM %s WHERE status = 'queued' AND {condition}
    ORDER BY {first}, delivery_id LIMIT {int(limit)} FOR UPDATE SKIP LOCKED"""
    return Sql(text % "deliveries", sqlite=text % f"deliveries INDEXED BY {index}")


def _claimed(row: Row) -> Claimed:
    return Claimed(
        delivery_id=row["delivery_id"],
        delivery_uuid=row["delivery_uuid"],
        token=row["locked_token"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        kind=DeliveryKind(row["kind"]),
        reason=row["reason"],
        frame_id=row["frame_id"],
        event_id=row["event_id"],
        incident_id=row["incident_id"],
        receiver_id=row["receiver_id"],
        parent_id=row["parent_id"],
        attempt=row["attempt"],
        created_at=row["created_at"],
        request=json.loads(row["request"]) if row["request"] else {},
        result=json.loads(row["result"]) if row["result"] else {},
        frame_uuid=row["frame_uuid"],
        receiver_uuid=row["receiver_uuid"],
        receiver_updated_at=row["receiver_updated_at"] or 0,
    )


async def note(tx: Tx, delivery_id: int, token: str, result: JsonObject) -> bool:
    """Keeps what an attempt under way has reached, for the next one; False when its fence is lost."""
    matched = await tx.run(
        "UPDATE deliveries SET result = :result "
        "WHERE delivery_id = :delivery_id AND locked_token = :token AND status = 'running'",
        delivery_id=delivery_id,
        token=token,
        result=json_text(result),
    )
    return matched > 0


def json_text(held: JsonObject | None) -> str | None:
    return json.dumps(dict(held), ensure_ascii=False) if held else None


# ---------------------------------------------------------------------------------------------------------------
# Keeping and returning claims
# ---------------------------------------------------------------------------------------------------------------


async def renew(tx: Tx, dispatcher: str, delivery_ids: tuple[int, ...], locked_until: int) -> frozenset[int]:
    """Keeps a live dispatcher's claims; answers those that are still its own."""
    await tx.run(
        """
        UPDATE deliveries SET locked_until = :locked_until
        WHERE delivery_id IN (:delivery_ids...) AND locked_by = :dispatcher AND status = 'running'""",
        locked_until=locked_until,
        delivery_ids=list(delivery_ids),
        dispatcher=dispatcher,
    )
    rows = await tx.all(
        """
        SELECT delivery_id FROM deliveries
        WHERE delivery_id IN (:delivery_ids...) AND locked_by = :dispatcher AND status = 'running'""",
        delivery_ids=list(delivery_ids),
        dispatcher=dispatcher,
    )
    return frozenset(row["delivery_id"] for row in rows)


async def give_back(tx: Tx, claims: tuple[tuple[int, str], ...]) -> None:
    """Queues claimed deliveries that were not begun; the attempts don't count."""
    await tx.by_key(
        """
        UPDATE deliveries SET status = 'queued', attempt = attempt - 1,
          locked_by = NULL, locked_token = NULL, locked_until = NULL
        WHERE delivery_id = :delivery_id AND locked_token = :token AND status = 'running'""",
        [{"delivery_id": delivery_id, "token": token} for delivery_id, token in sorted(claims)],
    )


async def release(tx: Tx, dispatcher: str) -> int:
    """Gives back what a dispatcher holds when it stops; the attempts don't count."""
    return await tx.run(
        """
        UPDATE deliveries SET status = 'queued', attempt = attempt - 1,
          locked_by = NULL, locked_token = NULL, locked_until = NULL
        WHERE status = 'running' AND locked_by = :dispatcher""",
        dispatcher=dispatcher,
    )


async def promote_delayed(tx: Tx, now_ms: int) -> int:
    """Queues the delayed deliveries whose time has come."""
    rows = await tx.all(_DUE, now_ms=now_ms)
    if not rows:
        return 0
    return await tx.run(
        "UPDATE deliveries SET status = 'queued' WHERE delivery_id IN (:delivery_ids...) AND status = 'delayed'",
        delivery_ids=[row["delivery_id"] for row in rows],
    )


async def count_by_status(tx: Tx) -> dict[str, int]:
    rows = await tx.all("SELECT status, count(*) AS found FROM deliveries GROUP BY status")
    return {row["status"]: row["found"] for row in rows}


_VALUES = """(delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id, event_id, incident_id,
  receiver_id, parent_id, once_key, request, status, available_at, created_at)
VALUES (:delivery_uuid, :tenant_id, :site_id, :camera_key, :kind, :reason, :frame_id, :event_id, :incident_id,
  :receiver_id, :parent_id, :once_key, :request, :status, :available_at, :now_ms)"""
_INSERT = Sql(
    f"INSERT INTO deliveries {_VALUES} ON CONFLICT (once_key) DO NOTHING",
    mariadb=f"INSERT INTO deliveries {_VALUES} ON DUPLICATE KEY UPDATE once_key = VALUES(once_key)",
)
# The receivers that have something queued, by jumps from one to the next in the index: the queues may be long.
_JUMPS = f"""
WITH RECURSIVE lanes (receiver_id, found) AS (
  SELECT min(d.receiver_id), 1 FROM %s WHERE d.status = 'queued' AND d.receiver_id > :after
  UNION ALL
  SELECT (SELECT min(d.receiver_id) FROM %s WHERE d.status = 'queued'
    AND d.receiver_id > lanes.receiver_id), lanes.found + 1
  FROM lanes WHERE lanes.receiver_id IS NOT NULL AND lanes.found < {RECEIVERS_MAX}
)
SELECT receiver_id FROM lanes WHERE receiver_id IS NOT NULL ORDER BY receiver_id"""
# SQLite would take another index, and with it read all that is queued.
_INDEXED = "deliveries d INDEXED BY ix_deliveries_receiver"
_RECEIVERS = Sql(_JUMPS % ("deliveries d", "deliveries d"), sqlite=_JUMPS % (_INDEXED, _INDEXED))
_LOCK = """
UPDATE deliveries SET status = 'running', locked_by = :dispatcher, locked_token = :token,
  locked_until = :locked_until, attempt = attempt + 1
WHERE delivery_id IN (:delivery_ids...) AND status = 'queued'"""
_CLAIMED = """
SELECT d.delivery_id, d.delivery_uuid, d.locked_token, d.tenant_id, d.site_id, d.camera_key, d.kind, d.reason,
  d.frame_id, d.event_id, d.incident_id, d.receiver_id, d.parent_id, d.attempt, d.created_at, d.request, d.result,
  f.frame_uuid, r.receiver_uuid, r.updated_at AS receiver_updated_at
FROM deliveries d LEFT JOIN frames f ON f.frame_id = d.frame_id
  LEFT JOIN receivers r ON r.receiver_id = d.receiver_id AND r.tenant_id = d.tenant_id
WHERE d.delivery_id IN (:delivery_ids...) AND d.locked_token = :token AND d.status = 'running'
ORDER BY d.delivery_id"""
_DUE = f"""
SELECT delivery_id FROM deliveries WHERE status = 'delayed' AND available_at <= :now_ms
ORDER BY available_at, delivery_id LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED"""
