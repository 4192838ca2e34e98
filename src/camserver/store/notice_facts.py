"""What a notice is about, and what routing needs to decide who gets it; read in one go.

Read again at sending, so a message tells what is so then: the event's worst severity, its best picture, its end.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from camserver.domain.deliveries import TELLING
from camserver.domain.health import Issue
from camserver.domain.links import may_be_linked
from camserver.domain.messages import Facts
from camserver.domain.notices import cooldown_scope
from camserver.domain.routing import Notice, Recipient, Rule, Snooze, hour_of
from camserver.store import cooldowns, notify_rules, snoozes
from camserver.store.cameras import PicturePlace, public_camera_id
from camserver.store.cooldowns import Sending
from camserver.store.tx import Row, Tx

TAGS_MAX = 200
# Cameras that one message tells of; those beyond are not counted.
OTHERS_MAX = 999


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event with everything that a message says about it."""

    event_id: int
    event_uuid: str
    incident_uuid: str
    tenant_id: int
    site_id: int
    site: str
    timezone: str
    camera_key: int
    camera_id: str
    camera: str
    primary_event: str
    severity: int
    subject: str
    cause: str
    start_at: int
    last_seen_at: int
    end_at: int | None
    received_at: int
    tags: tuple[str, ...]
    is_unclear: bool  # the analyzer could not make out what it was
    # Other cameras of its site that no worker looks at either, where that is what it is about.
    others: tuple[int, ...]
    picture: PicturePlace | None  # the best frame's small picture; None when there is none, or a case holds it

    @property
    def notice(self) -> Notice:
        """As rules look at it."""
        return self.notices[0]

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The event's own, and those of the cameras that it tells of too."""
        keys = (self.camera_key, *self.others)
        return tuple(Notice(self.site_id, key, self.primary_event, self.severity) for key in keys)

    def facts(self, reason: str, zone: tzinfo) -> Facts:
        """As a message tells it."""
        return Facts(
            reason=reason,
            site=self.site,
            camera_id=self.camera_id,
            camera=self.camera,
            zone=zone,
            primary_event=self.primary_event,
            severity=self.severity,
            tags=self.tags,
            start_at=self.start_at,
            last_seen_at=self.last_seen_at,
            end_at=self.end_at,
            received_at=self.received_at,
            event_uuid=self.event_uuid,
            incident_uuid=self.incident_uuid,
            subject=self.subject,
            cause=self.cause,
            is_unclear=self.is_unclear,
            cameras_more=len(self.others),
        )


