"""Deliveries as people see to them: lists with filters, one with its answer, and queueing dead ones again.

Within the principal's tenant and sites. What belongs to no site, such as a trial, is for those who reach all sites.
"""

from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.store import audit, event_pages, receivers
from camserver.store.cameras import public_camera_id
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.tx import Row, Scoped

PAGE_MAX = 200
REQUEUE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries are asked for; what is left out does not narrow. Times are those of their making."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    receiver_uuid: str | None = None
    event_uuid: str | None = None
    parent_uuid: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None  # not included


@dataclass(frozen=True, slots=True)
class DeliverySummary:
    delivery_uuid: str
    kind: str
    reason: str
    status: str
    attempt: int
    receiver_uuid: str | None
    receiver_name: str | None
    receiver_kind: str | None
    parent_uuid: str | None
    site: str | None
    camera_id: str | None
    event_uuid: str | None
    frame_uuid: str | None
    created_at: int
    available_at: int
    finished_at: int | None
    last_error: str | None
    result: str | None  # JSON
    cursor: str


_FROM = """
FROM deliveries d
LEFT JOIN receivers r ON r.receiver_id = d.receiver_id
LEFT JOIN deliveries p ON p.delivery_id = d.parent_id
LEFT JOIN sites s ON s.site_id = d.site_id
LEFT JOIN cameras c ON c.camera_key = d.camera_key
LEFT JOIN events e ON e.event_id = d.event_id
LEFT JOIN frames f ON f.frame_id = d.frame_id
WHERE d.tenant_id = :tenant_id AND IN_REACH(d)"""
_DELIVERIES = f"""
SELECT d.delivery_id, d.delivery_uuid, d.kind, d.reason, d.status, d.attempt, d.created_at, d.available_at,
  d.finished_at, d.last_error, d.result, r.receiver_uuid, r.name AS receiver_name, r.kind AS receiver_kind,
  p.delivery_uuid AS parent_uuid, s.name AS site, c.camera_id, e.event_uuid, f.frame_uuid{_FROM}"""


async def page(tx: Scoped, wanted: DeliveryFilter, before: str | None, limit: int) -> tuple[DeliverySummary, ...]:
    """Newest first, from behind the cursor; NotFound when a receiver, event or delivery that is asked for is not
    there."""
    _, delivery_id = (0, BEYOND) if before is None else parse_cursor(Listed.DELIVERIES, before)
    await _check_known(tx, wanted)
    clauses, params = _narrowed(wanted)
    rows = await tx.all(
        f"{_DELIVERIES}{clauses} AND d.delivery_id < :before ORDER BY d.delivery_id DESC LIMIT :limit",
        before=delivery_id,
        limit=min(limit, PAGE_MAX),
        **params,
    )
    return tuple(_summary(row) for row in rows)


async def get(tx: Scoped, delivery_uuid: str) -> DeliverySummary:
    return _summary(await _row(tx, delivery_uuid))


async def requeue(tx: Scoped, delivery_uuid: str, address: str, now_ms: int) -> DeliverySummary:
    """Queues a dead delivery again. Its attempts and its age begin anew; its id and what it reached stay."""
    row = await _row(tx, delivery_uuid)
    if row["status"] != "dead":
        raise Conflict(
            f"the delivery {delivery_uuid} is {row['status']}; only a dead one is queued again",
            reason="delivery_not_dead",
        )
    if row["receiver_name"] is None and row["kind"] in ("message", "copy"):
        raise Conflict("the receiver of this delivery was removed", reason="delivery_without_receiver")
    await _queue(tx, [row["delivery_id"]], now_ms)
    entry = audit.Entry("delivery_requeued", now_ms, address, "delivery", delivery_uuid)
    await audit.add_own(tx, entry)
    return await get(tx, delivery_uuid)


