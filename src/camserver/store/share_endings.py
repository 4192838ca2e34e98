"""Shares that end because a case took what they show, or gave it up: nothing of a case is ever shared.

While it is in the case a share opens nothing of it anyway (`shares.opened`). It is revoked as well, or it would come
alive again with the end of the case. What joined an event of the case later, and what somebody shared at the very
moment it went into the case, is met when the case gives it up.
"""

from collections.abc import Sequence

from camserver.store import audit
from camserver.store.tx import Scoped


async def end_taken(
    tx: Scoped, event_ids: Sequence[int], frame_ids: Sequence[int], address: str | None, now_ms: int
) -> None:
    """Revokes shares of these events with all their frames, and of these frames. `address` None: nobody asks now,
    it follows from a change of the case."""
    await _revoke(tx, _TAKEN, event_ids, frame_ids, address, now_ms)


async def end_given_up(
    tx: Scoped, event_ids: Sequence[int], frame_ids: Sequence[int], address: str | None, now_ms: int
) -> None:
    """The same, and shares of an event that left out one of these frames and would show it from now on."""
    await _revoke(tx, _GIVEN_UP, event_ids, frame_ids, address, now_ms)


async def _revoke(
    tx: Scoped, which: str, event_ids: Sequence[int], frame_ids: Sequence[int], address: str | None, now_ms: int
) -> None:
    found = await tx.all(
        f"{_OPEN} AND ({which})", event_ids=list(event_ids), frame_ids=list(frame_ids), now_ms=now_ms
    )
    entries = []
    for share in found:
        ended = await tx.run(
            "UPDATE shares SET revoked_at = :now_ms WHERE tenant_id = :tenant_id AND share_id = :share_id "
            "AND revoked_at IS NULL",
            share_id=share["share_id"],
            now_ms=now_ms,
        )
        if ended:
            details = {"kind": share["kind"], "uuid": share["object_uuid"], "by": "case"}
            entries.append(audit.Entry("share_revoked", now_ms, address or "", "share", share["share_uuid"], details))
    if entries:
        nobody = {"actor_kind": "system", "actor_id": ""}
        await audit.add_rows(
            tx,
            [audit.own_row(tx.principal, one) if address is not None else nobody | one.columns() for one in entries],
        )


_OPEN = """
SELECT h.share_id, h.share_uuid, h.kind, h.object_uuid FROM shares h
LEFT JOIN events e ON h.kind = 'event' AND e.event_uuid = h.object_uuid
LEFT JOIN frames f ON h.kind = 'frame' AND f.frame_uuid = h.object_uuid
WHERE h.tenant_id = :tenant_id AND h.revoked_at IS NULL AND (h.expires_at IS NULL OR h.expires_at > :now_ms)"""
_TAKEN = """e.event_id IN (:event_ids...) OR f.event_id IN (:event_ids...) OR f.frame_id IN (:frame_ids...)
  OR f.frame_id IN (SELECT b.best_frame_id FROM events b WHERE b.event_id IN (:event_ids...))"""
_GIVEN_UP = f"""{_TAKEN}
  OR e.event_id IN (SELECT g.event_id FROM frames g WHERE g.frame_id IN (:frame_ids...))"""