@dataclass(frozen=True, slots=True)
class Telling:
    """What routing decides on."""

    event: EventRow
    rules: tuple[Rule, ...]
    snoozes: tuple[Snooze, ...]
    recipients: tuple[Recipient, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which event is to be told, and to whom. Without a receiver it is every one that people are told through."""

    tenant_id: int
    event_id: int
    frame_id: int | None = None
    receiver_id: int | None = None


async def telling(
    tx: Tx, tenant_id: int, event_id: int, frame_id: int | None, receiver_id: int | None, now_ms: int
) -> Telling | None:
    """None when the event is no more."""
    [found] = await tellings(tx, (Asked(tenant_id, event_id, frame_id, receiver_id),), now_ms)
    return found


async def tellings(tx: Tx, asked: tuple[Asked, ...], now_ms: int) -> tuple[Telling | None, ...]:
    """As `telling` for each of them, with as many statements for all as for one."""
    events = await _events(tx, asked)
    tenant_ids = {one.tenant_id for one in asked if one in events}
    rules = {tenant_id: await notify_rules.of_tenant(tx, tenant_id) for tenant_id in tenant_ids}
    silent = {tenant_id: await snoozes.active(tx, tenant_id, now_ms) for tenant_id in tenant_ids}
    recipients = {tenant_id: await _recipients(tx, tenant_id, asked, now_ms) for tenant_id in tenant_ids}
    return tuple(
        Telling(
            events[one],
            rules[one.tenant_id],
            silent[one.tenant_id],
            tuple(
                recipient
                for recipient in recipients[one.tenant_id]
                if one.receiver_id is None or recipient.receiver_id == one.receiver_id
            ),
        )
        if one in events
        else None
        for one in asked
    )


async def _events(tx: Tx, asked: Sequence[Asked]) -> dict[Asked, EventRow]:
    """The events that are still there."""
    event_ids = sorted({one.event_id for one in asked})
    rows = {(row["tenant_id"], row["event_id"]): row for row in await tx.all(_EVENTS, event_ids=event_ids)}
    if not rows:
        return {}
    frame_ids = sorted({one.frame_id for one in asked if one.frame_id is not None})
    frames = {row["frame_id"]: row for row in await tx.all(_FRAMES, frame_ids=frame_ids)} if frame_ids else {}
    tags: dict[int, list[str]] = {}
    for tag in await tx.all(_TAGS, event_ids=event_ids):
        tags.setdefault(tag["event_id"], []).append(tag["tag_id"])
    others = {key: await _others(tx, row) for key, row in rows.items()}
    found = {}
    for one in asked:
        key = one.tenant_id, one.event_id
        if key in rows:
            frame = None if one.frame_id is None else frames.get(one.frame_id)
            found[one] = _event(rows[key], frame, tuple(tags.get(one.event_id, ())), others[key])
    return found


@dataclass(frozen=True, slots=True)
class Listener:
    """A receiver as a preview shows it, and what its cooldowns say about the event."""

    receiver_id: int
    receiver_uuid: str
    name: str
    kind: str
    language: str
    cooldown_until: int | None
    held_back: int


async def preview(
    tx: Tx, tenant_id: int, event_uuid: str, reason: str, now_ms: int
) -> tuple[Telling, tuple[Listener, ...]] | None:
    """What a notice of an event would be decided on now; nothing is written. None when there is no such event."""
    row = await tx.one(
        "SELECT event_id FROM events WHERE tenant_id = :tenant_id AND event_uuid = :event_uuid",
        tenant_id=tenant_id,
        event_uuid=event_uuid,
    )
    found = None if row is None else await telling(tx, tenant_id, row["event_id"], None, None, now_ms)
    if found is None:
        return None
    event = found.event
    scope = cooldown_scope(event.primary_event, event.subject)
    listeners = []
    for one in await tx.all(
        "SELECT receiver_id, receiver_uuid, name, kind, language, hourly_cap FROM receivers "
        "WHERE tenant_id = :tenant_id AND receiver_id IN (:receiver_ids...)",
        tenant_id=tenant_id,
        receiver_ids=[recipient.receiver_id for recipient in found.recipients],
    ):
        sending = Sending(tenant_id, one["receiver_id"], event.camera_key, scope, reason, one["hourly_cap"])
        until, held_back = await cooldowns.look(tx, sending, now_ms)
        listeners.append(
            Listener(
                one["receiver_id"],
                one["receiver_uuid"],
                one["name"],
                one["kind"],
                one["language"],
                until,
                held_back,
            )
        )
    return found, tuple(listeners)


async def was_told(tx: Tx, event_id: int, receiver_id: int, before_ms: int) -> bool:
    """Whether a receiver heard of an event before that moment."""
    row = await tx.one(_TOLD, event_id=event_id, receiver_id=receiver_id, before_ms=before_ms)
    return row is not None


async def was_told_of_incident(tx: Tx, incident_id: int, receiver_id: int, before_ms: int) -> bool:
    """The same of any event of an incident."""
    row = await tx.one(_TOLD_OF_INCIDENT, incident_id=incident_id, receiver_id=receiver_id, before_ms=before_ms)
    return row is not None


async def _recipients(tx: Tx, tenant_id: int, asked: Sequence[Asked], now_ms: int) -> tuple[Recipient, ...]:
    """Those that are asked about; all of the tenant's where somebody asks about all."""
    receiver_ids = {one.receiver_id for one in asked if one.tenant_id == tenant_id}
    some = {"receiver_ids": sorted(one for one in receiver_ids if one is not None)}
    rows = await tx.all(
        _RECIPIENTS if None in receiver_ids else _SOME_RECIPIENTS,
        tenant_id=tenant_id,
        kinds=_KINDS,
        hour_at=hour_of(now_ms),
        **({} if None in receiver_ids else some),
    )
    return tuple(
        Recipient(row["receiver_id"], bool(row["enabled"]), row["hourly_cap"], row["sent"] or 0) for row in rows
    )


async def _others(tx: Tx, row: Row) -> tuple[int, ...]:
    if row["subject"] != Issue.UNATTENDED.value:
        return ()
    rows = await tx.all(
        _UNATTENDED,
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        camera_key=row["camera_key"],
    )
    return tuple(other["camera_key"] for other in rows if _is_unattended(other["issues"]))


def _is_unattended(issues: str) -> bool:
    """Of a camera's open issues, as store/health.py writes them."""
    return any(issue["kind"] == Issue.UNATTENDED.value for issue in json.loads(issues))


def _event(row: Row, frame: Row | None, tags: tuple[str, ...], others: tuple[int, ...]) -> EventRow:
    unclear = None if frame is None else frame["unknown_flag"]
    received_at = None if frame is None else frame["received_at"]
    has_picture = row["infer_bytes"] is not None and row["epoch_id"] is not None
    is_open = may_be_linked(row["retention_class"]) and may_be_linked(row["frame_class"] or "")
    return EventRow(
        event_id=row["event_id"],
        event_uuid=row["event_uuid"],
        incident_uuid=row["incident_uuid"] or "",
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        site=row["site"],
        timezone=row["timezone"],
        camera_key=row["camera_key"],
        camera_id=public_camera_id(row["camera_id"]),
        camera=row["camera"],
        primary_event=row["primary_event"],
        severity=row["severity_max"],
        subject=row["subject"],
        cause=row["cause"],
        start_at=row["start_at"],
        last_seen_at=row["last_seen_at"],
        end_at=row["end_at"],
        received_at=row["created_at"] if received_at is None else received_at,
        tags=tags,
        others=others,
        # Of the frame that the notice is about; a preview has none and takes the best.
        is_unclear=bool(row["unclear_best"] if unclear is None else unclear),
        picture=PicturePlace(
            row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"]
        )
        if has_picture and is_open
        else None,
    )


_KINDS = sorted(kind.value for kind in TELLING)
_EVENTS = """
SELECT e.event_id, e.event_uuid, e.tenant_id, e.site_id, e.camera_key, e.primary_event, e.severity_max, e.subject,
  e.cause, e.start_at, e.last_seen_at, e.end_at, e.created_at, e.retention_class, i.incident_uuid, s.name AS site,
  s.timezone, c.camera_id, c.name AS camera, b.epoch_id, b.captured_at, b.frame_uuid, b.infer_bytes,
  b.retention_class AS frame_class, b.unknown_flag AS unclear_best
FROM events e
JOIN sites s ON s.site_id = e.site_id
JOIN cameras c ON c.camera_key = e.camera_key
LEFT JOIN incidents i ON i.incident_id = e.incident_id
LEFT JOIN frames b ON b.frame_id = e.best_frame_id
WHERE e.event_id IN (:event_ids...)"""
_FRAMES = "SELECT frame_id, received_at, unknown_flag FROM frames WHERE frame_id IN (:frame_ids...)"
_TAGS = f"""
SELECT event_id, tag_id FROM (
  SELECT event_id, tag_id, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY tag_id) AS place
  FROM event_tags WHERE event_id IN (:event_ids...)
) t WHERE place <= {TAGS_MAX} ORDER BY event_id, tag_id"""
_UNATTENDED = f"""
SELECT c.camera_key, t.issues FROM cameras c JOIN camera_state t ON t.camera_key = c.camera_key
WHERE c.tenant_id = :tenant_id AND c.site_id = :site_id AND c.deleted_at IS NULL AND c.camera_key <> :camera_key
  AND t.issues IS NOT NULL AND t.health = 'unknown' ORDER BY c.camera_key LIMIT {OTHERS_MAX}"""
_OF_TENANT = """
SELECT r.receiver_id, r.enabled, r.hourly_cap, h.sent
FROM receivers r
LEFT JOIN receiver_hours h ON h.receiver_id = r.receiver_id AND h.hour_at = :hour_at
WHERE r.tenant_id = :tenant_id AND r.kind IN (:kinds...) {}ORDER BY r.receiver_id"""
_RECIPIENTS = _OF_TENANT.format("")
_SOME_RECIPIENTS = _OF_TENANT.format("AND r.receiver_id IN (:receiver_ids...) ")
_TOLD_OF_INCIDENT = """
SELECT d.delivery_id FROM events e JOIN deliveries d ON d.event_id = e.event_id
WHERE e.incident_id = :incident_id AND d.receiver_id = :receiver_id AND d.kind = 'message' AND d.status = 'done'
  AND d.reason <> 'back' AND d.finished_at < :before_ms LIMIT 1"""
_TOLD = """
SELECT delivery_id FROM deliveries
WHERE event_id = :event_id AND receiver_id = :receiver_id AND kind = 'message' AND status = 'done'
  AND reason <> 'back' AND finished_at < :before_ms LIMIT 1"""
