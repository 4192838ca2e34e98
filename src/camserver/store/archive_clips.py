"""Clips on their way to archives: queued when a clip is ready or its event is put into a case, read when copied.

A clip's copy is a row of `drive_objects` like a picture's, with the best frame of its event: so it is kept as long as
that is in a case, and a signed link finds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import uuid_utils

from camserver.domain.archive import clip_once_key
from camserver.domain.facts import DeliveryKind
from camserver.domain.retention import Retention
from camserver.store import deliveries
from camserver.store.archive import CASE_REASON, Case
from camserver.store.cameras import public_camera_id
from camserver.store.deliveries import NewDelivery
from camserver.store.tx import Row, Scoped, Tx

CLIP_REASON = "clip"
_ARCHIVES = """
SELECT receiver_id FROM receivers
WHERE tenant_id = :tenant_id AND enabled = 1 AND kind IN ('folder','s3','drive') ORDER BY receiver_id"""
_CLIP = """
SELECT k.clip_id, k.tenant_id, k.camera_key, k.event_id, k.object_key, k.object_bytes, k.begin_at, e.event_uuid,
  e.site_id, e.incident_id, e.best_frame_id, e.retention_class, e.own_class, c.camera_id, s.timezone
FROM clips k JOIN events e ON e.event_id = k.event_id JOIN cameras c ON c.camera_key = k.camera_key
JOIN sites s ON s.site_id = e.site_id"""
_HOLDING_CASES = """
SELECT DISTINCT c.case_id, c.case_uuid FROM case_items i JOIN cases c ON c.case_id = i.case_id
WHERE i.holds = 1 AND ((i.kind = 'event' AND i.object_id = :event_id)
  OR (i.kind = 'clip' AND i.object_id = :clip_id)) ORDER BY c.case_id"""


@dataclass(frozen=True, slots=True)
class ArchivedClip:
    """A clip as far as archives want to know."""

    clip_id: int
    tenant_id: int
    camera_key: int
    camera_id: str
    event_uuid: str
    best_frame_id: int | None
    object_key: str
    begin_at: int
    timezone: str
    retention: Retention  # its event's own, in a case or not
    cases: tuple[Case, ...]  # those that hold it


async def clip(tx: Tx, clip_id: int) -> ArchivedClip | None:
    """None when it is gone."""
    row = await tx.one(f"{_CLIP} WHERE k.clip_id = :clip_id AND k.state = 'ready'", clip_id=clip_id)
    if row is None or row["object_key"] is None:
        return None
    held = await tx.all(_HOLDING_CASES, event_id=row["event_id"], clip_id=clip_id)
    own = row["own_class"] if row["retention_class"] == Retention.CASE else row["retention_class"]
    return ArchivedClip(
        clip_id=row["clip_id"],
        tenant_id=row["tenant_id"],
        camera_key=row["camera_key"],
        camera_id=public_camera_id(row["camera_id"]),
        event_uuid=row["event_uuid"],
        best_frame_id=row["best_frame_id"],
        object_key=row["object_key"],
        begin_at=row["begin_at"],
        timezone=row["timezone"],
        retention=Retention(own or Retention.NORMAL),
        cases=tuple(Case(case["case_id"], case["case_uuid"]) for case in held),
    )


async def queue(tx: Tx, clip_ids: Sequence[int], now_ms: int) -> None:
    """Queues clips that have just become ready, in that transaction. Without archives nothing happens."""
    if not clip_ids:
        return
    rows = await tx.all(f"{_CLIP} WHERE k.clip_id IN (:clip_ids...) ORDER BY k.clip_id", clip_ids=sorted(clip_ids))
    tenants = sorted({row["tenant_id"] for row in rows})
    wanted = {tenant_id for tenant_id in tenants if await tx.one(f"{_ARCHIVES} LIMIT 1", tenant_id=tenant_id)}
    new = [
        _new(row, row["tenant_id"], DeliveryKind.ARCHIVE, CLIP_REASON, None, None)
        for row in rows
        if row["tenant_id"] in wanted
    ]
    await deliveries.add(tx, tuple(new), now_ms)


async def queue_for_case(tx: Scoped, case: Case, event_id: int, now_ms: int) -> None:
    """Queues the copies of an event's clip that a case holds now, one for each archive."""
    receivers = await tx.all(_ARCHIVES)
    rows = await tx.all(
        f"{_CLIP} WHERE k.tenant_id = :tenant_id AND k.event_id = :event_id AND k.state = 'ready'", event_id=event_id
    )
    new = [
        _new(row, tx.principal.tenant_id, DeliveryKind.COPY, CASE_REASON, receiver["receiver_id"], case)
        for row in rows
        for receiver in receivers
    ]
    await deliveries.add_own(tx, tuple(new), now_ms)


def _new(
    row: Row, tenant_id: int, kind: DeliveryKind, reason: str, receiver_id: int | None, case: Case | None
) -> NewDelivery:
    of_case = {} if case is None else {"case_id": case.case_id, "case_uuid": case.case_uuid}
    return NewDelivery(
        delivery_uuid=str(uuid_utils.uuid7()),
        tenant_id=tenant_id,
        kind=kind,
        reason=reason,
        request={"clip_id": row["clip_id"], **of_case},
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        event_id=row["event_id"],
        incident_id=row["incident_id"],
        receiver_id=receiver_id,
        once_key=clip_once_key(row["clip_id"], receiver_id, None if case is None else case.case_id),
    )