async def requeue_all(tx: Scoped, wanted: DeliveryFilter, address: str, now_ms: int) -> int:
    """Queues the dead ones that fit again, oldest first, up to REQUEUE_MAX; how many. Ask again for the rest.

    NotFound as for a page.
    """
    await _check_known(tx, wanted)
    clauses, params = _narrowed(wanted)
    rows = await tx.all(
        f"SELECT d.delivery_id{_FROM}{clauses} AND d.status = 'dead' "
        "AND (r.receiver_id IS NOT NULL OR d.kind NOT IN ('message','copy')) "
        "ORDER BY d.delivery_id LIMIT :limit",
        limit=REQUEUE_MAX,
        **params,
    )
    if rows:
        await _queue(tx, [row["delivery_id"] for row in rows], now_ms)
        details: dict[str, str | int] = {"count": len(rows), "receiver": wanted.receiver_uuid or ""}
        await audit.add_own(tx, audit.Entry("deliveries_requeued", now_ms, address, "delivery", "", details))
    return len(rows)


async def _queue(tx: Scoped, delivery_ids: list[int], now_ms: int) -> None:
    await tx.run(
        """
        UPDATE deliveries SET status = 'queued', attempt = 0, created_at = :now_ms, available_at = :now_ms,
          finished_at = NULL
        WHERE delivery_id IN (:delivery_ids...) AND status = 'dead' AND tenant_id = :tenant_id""",
        delivery_ids=delivery_ids,
        now_ms=now_ms,
    )
    tx.changed(kind="delivery", at_ms=now_ms)


async def _row(tx: Scoped, delivery_uuid: str) -> Row:
    row = await tx.one(f"{_DELIVERIES} AND d.delivery_uuid = :delivery_uuid", delivery_uuid=delivery_uuid)
    if row is None:
        raise NotFound(f"there is no delivery {delivery_uuid}; it may be past its retention", reason="no_delivery")
    return row


async def _check_known(tx: Scoped, wanted: DeliveryFilter) -> None:
    if wanted.receiver_uuid is not None:
        await receivers.get(tx, wanted.receiver_uuid)
    if wanted.event_uuid is not None:
        await event_pages.check_known(tx, wanted.event_uuid)
    if wanted.parent_uuid is not None:
        await _row(tx, wanted.parent_uuid)


def _narrowed(wanted: DeliveryFilter) -> tuple[str, dict[str, object]]:
    """Only what was asked for is in the statement, so that the databases plan for it."""
    chosen: list[tuple[str, str, object]] = [
        ("d.status IN (:statuses...)", "statuses", list(wanted.statuses) or None),
        ("d.kind IN (:kinds...)", "kinds", list(wanted.kinds) or None),
        ("r.receiver_uuid = :receiver_uuid", "receiver_uuid", wanted.receiver_uuid),
        ("e.event_uuid = :event_uuid", "event_uuid", wanted.event_uuid),
        ("p.delivery_uuid = :parent_uuid", "parent_uuid", wanted.parent_uuid),
        ("d.created_at >= :from_ms", "from_ms", wanted.from_ms),
        ("d.created_at < :to_ms", "to_ms", wanted.to_ms),
    ]
    used = [(clause, name, value) for clause, name, value in chosen if value is not None]
    return "".join(f" AND {clause}" for clause, _, _ in used), {name: value for _, name, value in used}


def _summary(row: Row) -> DeliverySummary:
    return DeliverySummary(
        delivery_uuid=row["delivery_uuid"],
        kind=row["kind"],
        reason=row["reason"],
        status=row["status"],
        attempt=row["attempt"],
        receiver_uuid=row["receiver_uuid"],
        receiver_name=row["receiver_name"],
        receiver_kind=row["receiver_kind"],
        parent_uuid=row["parent_uuid"],
        site=row["site"],
        camera_id=None if row["camera_id"] is None else public_camera_id(row["camera_id"]),
        event_uuid=row["event_uuid"],
        frame_uuid=row["frame_uuid"],
        created_at=row["created_at"],
        available_at=row["available_at"],
        finished_at=row["finished_at"],
        last_error=row["last_error"],
        result=row["result"],
        cursor=make_cursor(Listed.DELIVERIES, row["created_at"], row["delivery_id"]),
    )
