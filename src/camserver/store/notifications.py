"""Messages that were sent: written with the end of their delivery, read by people, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.notices import NotifyPolicy
from camserver.store import camera_filters, cooldowns
from camserver.store.cameras import public_camera_id
from camserver.store.cooldowns import Reserved
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.tx import Row, Scoped, Tx

PAGE_MAX = 200


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that its receiver has taken."""

    tenant_id: int
    delivery_id: int
    receiver_id: int
    site_id: int | None
    camera_key: int | None
    event_id: int | None
    incident_id: int | None
    channel: str  # the receiver's kind
    body: str
    held_back: int = 0


@dataclass(frozen=True, slots=True)
class NotificationSummary:
    delivery_uuid: str | None
    receiver_name: str | None
    channel: str
    site: str | None
    camera_id: str | None
    camera_name: str | None
    event_uuid: str | None
    incident_uuid: str | None
    body: str
    held_back: int
    sent_at: int
    cursor: str


async def sent(tx: Tx, message: Sent, reserved: Reserved | None, policy: NotifyPolicy | None, now_ms: int) -> None:
    """Remembers a message and starts its cooldowns, in the transaction that ends its delivery."""
    await sent_each(tx, ((message, reserved, policy, now_ms),))


async def sent_each(tx: Tx, messages: Sequence[tuple[Sent, Reserved | None, NotifyPolicy | None, int]]) -> None:
    """As `sent` for one after the other, with few statements."""
    await tx.at_once(_INSERT, [_columns(message, now_ms) for message, _, _, now_ms in messages])
    reserved_ones = [
        (reserved, policy, now_ms)
        for _, reserved, policy, now_ms in messages
        if reserved is not None and policy is not None
    ]
    if reserved_ones:
        await cooldowns.sent_each(tx, reserved_ones)


def _columns(message: Sent, now_ms: int) -> dict[str, object]:
    return {
        "tenant_id": message.tenant_id,
        "delivery_id": message.delivery_id,
        "receiver_id": message.receiver_id,
        "site_id": message.site_id,
        "camera_key": message.camera_key,
        "event_id": message.event_id,
        "incident_id": message.incident_id,
        "channel": message.channel,
        "body": message.body,
        "held_back": message.held_back,
        "now_ms": now_ms,
    }


async def page(
    tx: Scoped, camera_ids: tuple[str, ...], before: str | None, limit: int
) -> tuple[NotificationSummary, ...]:
    """Messages of the sites in reach, newest first, from behind the cursor. Those about no site are the tenant's, so
    only whoever reaches all sites sees them."""
    at_ms, key = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.NOTIFICATIONS, before)
    await camera_filters.check_known(tx, camera_ids)
    narrowed = " AND c.camera_id IN (:camera_ids...)" if camera_ids else ""
    rows = await tx.all(
        f"""{_PAGE}{narrowed}
        AND (n.sent_at < :at_ms OR (n.sent_at = :at_ms AND n.notification_id < :key))
        ORDER BY n.sent_at DESC, n.notification_id DESC LIMIT :limit""",
        at_ms=at_ms,
        key=key,
        limit=min(limit, PAGE_MAX),
        **({"camera_ids": list(camera_ids)} if camera_ids else {}),
    )
    return tuple(_summary(row) for row in rows)


def _summary(row: Row) -> NotificationSummary:
    return NotificationSummary(
        delivery_uuid=row["delivery_uuid"],
        receiver_name=row["receiver_name"],
        channel=row["channel"],
        site=row["site"],
        camera_id=None if row["camera_id"] is None else public_camera_id(row["camera_id"]),
        camera_name=row["camera_name"],
        event_uuid=row["event_uuid"],
        incident_uuid=row["incident_uuid"],
        body=row["body"],
        held_back=row["suppressed"],
        sent_at=row["sent_at"],
        cursor=make_cursor(Listed.NOTIFICATIONS, row["sent_at"], row["notification_id"]),
    )


_INSERT = """
INSERT INTO notifications (tenant_id, delivery_id, receiver_id, site_id, camera_key, event_id, incident_id, channel,
  body, suppressed, sent_at)
VALUES (:tenant_id, :delivery_id, :receiver_id, :site_id, :camera_key, :event_id, :incident_id, :channel,
  :body, :held_back, :now_ms)"""
_PAGE = """
SELECT n.notification_id, n.channel, n.body, n.suppressed, n.sent_at, d.delivery_uuid, r.name AS receiver_name,
  s.name AS site, c.camera_id, c.name AS camera_name, e.event_uuid, i.incident_uuid
FROM notifications n
LEFT JOIN deliveries d ON d.delivery_id = n.delivery_id
LEFT JOIN receivers r ON r.receiver_id = n.receiver_id
LEFT JOIN sites s ON s.site_id = n.site_id
LEFT JOIN cameras c ON c.camera_key = n.camera_key
LEFT JOIN events e ON e.event_id = n.event_id
LEFT JOIN incidents i ON i.incident_id = n.incident_id
WHERE n.tenant_id = :tenant_id AND IN_REACH(n)"""
