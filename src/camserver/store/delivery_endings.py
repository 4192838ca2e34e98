"""How attempts at deliveries end: done, fanned out, held back, put off or dead; whole and under their fence.

What a handler wants to be written together with the end of its delivery goes into the same transaction.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import uuid_utils

from camserver.base.log import get_logger
from camserver.base.plain_json import plain_json
from camserver.domain.deliveries import (
    Along,
    Child,
    DeliveriesPolicy,
    Done,
    Ending,
    FanOut,
    JsonObject,
    Later,
    Suppressed,
    Trouble,
    after_trouble,
)
from camserver.domain.jobs import Dead, Delay
from camserver.store import cooldowns, notifications
from camserver.store.deliveries import SWEEP_BATCH, NewDelivery, add
from camserver.store.tx import Row, Tx

log = get_logger(__name__)

REASON_MAX_CHARS = 255
# A result that can't be kept. What was done must not be done again because of what its receiver said.
NOT_KEPT = "{}"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt and what it leads to."""

    follows: Delay | Dead
    error: str
    progress: JsonObject | None = None
    along: tuple[Along, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """How an attempt ended."""

    delivery_id: int
    token: str
    ending: Ending | Failed


async def settle(tx: Tx, settled: tuple[Settled, ...], now_ms: int) -> tuple[bool, ...]:
    """Writes how attempts ended, each whole or not at all; False for those whose fence is lost."""
    rows = await tx.all(
        _HELD,
        delivery_ids=sorted({one.delivery_id for one in settled}),
        tokens=sorted({one.token for one in settled}),
    )
    held = {(row["delivery_id"], row["locked_token"]): row for row in rows}
    kept = [one for one in settled if (one.delivery_id, one.token) in held]
    await _write_endings(tx, kept, now_ms)
    children = [
        _as_new(held[one.delivery_id, one.token], child)
        for one in kept
        if isinstance(one.ending, FanOut)
        for child in one.ending.children
    ]
    await add(tx, tuple(children), now_ms)
    for one in kept:
        row = held[one.delivery_id, one.token]
        _tell_if_dead(tx, row, one.ending, now_ms)
    await _write_along(tx, [along for one in kept for along in one.ending.along])
    return tuple((one.delivery_id, one.token) in held for one in settled)


async def _write_along(tx: Tx, along: Sequence[Along]) -> None:
    """What handlers want to be written; those of a kind that most deliveries have, all of them together."""
    together: dict[Callable[..., Awaitable[object]], list[tuple[object, ...]]] = {each: [] for each in _EACH.values()}
    for one in along:
        each = _EACH.get(one.operation)
        if each is None:
            await one.operation(tx, *one.args)
        else:
            together[each].append(one.args)
    for each, args in together.items():
        if args:
            await each(tx, tuple(args))


def _tell_if_dead(tx: Tx, row: Row, ending: Ending | Failed, now_ms: int) -> None:
    """A dead letter is for people to see."""
    if isinstance(ending, Failed) and isinstance(ending.follows, Dead):
        tx.changed(tenant_id=row["tenant_id"], kind="delivery", at_ms=now_ms, site_id=row["site_id"])


async def _write_endings(tx: Tx, settled: Sequence[Settled], now_ms: int) -> None:
    over: list[dict[str, object]] = []
    again: list[dict[str, object]] = []
    for one in sorted(settled, key=lambda one: one.delivery_id):
        ending = one.ending
        if isinstance(ending, Later):
            again.append(_delayed(one.delivery_id, Delay(ending.at_ms, refund=True), ending.reason, None))
            continue
        if isinstance(ending, Failed) and isinstance(ending.follows, Delay):
            again.append(_delayed(one.delivery_id, ending.follows, ending.error, ending.progress))
            continue
        status, error, result = _over(one.delivery_id, ending)
        over.append(
            {
                "delivery_id": one.delivery_id,
                "status": status,
                "error": error,
                "result": result,
                "now_ms": now_ms,
            }
        )
    if over:
        await tx.by_key(_OVER, over)
    if again:
        await tx.by_key(_AGAIN, again)


def _delayed(delivery_id: int, until: Delay, error: str, progress: JsonObject | None) -> dict[str, object]:
    return {
        "delivery_id": delivery_id,
        "available_at": until.available_at,
        "refund": int(until.refund),
        "error": _line(error),
        "result": _kept(delivery_id, progress),
    }


def _over(delivery_id: int, ending: Done | FanOut | Suppressed | Failed) -> tuple[str, str | None, str | None]:
    """Status, error and result of a delivery that is over."""
    if isinstance(ending, Done | FanOut):
        return "done", None, _kept(delivery_id, ending.result)
    if isinstance(ending, Suppressed):
        return "suppressed", _line(ending.reason), None
    reason = f"{ending.follows.reason}: " if isinstance(ending.follows, Dead) else ""
    return "dead", _line(f"{reason}{ending.error}"), _kept(delivery_id, ending.progress)


def _kept(delivery_id: int, held: JsonObject | None) -> str | None:
    if not held:
        return None
    text = plain_json(held)
    if text is None:
        log.warning("delivery_result_not_kept", delivery_id=delivery_id, names=sorted(map(repr, held))[:10])
    return NOT_KEPT if text is None else text


def _line(reason: str) -> str:
    """Not every database takes every character."""
    return "".join(char if char.isprintable() else " " for char in reason[:REASON_MAX_CHARS])


def _as_new(parent: Row, child: Child) -> NewDelivery:
    return NewDelivery(
        delivery_uuid=str(uuid_utils.uuid7()),
        tenant_id=parent["tenant_id"],
        kind=child.kind,
        reason=parent["reason"],
        request=child.request,
        site_id=parent["site_id"],
        camera_key=parent["camera_key"],
        frame_id=parent["frame_id"],
        event_id=parent["event_id"],
        incident_id=parent["incident_id"],
        receiver_id=child.receiver_id,
        parent_id=parent["delivery_id"],
        once_key=child.key(parent["delivery_uuid"]),
        available_at=child.available_at,
    )


async def return_expired(tx: Tx, now_ms: int, policy: DeliveriesPolicy, jitter: float) -> int:
    """Takes deliveries back from dispatchers that died. The attempt counts: it may be what killed them."""
    rows = await tx.all(_EXPIRED, now_ms=now_ms)
    settled = [
        Settled(
            row["delivery_id"],
            row["locked_token"],
            Failed(
                after_trouble(
                    Trouble.FAILED,
                    attempt=row["attempt"],
                    created_at=row["created_at"],
                    now_ms=now_ms,
                    policy=policy,
                    jitter=jitter,
                ),
                "the lock ran out",
            ),
        )
        for row in rows
    ]
    await _write_endings(tx, settled, now_ms)
    for row, one in zip(rows, settled, strict=True):
        _tell_if_dead(tx, row, one.ending, now_ms)
    return len(rows)


# What does the same for many at once.
_EACH: Mapping[Callable[..., Awaitable[object]], Callable[..., Awaitable[object]]] = {
    notifications.sent: notifications.sent_each,
    cooldowns.held_back: cooldowns.held_back_each,
    cooldowns.given_up: cooldowns.given_up_each,
}
_HELD = """
SELECT delivery_id, delivery_uuid, locked_token, tenant_id, site_id, camera_key, reason, frame_id, event_id,
  incident_id
FROM deliveries WHERE delivery_id IN (:delivery_ids...) AND locked_token IN (:tokens...) AND status = 'running'
ORDER BY delivery_id FOR UPDATE"""
_OVER = """
UPDATE deliveries SET status = :status, finished_at = :now_ms, last_error = :error, result = :result,
  locked_by = NULL, locked_token = NULL, locked_until = NULL
WHERE delivery_id = :delivery_id"""
_AGAIN = """
UPDATE deliveries SET status = 'delayed', available_at = :available_at, attempt = attempt - :refund,
  last_error = :error, result = COALESCE(:result, result),
  locked_by = NULL, locked_token = NULL, locked_until = NULL
WHERE delivery_id = :delivery_id"""
_EXPIRED = f"""
SELECT delivery_id, locked_token, attempt, created_at, tenant_id, site_id FROM deliveries
WHERE status = 'running' AND locked_until < :now_ms ORDER BY delivery_id LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED"""
